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
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from email import policy
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from functools import partial
from pathlib import Path

from tfwright.documents import filesystem
from tfwright.documents.nightly import (
    MailTable,
    NightlyFile,
    NoticesTable,
    ProgramTable,
    Target,
    WebhookTable,
)
from tfwright.errors import HostError, RecipeError, in_one_line
from tfwright.nightly import builds
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.pages.views import TargetView, install, views
from tfwright.nightly.state import CheckedOn, KeptBuild, PastNight, State, sound_rows
from tfwright.nightly.status import Status, no_night
from tfwright.printable import CUT, first_few, first_of, shell_word
from tfwright.tools import json_text, mail
from tfwright.tools.http.client import post_json
from tfwright.tools.process import pipes
from tfwright.tools.redaction import redact_text

MOST_ATTEMPTS = 50
"""After so many nights a notice is given up; the page still shows what it was about."""
PATIENCE = 3
"""Failures in a row after which a channel counts as down."""
FEED = "feed"
"""Stands for a channel: the site's feed shows every notice, whoever else gets it."""
CUT_OFF = "build-host cut-off"
"""The thread of nights that do not come to their end."""
LINKS = "links"
"""The kind of notice about archives that no server has any more."""
LINKED = "Open the page"
KNOWN = "known"
"""The kind of check that notes when a target was first seen."""
LONGEST, LONGEST_LINE = 4000, 160
"""Characters of a text, and of a line where many notices are one; Slack advises at most 4,000."""
MOST_SINGLY = 8
"""So many notices reach people one by one; more are one message. Slack takes one a second."""
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


@dataclass(frozen=True)
class Channel:
    """A way to send notices."""

    name: str
    """Without secrets, unique and lasting: the queue stores notices by it."""
    send: Callable[[Notice], None]
    """Sends one notice; raises TfwrightError if that failed."""
    gathers: bool = False
    """Whether people read it, so that many notices are sent as one."""


@dataclass(frozen=True)
class Book:
    """The notices of a build host, now."""

    nightly: NightlyFile
    state: State
    now: dt.datetime
    channels: Sequence[Channel]
    note: Callable[[str], None]
    """Is given a line for each channel that did not take a notice."""

    def raise_all(self) -> None:
        """Write a notice for every transition since the last call."""
        nightly, changes, threads = self.nightly, list[Notice](), self._threads()
        # Whether a wheel is withdrawn, the pages say: whoever yanked it knows.
        for view in views(nightly, self.state, {}, self.now):
            if view.listed:
                own = threads[view.target.name]
                changes += self._wheel_notices(view, own) if nightly.notices.wheels else ()
                changes += self._status_notices(view, own)
        self._record(changes)

    def _status_notices(self, view: TargetView, threads: Mapping[str, Notice]) -> Iterator[Notice]:
        """Yield what changed of a target: it broke, was fixed, or lost archives."""
        nightly, name, status = self.nightly, view.target.name, view.status
        if not view.nights:
            status = self._status_without_night(name, nightly.notices.stale_nights)
        open_threads, page = _open_threads(threads), _page_url(nightly, f"recipes/{name}.html")
        if view.links:
            yield from _archive_notices(view.target, view.links, open_threads, page)
            open_threads.pop(f"{name} {LINKS}", None)
        if status.fine:
            for thread, opened in open_threads.items():
                before = opened.text.partition("\n")[0]
                text = f"It was {before}\nThe night of {view.nights[-1].at:%Y-%m-%d} was good.\n"
                yield Notice(thread, name, "fixed", f"{name}: fixed", text, page)
            return
        late = status.word == "stale" or status.nights_bad >= nightly.notices.stale_nights
        kind = ("blocked" if status.word == "blocked" else "stale") if late else ""
        # One blocked night says little; many of them leave users without a new wheel.
        thread = f"{name} {kind}"
        if status.word in {"newly failing", "still failing"}:
            kind = "failing"
            thread = f"{name} {kind} {builds.failure_digest(status.detail)}"
        culprit = view.culprit if view.culprit and not view.culprit.announced else None
        # An open thread was announced: one notice for each cause, and one for its culprit.
        if not kind or (thread in open_threads and not culprit):
            return
        subject = f"{name}: {status.phrase}"
        if thread in open_threads:
            subject += ", bisected"
        elif kind == "failing" and any(one.startswith(f"{name} failing") for one in open_threads):
            subject += ", now for another reason"
        good = f"{status.last_good:%Y-%m-%d}" if status.last_good else "never"
        text = f"{status.detail or status.word}\n"
        text += _failure_lines(view.failed) if view.failed else ""
        if culprit:
            text += f"{culprit.sentence}.\n"
            self.state.keep_culprit(name, replace(culprit, announced=True), self.now)
        text += f"Last good: {good}.\n"
        page = _page_url(nightly, view.failed_page)
        yield Notice(thread, name, kind, subject, text, page)

    def _wheel_notices(self, view: TargetView, threads: Mapping[str, Notice]) -> Iterator[Notice]:
        """Yield a notice of the wheel that the last night gave."""
        last = view.nights[-1] if view.nights else None
        for build in view.builds:
            if last and build.id == last.build and build.good:
                notice = wheel_notice(self.nightly, build)
                earlier = threads.get(notice.thread)
                if not (earlier and earlier.subject == redact_text(notice.subject)):
                    yield notice

    def raise_cut_off(self, last: PastNight) -> None:
        """Write a notice that the last night was cut off, once.

        No recipe is to blame for it, so that its thread has no target.
        """
        if _open_threads(self._threads()[""]):
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
        threads = _open_threads(self._threads()[""])
        self._record([Notice(one, "", "fixed", "the build host: fixed", text) for one in threads])

    def _status_without_night(self, target: str, stale_nights: int) -> Status:
        """Return the status of a target that no night has come to: stale after too long a wait."""
        known = self.state.checks(KNOWN).get(target)
        if known is None:
            self.state.check(target, KNOWN, self.now, passed=True, detail="")
        elif abs(self.now - known.at) > dt.timedelta(days=stale_nights):
            return Status("stale", known.at, detail=no_night(known.at))
        return Status("never run")

    def _threads(self) -> defaultdict[str, dict[str, Notice]]:
        """Return the last notice of each thread, by target."""
        # SQLite takes the other columns of a group from the row that has its maximum.
        query = "select thread, body, max(number) from notice group by thread"
        found = defaultdict[str, dict[str, Notice]](dict)
        for thread, body, _ in self.state.database.execute(query):
            notice = read(body)
            found[notice.target][thread] = notice
        return found

    def _record(self, changes: Sequence[Notice]) -> None:
        """Queue notices, in one transaction: none is lost."""
        now = self.now.isoformat()
        with self.state.database as transaction:
            for notice in changes:
                subject, text = redact_text(notice.subject), redact_text(notice.text)
                text = text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}{CUT}\n"
                body = json.dumps(asdict(replace(notice, subject=subject, text=text)))
                # Two tables may name one address: the second takes what the first could not send.
                for name in dict.fromkeys((FEED, *(channel.name for channel in self.channels))):
                    transaction.execute(
                        "insert into notice (thread, body, created, channel) values (?, ?, ?, ?)",
                        (notice.thread, body, now, name),
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
            waiting = [([number], read(body)) for number, body in rows]
            if channel.gathers and len(rows) > MOST_SINGLY:
                site = _page_url(self.nightly, "")
                notice = combine([notice for _, notice in waiting], site)
                waiting = [([number for number, _ in rows], notice)]
            for numbers, notice in waiting:
                problem = ""
                try:
                    channel.send(notice)
                except Exception as fault:  # noqa: BLE001 a channel must not cost the night
                    problem = in_one_line(fault)
                with self.state.database as transaction:
                    at = None if problem else self.now.isoformat()
                    transaction.executemany(
                        "update notice set sent = ?, attempts = attempts + 1 where number = ?",
                        [(at, number) for number in numbers],
                    )
                sent += 0 if problem else len(numbers)
                # One notice that a channel refuses must not hold up the others. But a mail server
                # that is down would cost a timeout for each of them.
                failures = failures + 1 if problem else 0
                if failures == 1:
                    self.note(f"{channel.name}: {problem}")
                if failures == PATIENCE:
                    break
        return sent


@sound_rows()
def read(body: str) -> Notice:
    """Return a notice as it was kept."""
    return Notice(**json_text.parse(body))


def _open_threads(threads: Mapping[str, Notice]) -> dict[str, Notice]:
    """Return the threads that no success has closed; a cause that comes back opens its old one."""
    return {thread: last for thread, last in threads.items() if last.kind not in {"fixed", "wheel"}}


def newest(state: State, count: int) -> list[tuple[str, Notice]]:
    """Return the last notices, each with its time; of those about wheels the builds say more."""
    query = """
        select created, body from notice where json_extract(body, '$.kind') != 'wheel'
        group by thread, created order by created desc limit ?"""
    return [(at, read(body)) for at, body in state.database.execute(query, (count,))]


def wheel_notice(nightly: NightlyFile, build: KeptBuild) -> Notice:
    """Return the notice of a new wheel."""
    target, text = build.target, f"{build.wheel}\n{install(nightly.url, build)}\n"
    page = _page_url(nightly, f"builds/{build.id}/")
    subject = f"{target}: new wheel {build.version}"
    return Notice(f"{target} wheel", target, "wheel", subject, text, page)


def combine(waiting: Sequence[Notice], page: str) -> Notice:
    """Return many notices as one, with a line for each."""
    lines = [f"{notice.subject}: {notice.text.partition(chr(10))[0]}" for notice in waiting]
    cut = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + CUT for line in lines]
    text = "\n".join(first_few(cut, LONGEST // LONGEST_LINE)) + "\n"
    subject = first_of([notice.subject for notice in waiting])
    return Notice("together", "", "several", subject, text, page)


def _page_url(nightly: NightlyFile, path: str) -> str:
    """Return the address of a page; empty if the site has none."""
    return f"{nightly.url}{path}" if nightly.url else ""


def _failure_lines(failed: NightlyBuild) -> str:
    """Return lines that say why a build failed, and what helps."""
    if broken := failed.broken:
        cause = f"Cause: {broken.why}\n" if broken.why else ""
        return cause + (f"What helps: {broken.remedy}\n" if broken.remedy else "")
    return "".join(f"{line.program}: {line.detail}\n" for line in failed.smoke_failures)


def _archive_notices(
    target: Target, found: CheckedOn, known: Collection[str], page: str
) -> list[Notice]:
    """Return the notice that a target's archives are lost, or are back; none without a change."""
    name = target.name
    thread = f"{name} {LINKS}"
    if found.passed is (thread not in known):
        return []
    if found.passed:
        text = "A server has each archive again.\n"
        return [Notice(thread, name, "fixed", f"{name}: archives are back", text, page)]
    text = (
        f"{found.detail}.\nAnother host cannot fetch them. What helps: another address for them in "
        f"the recipe. 'invoke vault --links --recipe {target.recipe}' asks each server again.\n"
    )
    subject = f"{name}: archives lost since {found.at:%Y-%m-%d}"
    return [Notice(thread, name, LINKS, subject, text, page)]


def channels_of(notices: NoticesTable) -> tuple[Channel, ...]:
    """Return the channels that ``nightly.toml`` names."""
    return (
        # One for each address: a server may refuse one of them, which must not repeat the others.
        *(
            Channel(f"mail to {address}", partial(_send_mail, own, address), gathers=True)
            for own in notices.mail
            for address in own.to
        ),
        # By their places in the file: an address may be a secret.
        *(
            Channel(f"webhook {number}", partial(_post_webhook, own), gathers=own.format != "plain")
            for number, own in enumerate(notices.webhook, 1)
        ),
        *(
            Channel(f"program {number}: {Path(own.command[0]).name}", partial(_feed_program, own))
            for number, own in enumerate(notices.program, 1)
        ),
    )


def _send_mail(table: MailTable, address: str, notice: Notice) -> None:
    # Read at sending: a missing file delays this channel and stops nothing else.
    password = read_secret(table.password_file) if table.password_file else ""
    mail.send(table, password, mail_message(table, notice), address)


def mail_message(table: MailTable, notice: Notice) -> EmailMessage:
    """Return a notice as mail; the library refuses a header with a line break."""
    # Longer subjects than 78 characters would begin with a line break.
    message = EmailMessage(policy.default.clone(max_line_length=200))
    message["From"] = table.sender
    message["To"] = ", ".join(table.to)
    message["Subject"] = " ".join(f"[tfwright] {notice.subject}".split())
    message["Date"] = formatdate(usegmt=True)
    # RFC 2606 reserves .invalid: the identifier cannot be that of somebody's mail server.
    message["Message-ID"] = make_msgid(domain="tfwright.invalid")
    # Every mail of a thread refers to the same root, which need not exist.
    root = f"<{notice.thread.replace(' ', '.')}@tfwright.invalid>"
    message["In-Reply-To"] = message["References"] = root
    # RFC 3834: vacation responders do not answer such a mail.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(f"{notice.text}\n{notice.url}\n" if notice.url else notice.text)
    message.add_alternative(as_html(notice), subtype="html")
    return message


def _post_webhook(table: WebhookTable, notice: Notice) -> None:
    # Chat services put the key into the address itself, hence a file for it.
    url = read_secret(table.url_file) if table.url_file else str(table.url)
    token = read_secret(table.token_file) if table.token_file else ""
    post_json(url, webhook_body(table.format, notice), token)


def _feed_program(table: ProgramTable, notice: Notice) -> None:
    pipes.run_with_input(table.command, json.dumps(asdict(notice)))


def webhook_body(service: str, notice: Notice) -> dict[str, object]:
    """Return what a webhook is sent, in the format of what receives it."""
    text = f"{notice.subject}\n{notice.text}{notice.url}"
    if service == "slack":
        # A block of code has no other markup, so that *.cc and __init__ stay as they are.
        shown = notice.text.strip().replace("```", "\N{PRIME}" * 3)
        subject, shown = (html.escape(part, quote=False) for part in (notice.subject, shown))
        link = f"\n<{notice.url}|{LINKED}>" if notice.url else ""
        return {"text": f"*{subject}*\n```\n{shown}\n```{link}"}
    if service == "matrix":
        return {"text": text, "html": f"<h4>{html.escape(notice.subject)}</h4>{as_html(notice)}"}
    if service == "plain":
        # With the key that most chat services show.
        return {**asdict(notice), "text": text}
    # An adaptive card, which a workflow of Teams posts. A TextBlock would read Markdown.
    lines = [{"text": notice.subject, "weight": "Bolder"}]
    lines += [{"text": line} for line in notice.text.strip().splitlines()]
    blocks = [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", **line}]} for line in lines]
    opens = [{"type": "Action.OpenUrl", "title": LINKED, "url": notice.url}]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": blocks,
        "actions": opens if notice.url else [],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def as_html(notice: Notice) -> str:
    """Return the text of a notice as HTML, with a link."""
    lines = "<br>".join(html.escape(line) for line in notice.text.strip().splitlines())
    link = f'<p><a href="{html.escape(notice.url)}">{LINKED}</a></p>' if notice.url else ""
    # The word that does not fit a telephone is most often a path.
    return f'<p style="overflow-wrap: anywhere">{lines}</p>{link}'


def read_secret(path: Path) -> str:
    """Read a secret from a file that only its owner can read, or a systemd credential.

    A name without a directory is looked for among systemd's credentials. Raises HostError if
    others could read the file.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY", "")
    # systemd hands credentials over in a directory that only the service can enter.
    credential = bool(folder) and path.parent == Path()
    place = Path(folder) / path if credential else filesystem.expand_home(path)
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
