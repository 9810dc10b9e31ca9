"""Mail over connections that are encrypted, to servers that show the right certificate or another one."""

import base64
import datetime as dt
import ipaddress
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.making import make_file

from tfwright.documents.nightly import MailTable
from tfwright.errors import SupplyError
from tfwright.tools import mail


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a file with a certificate for 127.0.0.1, which only itself vouches for, and its key."""
    key, now = Ed25519PrivateKey.generate(), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a mail server")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    return make_file(
        tmp_path / "server.pem",
        made.public_bytes(Encoding.PEM)
        + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


class _Smtp(socketserver.StreamRequestHandler):
    """Takes one mail, and notes each line with whether it came encrypted."""

    server: "_Server"
    ending = b"221 bye"

    def setup(self) -> None:
        if self.server.at_once:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.encrypted = self.server.at_once
        super().setup()

    def handle(self) -> None:
        self.wfile.write(b"220 test\r\n")
        reading = False
        while line := self.rfile.readline():
            self.server.lines.append((self.encrypted, line.rstrip(b"\r\n")))
            verb = line.split()[:1]
            if reading:
                reading = line != b".\r\n"
                self.wfile.write(b"" if reading else b"250 taken\r\n")
            elif verb == [b"STARTTLS"]:
                self.wfile.write(b"220 go on\r\n")
                self._encrypt()
            elif verb == [b"ehlo"]:
                self.wfile.write(b"250-test\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n")
            elif verb == [b"quit"]:
                self.wfile.write(self.ending + b"\r\n")
            elif self.server.refused in line:
                self.wfile.write(b"550 no such user\r\n")
            elif verb == [b"data"]:
                reading = True
                self.wfile.write(b"354 go on\r\n")
            else:
                self.wfile.write(b"235 yes\r\n" if verb == [b"AUTH"] else b"250 yes\r\n")

    def finish(self) -> None:
        super().finish()
        # The server knows the socket below only.
        self.request.close()

    def _encrypt(self) -> None:
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.encrypted = True
        super().setup()


class _Server(socketserver.TCPServer):
    def __init__(self, certificate: Path, *, at_once: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Smtp)
        self.at_once = at_once
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.lines: list[tuple[bool, bytes]] = []
        self.refused = b"<nobody@example.org>"

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that do not trust the certificate."""


@contextmanager
def serving(certificate: Path, security: str) -> Iterator[_Server]:
    with _Server(certificate, at_once=security == "tls") as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def send(server: _Server, security: str) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "b@example.org", "t@example.org", "subject"
    where = {"host": "127.0.0.1", "port": server.server_address[1], "security": security}
    table = {"to": ("t@example.org",), "sender": "b@example.org", "user": "me", **where}
    mail.send(MailTable.model_validate(table), "secret", message, "t@example.org")


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_user_and_mail_travel_encrypted_to_a_server_that_is_trusted(
    security: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate, security) as server:
        send(server, security)
    login = b"AUTH PLAIN " + base64.b64encode(b"\0me\0secret")
    assert (True, login) in server.lines
    assert (True, b"Subject: subject") in server.lines
    plain = [line.split()[0] for encrypted, line in server.lines if not encrypted]
    assert plain == ([b"ehlo", b"STARTTLS"] if security == "starttls" else [])


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_server_whose_certificate_is_not_trusted_gets_no_password(
    security: str, certificate: Path
) -> None:
    with (
        serving(certificate, security) as server,
        pytest.raises(SupplyError, match="SSLCertVerificationError"),
    ):
        send(server, security)
    assert not any(b"AUTH" in line for _, line in server.lines)


@pytest.mark.parametrize("said", [b"250 yes", b"500 what?"])
def test_a_mail_is_sent_once_whatever_the_server_says_to_the_end(
    said: bytes, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Smtp, "ending", said)
    with serving(certificate, "none") as server:
        send(server, "none")
    assert server.lines[-1] == (False, b"quit")


class _Repeating:
    """A socket from which the same bytes come again and again."""

    def makefile(self, _: str) -> "_Repeating":
        return self

    def readline(self, most: int) -> bytes:
        return b"x" * most


def test_answers_without_an_end_are_cut() -> None:
    answers = mail._Answers(_Repeating())  # type: ignore[arg-type]
    assert len(answers.readline(mail.MOST_SAID)) == mail.MOST_SAID
    with pytest.raises(OSError, match="says too much"):
        answers.readline(1)
