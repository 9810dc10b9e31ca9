"""What is said of keys and signatures, done to the letter."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from tests.making import make_file, make_folder
from tests.remedies.following import CommandLine, failing

from tfwright.errors import HostError
from tfwright.tools import signing
from tfwright.wheel.seal import statement

pytestmark = pytest.mark.medium

Pair = tuple[Path, Path]
Maker = Callable[..., Pair]
STATEMENT = '{{"subject": [{{"digest": {{"sha256": "{}"}}}}]}}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, whose path is two words of a shell."""
    made = make_folder(tmp_path / "my keys")
    monkeypatch.chdir(made)
    return made


def shown(remedy: str) -> str:
    """Return the command at the end of a remedy, in parentheses or without."""
    found = re.search(r"\(umask .*\)$|openssl pkey .*$", remedy)
    assert found, remedy
    return found[0]


def test_a_key_with_a_passphrase_gets_a_copy_without(folder: Path, keys: Maker) -> None:
    private, _ = keys("my keys/key", passphrase=b"secret")
    fault = failing(lambda: signing.signer(private), HostError)
    child = pexpect.spawn("sh", ["-c", shown(fault.remedy)], cwd=folder)
    child.expect("pass phrase")
    child.sendline("secret")
    child.expect(pexpect.EOF)
    child.close()
    plain = folder / "plain.pem"
    assert signing.sign(b"{}", "kind", plain)
    assert plain.stat().st_mode & 0o077 == 0


def test_a_key_is_made_by_the_command_that_is_shown(folder: Path) -> None:
    path = make_file(folder / "key.pem", "no key")
    fault = failing(lambda: signing.signer(path), HostError)
    path.unlink()
    subprocess.run(["sh", "-c", shown(fault.remedy)], cwd=folder, check=True)
    assert signing.sign(b"{}", "kind", path)
    assert path.stat().st_mode & 0o077 == 0


@pytest.fixture
def signed(folder: Path, make_wheel: Callable[..., Path], keys: Maker) -> Pair:
    """Return a wheel with its statement and envelope, and the private key."""
    private, _ = keys(f"{folder.name}/key")
    wheel = make_wheel(folder=folder.name)
    sign(wheel, private)
    return wheel, private


def sign(wheel: Path, key: Path) -> None:
    digest = digest_of(wheel)
    text = STATEMENT.format(digest).encode()
    wheel.with_name(wheel.name + statement.SUFFIX).write_bytes(text)
    made = statement.sign(text, key)
    wheel.with_name(wheel.name + statement.SIGNED_SUFFIX).write_bytes(made)


def digest_of(wheel: Path) -> str:
    done = subprocess.run(["sha256sum", wheel], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def inspect(wheel: Path, key: Path) -> str:
    return f"invoke inspect {shlex.quote(str(wheel))} --key {shlex.quote(str(key))}"


def test_a_private_key_in_place_of_the_public_one_is_turned_into_it(
    shell: CommandLine, signed: Pair, folder: Path
) -> None:
    remedy = shell.remedy(inspect(*signed))
    subprocess.run(["sh", "-c", shown(remedy)], cwd=folder, check=True)
    shell.succeeds(inspect(signed[0], folder / "public.pem"))


def test_a_path_without_a_key_is_corrected(shell: CommandLine, signed: Pair, folder: Path) -> None:
    shell.remedy(inspect(signed[0], folder / "none.pem"), "Check")
    shell.succeeds(inspect(signed[0], folder / "key.public.pem"))


@pytest.mark.parametrize(
    ("damage", "remedy"),
    [
        ("missing", "Bring it from where"),
        ("no JSON", "Bring it again"),
        ("of another kind", "Bring the envelope"),
        ("of another wheel", "Download it again, with the files next to it"),
        ("another statement", "Download it again, with the files next to it"),
        ("of another key", "name the public key of whoever made it"),
        ("of no file", "Ask whoever signed it"),
    ],
)
def test_an_envelope_is_brought_again(  # noqa: PLR0913, PLR0917 what damages it is another each time
    shell: CommandLine, signed: Pair, folder: Path, keys: Maker, damage: str, remedy: str
) -> None:
    wheel, private = signed
    place = wheel.with_name(wheel.name + statement.SIGNED_SUFFIX)
    before, key = place.read_bytes(), folder / "key.public.pem"
    other, _ = keys("my keys/other")
    statement_of_none = STATEMENT.format("0" * 64).encode()
    ways: dict[str, Callable[[], object]] = {
        "missing": place.unlink,
        "no JSON": lambda: place.write_text("{", "utf-8"),
        "of another kind": lambda: place.write_bytes(
            signing.sign(b"{}", "application/json", private)
        ),
        "of another wheel": lambda: place.write_bytes(statement.sign(statement_of_none, private)),
        "another statement": lambda: wheel.with_name(wheel.name + statement.SUFFIX).write_text(
            "{}", "utf-8"
        ),
        "of another key": lambda: sign(wheel, other),
        "of no file": lambda: place.write_bytes(statement.sign(b"{}", private)),
    }
    ways[damage]()
    assert remedy in shell.remedy(inspect(wheel, key))
    if damage == "of another key":
        shell.succeeds(inspect(wheel, folder / "other.public.pem"))
    place.write_bytes(before)
    if "another" in damage:
        sign(wheel, private)
    shell.succeeds(inspect(wheel, key))
