"""What is said of container images and engines, done to the letter."""

import io
import re
import shlex
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.remedies.following import CommandLine, add, commands, failing

from tfwright.documents.host_file import Engine, HostFile
from tfwright.documents.toml import load
from tfwright.errors import HostError
from tfwright.tools.container import engine, image

pytestmark = pytest.mark.medium


@pytest.fixture
def begun(worded: Path) -> str:
    return f"invoke image --recipe {shlex.quote(str(worded))}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a file system in a tar file."""
    path = tmp_path / "rootfs.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("etc/os-release")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"NAME="))
    return path


@pytest.fixture
def pinned(worded: Path, root: Path, tmp_path: Path) -> Path:
    """Let the recipe name an image that only another host has; return its layout there."""
    made = image.add(root, tmp_path / "other")
    add(
        worded,
        f'[host.image]\nname = "small"\ndigest = "{made.digest}"\n',
        after='version = "0.26.1"',
    )
    return image.place(tmp_path / "other", made.digest)


@pytest.mark.parametrize("way", ["add", "copy"])
def test_an_image_is_brought_in_the_ways_that_are_named(
    shell: CommandLine, begun: str, pinned: Path, root: Path, way: str
) -> None:
    remedy = shell.remedy(f"{begun} --pull")
    if way == "add":
        shown = re.search(r"invoke image --add ROOTFS\.tar", remedy)
        assert shown
        shell.succeeds(shown[0].replace("ROOTFS.tar", str(root)))
    else:
        to = re.search(r"oci:(/\S+)$", remedy)
        assert to
        shutil.copytree(pinned, to[1])
    shell.succeeds(f"{begun} --pull")


def test_the_commands_of_a_missing_image_name_the_recipe(
    shell: CommandLine, begun: str, pinned: Path
) -> None:
    assert pinned.is_dir()
    pull, build = commands(shell.remedy(f"{begun} --pull"))
    words = shlex.split(f"{begun} --pull")
    assert sorted(shlex.split(pull)) == sorted(words)
    # The recipe names no Containerfile: that is said, with what to add.
    assert 'Add containerfile = "NAME"' in shell.remedy(build)


def test_a_recipe_without_an_image_names_one(
    shell: CommandLine, begun: str, worded: Path, root: Path, tmp_path: Path
) -> None:
    remedy = shell.remedy(f"{begun} --pull")
    table = re.search(r"Add (\[host\.image\]) with (\w+) and (\w+);", remedy)
    assert table
    shell.succeeds(f"invoke image --add {root}")
    (layout,) = tmp_path.glob("build_out/vault/images/*")
    header, name, digest = table.groups()
    add(worded, f'{header}\n{name} = "x"\n{digest} = "sha256:{layout.name}"\n')
    shell.succeeds(f"{begun} --pull")


def test_a_damaged_image_is_removed_and_brought_again(
    shell: CommandLine, begun: str, pinned: Path, root: Path, tmp_path: Path
) -> None:
    assert pinned.is_dir()
    shell.succeeds(f"invoke image --add {root}")
    for blob in tmp_path.glob("build_out/vault/images/*/blobs/sha256/*"):
        blob.chmod(0o644)
        blob.write_bytes(b"damaged")
    remedy = shell.remedy(f"{begun} --pull")
    named = re.search(r"Remove (\S+), and bring the image again", remedy)
    assert named
    shutil.rmtree(named[1])
    shell.succeeds(f"invoke image --add {root}")
    shell.succeeds(f"{begun} --pull")


@pytest.mark.parametrize(
    ("content", "remedy", "corrected"),
    [
        (None, "Correct its name", "FROM scratch\n"),
        (
            "# escape=`\nFROM scratch\n",
            "Take the line '# escape=`' out",
            "FROM scratch\n",
        ),
        (
            "FROM debian:11\n",
            "Write debian:11@sha256:…",
            f"FROM debian:11@sha256:{'a' * 64}\n",
        ),
    ],
    ids=["no file", "an escape", "a tag"],
)
def test_a_containerfile_is_named_and_corrected(  # noqa: PLR0913, PLR0917 the file, what is said, what is done
    shell: CommandLine,
    begun: str,
    worded: Path,
    programs: Callable[..., None],
    content: str | None,
    remedy: str,
    corrected: str,
) -> None:
    line = re.search(
        r'(containerfile = )"NAME" to (\[host\.image\])',
        shell.remedy(f"{begun} --build"),
    )
    assert line
    add(
        worded,
        f'{line[2]}\nname = "small"\ndigest = "sha256:{"a" * 64}"\n'
        f'{line[1]}"small.Containerfile"\n',
    )
    path = worded.with_name("small.Containerfile")
    if content:
        path.write_text(content, "utf-8")
    assert shell.remedy(f"{begun} --build").startswith(remedy)
    path.write_text(corrected, "utf-8")
    # Podman comes to it now; this one only fails.
    programs(podman="echo no network; exit 1")
    said = shell.remedy(f"{begun} --build")
    log = re.search(r"look at (\S+)\.$", said)
    assert log
    assert "no network" in Path(log[1]).read_text("utf-8")


# Engines


@pytest.mark.usefixtures("no_programs")
def test_podman_is_installed_to_build_an_image(
    shell: CommandLine, programs: Callable[..., None], tmp_path: Path
) -> None:
    programs(docker="exit 0")
    path = tmp_path / "small.Containerfile"
    path.write_text("FROM scratch\n", "utf-8")
    command = f"invoke image --containerfile {path}"
    remedy = shell.remedy(command)
    # Docker is here already, and would be of no use.
    assert remedy == "Install podman (Debian and Ubuntu: apt install podman)."
    programs(podman="exit 1")
    assert "look at" in shell.remedy(command)


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize(
    ("asked", "here", "installed"),
    [
        (None, (), "podman"),
        (None, (), "docker"),
        ("docker", (), "docker"),
        ("docker", ("podman",), ""),
        ("podman", ("docker",), ""),
    ],
)
def test_an_engine_is_installed_or_the_other_one_is_taken(
    shell: CommandLine,
    programs: Callable[..., None],
    asked: Engine | None,
    here: tuple[str, ...],
    installed: str,
) -> None:
    programs(**dict.fromkeys(here, "exit 0"))

    def chosen() -> None:
        settings = load(shell.host_file, HostFile)
        engine.insist(engine.chosen(settings.container.engine))

    before = shell.host_file.read_text("utf-8")
    if asked:
        add(shell.host_file, f'[container]\nengine = "{asked}"\n')
    fault = failing(chosen, HostError)
    if installed:
        assert installed in fault.remedy.casefold()
        programs(**{installed: "exit 0"})
    else:
        assert "or take engine out of [container]" in fault.remedy
        shell.host_file.write_text(before, "utf-8")
    chosen()
