"""A secret gets into nothing that leaves the build host, from wherever it came."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.nightly.fake import FakeBuilder, a_build, host_with

from tfwright.documents import filesystem
from tfwright.documents.recipe import ROOT
from tfwright.errors import HostError
from tfwright.nightly import builds, night, site
from tfwright.nightly import state as states
from tfwright.nightly.builds import Breakage, BuildOrder, CommitLine, NightlyBuild, SmokeLine
from tfwright.nightly.night import BuildHost
from tfwright.nightly.notices import Channel, Notice
from tfwright.nightly.pages import build as pages
from tfwright.nightly.state import Culprit
from tfwright.tools import redaction

TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n"
CANARIES = (TOKEN, "MIIEowIBAAKCAQEA", "hunter2hunter2", f"{ROOT}/")


def published(host: BuildHost) -> dict[str, str]:
    """Return each text below the site, by its path."""
    found = {}
    for path in host.site.rglob("*"):
        # What describes a wheel is signed with it.
        if path.is_file() and ".whl" not in path.name:
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            found[str(path)] = content.decode("utf-8", "replace")
    return found


def leaks(texts: dict[str, str]) -> list[str]:
    return [f"{name}: {one}" for name, text in texts.items() for one in CANARIES if one in text]


def leaking(builder: FakeBuilder) -> Callable[[BuildOrder], NightlyBuild]:
    """Return the builder's `build`, which leaves secrets in all that it makes."""
    plain = builder.build

    def build(order: BuildOrder) -> NightlyBuild:
        done, work = plain(order), order.work
        said = f"\x1b[31m{TOKEN[:8]}\x1b[0m{TOKEN[8:]}\npassword=hunter2hunter2 {ROOT}/x\n{KEY}"
        (work / "logs").mkdir()
        (work / "logs/compile.log").write_text(said, "utf-8")
        (work / "logs/profile.json.gz").write_bytes(gzip.compress(said.encode()))
        (work / "failure.txt").write_text(said, "utf-8")
        (work / "inputs/patches").mkdir(parents=True)
        (work / "inputs/patches/1.patch").write_text(said, "utf-8")
        changes: dict[str, object] = {
            "smoke": (SmokeLine(program="imports", status="failed", detail=TOKEN),),
            "commits": (CommitLine(commit="a" * 40, subject=f"Use {TOKEN}", author=TOKEN),),
            "differences": (f"x: {TOKEN}",),
            "host": {"system": TOKEN},
            "logs": ("logs/compile.log",),
        }
        return done.model_copy(update=changes)

    return build


@pytest.mark.medium
@pytest.mark.parametrize("way", ["fails", "builds", "is blocked", "cannot be asked"])
def test_a_secret_of_any_source_is_published_nowhere(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Notice] = []
    host = host_with(tmp_path, "a", "b", url="https://w.example/", title=f"Wheels {TOKEN}")
    host = replace(host, channels=(Channel("heard", heard.append),))
    builder = host.changed_after_a_night()
    secret = f"{ROOT}/x: token={TOKEN}"
    match way:
        case "fails":
            log = "logs/compile.log"
            builder.broken["a"] = Breakage(
                stage="compile", line=secret, cause=secret, remedy=secret, log=log, number=1
            )
        case "is blocked":
            builder.lacking["a"] = secret
        case "cannot be asked":
            monkeypatch.setattr(builder, "fingerprint", refuses(secret))
    monkeypatch.setattr(builder, "build", leaking(builder))
    host = replace(host, bisect=lambda *_: Culprit("", f"Broken by token={TOKEN}"))
    host.pass_nights(5)
    with states.open_state(host.directory) as state:
        newest = [state.build(kept.id) for kept in state.builds("a")][-1]
        wheel = state.builds("b")[0].wheel
    site.yank(host.directory, wheel, f"it holds {TOKEN}")
    site.refresh(host.nightly)
    texts = published(host)
    # As in a night, when a build begins.
    with states.open_state(host.directory) as state:
        site.show_queue(host.nightly, state, builder.clock())
    texts |= {f"queue: {path}": text for path, text in published(host).items()}
    texts |= {notice.subject: repr(notice) for notice in heard}
    assert newest
    texts["report"] = pages.markdown(newest, host.builds / newest.id)
    assert leaks(texts) == []


def refuses(what: str) -> Callable[[object], None]:
    def fingerprint(_: object) -> None:
        raise HostError(what, remedy="Mend it.")

    return fingerprint


def test_inputs_with_a_secret_are_kept_whole_outside_of_the_site(tmp_path: Path) -> None:
    host = host_with(tmp_path, "a")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(host.fake, "build", leaking(host.fake))
        night.run(host)
    (place,) = host.builds.iterdir()
    assert not (place / builds.INPUTS).exists()
    kept = host.directory / builds.PRIVATE / place.name / "inputs/patches/1.patch"
    assert TOKEN[8:] in kept.read_text("utf-8")
    assert kept.parents[2].stat().st_mode & 0o077 == 0


def test_a_text_without_a_secret_keeps_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "compile.log"
    path.write_bytes(b"\x1b[32mINFO:\x1b[0m caf\xe9\r\nno end")
    before = path.stat()
    redaction.redact_file(path)
    assert path.read_bytes() == b"\x1b[32mINFO:\x1b[0m caf\xe9\r\nno end"
    assert path.stat().st_ino == before.st_ino


SECRETS = {
    "password=hunter2hunter2": "hunter2",
    "GITHUB_TOKEN: abcdef0123456789": "abcdef0123456789",
    '"api_key": "sk-12345678901234"': "sk-12345678901234",
    "curl -H 'Authorization: Bearer abc.def-ghi'": "abc.def-ghi",
    "https://user:pa55word@host/x.git": "pa55word",
    "https://ghp_0123456789abcdefghij0123@github.com/x": "ghp_0123456789abcdefghij0123",
    "remote: github_pat_11ABCDEFG0123456789_abcdefgh": "github_pat_11ABCDEFG0123456789_abcdefgh",
    "--token s3cr3tvalue --other x": "s3cr3tvalue",
    "https://h/x?X-Amz-Signature=deadbeef&b=1": "deadbeef",
    "AKIAABCDEFGHIJKLMNOP": "AKIAABCDEFGHIJKLMNOP",
    "Cookie: session=42; id=7": "session=42",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc": "eyJhbGciOiJIUzI1NiJ9",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----": "MIIEvQIBADAN",
    "/home/alice/.cache/bazel": "alice",
    "/Users/bob/x": "bob",
    "glpat-abcdefghij0123456789": "glpat-abcdefghij0123456789",
}


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_and_home_paths_leave_no_trace(text: str) -> None:
    assert SECRETS[text] not in redaction.redact_text(text)


@pytest.mark.parametrize(
    "line",
    [
        "machine h login ci password SECRET1",
        'db_password: "SECRET1 SECRET2, SECRET3"',
        "API_TOKEN='SECRET1,SECRET2;SECRET3'",
        r'{"args": "--env KEY_TOKEN=\"SECRET1 SECRET2\" x"}',
        "AccountName=x;AccountKey=SECRET1==;EndpointSuffix=y",
        "MYSQL_PWD=SECRET1 mysql",
        "curl -s -u ci:SECRET1 https://h/x",
        "curl -sSuci:SECRET1 -U 'proxy:SECRET2 SECRET3' --proxy-user a:SECRET4 x",
        "+ sshpass -p SECRET1 ssh -p 22 h; sshpass -p'SECRET2 SECRET3' scp a h:",
        "['sshpass', '-p', 'SECRET1 SECRET2', 'ssh', '--password', 'SECRET3']",
        "mysql -P 3306 -u root -pSECRET1 db; mysqldump --password SECRET2",
        'docker login -u me -p "SECRET1 SECRET2" h',
        "podman login --password 'SECRET1 SECRET2' h",
        "wget --user me --password SECRET1 --http-password=SECRET2 https://h/x",
        "redis-cli -h h -a SECRET1; ldapsearch -x -w SECRET2; lftp -u me,SECRET3 h",
        "smbclient //h/s -U me%SECRET1; twine upload -u __token__ -p SECRET2; 7z x -pSECRET3 a",
        "openssl req -passin pass:SECRET1 -passout 'pass:SECRET2 SECRET3'",
        "aws configure set aws_secret_access_key SECRET1/SECRET2+SECRET3",
        "npm config set //h/:_authToken SECRET1; SSHPASS=SECRET2 DB_PASS='SECRET3 SECRET4' run",
        "TOKEN := SECRET1",
        "'password' => 'SECRET1 SECRET2', TOKEN ?= SECRET3",
        "API_KEY=SECRET1,SECRET2;SECRET3&SECRET4",
        "https://h/x?token=SECRET1&other=SECRET2,SECRET3",
        "fetched https://ci:SECRET1@SECRET2@h/x",
        "glrt-SECRET1aaaaaaaaaaaa xapp-1-SECRET1aaaa ya29.SECRET1aaaaaaaaaaaaaaaa",
        "API key: SECRET1; Bearer: SECRET1aa <password>SECRET1 SECRET2</password>",
        "ENV GITHUB_TOKEN SECRET1; setenv TOKEN SECRET2; conda config --set token SECRET3",
        "sk-proj-SECRET1aaaaaaaaaaaa sk_live_SECRET1aaa SG.SECRET1aaaaaaaaa.SECRET1aaaaaaaaa",
        "https://corp.webhook.office.com/webhookb2/SECRET1/IncomingWebhook/SECRET2",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nSECRET1\n-----END PGP PRIVATE KEY BLOCK-----",
    ],
)
def test_a_secret_goes_whole_however_it_is_written(line: str) -> None:
    shown = redaction.redact_text(line)
    assert "SECRET" not in shown
    assert redaction.HIDDEN in shown


@pytest.mark.parametrize(
    "line",
    [
        "note: auth::Token is a type",
        "error: token before ';'",
        "std::vector<Token> tokens; disk-aaaaaaaaaaaaaaaaaaaaaaaa",
        "gcc -pthread -O2 mysql/login.cc -o login.o",
        "curl -sSfL https://h/x -o x",
        "tensorflow/core/kernels/matmul_op.cc:42: error: no member named 'token_type'",
        "https://github.com/tensorflow/tensorflow.git",
        "commit 93bc2e2072e0daccbcff7a90d397b704a9e8f778",
        "author: somebody",
    ],
)
def test_what_only_names_a_secret_stays(line: str) -> None:
    assert redaction.redact_text(line) == line


@pytest.mark.parametrize("word", ["a.b-c.", "-", "-u", "curl", "login", "pass:"])
def test_a_line_of_a_megabyte_holds_up_no_night(word: str) -> None:
    line = word * (1_000_000 // len(word)) + " token curl"
    assert redaction.redact_text(line) == line


def test_a_recipe_below_the_home_directory_is_named_without_it() -> None:
    build = a_build(recipe=f"{Path.home()}/mine.toml")
    assert build.redact().recipe == "~/mine.toml"


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ("annabel", "built by user in /srv/user/x, not annabelle"),
        ("root", "built by annabel in /srv/annabel/x, not annabelle"),
        ("1000", "built by annabel in /srv/annabel/x, not annabelle"),
    ],
)
def test_the_name_of_who_built_it_is_not_published(
    user: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystem, "account_name", lambda: user)
    assert redaction.redact_text("built by annabel in /srv/annabel/x, not annabelle") == shown
