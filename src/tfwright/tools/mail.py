"""Sending mail by SMTP."""

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from tfwright.errors import SupplyError

SECONDS = 30
"""To connect, and between two pieces of an answer."""
LONGEST_SECONDS = 120.0
"""For all of the talk: a server that sends a byte now and then is given up."""
MOST_SAID = 1 << 20
"""Bytes of all answers together: an answer of SMTP may have any number of lines."""


@dataclass(frozen=True)
class MailServer:
    """Who takes the mail."""

    host: str
    port: int
    security: str
    """``none``, ``starttls`` or ``tls``."""
    user: str = ""
    password: str = ""


@dataclass(frozen=True)
class Letter:
    """One mail."""

    sender: str
    to: tuple[str, ...]
    subject: str
    text: str
    thread: str
    """Mails with the same thread are grouped by mail programs."""
    html: str = ""
    """The same text for mail programs that show HTML."""


def send(server: MailServer, letter: Letter) -> None:
    """Send one mail; raise SupplyError if the server does not take it."""
    try:
        with _connected(server) as connection:
            # A relay inside a company takes mail without a login.
            if server.user:
                connection.login(server.user, server.password)
            connection.send_message(message(letter))
    # ValueError: a host, a password or an address that cannot be written as SMTP needs it.
    except (OSError, smtplib.SMTPException, ValueError) as fault:
        raise SupplyError(
            f"{server.host} did not take the mail: {type(fault).__name__}",
            remedy="The notice is kept and sent again in the next night.",
        ) from None


def message(letter: Letter) -> EmailMessage:
    """Return the mail; the library refuses a header with a line break."""
    mail = EmailMessage()
    mail["From"] = letter.sender
    mail["To"] = ", ".join(letter.to)
    mail["Subject"] = " ".join(letter.subject.split())
    mail["Date"] = formatdate(usegmt=True)
    # RFC 2606 reserves .invalid: the identifier cannot be that of somebody's mail
    # server.
    mail["Message-ID"] = make_msgid(domain="tfwright.invalid")
    # Every mail of a thread refers to the same root, which need not exist.
    root = f"<{letter.thread.replace(' ', '.')}@tfwright.invalid>"
    mail["In-Reply-To"] = mail["References"] = root
    # RFC 3834: vacation responders do not answer such a mail.
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(letter.text)
    if letter.html:
        mail.add_alternative(letter.html, subtype="html")
    return mail


class _Answers:
    """What a server says, as long as that is not too much."""

    def __init__(self, connection: socket.socket) -> None:
        self._stream = connection.makefile("rb")
        self._left = MOST_SAID

    def readline(self, most: int) -> bytes:
        line = self._stream.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("the server says too much")
        return line

    def close(self) -> None:
        self._stream.close()


class _Plain(smtplib.SMTP):
    """A talk that ends after a while, whatever the server does."""

    def __init__(self, host: str, port: int, **options: ssl.SSLContext) -> None:
        self._over = threading.Event()
        self._timer = threading.Timer(LONGEST_SECONDS, self._cut)
        self._timer.daemon = True
        self._timer.start()
        try:
            # The encrypted kind takes a context.
            super().__init__(host, port, timeout=SECONDS, **options)  # type: ignore[arg-type]
        except BaseException:
            self.close()
            raise

    def getreply(self) -> tuple[int, bytes]:
        """Read one answer of the server."""
        # Before there was a socket, _cut had nothing to shut down.
        if self._over.is_set():
            raise smtplib.SMTPServerDisconnected("its time is over")
        if self.file is None and self.sock:
            self.file = _Answers(self.sock)
        return super().getreply()

    def close(self) -> None:
        """End the talk."""
        self._timer.cancel()
        super().close()

    def _cut(self) -> None:
        """Let the thread that waits for an answer meet the end of the connection."""
        self._over.set()
        if self.sock:
            # SSLSocket.shutdown would drop the TLS state under the thread that reads.
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class _Secure(_Plain, smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""


@contextmanager
def _connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """Give a connection that is as secure as the server's table asks for, and end it."""
    # The default context verifies the certificate; without one nothing does.
    context = ssl.create_default_context()
    if server.security == "tls":
        connection: _Plain = _Secure(server.host, server.port, context=context)
    else:
        connection = _Plain(server.host, server.port)
    with closing(connection):
        if server.security == "starttls":
            connection.starttls(context=context)
        yield connection
        # The mail is taken: what the server says to the end would only send it twice.
        with suppress(OSError, smtplib.SMTPException):
            connection.quit()
