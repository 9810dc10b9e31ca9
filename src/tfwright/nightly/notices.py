"""Notices: one thread for each cause, opened by a failure and closed by the next success.

A notice is first written into the state and then sent by mail, to a webhook, to a program, so that
a channel that fails delays it and loses nothing. No failure to send ever fails the night. Secrets
come from files of mode 600.
"""

import datetime as dt
import html
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from tfwright.documents import filesystem
from tfwright.documents.nightly import (
    MailTable,
    NightlyFile,
    NoticesTable,
    ProgramTable,
    Target,
    WebhookTable,
    targets,
)
from tfwright.errors import HostError, RecipeError, TfwrightError
from tfwright.nightly import builds
from tfwright.nightly.state import CheckedOn, NightVerdict, State, sound_rows
from tfwright.nightly.status import GOOD, Status, status_of
from tfwright.printable import shell_word
from tfwright.tools import json_text, mail
from tfwright.tools.http.client import post_json
from tfwright.tools.mail import Letter, MailServer
from tfwright.tools.process import pipes
from tfwright.tools.redaction import redacted

MOST_ATTEMPTS = 50
"""After so many nights a notice is given up; the page still shows what it was about."""
PATIENCE = 3
"""Failures in a row after which a channel counts as down."""
CUT_OFF = "build-host cut-off"
"""The thread of nights that do not come to their end."""
LINKS = "links"
"""The kind of notice about archives that no server has any more."""
KNOWN = "known"
"""The kind of check that notes when a target was first seen."""
LONGEST_SECRET = 64 * 1024
"""Bytes that are read of a secret: a path to the wrong file costs no memory."""


@dataclass(frozen=True)
class Notice:
    """Something that the owner of the build host should know."""

    thread: str
    """The same for every notice about one cause, so that mail programs group them."""
    target: str
    kind: str
    """``failing``, ``blocked``, ``stale``, ``links``, ``wheel``, ``fixed``; or ``cut off``."""
    subject: str
    text: str
    url: str = ""
    """The page of the build, if the site has an address."""


class Channel(Protocol):
    """A way to send notices."""

    @property
    def name(self) -> str:
        """A name that stays the same, without secrets."""

    def send(self, notice: Notice) -> None:
        """Send one notice; raise TfwrightError if that failed."""


@dataclass(frozen=True)
class Book:
    """The notices of a build host, now."""

    state: State
    now: dt.datetime
    channels: Sequence[Channel]

    def raise_all(self, nightly: NightlyFile) -> None:
        """Write a notice for every transition since the last call."""
        history = self.state.history()
        stale_nights = nightly.notices.stale_nights
        links, culprits = self.state.checks("links"), self.state.culprits()
        changes: list[Notice] = self._of_wheels(nightly, history)
        for target in targets(nightly):
            name, nights = target.name, history.get(target.name, [])
            status = status_of(nights, self.now, stale_nights)
            if not nights:
                status = self._waiting(name, stale_nights)
            known = self._open_threads(name)
            if asked := links.get(name):
                changes += _of_links(target, asked, known, nightly.url or "")
                known = [thread for thread in known if thread != f"{name} {LINKS}"]
            if status.fine:
                text = "The last night was good.\n"
                url = f"{nightly.url}recipes/{name}.html" if nightly.url else ""
                fixed = Notice("", name, "fixed", f"{name}: fixed", text, url)
                changes += [replace(fixed, thread=one) for one in known]
                continue
            late = status.word == "stale" or status.nights_bad >= stale_nights
            kind = ("blocked" if status.word == "blocked" else "stale") if late else ""
            # One blocked night says little; many of them leave users without a new wheel.
            thread = f"{name} {kind}"
            if status.word in {"newly failing", "still failing"}:
                kind = "failing"
                thread = f"{name} {kind} {builds.failure(status.detail)}"
            culprit = culprits.get(name)
            if culprit and (culprit.told or culprit.thread != builds.failure(status.detail)):
                culprit = None
            # An open thread was announced: one notice for each cause, and one for its culprit.
            if not kind or (thread in known and not culprit):
                continue
            good = f"{status.last_good:%Y-%m-%d}" if status.last_good else "never"
            text = f"{status.detail or status.word}\nLast good: {good}.\n"
            build = next((night.build for night in reversed(nights) if night.build), "")
            if culprit:
                text += f"{culprit.said}.\n"
                self.state.keep_culprit(name, replace(culprit, told=True), self.now)
            found = self.state.build(build)
            if found and found.broken and found.detail == status.detail:
                broken = found.broken
                text += f"Cause: {broken.cause}\n" if broken.cause not in {"", broken.line} else ""
                text += f"What helps: {broken.remedy}\n" if broken.remedy else ""
            url = f"{nightly.url}builds/{build}/" if nightly.url and build else ""
            changes.append(Notice(thread, name, kind, f"{name}: {status.said}", text, url))
        self._record(changes)

    def _of_wheels(
        self, nightly: NightlyFile, history: Mapping[str, Sequence[NightVerdict]]
    ) -> list[Notice]:
        """Return a notice for each wheel that the last night gave, where they are asked for."""
        found = []
        told = self.state.checks("wheel")
        for target in targets(nightly) if nightly.notices.wheels else ():
            name = target.name
            last = history[name][-1] if name in history else None
            build = self.state.build(last.build) if last and last.verdict in GOOD else None
            if build is None or (name in told and told[name].detail == build.id):
                continue
            self.state.check(name, "wheel", self.now, passed=True, detail=build.id)
            text = f"{build.wheel}\nsha256 {build.sha256}\n"
            url = f"{nightly.url}builds/{build.id}/" if nightly.url else ""
            subject = f"{name}: new wheel {build.version}"
            found.append(Notice(f"{name} wheel", name, "wheel", subject, text, url))
        return found

    def raise_cut_off(self) -> None:
        """Write a notice that the last night was cut off, once.

        No recipe is to blame for it, so that its thread has no target.
        """
        last = self.state.last_night()
        if last is None or self._open_threads(""):
            return
        text = (
            f"The night of {last.started:%Y-%m-%d %H:%M} UTC was killed, or failed as a whole. The "
            "next start goes on with it.\nIts last lines: journalctl --user -u tfwright-nightly, "
            "without --user for a system unit.\n"
        )
        subject = "the build host: a night did not come to its end"
        self._record([Notice(CUT_OFF, "", "cut off", subject, text)])

    def close_cut_off(self) -> None:
        """Write a notice that a night came to its end, if one was cut off before."""
        text = "A night came to its end again.\n"
        threads = self._open_threads("")
        self._record([Notice(one, "", "fixed", "the build host: fixed", text) for one in threads])

    def _waiting(self, target: str, stale_nights: int) -> Status:
        """Return the status of a target that no night has come to: stale after too long a wait."""
        known = self.state.checks(KNOWN).get(target)
        if known is None:
            self.state.check(target, KNOWN, self.now, passed=True, detail="")
        elif abs(self.now - known.at) > dt.timedelta(days=stale_nights):
            text = f"No night has come to it since {known.at:%Y-%m-%d}."
            return Status("stale", known.at, detail=text)
        return Status("never run")

    def _open_threads(self, target: str) -> list[str]:
        query = "select thread from thread where target = ? and closed is null"
        return [row[0] for row in self.state.database.execute(query, (target,))]

    def _record(self, changes: Sequence[Notice]) -> None:
        """Open and close threads and queue their notices, in one transaction: none is lost."""
        now = self.now.isoformat()
        with self.state.database as transaction:
            for notice in changes:
                closed = now if notice.kind in {"fixed", "wheel"} else None
                # A cause that comes back opens its old thread again.
                transaction.execute(
                    "insert into thread (thread, target, opened, closed) values (?, ?, ?, ?)"
                    " on conflict (thread) do update set closed = excluded.closed",
                    (notice.thread, notice.target, now, closed),
                )
                subject, text = redacted(notice.subject), redacted(notice.text)
                body = json.dumps(asdict(replace(notice, subject=subject, text=text)))
                for channel in self.channels:
                    transaction.execute(
                        "insert into notice (thread, body, created, channel) values (?, ?, ?, ?)",
                        (notice.thread, body, now, channel.name),
                    )

    def send(self) -> int:
        """Send what waits, oldest first; return how many notices went out.

        A channel that fails several times in a row is left alone until the next night.
        """
        sent = 0
        # Each channel has its own queue: one that fails does not delay the others.
        for channel in self.channels:
            rows = self.state.database.execute(
                "select number, body from notice where channel = ? and sent is null"
                " and attempts < ? order by number",
                (channel.name, MOST_ATTEMPTS),
            ).fetchall()
            failures = 0
            for number, body in rows:
                with sound_rows():
                    notice = Notice(**json_text.parsed(body))
                problem = _sent(channel, notice)
                self.state.write(
                    "update notice set sent = ?, attempts = attempts + 1, problem = ?"
                    " where number = ?",
                    None if problem else self.now.isoformat(),
                    problem,
                    number,
                )
                sent += not problem
                # One notice that a channel refuses must not hold up the others. But a mail server
                # that is down would cost a timeout for each of them.
                failures = failures + 1 if problem else 0
                if failures == PATIENCE:
                    break
        return sent


def _of_links(target: Target, found: CheckedOn, known: Sequence[str], url: str) -> list[Notice]:
    """Return the notice that a target's archives are lost, or are back; none without a change."""
    name = target.name
    thread = f"{name} {LINKS}"
    if found.passed is (thread not in known):
        return []
    page = f"{url}recipes/{name}.html" if url else ""
    if found.passed:
        text = "A server has each archive again.\n"
        return [Notice(thread, name, "fixed", f"{name}: archives are back", text, page)]
    text = (
        f"{found.detail}.\nAnother host cannot fetch them. 'invoke vault --links --recipe "
        f"{target.recipe}' asks each server again.\n"
    )
    subject = f"{name}: archives lost since {found.at:%Y-%m-%d}"
    return [Notice(thread, name, LINKS, subject, text, page)]


def _sent(channel: Channel, notice: Notice) -> str:
    """Send one notice; return why that failed."""
    try:
        channel.send(notice)
    except TfwrightError as fault:
        return fault.what
    except Exception as fault:  # noqa: BLE001 a flaw in a channel must not cost the night
        return f"a flaw in tfwright: {type(fault).__name__}: {fault}"
    return ""


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
        mail.send(
            server, Letter(table.sender, table.to, subject, text, notice.thread, as_html(notice))
        )


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
        """Post one notice, in the format of what receives it."""
        table = self.table
        # Chat services put the key into the address itself, hence a file for it.
        url = secret(table.url_file) if table.url_file else str(table.url)
        token = secret(table.token_file) if table.token_file else ""
        post_json(url, BODIES[table.format](notice), token)


def _plain_body(notice: Notice) -> dict[str, object]:
    """Return all of a notice, with the key ``text`` that most chat services show."""
    return {**asdict(notice), "text": f"{notice.subject}\n{notice.text}{notice.url}"}


def _slack_body(notice: Notice) -> dict[str, object]:
    """Return a message of Slack, in whose text three characters are markup."""
    # Its own documentation asks for these three only.
    lines = [html.escape(line, quote=False) for line in (notice.subject, notice.text)]
    link = f"<{notice.url}|The build's page>" if notice.url else ""
    return {"text": f"*{lines[0]}*\n{lines[1]}{link}"}


def _teams_body(notice: Notice) -> dict[str, object]:
    """Return an adaptive card, which a workflow of Teams posts."""
    blocks = [
        {"type": "TextBlock", "text": notice.subject, "weight": "Bolder", "wrap": True},
        {"type": "TextBlock", "text": notice.text.replace("\n", "\n\n"), "wrap": True},
    ]
    opens = [{"type": "Action.OpenUrl", "title": "The build's page", "url": notice.url}]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "actions": opens if notice.url else [],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _matrix_body(notice: Notice) -> dict[str, object]:
    """Return a message for the generic webhook of hookshot."""
    return {"text": f"{notice.subject}\n{notice.text}{notice.url}", "html": as_html(notice)}


BODIES: Mapping[str, Callable[[Notice], dict[str, object]]] = {
    "plain": _plain_body,
    "slack": _slack_body,
    "teams": _teams_body,
    "matrix": _matrix_body,
}
"""What a webhook is sent, by its format."""


def as_html(notice: Notice) -> str:
    """Return a notice as HTML for mail and chat, where it is the same text with a link."""
    lines = "<br>".join(html.escape(line) for line in notice.text.strip().splitlines())
    page = html.escape(notice.url)
    link = f'<p><a href="{page}">The build\'s page</a></p>' if page else ""
    return f"<h3>{html.escape(notice.subject)}</h3><p>{lines}</p>{link}"


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


def channels_of(notices: NoticesTable) -> tuple[Channel, ...]:
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
    place = Path(folder) / path if credential else filesystem.expanded(path)
    try:
        with filesystem.open_file(place) as stream:
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
