"""Sending mail by SMTP."""

import smtplib
import ssl
from contextlib import closing, suppress
from email.message import EmailMessage

from tfwright.documents.nightly import MailTable
from tfwright.errors import SupplyError

SECONDS = 30
"""To connect, and between two pieces of an answer."""


def send(table: MailTable, password: str, message: EmailMessage, to: str) -> None:
    """Send one mail to one address; raise SupplyError if the server does not take it."""
    try:
        # The default context verifies the certificate; without one nothing does.
        context = ssl.create_default_context()
        connection = (
            smtplib.SMTP_SSL(table.host, table.port, timeout=SECONDS, context=context)
            if table.security == "tls"
            else smtplib.SMTP(table.host, table.port, timeout=SECONDS)
        )
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
