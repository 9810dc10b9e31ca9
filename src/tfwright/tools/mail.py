"""Sending mail by SMTP."""

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from tfwright.errors import SupplyError

SECONDS = 30


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
    return mail


def _connected(server: MailServer) -> smtplib.SMTP:
    if server.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(
            server.host, server.port, timeout=SECONDS, context=context
        )
    connection = smtplib.SMTP(server.host, server.port, timeout=SECONDS)
    if server.security == "starttls":
        # The default context verifies the certificate; starttls() without one does not.
        connection.starttls(context=ssl.create_default_context())
    return connection
