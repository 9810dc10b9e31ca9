"""Notices leave by real SMTP, real HTTP and a real program."""

import datetime as dt
import json
import os
import smtplib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests import serving as servers
from tests.failing import fails
from tests.making import make_file
from tests.nightly.fake import host_with
from tests.tools.test_mail import certificate, serving

from tfwright.documents.nightly import MailTable, NoticesTable, ProgramTable, WebhookTable
from tfwright.errors import HostError, RecipeError, SupplyError, ToolError
from tfwright.nightly import notices
from tfwright.nightly import state as states
from tfwright.nightly.notices import Notice
from tfwright.nightly.state import PastNight
from tfwright.tools import mail
from tfwright.tools.http.client import post_json

NOTICE = Notice(
    thread="a failing 1f",
    target="a",
    kind="failing",
    subject="a: newly failing since 2026-11-22\r\nBcc: everybody@example.org",
    text="compile: error\nLast good: 2026-11-21.\n",
    url="https://wheels.example/builds/x/",
)


__all__ = ["certificate"]

MAIL = MailTable(to=("t@example.org",), sender="b@example.org", host="127.0.0.1")


def send(**channel: MailTable | WebhookTable | ProgramTable) -> None:
    """Send the notice by the channel of one table."""
    table = NoticesTable.model_validate({name: (one,) for name, one in channel.items()})
    notices.channels_of(table)[0].send(NOTICE)


def test_a_mail_is_sent_in_its_thread_and_no_header_can_be_added(certificate: Path) -> None:
    with serving(certificate, "none") as server:
        send(mail=MAIL.changed(port=int(server.server_address[1])))
    lines = [line.decode() for _, line in server.lines]
    headers = lines[: lines.index("")]
    assert "To: t@example.org" in headers
    assert not any(header.startswith("Bcc:") for header in headers)
    assert "In-Reply-To: <a.failing.1f@tfwright.invalid>" in headers
    assert NOTICE.url in lines


def test_a_mail_has_the_same_text_as_html_with_a_link() -> None:
    kinds = [part.get_content_type() for part in notices.mail_message(MAIL, NOTICE).iter_parts()]
    assert kinds == ["text/plain", "text/html"]
    hostile = replace(NOTICE, text="<script>\n&", url='https://x/"><b>')
    assert "<script>" not in notices.as_html(hostile)
    assert "<b>" not in notices.as_html(hostile)
    assert f'<a href="{NOTICE.url}">' in notices.as_html(NOTICE)


@pytest.mark.parametrize("service", ["plain", "slack", "teams", "matrix"])
def test_a_webhook_gets_what_its_service_understands(service: str) -> None:
    body = notices.webhook_body(service, NOTICE)
    said = json.dumps(body)
    assert "newly failing" in said
    assert "compile: error" in said
    assert NOTICE.url in said
    if service == "teams":
        (attachment,) = cast("list[dict[str, Any]]", body["attachments"])
        assert attachment["content"]["type"] == "AdaptiveCard"
    else:
        assert isinstance(body["text"], str)


def test_what_a_build_said_is_no_markup_of_slack() -> None:
    hostile = replace(NOTICE, text="<!channel> & <https://evil|x>\n```*loud*")
    text = str(notices.webhook_body("slack", hostile)["text"])
    assert "<!channel>" not in text
    assert text.count("```") == 2


def test_what_a_build_said_is_no_markdown_of_teams() -> None:
    assert "TextBlock" not in json.dumps(notices.webhook_body("teams", NOTICE)).replace(
        "RichTextBlock", ""
    )


def test_a_long_subject_begins_on_its_own_line_of_the_mail() -> None:
    subject = "linux-r2.20-cuda12.8-sm120: still failing since 2026-01-02, now for another reason"
    letter = notices.mail_message(MAIL, replace(NOTICE, subject=subject))
    assert f"Subject: [tfwright] {subject}\n" in letter.as_string()


def test_a_mail_server_that_is_away_is_a_supply_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with fails(SupplyError):
        send(mail=MAIL.changed(port=port))


@pytest.mark.parametrize("host", ["a..b", "."])
def test_a_host_that_smtp_cannot_write_is_a_supply_error(host: str) -> None:
    with fails(SupplyError):
        send(mail=MAIL.changed(host=host))


@pytest.mark.parametrize("said", [b"2", b"220-and so on\r\n" * 4000])
@pytest.mark.medium
def test_a_mail_server_that_never_comes_to_an_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(mail, "LONGEST_SECONDS", 0.5)
    monkeypatch.setattr(mail, "SECONDS", 20)

    def serve() -> None:
        client, _ = listening.accept()
        with client, suppress(OSError):
            while True:
                client.sendall(said)
                time.sleep(0.01)

    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        port = listening.getsockname()[1]
        with fails(SupplyError):
            send(mail=MAIL.changed(port=port))
    assert time.monotonic() - begun < 10


@contextmanager
def hook(status: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    heard: list[dict[str, Any]] = []

    class Handler(servers.QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append({**json.loads(body), "auth": self.headers.get("Authorization")})
            self.send_response(status)
            self.end_headers()

    with servers.serving(Handler) as address:
        yield f"{address}/secret-path", heard


def test_an_address_that_is_refused_is_named_and_the_others_get_no_second_mail(
    certificate: Path, tmp_path: Path
) -> None:
    now, said = dt.datetime(2026, 11, 22, tzinfo=dt.UTC), list[str]()
    with serving(certificate, "none") as server, states.open_state(tmp_path) as state:
        table = MAIL.changed(
            port=int(server.server_address[1]), to=("a@example.org", "nobody@example.org")
        )
        # A second table may name the same address.
        channels = notices.channels_of(NoticesTable(mail=(table, table)))
        nightly = host_with(tmp_path).nightly
        book = notices.Book(nightly, state, now, channels, said.append)
        book.raise_cut_off(PastNight(1, now, None))
        assert book.send() == 1
        assert said[0].startswith("mail to nobody@example.org: 127.0.0.1 did not take the mail")
        server.refused = b"<a@example.org>"
        assert book.send() == 1
        assert book.send() == 0
    taken = [line for _, line in server.lines if line.startswith(b"To:")]
    assert taken == 2 * [b"To: a@example.org, nobody@example.org"]


def test_a_webhook_gets_json_with_its_token(tmp_path: Path) -> None:
    token = make_file(tmp_path / "token", "t0ken\n")
    token.chmod(0o600)
    with hook(200) as (url, heard):
        send(webhook=WebhookTable(url=url, token_file=token))
    assert heard[0]["auth"] == "Bearer t0ken"
    assert heard[0]["target"] == "a"
    assert heard[0]["text"].startswith("a: newly failing")


def test_a_refusing_webhook_is_named_without_its_secret_path() -> None:
    with hook(500) as (url, _), pytest.raises(SupplyError) as caught:
        send(webhook=WebhookTable(url=url))
    assert "status 500" in caught.value.what
    assert "secret-path" not in caught.value.what


def test_a_token_is_not_replaced_by_what_netrc_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = make_file(tmp_path / "netrc", "machine 127.0.0.1 login me password mine\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with hook(200) as (url, heard):
        post_json(url, {}, "t0ken")
    assert heard[0]["auth"] == "Bearer t0ken"


def test_beside_systemd_credentials_a_file_has_to_be_private_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "credentials"))
    secret = make_file(tmp_path / "secret", "x")
    secret.chmod(0o644)
    with fails(HostError, secret):
        notices.read_secret(secret)


def test_a_pipe_in_the_place_of_a_secret_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret", 0o600)
    for name in ("secret", "absent"):
        with fails(RecipeError, tmp_path / name):
            notices.read_secret(tmp_path / name)


def test_a_systemd_credential_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "smtp").write_text("pw\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert notices.read_secret(Path("smtp")) == "pw"


def test_a_program_reads_the_notice_and_gets_a_clean_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_BUILD", "x")
    heard = tmp_path / "heard"
    code = "import os, sys; open(sys.argv[1], 'w').write(sys.stdin.read() + str(dict(os.environ)))"
    command = (sys.executable, "-c", code, str(heard))
    send(program=ProgramTable(command=command))
    text = heard.read_text()
    assert '"kind": "failing"' in text
    assert "SECRET_OF_THE_BUILD" not in text


def test_a_program_that_fails_is_a_tool_error() -> None:
    with fails(ToolError, "exit status 1"):
        send(program=ProgramTable(command=("/bin/false",)))


def test_every_channel_has_a_name_without_secrets() -> None:
    table = NoticesTable(
        mail=(MailTable(to=("t@example.org",), sender="b@example.org"),),
        webhook=(WebhookTable(url="https://chat.example/hooks/s3cret"),),
        program=(ProgramTable(command=("/bin/true",)),),
    )
    names = [channel.name for channel in notices.channels_of(table)]
    assert names == ["mail to t@example.org", "webhook 1", "program 1: true"]


def test_a_talk_whose_time_was_over_before_it_began_is_not_waited_for(certificate: Path) -> None:
    with serving(certificate, "none") as server:
        port = int(server.server_address[1])
        connection = mail._Plain("127.0.0.1", port)
        connection._cut()
        with pytest.raises(smtplib.SMTPServerDisconnected, match="its time is over"):
            connection.getreply()
        connection.close()
        connection._cut()
