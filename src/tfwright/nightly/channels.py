"""How notices are sent: by mail, to a webhook, to a program.

Secrets come from files of mode 600.
"""

import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from tfwright.documents import account, opening
from tfwright.documents.nightly import MailTable, NoticesTable, ProgramTable, WebhookTable
from tfwright.errors import HostError, RecipeError
from tfwright.nightly.notices import Channel, Notice
from tfwright.printable import shell_word
from tfwright.tools import mail
from tfwright.tools.http import webhook
from tfwright.tools.mail import Letter, MailServer
from tfwright.tools.process import pipes

LONGEST_SECRET = 64 * 1024
"""Bytes that are read of a secret: a path to the wrong file costs no memory."""


@dataclass(frozen=True)
class MailChannel:
    """Sends notices by mail."""

    table: MailTable

    @property
    def name(self) -> str:
        """Say where the mail goes."""
        return f"mail to {', '.join(self.table.to)}"

    def send(self, notice: Notice) -> None:
        """Send one notice."""
        table = self.table
        # Read at sending: a missing file delays this channel and stops nothing else.
        password = secret(table.password_file) if table.password_file else ""
        server = MailServer(table.host, table.port, table.security, table.user or "", password)
        text = f"{notice.text}\n{notice.url}\n" if notice.url else notice.text
        subject = f"[tfwright] {notice.subject}"
        mail.send(server, Letter(table.sender, table.to, subject, text, notice.thread))


@dataclass(frozen=True)
class WebhookChannel:
    """Posts notices as JSON."""

    table: WebhookTable
    number: int

    @property
    def name(self) -> str:
        """Name it by its place in the file: the address may be a secret."""
        return f"webhook {self.number}"

    def send(self, notice: Notice) -> None:
        """Post one notice, with the key ``text`` that chat services show."""
        table = self.table
        # Chat services put the key into the address itself, hence a file for it.
        url = secret(table.url_file) if table.url_file else str(table.url)
        token = secret(table.token_file) if table.token_file else ""
        said = f"{notice.subject}\n{notice.text}{notice.url}"
        webhook.post(url, {**asdict(notice), "text": said}, token)


@dataclass(frozen=True)
class ProgramChannel:
    """Gives notices to a program."""

    table: ProgramTable
    number: int

    @property
    def name(self) -> str:
        """Name it by its place in the file and its program."""
        return f"program {self.number}: {Path(self.table.command[0]).name}"

    def send(self, notice: Notice) -> None:
        """Run the program with the notice on its standard input."""
        pipes.feed(self.table.command, json.dumps(asdict(notice)))


def of(notices: NoticesTable) -> tuple[Channel, ...]:
    """Return the channels that ``nightly.toml`` names."""
    # The queue stores notices by a channel's name, so each name has to be unique and lasting.
    mails = [MailChannel(table) for table in notices.mail]
    hooks = [WebhookChannel(table, number) for number, table in enumerate(notices.webhook, 1)]
    programs = [ProgramChannel(table, number) for number, table in enumerate(notices.program, 1)]
    return (*mails, *hooks, *programs)


def secret(path: Path) -> str:
    """Read a secret from a file that only its owner can read, or a systemd credential.

    A name without a directory is looked for among systemd's credentials. Raises HostError if
    others could read the file.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY", "")
    # systemd hands credentials over in a directory that only the service can enter.
    credential = bool(folder) and path.parent == Path()
    place = Path(folder) / path if credential else account.expanded(path)
    try:
        with opening.plain(place) as stream:
            # The mode is that of the open file: a path could be replaced between check and read.
            if not credential and stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
                raise HostError(
                    f"{place} can be read by others than its owner",
                    remedy=f"Run 'chmod 600 {shell_word(str(place))}', and change the secret.",
                )
            return stream.read(LONGEST_SECRET).decode().strip()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "it is not UTF-8 text"
        raise RecipeError(
            f"The secret in {place} cannot be read: {why}",
            remedy="Correct the path in nightly.toml, or the file.",
        ) from fault
