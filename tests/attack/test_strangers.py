"""What strangers send: servers that lie, hostile recipes and wheels."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.attack import targets
from tests.attack.campaign import Attack
from tests.attack.mutation import WORDS, damaged
from tests.attack.program import Ended
from tests.making import make_file
from tests.tools.http.hosts import Hosts, says
from tests.tools.http.test_hostile import CONTENT, LIES, WELL, bring

from tfwright.documents.recipe import RECIPES, ROOT
from tfwright.vault.store import Store

CONTROLS = ("\x1b", "\x07", "\u202e", "\r")
"""What must not reach a terminal."""


def invoke(folder: Path, *words: str) -> Ended:
    """Run a command with a build directory of its own."""
    host_file = make_file(folder / "host.toml", f'build_out = "{folder}/out"\n')
    done = subprocess.run(
        [sys.executable, "-m", "invoke", *words],
        cwd=ROOT,
        env={**os.environ, "TFWRIGHT_HOST_FILE": str(host_file)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    return Ended(done.returncode, out, err)


def faults(ended: Ended, folder: Path) -> str:
    """Say what is wrong with how a command ended, or with what it left."""
    said = ended.out + ended.err
    found = [letter for letter in CONTROLS if letter in said]
    if found:
        return f"{found[0]!r} reaches the terminal"
    outside = [path for path in folder.iterdir() if path.name not in {"host.toml", "out", "given"}]
    return ended.fault or (f"it wrote {outside[0].name}" if outside else "")


def test_servers_that_lie_in_any_order(tmp_path: Path, attack: Attack) -> None:
    for number in attack.numbers():
        luck = attack.luck(number)
        hosts = Hosts()
        names = [luck.choice(list(LIES)) for _ in range(luck.randint(1, 3))]
        urls = [hosts.start(LIES[name]) for name in names]
        honest = hosts.start(says(WELL))
        store = Store(tmp_path / str(number))
        try:
            outcome = bring(store, *urls, honest, size=luck.choice((None, len(CONTENT))))
            wrong = "" if outcome.obtained else "it did not arrive"
        except Exception as fault:  # noqa: BLE001 whatever it is, it is what the attack looks for
            wrong = f"{type(fault).__name__}: {str(fault)[:200]}"
        finally:
            hosts.stop()
        for name in names:
            attack.tried(name, f"case {number}: {wrong}" if wrong else "")


def test_hostile_recipes_by_plan(tmp_path: Path, attack: Attack) -> None:
    sample = (RECIPES / "demo.toml").read_bytes()
    for number in attack.numbers():
        luck = attack.luck(number)
        kind, content = damaged(sample, luck)
        folder = tmp_path / str(number)
        (folder / "given").mkdir(parents=True)
        path = make_file(folder / "given/mine.toml", content)
        ended = invoke(folder, "plan", "--recipe", str(path))
        wrong = faults(ended, folder)
        attack.tried(kind, f"case {number}: {wrong}" if wrong else "")


def hostile_wheel(word: bytes) -> bytes:
    """Return a wheel all of whose texts hold a hostile one."""
    info = targets.INFO
    members = {
        f"{info}/METADATA": b"Name: small" + word + b"\nVersion: 1.0\nSummary: " + word,
        f"{info}/WHEEL": b"Tag: cp36-cp36m-" + word,
        f"{info}/RECORD": word + b",sha256=x,1\n",
        "small/platform/build_info.py": b"cuda_version = " + repr(word.decode("latin-1")).encode(),
        "small/a.so": (targets.CORPUS / "elf-code").read_bytes().replace(b"libstdc++", word[:9]),
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return made.getvalue()


@pytest.mark.parametrize("command", ["inspect", "compare", "smoke"])
def test_hostile_wheels_by(command: str, tmp_path: Path, attack: Attack) -> None:
    sound = targets.wheel_with("", b"")
    for number in attack.numbers():
        luck = attack.luck(number)
        folder = tmp_path / str(number)
        (folder / "given").mkdir(parents=True)
        path, other = (folder / "given" / targets.NAME, folder / "given" / f"other-{targets.NAME}")
        if luck.random() < 0.5:
            kind, content = "texts", hostile_wheel(luck.choice(WORDS))
        else:
            kind, content = damaged(sound, luck)
        path.write_bytes(content)
        other.write_bytes(sound)
        words = {
            "inspect": ["inspect", str(path)],
            "compare": ["compare", str(path), str(other)],
            "smoke": ["smoke", "--wheel", str(path), "--python", "9.9"],
        }
        ended = invoke(folder, *words[command])
        if command == "compare" and ended.status == 1 and not ended.err:
            # As with diff: the wheels are not the same.
            ended = Ended(0, ended.out, "")
        wrong = faults(ended, folder)
        attack.tried(kind, f"case {number}: {wrong}" if wrong else "")
