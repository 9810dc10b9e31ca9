"""Sending mail by SMTP."""

import smtplib
import socket
import ssl
import threading
from contextlib import closing, suppress
from email.message import EmailMessage

from tfwright.documents.nightly import MailTable
from tfwright.errors import SupplyError

SECONDS = 30
"""To connect, and between two pieces of an answer."""
LONGEST_SECONDS = 120.0
"""For all of the talk: a server that sends a byte now and then is given up."""
MOST_SAID = 1 << 20
"""Bytes of all answers together: an answer of SMTP may have any number of lines."""


def send(table: MailTable, password: str, message: EmailMessage, to: str) -> None:
    """Send one mail to one address; raise SupplyError if the server does not take it."""
    try:
        # The default context verifies the certificate; without one nothing does.
        context = ssl.create_default_context()
        if table.security == "tls":
            connection: _Plain = _Secure(table.host, table.port, context=context)
        else:
            connection = _Plain(table.host, table.port)
        with closing(connection):
            if table.security == "starttls":
                connection.starttls(context=context)
            # A relay inside a company takes mail without a login.
            if table.user:
                connection.login(table.user, password)
            connection.send_message(message, to_addrs=to)
            # The mail is taken: what the server says to the end would only send it twice.
            with suppress(OSError, smtplib.SMTPException):
                connection.quit()
    # ValueError: a host, a password or an address that cannot be written as SMTP needs it.
    except (OSError, smtplib.SMTPException, ValueError) as fault:
        raise SupplyError(
            f"{table.host} did not take the mail: {type(fault).__name__}",
            remedy="The notice is kept and sent again in the next night.",
        ) from None


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
