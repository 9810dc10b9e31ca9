"""What becomes of a bundle where it is unpacked."""

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker, Read, make_file, make_folder
from tests.remedies.following import CommandLine
from tests.upstream import commit, run_git

from tfwright.bundle import packing, unpacking
from tfwright.documents import recipe as recipes
from tfwright.documents.recipe import PATCHES
from tfwright.documents.toolkit import ToolkitTable
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.lock import inputs as lock_inputs
from tfwright.pipeline.job import Places, RecipeJob
from tfwright.pipeline.results import Inputs
from tfwright.progress import SILENCE, Listener
from tfwright.toolkit import sources
from tfwright.tools.bazel import binary
from tfwright.tools.container import image
from tfwright.tools.git import mirror
from tfwright.tools.python import packages
from tfwright.vault import bundle
from tfwright.vault.bundle import BundledClone, Kind, Manifest
from tfwright.vault.lock import Lock, LockedBazel, RulesPackage, Tensorflow

Extra = tuple[Kind, str, bytes]
"""Kind, name and content of a further member."""
ARCHIVE = b"an archive"
SOURCE = recipes.read("demo").source
DOCUMENTS = sorted({*SOURCE.patches, *SOURCE.assets.values()})
BAZEL = b"a Bazel"
SOURCE_BAZEL = recipes.read("demo").bazel.sha256["linux-x86_64"]
PACKAGE = "six-1.11.0-py3-none-any.whl"
PIN = "six==1.11.0"
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture
def build_out(tmp_path: Path) -> Path:
    return tmp_path / "build_out"


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let documents go to a checkout of the test's own, which has none yet."""
    monkeypatch.setattr(unpacking, "RECIPES", tmp_path / "checkout/recipes")
    monkeypatch.setattr(unpacking, "PATCHES", tmp_path / "checkout/patches")
    return tmp_path / "checkout"


def recipe_of(folder: Path, bazel: bytes | None = BAZEL, pin: str = PIN) -> Path:
    """Write the demo recipe with the checksum of a Bazel of the test's, and one more package."""
    text = recipes.find("demo").read_text("utf-8")
    pinned = f'sha256.linux-x86_64 = "{SOURCE_BAZEL}"'
    own = hashlib.sha256(bazel).hexdigest() if bazel else ""
    text = text.replace(pinned, pinned.replace(SOURCE_BAZEL, own) if own else "")
    return make_file(
        folder / "demo.toml", text.replace("[verify]\n", f'[verify]\nrequirements = ["{pin}"]\n')
    )


def made(
    folder: Path,
    *more: Extra,
    recipe: Path | None = None,
    bazel: str = "0.26.1",
    clones: tuple[BundledClone, ...] = (),
    documents: Sequence[str] = DOCUMENTS,
) -> Path:
    """Write a bundle of the demo recipe, its documents and an archive."""
    contents = [
        bundle.member_of("recipe", recipe or recipe_of(folder)),
        *(bundle.member_of("patch", PATCHES / name, name) for name in documents),
    ]
    for kind, name, content in (
        ("archive", SHA256, ARCHIVE),
        ("bazel", "bazel", BAZEL),
        ("package", PACKAGE, b"six"),
        *more,
    ):
        path = make_file(folder / f"{kind}-{name.replace('/', '-')}", content)
        # The kind is a literal, which the loop forgets.
        contents.append(bundle.member_of(kind, path, name))  # type: ignore[arg-type]
    manifest = Manifest(
        tfwright="0.1.0",
        recipe="demo",
        platform="linux-x86_64",
        python="3.11",
        bazel=bazel,
        members=tuple(dict(contents)),
        clones=clones,
    )
    bundle.write(folder / "made.tar", manifest, dict(contents), SILENCE.progress)
    return folder / "made.tar"


@pytest.mark.medium
def test_everything_is_put_where_a_build_looks_for_it(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    unpacking.unpack(made(tmp_path, ("added", "cuda.run", b"CUDA")), build_out, SILENCE)
    assert (
        build_out / f"vault/repository_cache/content_addressable/sha256/{SHA256}/file"
    ).read_bytes() == ARCHIVE
    assert [
        path.read_bytes() for path in (build_out / "vault/bundles/demo/bazel").glob("*/bazel")
    ] == [BAZEL]
    assert PACKAGE in (build_out / "vault/bundles/demo/packages/index.html").read_text("utf-8")
    assert (build_out / "added/cuda.run").read_bytes() == b"CUDA"
    assert (checkout / "recipes/demo.toml").read_bytes() == (tmp_path / "demo.toml").read_bytes()
    assert (checkout / "patches/demo/nccl.h").is_file()


@pytest.mark.medium
def test_unpacking_again_changes_nothing(tmp_path: Path, build_out: Path) -> None:
    file = made(tmp_path)
    unpacking.unpack(file, build_out, SILENCE)
    unpacking.unpack(file, build_out, SILENCE)


@pytest.mark.medium
def test_of_a_damaged_bundle_nothing_is_put_anywhere(tmp_path: Path, build_out: Path) -> None:
    file = made(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"\0six\0", b"\0sax\0"))
    refused(file, build_out, "package/six-1.11.0", "bundle")
    file.write_bytes(content)
    unpacking.unpack(file, build_out, SILENCE)


@pytest.mark.medium
def test_what_a_killed_unbundle_left_is_cleared_away(tmp_path: Path, build_out: Path) -> None:
    make_file(build_out / "unbundling/0", b"half")
    unpacking.unpack(made(tmp_path), build_out, SILENCE)
    assert not (build_out / "unbundling").exists()


@pytest.mark.medium
def test_a_recipe_of_the_checkout_is_never_replaced_by_another(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    make_file(checkout / "recipes/demo.toml", "another")
    with fails(RecipeError, "demo.toml", "files") as caught:
        unpacking.unpack(made(tmp_path), build_out, SILENCE)
    assert not (build_out / "vault").exists()
    # As it says: move them away.
    for line in caught.value.evidence.lines:
        Path(line).rename(tmp_path / "away")
    unpacking.unpack(made(tmp_path), build_out, SILENCE)


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a repository with one commit."""
    commit(tmp_path / "upstream", {"WORKSPACE": "", "core/op.cc": "int one;"})
    return tmp_path / "upstream"


def git(repository: Path, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=repository, input=given, capture_output=True, check=True
    ).stdout


def packed(repository: Path, commit: str, *lacking: str) -> bytes:
    """Return a commit as `invoke bundle` packs it, less some objects."""
    listed = git(repository, "rev-list", "--objects", commit).decode()
    ids = [line.partition(" ")[0] for line in listed.splitlines()]
    wanted = "".join(f"{name}\n" for name in ids if name not in lacking)
    pack = git(repository, "pack-objects", "--stdout", "-q", given=wanted.encode())
    return f"# v2 git bundle\n{commit} refs/pins/{commit}\n\n".encode() + pack


def head(repository: Path) -> str:
    return run_git("rev-parse", "HEAD", cwd=repository)


def recipe_of_commit(folder: Path, pinned: str) -> Path:
    """Write the demo recipe with a tree that tfwright does not ship."""
    path = recipe_of(folder)
    text = path.read_text("utf-8").replace(SOURCE.commit, pinned)
    path.write_text(text.replace(SOURCE.url, "https://example.org/t.git"), "utf-8")
    return path


def carrying(folder: Path, kind: str, commit: str, content: bytes | None) -> Path:
    """Write a bundle that is to hold the source's commit, or one that rules clone; None: lacks it."""
    source = kind == "source"
    name, more = bundle.SOURCE if source else commit, list[Extra]()
    if content is not None:
        more.append(("source" if source else "clone", name, content))
    if source:
        return made(folder, *more, recipe=recipe_of_commit(folder, commit))
    cloned = BundledClone(remote="https://example.org/r.git", commit=commit)
    return made(folder, *more, clones=(cloned,))


def refused(file: Path, build_out: Path, *values: str) -> None:
    """Insist that a bundle is refused before anything is put anywhere."""
    with fails(SupplyError, *values):
        unpacking.unpack(file, build_out, SILENCE)
    assert not build_out.exists() or [path.name for path in build_out.iterdir()] == [
        "unbundling.lock"
    ]
    assert not build_out.with_name("checkout").exists()


@pytest.mark.parametrize("path", ["WORKSPACE", "core", "core/op.cc", ""])
@pytest.mark.parametrize("kind", ["source", "clone"])
def test_half_a_commit_is_refused_before_anything_is_put_anywhere(
    tmp_path: Path, build_out: Path, upstream: Path, path: str, kind: str
) -> None:
    pinned = head(upstream)
    half = packed(upstream, pinned, run_git("rev-parse", f"{pinned}:{path}", cwd=upstream))
    refused(carrying(tmp_path, kind, pinned, half), build_out, f"{kind}/")


@pytest.mark.parametrize("content", [b"no git bundle", None], ids=["unreadable", "missing"])
@pytest.mark.parametrize(
    ("kind", "member"), [("source", "source/source.bundle"), ("clone", f"clone/{'1' * 40}")]
)
def test_a_commit_that_git_cannot_read_is_refused_before_anything_is_put_anywhere(
    tmp_path: Path, build_out: Path, kind: str, member: str, content: bytes | None
) -> None:
    refused(carrying(tmp_path, kind, "1" * 40, content), build_out, member)


def test_a_commit_is_put_into_the_mirror_of_its_url(
    tmp_path: Path, build_out: Path, upstream: Path
) -> None:
    pinned = head(upstream)
    file = carrying(tmp_path, "source", pinned, packed(upstream, pinned))
    unpacking.unpack(file, build_out, SILENCE)
    (mirror,) = (build_out / "git").glob("*.git")
    assert git(mirror, "show", f"{pinned}:core/op.cc") == b"int one;"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        # With a filter, git takes what is missing for promised.
        (b"# v3 git bundle\n@filter=blob:none\n", b"# v2 git bundle\n"),
        (b"# v3 git bundle\n@object-format=sha1\n", b"# v2 git bundle\n"),
        (b" refs/heads/../../hooks/x\n", b" refs/pins/"),
        (b" --upload-pack=/bin/true\n", b" refs/pins/"),
    ],
)
def test_a_git_bundle_that_begins_in_another_way_is_refused(
    tmp_path: Path, build_out: Path, upstream: Path, wrong: bytes, right: bytes
) -> None:
    pinned = head(upstream)
    source = packed(upstream, pinned)
    more = pinned.encode() + b"\n" if b"pins" in right else b""
    changed = source.replace(right + more, wrong)
    assert changed != source
    refused(carrying(tmp_path, "source", pinned, changed), build_out, "source/source.bundle")


REFUSED: dict[str, list[Extra]] = {
    "has 2 recipes": [("recipe", "second.toml", b"")],
    "2 lock files": [("lock", name, b"") for name in ("demo.lock", "other.lock")],
    # Commits that nothing asks for.
    f"clone/{'2' * 40}": [("clone", "2" * 40, b"")],
    "source/other": [("source", "other", b"")],
    "clone/x": [("clone", "x", b"")],
    **{
        f"patch/{name}": [("patch", name, b"gitdir: evil")]
        for name in ("evilrepo/HEAD", "demo/other.patch", "README.md", "demo")
    },
    # Programs.
    **{
        f"package/{name}, which its recipe does not name": [("package", name, b"evil")]
        for name in ("numpy-1.14.5-py3-none-any.whl", "six-1.16.0-py3-none-any.whl")
    },
    "not the name of a Python package": [("package", "six.pth", b"evil")],
    "has 2 times Bazel 0.26.1; its recipe": [("bazel", "second", b"evil")],
}


@pytest.mark.parametrize(("says", "more"), REFUSED.items(), ids=REFUSED)
def test_what_the_recipe_does_not_ask_for_is_refused_and_nothing_is_put_anywhere(
    tmp_path: Path, build_out: Path, says: str, more: list[Extra]
) -> None:
    refused(made(tmp_path, *more), build_out, says)


def test_a_bundle_without_a_patch_or_the_bazel_of_its_recipe_is_refused(
    tmp_path: Path, build_out: Path
) -> None:
    refused(made(tmp_path, documents=DOCUMENTS[1:]), build_out, f"patch/{DOCUMENTS[0]}")
    refused(made(tmp_path, bazel="0.24.1"), build_out, "0.24.1")


@pytest.mark.parametrize("kind", ["recipe", "lock"])
def test_a_faulty_document_is_named_by_its_member_before_anything_is_put_anywhere(
    tmp_path: Path, build_out: Path, kind: str
) -> None:
    if kind == "recipe":
        file = made(tmp_path, recipe=make_file(tmp_path / "demo.toml", "nonsense = 1\n"))
        name = "demo.toml"
    else:
        name = "demo.lock"
        file = made(tmp_path, ("lock", name, b"nonsense = 1\n"))
    with fails(RecipeError, f"{kind}/{name}", "bundle") as caught:
        unpacking.unpack(file, build_out, SILENCE)
    assert "unbundling" not in caught.value.what
    assert not (build_out / "vault").exists()


def test_a_faulty_lock_of_the_checkout_is_named_where_it_is(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    lock = make_file(checkout / "recipes/demo.lock", "nonsense = 1\n")
    with pytest.raises(RecipeError, match=f"^{lock}") as caught:
        unpacking.unpack(made(tmp_path), build_out, SILENCE)
    assert "where the bundle was made" not in caught.value.remedy


@pytest.mark.medium
def test_an_image_goes_into_the_vault_by_its_digest(tmp_path: Path, build_out: Path) -> None:
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("etc"))
    kept = image.import_tar(tmp_path / "root.tar", tmp_path / "there")
    recipe = recipe_of(tmp_path)
    pin = f'[host.image]\nname = "small"\ndigest = "{kept.digest}"\n'
    text = recipe.read_text("utf-8").replace("[bazel]\n", f"{pin}[bazel]\n")
    recipe.write_text(text, "utf-8")
    blobs: list[Extra] = [("image", blob.name, blob.read_bytes()) for blob in kept.blobs()]
    unpacking.unpack(made(tmp_path, *blobs, recipe=recipe), build_out, SILENCE)
    assert image.find_image(build_out / "vault", kept.digest).config == kept.config


def test_a_manifest_that_names_what_some_file_system_takes_for_git_is_refused(
    tmp_path: Path, build_out: Path
) -> None:
    file = made(tmp_path, ("patch", "xgit", b"gitdir: evil"))
    file.write_bytes(file.read_bytes().replace(b"xgit", b".git"))
    refused(file, build_out, ".git")


def test_a_directory_in_the_place_of_a_document_is_not_replaced(
    tmp_path: Path, build_out: Path, checkout: Path
) -> None:
    (checkout / "patches/demo/nccl.h").mkdir(parents=True)
    with fails(RecipeError, "demo/nccl.h"):
        unpacking.unpack(made(tmp_path), build_out, SILENCE)


def test_what_a_killed_unpacking_left_is_removed_by_the_next_fetch_and_by_the_vault(
    build_out: Path,
) -> None:
    left = make_file(build_out / bundle.UNPACKING / "0", b"large")
    bundle.discard_leftovers(build_out)
    assert not left.parent.exists()


def test_a_running_unpacking_is_not_disturbed(build_out: Path) -> None:
    build_out.mkdir()
    with bundle.unpacking_folder(build_out, "x.tar") as room:
        bundle.discard_leftovers(build_out)
        assert room.is_dir()


@pytest.mark.medium
def test_another_recipe_takes_neither_bazel_nor_packages_of_a_bundle(
    tmp_path: Path, build_out: Path
) -> None:
    unpacking.unpack(
        made(tmp_path, ("tool", "numpy-1.14.5-py3-none-any.whl", b"evil")), build_out, SILENCE
    )
    (mine,) = (build_out / "vault/bundles/demo/bazel").glob("*/bazel")
    other, own = Places(build_out, "other"), Places(build_out, "demo")
    assert binary.find_stored("0.26.1", {}, other.stores) is None
    assert not any(map(packages.stored_files, other.stores))
    kept = [path.name for store in own.stores for path in packages.stored_files(store)]
    assert kept == [PACKAGE]
    if binary.platform_name() == "linux-x86_64":
        found = binary.find_stored("0.26.1", {}, own.stores)
        assert found
        assert found.path == mine


def test_other_bytes_than_the_recipe_pins_are_refused(tmp_path: Path, build_out: Path) -> None:
    wrong = recipe_of(tmp_path, b"the right Bazel")
    refused(made(tmp_path, recipe=wrong), build_out, "bazel/bazel")
    wrong = recipe_of(tmp_path, pin=f"{PIN} --hash=sha256:{'0' * 64}")
    refused(made(tmp_path, recipe=wrong), build_out, "package/six-")


def test_a_package_with_the_bytes_that_the_recipe_pins_needs_no_belief(tmp_path: Path) -> None:
    pin = f"{PIN} --hash=sha256:{hashlib.sha256(b'six').hexdigest()}"
    pinned = recipe_of(tmp_path, pin=pin)
    manifest = bundle.read(made(tmp_path, recipe=pinned))
    found = recipes.read(str(pinned))
    assert unpacking.check_members(found, None, manifest) == ()


def test_a_package_that_rules_install_has_the_bytes_of_the_lock(tmp_path: Path) -> None:
    wheel: Extra = ("package", "more-1.0-py3-none-any.whl", b"more")
    manifest = bundle.read(made(tmp_path, wheel))
    found = recipes.read(str(recipe_of(tmp_path)))

    def locked(digest: str) -> Lock:
        packages = (RulesPackage(name="More", version="1.0", hashes=(digest,)),)
        tensorflow = Tensorflow(commit="a" * 40, tree="b" * 40)
        return Lock(tensorflow=tensorflow, bazel=LockedBazel(version="0.26.1"), packages=packages)

    believed = unpacking.check_members(found, locked(hashlib.sha256(b"more").hexdigest()), manifest)
    assert "more-1.0-py3-none-any.whl" not in {member.name for member in believed}
    with fails(SupplyError, "package/more-1.0"):
        unpacking.check_members(found, locked("0" * 64), manifest)


@pytest.mark.medium
def test_what_no_checksum_holds_is_named(
    tmp_path: Path, build_out: Path, listener: Listener, notes: list[str]
) -> None:
    loose = recipe_of(tmp_path, bazel=None)
    unpacking.unpack(made(tmp_path, recipe=loose), build_out, listener)
    (text,) = notes
    assert text.startswith("Only builds of demo use what neither it nor a lock")
    assert f"bazel, {PACKAGE}" in text


@pytest.mark.medium
def test_a_file_that_was_added_replaces_no_other(tmp_path: Path, build_out: Path) -> None:
    unpacking.unpack(made(tmp_path, ("added", "cuda.run", b"CUDA")), build_out, SILENCE)
    with fails(RecipeError, "added/cuda.run"):
        unpacking.unpack(made(tmp_path, ("added", "cuda.run", b"evil")), build_out, SILENCE)
    assert (build_out / "added/cuda.run").read_bytes() == b"CUDA"


# What of a recipe's inputs goes into its bundle.


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tfwright need no packages itself."""
    monkeypatch.setattr(packing, "tool_packages", lambda *_: [])


def members(manifest: Manifest, kind: Kind) -> list[str]:
    """Return the names of a bundle's members of one kind."""
    return [each.name for each in manifest.members if each.kind == kind]


@pytest.mark.medium
def test_all_that_a_build_takes_goes_into_its_bundle_and_from_there_to_its_place(  # noqa: PLR0913, PLR0917
    small_job: RecipeJob,
    document: Path,
    brought: Inputs,
    make_wheel: Maker,
    tmp_path: Path,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheel = make_wheel()
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(packing, "SHIPPED", tmp_path)
    needed = f"small==1.0 --hash=sha256:{sha256}\n"
    (tmp_path / "requirements.txt").write_text(needed, "utf-8")
    (tmp_path / "cuda.run").write_bytes(b"CUDA")
    file = tmp_path / "small.tar"
    manifest = packing.pack(small_job, document, file, [tmp_path / "cuda.run"])
    assert sorted(each.path for each in manifest.members) == [
        "added/cuda.run",
        f"archive/{SHA256}",
        "bazel/bazel",
        f"clone/{brought.clones[0].commit}",
        "patch/main/0001-two.patch",
        "recipe/small.toml",
        f"source/{bundle.SOURCE}",
        f"tool/{wheel.name}",
    ]
    elsewhere = tmp_path / "elsewhere"
    unpacking.unpack(file, elsewhere, SILENCE)
    kept = mirror.path_of(elsewhere / "git", small_job.recipe.source.url)
    assert git(kept, "show", f"{brought.commit}:BUILD") == b"one\n"
    assert (checkout / "patches/main/0001-two.patch").is_file()
    assert not list(small_job.places.own.glob("bundle-*"))


@pytest.mark.medium
@pytest.mark.usefixtures("brought", "no_packages")
def test_packages_that_pip_has_to_build_are_named(
    small_job: RecipeJob, tmp_path: Path, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = small_job.recipe.host.changed(requirements=("small==1.0", "old==0.1"))
    found = [tmp_path / "small-1.0-py3-none-any.whl", tmp_path / "old-0.1.zip"]
    for path in found:
        path.write_bytes(b"a package")
    monkeypatch.setattr(packages, "supply", lambda *_, **__: found)
    changed = replace(small_job, recipe=small_job.recipe.changed(host=host))
    manifest = packing.pack(changed, found[0], tmp_path / "file", [])
    assert members(manifest, "package") == ["old-0.1.zip", found[0].name]
    (note,) = notes
    assert note.startswith("old-0.1.zip is not a wheel: pip builds it")


@pytest.mark.medium
@pytest.mark.usefixtures("no_packages")
def test_archives_that_fetch_did_not_find_are_named(
    small_job: RecipeJob,
    brought: Inputs,
    tmp_path: Path,
    notes: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = brought.model_copy(update={"absent": ("icu", "zstd")})
    monkeypatch.setattr(lock_inputs, "fetch_inputs", lambda *_, **__: lacking)
    packing.pack(small_job, tmp_path / "archive", tmp_path / "small.tar", [])
    (note,) = notes
    assert note.startswith("Not in the bundle, since fetch did not find them: icu, zstd.")


CUDNN = "0" * 64


@pytest.fixture
def with_cuda(small_job: RecipeJob) -> RecipeJob:
    """Return a job whose recipe builds for CUDA."""
    host = small_job.recipe.host.changed(cuda="11.8", cudnn="8.6")
    answers = {"TF_NEED_CUDA": True}
    configure = small_job.recipe.configure.changed(answers=answers)
    recipe = small_job.recipe.changed(host=host, configure=configure)
    return replace(small_job, recipe=recipe)


@pytest.mark.medium
def test_a_bundle_that_cannot_be_written_is_refused_before_anything_is_fetched(
    small_job: RecipeJob, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_inputs, "fetch_inputs", lambda *_, **__: pytest.fail("fetch began"))
    with fails(HostError, "takes no files"):
        packing.pack(small_job, document, document / "small.tar", [])


@pytest.mark.usefixtures("brought", "no_packages")
def test_a_bundle_names_the_cuda_that_licences_keep_out_of_it(
    with_cuda: RecipeJob, tmp_path: Path
) -> None:
    root = make_folder(tmp_path / "cuda")
    (root / "version.txt").write_text("CUDA Version 11.8.0", "utf-8")
    settings = with_cuda.host_file.changed(cuda=root)
    job = replace(with_cuda, host_file=settings)
    manifest = packing.pack(job, root / "version.txt", tmp_path / "file", [])
    cuda, cudnn = manifest.absent
    assert (cuda.name, cudnn.name) == ("CUDA 11.8", "cuDNN 8.6")
    assert [*cuda.files] == ["version.txt"]
    assert not cudnn.files, "this host has none"


@pytest.mark.medium
@pytest.mark.usefixtures("brought", "no_packages")
def test_packages_of_cuda_are_packed_only_when_the_user_says_so(
    with_cuda: RecipeJob, document: Path, tmp_path: Path
) -> None:
    content = b"a package of cuDNN"
    sha256 = hashlib.sha256(content).hexdigest()
    table = {"cudnn": {"wheels": {"nvidia_cudnn-8-py3-none-any.whl": sha256}}}
    toolkit = ToolkitTable.model_validate(table)
    job = replace(with_cuda, recipe=with_cuda.recipe.changed(toolkit=toolkit))
    file = tmp_path / "file"
    without = packing.pack(job, document, file, [])
    assert [each.files for each in without.absent] == [{"nvidia_cudnn-8-py3-none-any.whl": sha256}]
    with fails(SupplyError, "cudnn", f"invoke toolkit --recipe {document}"):
        packing.pack(job, document, file, [], with_toolkit=True)
    make_file(sources.store(job.places.vault).path(sha256), content)
    whole = packing.pack(job, document, file, [], with_toolkit=True)
    assert members(whole, "toolkit") == [sha256]
    assert whole.absent == ()


@pytest.mark.medium
@pytest.mark.usefixtures("brought", "no_packages")
def test_a_lock_file_goes_along_and_a_tree_of_ours_stays(
    small_job: RecipeJob, tmp_path: Path
) -> None:
    lock = tmp_path / "small.lock"
    shutil.copy(recipes.RECIPES / "linux-r1.8-cpu.lock", lock)
    ours = small_job.recipe.source.changed(url="bundled:demo")
    recipe = small_job.recipe.changed(source=ours)
    job = replace(small_job, recipe=recipe, locked=lock)
    manifest = packing.pack(job, lock, tmp_path / "file", [])
    assert members(manifest, "lock") == ["small.lock"]
    assert members(manifest, "source") == []


@pytest.mark.medium
def test_a_recipe_of_another_system_is_bundled_there(
    small_job: RecipeJob,
    document: Path,
    brought: Inputs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    foreign = brought.model_copy(update={"programs": None})
    monkeypatch.setattr(lock_inputs, "fetch_inputs", lambda *_, **__: foreign)
    host = small_job.recipe.host.changed(system="Darwin")
    job = replace(small_job, recipe=small_job.recipe.changed(host=host))
    with fails(HostError, "Darwin") as caught:
        packing.pack(job, document, tmp_path / "file", [])
    assert caught.value.remedy == "Run the command on Darwin."


@pytest.mark.medium
@pytest.mark.usefixtures("brought", "no_packages")
def test_no_bundle_is_made_with_another_bazel_than_its_recipe_pins(
    small_job: RecipeJob, document: Path, tmp_path: Path
) -> None:
    """The host that it goes to would refuse it."""
    with fails(HostError, "5.1.1", small_job.recipe.bazel.version):
        packing.pack(replace(small_job, pinned_bazel="5.1.1"), document, tmp_path / "file", [])
    assert not (tmp_path / "file").exists()


@pytest.mark.medium
@pytest.mark.usefixtures("brought", "no_packages")
def test_the_checksum_of_a_manifest_is_printed_to_be_compared_elsewhere(
    shell: CommandLine, document: Path, tmp_path: Path, out: Read
) -> None:
    file = tmp_path / "small.tar"
    shell.succeeds(f"invoke bundle --recipe {document} --output {file}")
    said = f"manifest sha256 {bundle.read(file).sha256}"
    assert said in out()
    shell.succeeds(f"invoke bundle --unpack {file} --into {tmp_path}/there")
    assert said in out()
