"""What is said of container images and engines, done to the letter."""

import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import find_text, make_file, make_tar
from tests.remedies.following import CommandLine, add, commands, failing

from tfwright.documents.host_file import Engine, HostFile
from tfwright.documents.toml import load
from tfwright.errors import HostError, ToolError
from tfwright.tools.container import building, engine, image
from tfwright.tools.container.image import KeptImage

pytestmark = pytest.mark.medium


@pytest.fixture
def begun(worded: Path) -> str:
    return f"invoke image --recipe {shlex.quote(str(worded))}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a file system in a tar file."""
    return make_tar(tmp_path / "rootfs.tar", {"etc/os-release": "NAME="})


@pytest.fixture
def pinned(worded: Path, root: Path, tmp_path: Path) -> Path:
    """Let the recipe name an image that only another host has; return its layout there."""
    made = image.import_tar(root, tmp_path / "other")
    add(
        worded,
        f'[host.image]\nname = "small"\ndigest = "{made.digest}"\n',
        after='version = "0.26.1"',
    )
    return image.path_of(tmp_path / "other", made.digest)


@pytest.mark.parametrize("way", ["add", "copy"])
def test_an_image_is_brought_in_the_ways_that_are_named(
    shell: CommandLine, begun: str, pinned: Path, root: Path, way: str
) -> None:
    remedy = shell.remedy(f"{begun} --pull")
    if way == "add":
        shown = find_text(r"invoke image --add ROOTFS\.tar", remedy)
        shell.succeeds(shown[0].replace("ROOTFS.tar", str(root)))
    else:
        to = find_text(r"oci:(/\S+)$", remedy)
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
    table = find_text(r"Add (\[host\.image\]) with (\w+) and (\w+);", remedy)
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
    named = find_text(r"Remove (\S+), and bring the image again", remedy)
    shutil.rmtree(named[1])
    shell.succeeds(f"invoke image --add {root}")
    shell.succeeds(f"{begun} --pull")


@pytest.mark.parametrize(
    ("content", "remedy", "corrected"),
    [
        (None, "Correct its name", "FROM scratch\n"),
        ("# escape=`\nFROM scratch\n", "Take the line '# escape=`' out", "FROM scratch\n"),
        ("FROM debian:11\n", "Write debian:11@sha256:…", f"FROM debian:11@sha256:{'a' * 64}\n"),
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
    line = find_text(
        r'(containerfile = )"NAME" to (\[host\.image\])', shell.remedy(f"{begun} --build")
    )
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
    log = find_text(r"look at (\S+)\.$", said)
    assert "no network" in Path(log[1]).read_text("utf-8")


# Engines


@pytest.mark.usefixtures("no_programs")
def test_podman_is_installed_to_build_an_image(
    shell: CommandLine, programs: Callable[..., None], tmp_path: Path
) -> None:
    programs(docker="exit 0")
    path = make_file(tmp_path / "small.Containerfile", "FROM scratch\n")
    command = f"invoke image --containerfile {path}"
    shell.remedy(command, "install")
    # Docker is here already, and would be of no use.
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
        engine.check_runs(engine.choose(settings.container.engine))

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


PODMAN = """\
while case "$1" in -*) ;; *) false;; esac; do shift; done
case "$1 $2" in
"build "*) for given; do case "$given" in --iidfile=*) echo 0123 > "${given#*=}";; esac; done;;
"push "*) test -e @/fixed || { echo 'Error: no space for blobs'; exit 125; }
    cp -r @/layout "${3#oci:}";;
"pull "*) test -e @/fixed || { echo 'Error: unknown transport'; exit 125; };;
"run "*) case "$*" in *--ulimit=x*) echo 'Error: invalid ulimit x'; exit 125;; esac
    echo 0123;;
"inspect "*) test -e @/ended && echo 0 || echo @PID;;
esac
"""


@pytest.fixture
def podman(programs: Callable[..., None], tmp_path: Path) -> None:
    """Install a podman that fails until somebody has mended it, or what it was given."""
    text = PODMAN.replace("@PID", str(os.getpid()))
    programs(podman=text.replace("@", str(tmp_path)))


@pytest.fixture
def kept(root: Path, tmp_path: Path) -> KeptImage:
    return image.import_tar(root, tmp_path / "other")


@pytest.mark.usefixtures("podman")
def test_what_podman_says_of_an_image_that_it_built_is_mended(
    kept: KeptImage, tmp_path: Path
) -> None:
    (tmp_path / "layout").symlink_to(kept.layout)
    path = make_file(tmp_path / "small.Containerfile", "FROM scratch\n")

    def build() -> str:
        log = tmp_path / "log"
        return building.build(path, tmp_path / "vault", log).digest

    fault = failing(build, ToolError, "podman")
    assert fault.evidence.lines == ("Error: no space for blobs",)
    (tmp_path / "fixed").touch()
    assert build() == kept.digest


@pytest.mark.usefixtures("podman")
@pytest.mark.parametrize("wrong", ["the engine", "an option", "the program"])
def test_a_container_starts_once_its_engine_and_options_are_right(
    shell: CommandLine, kept: KeptImage, tmp_path: Path, wrong: str
) -> None:
    before = shell.host_file.read_text("utf-8")

    def opened(option: str) -> str:
        table = f'[container]\noptions = ["--ulimit={option}"]\n'
        shell.host_file.write_text(before + table, "utf-8")
        settings = load(shell.host_file, HostFile).container
        plan = engine.ContainerPlan(kept, "job", (), options=settings.options)
        with engine.running_container(plan) as container:
            return container.identifier

    if wrong != "the engine":
        (tmp_path / "fixed").touch()
    if wrong == "the program":
        (tmp_path / "ended").touch()
    fault = failing(
        lambda: opened("x" if wrong == "an option" else "nofile=9"), ToolError, "podman"
    )
    assert fault.evidence.lines
    # The log was in a directory that is gone.
    assert fault.evidence.log is None
    if wrong == "an option":
        assert "[container] in the host file" in fault.remedy
    (tmp_path / "fixed").touch()
    (tmp_path / "ended").unlink(missing_ok=True)
    assert opened("nofile=9") == "0123"


@pytest.mark.parametrize("way", ["copy", "pin"])
def test_an_image_that_its_registry_lacks_is_copied_or_made_again(  # noqa: PLR0913, PLR0917 the two ways
    shell: CommandLine,
    begun: str,
    worded: Path,
    pinned: Path,
    root: Path,
    tmp_path: Path,
    programs: Callable[..., None],
    way: str,
) -> None:
    text = worded.read_text("utf-8")
    worded.write_text(text.replace('"small"', '"registry.example/small"'), "utf-8")
    programs(skopeo="echo manifest unknown >&2; exit 1")
    remedy = shell.remedy(f"{begun} --pull")
    folder = find_text(r"copy vault/(images) from a host that has it", remedy)
    if way == "copy":
        images = tmp_path / "build_out/vault" / folder[1]
        shutil.copytree(pinned.parent, images, dirs_exist_ok=True)
    else:
        assert "build the image again and pin the new digest" in remedy
        with tarfile.open(root, "a") as archive:
            archive.addfile(tarfile.TarInfo("etc/new"))
        made = image.import_tar(root, tmp_path / "build_out/vault")
        text = worded.read_text("utf-8")
        worded.write_text(re.sub(r"sha256:\w+", made.digest, text), "utf-8")
    shell.succeeds(f"{begun} --pull")
