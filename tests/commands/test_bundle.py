"""What becomes of a bundle where it is unpacked."""

import hashlib
from pathlib import Path

import pytest

from tfwright.commands import bundle as carrying
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import PATCHES
from tfwright.errors import RecipeError, SupplyError
from tfwright.pipeline.job import Places
from tfwright.progress import SILENCE
from tfwright.vault import bundle
from tfwright.vault.bundle import Carried, Content, Kind, Manifest

ARCHIVE = b"an archive"
SOURCE = recipes.read("demo").source
DOCUMENTS = sorted({*SOURCE.patches, *SOURCE.assets.values()})
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture
def build_out(tmp_path: Path) -> Path:
    return tmp_path / "build_out"


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let documents go to a checkout of the test's own, which has none yet."""
    monkeypatch.setattr(carrying, "RECIPES", tmp_path / "checkout/recipes")
    monkeypatch.setattr(carrying, "PATCHES", tmp_path / "checkout/patches")
    return tmp_path / "checkout"


def made(folder: Path, *more: tuple[Kind, str, bytes]) -> Path:
    """Write a bundle of the demo recipe, its documents and an archive."""
    contents = [
        Content.of("recipe", recipes.find("demo")),
        *(Content.of("patch", PATCHES / name, name) for name in DOCUMENTS),
    ]
    for kind, name, content in (
        ("archive", SHA256, ARCHIVE),
        ("bazel", "bazel", b"a Bazel"),
        ("package", "six-1.11.0-py3-none-any.whl", b"six"),
        *more,
    ):
        path = folder / f"{kind}-{name.replace('/', '-')}"
        path.write_bytes(content)
        # The kind is a literal, which the loop forgets.
        contents.append(Content.of(kind, path, name))  # type: ignore[arg-type]
    manifest = Manifest(
        tfwright="0.1.0",
        recipe="demo",
        platform="linux-x86_64",
        python="3.11",
        bazel="0.26.1",
        members=tuple(content.member for content in contents),
    )
    bundle.write(
        folder / "made.tar",
        manifest,
        {content.member: content.source for content in contents},
        SILENCE.progress,
    )
    return folder / "made.tar"


def test_everything_is_put_where_a_build_looks_for_it(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    carrying.unpack(
        made(tmp_path, ("added", "cuda.run", b"CUDA")), build_out, SILENCE
    )
    assert (
        build_out
        / f"vault/repository_cache/content_addressable/sha256/{SHA256}/file"
    ).read_bytes() == ARCHIVE
    assert [
        path.read_bytes() for path in (build_out / "vault/bazel").glob("*/bazel")
    ] == [b"a Bazel"]
    assert "six-1.11.0-py3-none-any.whl" in (
        build_out / "vault/packages/index.html"
    ).read_text("utf-8")
    assert (build_out / "added/cuda.run").read_bytes() == b"CUDA"
    assert (checkout / "recipes/demo.toml").read_bytes() == recipes.find(
        "demo"
    ).read_bytes()
    assert (checkout / "patches/demo/nccl.h").is_file()


def test_unpacking_again_changes_nothing(tmp_path: Path, build_out: Path) -> None:
    file = made(tmp_path)
    carrying.unpack(file, build_out, SILENCE)
    carrying.unpack(file, build_out, SILENCE)


def test_of_a_damaged_bundle_nothing_is_put_anywhere(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    file = made(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"six", b"sax").replace(b"sax-1", b"six-1"))
    with pytest.raises(SupplyError, match=r"at package/six-1\.11\.0"):
        carrying.unpack(file, build_out, SILENCE)
    assert [path.name for path in build_out.iterdir()] == ["unbundling.lock"]
    assert not checkout.exists()


def test_what_a_killed_unbundle_left_is_cleared_away(
    tmp_path: Path, build_out: Path
) -> None:
    (build_out / "unbundling").mkdir(parents=True)
    (build_out / "unbundling/0").write_bytes(b"half")
    carrying.unpack(made(tmp_path), build_out, SILENCE)
    assert not (build_out / "unbundling").exists()


def test_a_recipe_of_the_checkout_is_never_replaced_by_another(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    (checkout / "recipes").mkdir(parents=True)
    (checkout / "recipes/demo.toml").write_text("another", "utf-8")
    with pytest.raises(
        RecipeError, match=r"another .*demo\.toml than this checkout"
    ):
        carrying.unpack(made(tmp_path), build_out, SILENCE)
    assert not (build_out / "vault").exists()


def test_a_bundle_that_lacks_a_commit_which_it_promises_is_refused(
    tmp_path: Path, build_out: Path
) -> None:
    manifest = bundle.read(made(tmp_path)).model_copy(
        update={
            "clones": (
                Carried(remote="https://example.org/r.git", commit="1" * 40),
            )
        }
    )
    with pytest.raises(
        SupplyError,
        match=f"no member clone/{'1' * 40}, of https://example.org/r.git",
    ):
        carrying._place_clones(manifest, {}, Places(build_out, "demo"))


def test_a_bundle_with_two_recipes_is_refused(
    tmp_path: Path, build_out: Path
) -> None:
    with pytest.raises(SupplyError, match="has 2 recipes"):
        carrying.unpack(
            made(tmp_path, ("recipe", "second.toml", b"")), build_out, SILENCE
        )


def test_a_faulty_lock_is_refused_before_anything_is_put_anywhere(
    tmp_path: Path, build_out: Path
) -> None:
    with pytest.raises(RecipeError):
        carrying.unpack(
            made(tmp_path, ("lock", "demo.lock", b"[[archives]]\n")),
            build_out,
            SILENCE,
        )
    assert not (build_out / "vault").exists()


@pytest.mark.parametrize(
    "name", ["evilrepo/HEAD", "demo/other.patch", "README.md", "demo"]
)
def test_a_patch_that_the_recipe_does_not_name_is_refused_and_nothing_is_put_anywhere(
    tmp_path: Path, build_out: Path, checkout: Path, name: str
) -> None:
    file = made(tmp_path, ("patch", name, b"gitdir: evil"))
    with pytest.raises(SupplyError, match="which its recipe does not name"):
        carrying.unpack(file, build_out, SILENCE)
    assert not checkout.exists()
    assert not (build_out / "vault").exists()


def test_a_manifest_that_names_what_some_file_system_takes_for_git_is_refused(
    tmp_path: Path, build_out: Path
) -> None:
    file = made(tmp_path, ("patch", "xgit", b"gitdir: evil"))
    file.write_bytes(file.read_bytes().replace(b"xgit", b".git"))
    with pytest.raises(SupplyError, match=r"must not contain \.git"):
        carrying.unpack(file, build_out, SILENCE)


def test_a_directory_in_the_place_of_a_document_is_not_replaced(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    (checkout / "patches/demo/nccl.h").mkdir(parents=True)
    with pytest.raises(
        RecipeError, match=r"another .*demo/nccl\.h than this checkout"
    ):
        carrying.unpack(made(tmp_path), build_out, SILENCE)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("source", "source.bundle"), ("clone", "a" * 40), ("clone", "stray")],
)
def test_a_commit_that_git_cannot_read_is_refused_before_anything_has_its_place(
    tmp_path: Path, build_out: Path, kind: Kind, name: str
) -> None:
    file = made(tmp_path, (kind, name, b"no git bundle"))
    with pytest.raises(
        SupplyError, match=f"{kind}/{name} of the bundle does not hold the commit"
    ):
        carrying.unpack(file, build_out, SILENCE)
    assert not (build_out / "vault").exists()


def test_what_a_killed_unpacking_left_is_removed_by_the_next_fetch_and_by_the_vault(
    build_out: Path,
) -> None:
    left = build_out / bundle.UNPACKING / "0"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"large")
    bundle.discard_leftovers(build_out)
    assert not left.parent.exists()


def test_a_running_unpacking_is_not_disturbed(build_out: Path) -> None:
    build_out.mkdir()
    with bundle.unpacking_room(build_out, "x.tar") as room:
        bundle.discard_leftovers(build_out)
        assert room.is_dir()
