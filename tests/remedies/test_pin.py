"""What `invoke pin` says to do, done to the letter."""

import hashlib
import re
from pathlib import Path

import pytest
from tests.lock.test_pin import HEAD
from tests.making import Serve, change_text, make_file, make_folder, make_program
from tests.remedies.following import CommandLine, add, commands
from tests.upstream import commit, run_git

from tfwright.documents import recipe as recipes

pytestmark = [pytest.mark.medium, pytest.mark.usefixtures("quick_pip")]

RECIPE = HEAD + '[bazel]\nversion = "0.17.2"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a recipe with nothing left to pin but packages."""
    pinned = commit(tmp_path / "upstream", {"WORKSPACE": WORKSPACE})
    return make_file(tmp_path / "small.toml", RECIPE.format(folder=tmp_path, commit=pinned))


WORKSPACE = f"""\
http_archive(
    name = "zlib",
    sha256 = "{"a" * 64}",
    strip_prefix = "zlib-1",
    urls = ["https://example.invalid/zlib-0.tar.gz"],
)
"""


# Packages


@pytest.mark.parametrize("table", ["host", "verify"])
def test_a_package_without_a_version_gets_one_by_the_command_that_is_named(
    shell: CommandLine, path: Path, table: str
) -> None:
    line = 'requirements = ["numpy", "six==1.0"]\n'
    if table == "host":
        add(path, line, after='python = "any"')
    else:
        add(path, f"[verify]\n{line}")
    (command,) = commands(shell.remedy(f"invoke plan --recipe {path}"))
    shell.succeeds(command)
    read = recipes.read(str(path))
    lists = {"host": read.host.requirements, "verify": read.verify.requirements}
    assert lists[table] == ("numpy==1.19.5", "six==1.19.5")


def test_a_plugin_without_a_version_gets_one_by_hand(shell: CommandLine, path: Path) -> None:
    add(path, '[verify]\nplugins = ["tensorflow-metal"]\n')
    # pin resolves no plugins, so the message does not name it.
    assert shell.remedy(f"invoke plan --recipe {path}") == "Write name==version."
    change_text(path, "-metal", "-metal==0.1")
    assert recipes.read(str(path)).verify.plugins == ("tensorflow-metal==0.1",)


@pytest.mark.parametrize("wrong", ["./x", "x @ git+https://example.org/x"])
@pytest.mark.parametrize("where", ["--add", "--verify"])
def test_an_option_is_written_in_each_way_that_is_shown(
    shell: CommandLine, path: Path, wrong: str, where: str
) -> None:
    remedy = shell.remedy(f'invoke pin --recipe {path} {where} "{wrong}"')
    shown = re.findall(rf"{where} (?:'[^']+'|[\w.=]+[\w])", remedy)
    assert len(shown) == 3
    for option in shown:
        shell.succeeds(f"invoke pin --recipe {path} {option}")


def test_a_line_of_the_recipe_is_written_in_each_way_that_is_shown(
    shell: CommandLine, path: Path
) -> None:
    add(path, 'requirements = ["./x"]\n', after='python = "any"')
    before = path.read_text("utf-8")
    remedy = shell.remedy(f"invoke pin --recipe {path}")
    shown = re.findall(r"numpy[^ ',]*(?:,<2)?", remedy)
    assert shown == ["numpy", "numpy==1.19.5", "numpy>=1.19,<2"]
    for line in shown:
        path.write_text(before.replace("./x", line), "utf-8")
        shell.succeeds(f"invoke pin --recipe {path}")
        assert recipes.read(str(path)).host.requirements == ("numpy==1.19.5",)


def test_a_python_that_is_not_here_is_named_in_the_host_file(
    shell: CommandLine, path: Path
) -> None:
    text = path.read_text("utf-8").replace(
        'python = "any"', 'python = "3.4"\nrequirements = ["six==1.0"]'
    )
    path.write_text(text, "utf-8")
    remedy = shell.remedy(f"invoke pin --recipe {path}")
    line = re.search(r"\[pythons\] ('\S+' = )'/path/to/python'", remedy)
    assert line, remedy
    # A Python 3.4 for the test: pin asks it for its version, and pip is not the real one.
    python = path.with_name("python3.4")
    make_program(python, "#!/bin/sh\necho 3.4.10\n")
    add(shell.host_file, f"[pythons]\n{line[1]}'{python}'\n")
    shell.succeeds(f"invoke pin --recipe {path}")


# Checksums

SUBSTITUTE = f"""
[fetch.substitutes.zlib]
reason = "x"
replaces = "{"a" * 64}"
"""
BY_URL = f'{SUBSTITUTE}urls = ["https://example.invalid/zlib-1.tar.gz"]\n'


@pytest.fixture
def address(tmp_path: Path, serve: Serve) -> str:
    """Return the address of a server that has the file under its name."""
    served = make_folder(tmp_path / "served")
    (served / "zlib-1.tar.gz").write_bytes(b"zlib")
    return serve(served)


def substitute(path: Path) -> str:
    return recipes.read(str(path)).fetch.substitutes["zlib"].sha256


def test_the_missing_checksum_is_written_by_the_command_that_is_named(
    shell: CommandLine, path: Path, address: str
) -> None:
    add(path, BY_URL.replace("https://example.invalid/", address))
    (command,) = commands(shell.remedy(f"invoke fetch --recipe {path}"))
    shell.succeeds(command)
    assert substitute(path) == hashlib.sha256(b"zlib").hexdigest()


@pytest.mark.parametrize("way", ["urls", "downloads", "drop", "drop as named"])
def test_a_file_that_no_source_gives_is_found_in_each_way_that_is_named(
    shell: CommandLine, path: Path, address: str, tmp_path: Path, way: str
) -> None:
    add(path, BY_URL)
    drop = tmp_path / "drop"
    if way == "drop as named":
        add(shell.host_file, f'drop = "{drop}"\n')
    remedy = shell.remedy(f"invoke pin --recipe {path}")
    if way == "urls":
        assert "Correct its urls or its git" in remedy
        change_text(path, "https://example.invalid/", address)
    elif way == "downloads":
        assert f"[downloads] of {shell.host_file}" in remedy
        add(shell.host_file, f'[downloads]\n"https://example.invalid/" = "{address}"\n')
    else:
        named = re.search(r"copy the file, as (\S+), into ", remedy)
        line = re.search(r'(drop = )"/path/to/folder"', remedy)
        drop.mkdir()
        if way == "drop":
            assert line
            add(shell.host_file, f'{line[1]}"{drop}"\n')
        assert named
        make_file(drop / "deeper" / named[1], b"zlib")
    shell.succeeds(f"invoke pin --recipe {path}")
    assert substitute(path) == hashlib.sha256(b"zlib").hexdigest()


@pytest.mark.parametrize("way", ["git", "mirrors"])
def test_a_commit_that_no_source_gives_is_found_in_each_way_that_is_named(
    shell: CommandLine, path: Path, tmp_path: Path, way: str
) -> None:
    pinned = commit(tmp_path / "zlib", {"zlib.c": "int zlib;\n"})
    gone = f"file://{tmp_path}/gone"
    add(path, f'{SUBSTITUTE}git = "{gone}"\ncommit = "{pinned}"\n')
    remedy = shell.remedy(f"invoke pin --recipe {path}")
    # It has no name under which a file could be dropped.
    assert "copy the file" not in remedy
    if way == "git":
        assert "Correct its urls or its git" in remedy
        change_text(path, gone, f"file://{tmp_path}/zlib")
    else:
        assert f"[mirrors] or [downloads] of {shell.host_file}" in remedy
        add(shell.host_file, f'[mirrors]\n"{gone}" = "{tmp_path}/zlib"\n')
    shell.succeeds(f"invoke pin --recipe {path}")
    assert substitute(path)


@pytest.mark.parametrize("way", ["sha256", "blob", "ref and prefix"])
def test_a_repository_is_completed_in_each_way_that_is_named(
    shell: CommandLine, path: Path, tmp_path: Path, way: str
) -> None:
    pinned = commit(tmp_path / "zlib", {"zlib.c": "int zlib;\n"})
    add(path, f'[[fetch.sources]]\ngit = "file://{tmp_path}/zlib"\n')
    shell.remedy(f"invoke pin --recipe {path}", "sha256", "prefix")
    blob = run_git("rev-parse", "HEAD:zlib.c", cwd=tmp_path / "zlib")
    lines = {
        "sha256": f'sha256 = "{"b" * 64}"\n',
        "blob": f'blob = "{blob}"\n',
        "ref and prefix": f'ref = "{pinned}"\nprefix = "zlib-1"\n',
    }
    add(path, lines[way])
    shell.succeeds(f"invoke pin --recipe {path}")
    assert recipes.read(str(path)).fetch.sources[0].sha256
