import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.failing import fails
from tests.making import Serve, make_file, make_folder
from tests.upstream import commit, run_git

from tfwright.documents import composing
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.errors import HostError, RecipeError, SupplyError, TfwrightError
from tfwright.lint import recipes as linting
from tfwright.lock import checksums, packages
from tfwright.pipeline.job import RecipeJob
from tfwright.progress import SILENCE
from tfwright.toolkit import sources
from tfwright.toolkit.sources import Supplier
from tfwright.tools.bazel import binary
from tfwright.tools.python import resolving

HEAD = """\
summary = "x"

[source]
url = "file://{folder}/upstream"
branch = "r1.8"
commit = "{commit}"

[host]
system = "any"
machine = "any"
python = "any"

"""
RECIPE = (
    HEAD
    + """\
[bazel]
version = "0.17.2"  # why

# Why zlib.

[fetch.substitutes.zlib]
reason = "x"
replaces = "{pinned}"
urls = ["https://example.invalid/zlib-1.tar.gz"]

# Why nasm.

[fetch.substitutes.nasm]
reason = "x"
replaces = "{other}"
git = "https://example.invalid/nasm.git"
commit = "{commit}"
sha256 = ""

# Why this source.

[[fetch.sources]]
# What it is.
git = "https://example.invalid/nasm.git"
blob = "{blob}"

[verify]
cpu = "sse3"  # why
"""
)
WORKSPACE = """\
http_archive(
    name = "zlib",
    sha256 = "{pinned}",
    urls = ["https://example.invalid/zlib-0.tar.gz"],
)
http_archive(
    name = "nasm",
    sha256 = "{other}",
    strip_prefix = "nasm-2",
    urls = ["https://example.invalid/nasm.tar.gz"],
)
"""


@pytest.fixture
def recipe_path(tmp_path: Path) -> Path:
    """Write a recipe that leaves three checksums open, and the repository that has two of them."""
    pins = {"pinned": "a" * 64, "other": "b" * 64}
    upstream = tmp_path / "upstream"
    pinned = commit(upstream, {"WORKSPACE": WORKSPACE.format(**pins)})
    blob = run_git("rev-parse", "HEAD:WORKSPACE", cwd=upstream)
    text = RECIPE.format(folder=tmp_path, commit=pinned, blob=blob, **pins)
    return make_file(tmp_path / "small.toml", text)


def host_file(folder: Path, **keys: object) -> HostFile:
    mirrors = {"https://example.invalid/nasm.git": str(folder / "upstream")}
    given = {"build_out": folder / "build_out", "mirrors": mirrors}
    return HostFile.model_validate(given | keys)


@pytest.mark.medium
def test_every_open_checksum_is_learned_from_mirrors_and_written(
    recipe_path: Path, tmp_path: Path, serve: Serve
) -> None:
    served = make_folder(tmp_path / "served")
    (served / "zlib-1.tar.gz").write_bytes(b"zlib")
    before = recipe_path.read_text("utf-8")
    settings = host_file(tmp_path, downloads={"https://example.invalid/": serve(served)})
    found = checksums.pin(recipe_path, settings, SILENCE)
    assert [key[2] for key in found] == ["zlib", "nasm", 0]
    after = recipe_path.read_text("utf-8")
    recipe = recipes.read(str(recipe_path))
    zlib = recipe.fetch.substitutes["zlib"].sha256
    assert zlib == hashlib.sha256(b"zlib").hexdigest()
    workspace = (tmp_path / "upstream/WORKSPACE").read_bytes()
    assert recipe.fetch.sources[0].sha256 == hashlib.sha256(workspace).hexdigest()
    # Only lines were added or completed; comments and order are the author's.
    kept = [line for line in before.splitlines() if line != 'sha256 = ""']
    assert [line for line in after.splitlines() if not line.startswith("sha256")] == kept
    # What was pinned stays as it is.
    assert checksums.pin(recipe_path, host_file(tmp_path), SILENCE) == {}
    assert recipe_path.read_text("utf-8") == after


@pytest.mark.medium
def test_checksums_that_are_open_in_a_document_of_archives_are_written_there(
    recipe_path: Path, tmp_path: Path
) -> None:
    text = recipe_path.read_text("utf-8")
    start, end = text.index("# Why nasm."), text.index("[verify]")
    document = make_file(tmp_path / "archives/shared.toml", text[start:end].replace("fetch.", ""))
    own = '[[fetch.sources]]\ngit = "https://example.invalid/nasm.git"\n'
    own += f'blob = "{tomllib.loads(text)["fetch"]["sources"][0]["blob"]}"\n\n'
    own = f'fetch.archives = "shared"\n{text[: text.index("# Why zlib.")]}{own}{text[end:]}'
    recipe_path.write_text(own, "utf-8")
    found = linting.lint(str(recipe_path))
    assert {each.file for each in found if each.rule == "schema"} == {document}
    assert all("invoke pin" in each.remedy for each in found if each.rule == "schema")
    pinned = checksums.pin(recipe_path, host_file(tmp_path), SILENCE)
    assert [key[2] for key in pinned] == ["nasm", 0, 1]
    recipe = recipes.read(str(recipe_path))
    assert len(recipe.fetch.substitutes["nasm"].sha256) == 64
    assert len({source.sha256 for source in recipe.fetch.sources}) == 1
    assert document.read_text("utf-8").count("sha256") == 2


@pytest.mark.medium
def test_what_was_learned_before_a_failure_stays(recipe_path: Path, tmp_path: Path) -> None:
    text = recipe_path.read_text("utf-8")
    zlib, rest = text.index("# Why zlib."), text.index("# Why nasm.")
    # The one that no source gives comes last.
    reordered = text[:zlib] + text[rest:] + "\n" + text[zlib:rest]
    recipe_path.write_text(reordered, "utf-8")
    with fails(SupplyError, "zlib") as caught:
        checksums.pin(recipe_path, host_file(tmp_path), SILENCE)
    assert caught.value.evidence.lines
    left = tomllib.loads(recipe_path.read_text("utf-8"))["fetch"]["substitutes"]
    assert len(left["nasm"]["sha256"]) == 64
    assert "sha256" not in left["zlib"]


def test_other_faults_of_the_recipe_are_told_first(recipe_path: Path, tmp_path: Path) -> None:
    text = recipe_path.read_text("utf-8").replace("reason =", "raeson =", 1)
    recipe_path.write_text(text, "utf-8")
    with fails(RecipeError, "reason"):
        checksums.pin(recipe_path, host_file(tmp_path), SILENCE)
    assert recipe_path.read_text("utf-8") == text


def test_an_empty_checksum_of_a_toolkit_is_open_and_a_written_one_is_not() -> None:
    values = tomllib.loads(
        '[toolkit.cuda.wheels]\n"a-1-py3-none-any.whl" = ""\n"b-1-py3-none-any.whl" = "x"\n'
        '[toolkit.cudnn.debian]\nsuite = "bookworm"\nfiles = { "c_1_amd64.deb" = "" }\n'
        '[toolkit.nccl]\narchives = 3\n[fetch]\nsources = "x"\n'
    )
    assert list(checksums._open_keys(values)) == [
        ("toolkit", "cuda", "wheels", "a-1-py3-none-any.whl"),
        ("toolkit", "cudnn", "debian", "files", "c_1_amd64.deb"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('summary = "x"', "summary = x", "not valid TOML"),
        ('sha256 = ""', "sha256 = 5", "must be a text in quotes, not 5"),
        ("[fetch.substitutes.zlib]", "[fetch.substitutes]\nzlib = 3\n[x]", "table"),
        ("[[fetch.sources]]", "[fetch]\nsources = [1]\n[y]", "must be a table"),
    ],
)
def test_a_recipe_that_says_something_else_is_refused_and_stays(
    recipe_path: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = recipe_path.read_text("utf-8")
    assert old in text
    recipe_path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(RecipeError, match=says):
        checksums.pin(recipe_path, host_file(tmp_path), SILENCE)
    assert recipe_path.read_text("utf-8") == text.replace(old, new)


TOOLKIT = """
[toolkit.compiler]
tree = "{tree}"

[toolkit.compiler.debian]
suite = "bookworm"
files = {{ "a_1_amd64.deb" = "", "b_1%3a2_amd64.deb" = "", "c_1_amd64.deb" = "" }}
"""


class Archive:
    """Stands in for apt: gives the packages that it has, and notes what it was asked for."""

    def __init__(self, *has: str) -> None:
        self.has = has
        self.asked: list[list[str]] = []

    def give(self, _way: str, _part: object, pins: Mapping[str, str], folder: Path) -> list[Path]:
        self.asked.append(sorted(pins))
        if not set(pins) <= set(self.has):
            raise SupplyError("apt has no such package", remedy="-")
        for name in pins:
            (folder / name).write_text(f"content of {name}", "utf-8")
        return sorted(folder.iterdir())


@pytest.fixture
def toolkit_recipe(recipe_path: Path, tmp_path: Path) -> Path:
    """Write a recipe that leaves open only the checksums of three packages."""
    text = recipe_path.read_text("utf-8")
    text = text[: text.index("# Why zlib.")] + TOOLKIT.format(tree="a" * 64)
    return make_file(tmp_path / "toolkit.toml", text)


def of_package(name: str) -> str:
    return hashlib.sha256(f"content of {name}".encode()).hexdigest()


def learned(path: Path) -> dict[str, str]:
    values = tomllib.loads(path.read_text("utf-8"))
    files: dict[str, str] = values["toolkit"]["compiler"]["debian"]["files"]
    return files


def test_packages_of_a_toolkit_are_downloaded_together_and_kept(
    toolkit_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a_1_amd64.deb", "b_1%3a2_amd64.deb", "c_1_amd64.deb"]
    archive = Archive(*names)
    monkeypatch.setattr(Supplier, "download_packages", archive.give)
    found = checksums.pin(toolkit_recipe, host_file(tmp_path), SILENCE)
    assert archive.asked == [names]
    assert learned(toolkit_recipe) == {name: of_package(name) for name in names}
    # 'invoke toolkit' does not download them again.
    store = sources.store(tmp_path / "build_out/vault")
    assert all(store.holds(learned.sha256) for learned in found.values())
    first = next(iter(found.values()))
    assert (first.sha256, first.where) == (of_package(names[0]), "debian")


def test_checksums_that_are_open_in_a_named_toolkit_are_written_there(
    toolkit_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a_1_amd64.deb", "b_1%3a2_amd64.deb", "c_1_amd64.deb"]
    monkeypatch.setattr(Supplier, "download_packages", Archive(*names).give)
    text = toolkit_recipe.read_text("utf-8")
    place = text.index("\n[toolkit.compiler]")
    document = make_file(tmp_path / "toolkits/gcc.toml", text[place:].replace("toolkit.", ""))
    toolkit_recipe.write_text('toolkit = "gcc"\n' + text[:place], "utf-8")
    checksums.pin(toolkit_recipe, host_file(tmp_path), SILENCE)
    values = tomllib.loads(document.read_text("utf-8"))
    assert values["compiler"]["debian"]["files"] == {name: of_package(name) for name in names}


def test_a_package_that_cannot_be_had_leaves_only_its_own_checksum_open(
    toolkit_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive("a_1_amd64.deb", "b_1%3a2_amd64.deb")
    monkeypatch.setattr(Supplier, "download_packages", archive.give)
    with fails(SupplyError, "apt"):
        checksums.pin(toolkit_recipe, host_file(tmp_path), SILENCE)
    found = learned(toolkit_recipe)
    assert found["a_1_amd64.deb"] == of_package("a_1_amd64.deb")
    assert found["b_1%3a2_amd64.deb"] == of_package("b_1%3a2_amd64.deb")
    assert found["c_1_amd64.deb"] == ""


def test_a_package_that_comes_under_another_name_leaves_its_checksum_open(
    toolkit_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_file(tmp_path / "other_1_amd64.deb", "content")
    monkeypatch.setattr(Supplier, "download_packages", lambda *_: [other])
    with fails(SupplyError, "a_1_amd64.deb", "name"):
        checksums.pin(toolkit_recipe, host_file(tmp_path), SILENCE)
    assert learned(toolkit_recipe)["a_1_amd64.deb"] == ""


def test_a_package_in_the_drop_folder_is_not_downloaded(
    toolkit_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive("a_1_amd64.deb", "b_1%3a2_amd64.deb")
    monkeypatch.setattr(Supplier, "download_packages", archive.give)
    drop = make_folder(tmp_path / "drop")
    (drop / "c_1_amd64.deb").write_text("content of c_1_amd64.deb", "utf-8")
    checksums.pin(toolkit_recipe, host_file(tmp_path, drop=drop), SILENCE)
    assert archive.asked == [["a_1_amd64.deb", "b_1%3a2_amd64.deb"]]
    assert learned(toolkit_recipe)["c_1_amd64.deb"] == of_package("c_1_amd64.deb")


def without_checksums(recipe_path: Path) -> tuple[RecipeJob, str]:
    """Leave out what is not about packages; return the job, and what the recipe says."""
    text = recipe_path.read_text("utf-8")
    text = text[: text.index("# Why zlib.")] + '[verify]\ncpu = "sse3"\n'
    recipe_path.write_text(text, "utf-8")
    recipe = recipes.read(str(recipe_path))
    return RecipeJob(recipe=recipe, host_file=host_file(recipe_path.parent)), text


@pytest.mark.parametrize(
    "line",
    [
        "numpy==",
        "numpy 1.14",
        "",
        "./x",
        "-r/etc/passwd",
        "git+https://example.org/x",
        "x @ git+https://example.org/x",
        'numpy; python_version < "3"',
    ],
)
def test_what_is_no_requirement_is_refused_before_pip_is_asked(
    recipe_path: Path, line: str
) -> None:
    job, text = without_checksums(recipe_path)
    for added, verifying in (([line], []), ([], [line])):
        with pytest.raises(RecipeError, match="must be a package and its versions") as caught:
            packages.pin(job, recipe_path, added, verifying)
        assert caught.value.remedy
    assert recipe_path.read_text("utf-8") == text


@pytest.mark.parametrize("kind", [SupplyError, HostError])
def test_packages_are_pinned_although_bazel_cannot_be_had(
    recipe_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[TfwrightError]
) -> None:
    def refuse(*_args: object, **_keys: object) -> object:
        raise kind("tfwright could not obtain Bazel", remedy="-")

    def resolve(*_args: object) -> tuple[str, ...]:
        return ("wheel==0.45.1",)

    monkeypatch.setattr(binary, "obtain", refuse)
    monkeypatch.setattr(resolving, "resolve", resolve)
    job, _ = without_checksums(recipe_path)
    pinned = packages.pin(job, recipe_path, ["wheel"])
    assert pinned.bazel == ""
    written = recipes.read(str(recipe_path))
    assert written.host.requirements == ("wheel==0.45.1",)
    # With nothing else to do, it is the whole answer.
    with pytest.raises(kind, match="could not obtain Bazel"):
        packages.pin(replace(job, recipe=written), recipe_path)
    # The Bazel of this platform is none that a recipe for another one needs.
    foreign = written.changed(host=written.host.changed(system="Darwin", machine="arm64"))
    assert packages.pin(replace(job, recipe=foreign), recipe_path).bazel == ""
    # Nor is what this host has in place of the pinned version.
    assert packages.pin(replace(job, recipe=written, pinned_bazel="5.1.1"), recipe_path).bazel == ""


NEEDS = {"tensorflow": ("numpy", "six"), "keras": ("numpy",), "numpy": (), "six": ()}
NEWEST = {"tensorflow": "1.1", "keras": "2.0", "numpy": "1.19", "six": "1.16"}


def closure(
    _: Path, __: str, wanted: Sequence[str], ___: Path, preferred: Sequence[str] = ()
) -> tuple[str, ...]:
    """Stand in for pip, with an index of four packages; numpy 1.14 is too old for keras."""
    given = dict(line.partition("==")[::2] for line in wanted)
    kept = dict(line.partition("==")[::2] for line in preferred)
    needed = {*given, *(need for name in given for need in NEEDS[name])}
    chosen = {name: given.get(name) or kept.get(name) or NEWEST[name] for name in needed}
    if "keras" in chosen and chosen["numpy"] == "1.14":
        raise SupplyError("keras needs numpy 1.19", remedy="-")
    return tuple(sorted(f"{name}=={version}" for name, version in chosen.items()))


@pytest.fixture
def pinned_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a recipe whose packages were resolved when numpy 1.14 was the newest."""
    monkeypatch.setattr(resolving, "resolve", closure)
    monkeypatch.setattr(packages, "_pin_bazel", lambda *_: "")
    monkeypatch.setitem(NEWEST, "numpy", "1.14")
    text = Path(recipes.find("demo")).read_text("utf-8")
    text = re.sub(r"requirements = .*", 'requirements = ["tensorflow==1.0"]', text, count=1)
    path = make_file(tmp_path / "mine.toml", text)
    repin(path, tmp_path)
    monkeypatch.setitem(NEWEST, "numpy", "1.19")
    return path


def repin(path: Path, folder: Path) -> None:
    job = RecipeJob(recipe=recipes.read(str(path)), host_file=HostFile(build_out=folder / "out"))
    packages.pin(job, path)


def test_pip_keeps_to_what_the_tree_requires_where_a_person_names_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = Mock(return_value=("six==1.15",))
    monkeypatch.setattr(resolving, "resolve", pip)
    setup = 'REQUIRED_PACKAGES = ["wrapt >= 1.11, < 1.15", "six ~= 1.15", "h5py"]'
    monkeypatch.setattr(packages, "_pin_bazel", lambda *_: "")
    commit_id = commit(tmp_path / "upstream", {"tensorflow/tools/pip_package/setup.py": setup})
    lists = 'requirements = ["six==1.15"]\n[bazel]\nversion = "0.17.2"\n[verify]\n'
    text = HEAD.format(folder=tmp_path, commit=commit_id) + lists + 'requirements = ["wrapt"]\n'
    path = make_file(tmp_path / "mine.toml", text)
    recipe = recipes.read(str(path), packages.remove_open)
    packages.pin(RecipeJob(recipe=recipe, host_file=HostFile(build_out=tmp_path / "out")), path)
    # numpy and gast are of the tables, since the setup.py of the time set them no upper bound.
    known = {"wrapt<1.15,>=1.11", "numpy<1.17", "gast<0.3", "protobuf<3.21"}
    held = [{*call.args[-1]} for call in pip.call_args_list]
    assert held == [known, known | {"six~=1.15"}]


def test_resolved_packages_are_a_document_with_its_comment_on_top(pinned_recipe: Path) -> None:
    text = pinned_recipe.with_suffix(".pins").read_text("utf-8")
    assert text.startswith("# Resolved by pip for mine.toml;")
    assert tomllib.loads(text)["build"] == ["numpy==1.14", "six==1.16"]
    assert not composing.has_outdated_pins(pinned_recipe)


@pytest.mark.parametrize(
    ("direct", "resolved"),
    [
        # Needed all the same, they keep their versions.
        ('["tensorflow==1.1"]', ["numpy==1.14", "six==1.16"]),
        # What nothing needs any more goes.
        ('["numpy==1.19"]', None),
        # A version that does not fit any more is chosen again.
        ('["keras==2.0"]', ["numpy==1.19"]),
    ],
)
def test_packages_of_other_requirements_are_found_and_pin_resolves_them(
    pinned_recipe: Path, tmp_path: Path, direct: str, resolved: list[str] | None
) -> None:
    text = pinned_recipe.read_text("utf-8")
    pinned_recipe.write_text(re.sub(r'\["tensorflow==1.0"\]', direct, text), "utf-8")
    (found,) = (each for each in linting.lint(str(pinned_recipe)) if each.rule == "pins")
    assert str(pinned_recipe) in found.remedy
    repin(pinned_recipe, tmp_path)
    assert "pins" not in {each.rule for each in linting.lint(str(pinned_recipe))}
    pins = tomllib.loads(pinned_recipe.with_suffix(".pins").read_text("utf-8"))
    assert pins.get("build") == resolved


def test_a_list_that_only_the_other_document_has_stays_there_whole(
    pinned_recipe: Path, tmp_path: Path
) -> None:
    text = pinned_recipe.read_text("utf-8")
    alone = text.replace('requirements = ["tensorflow==1.0"]', "")
    pinned_recipe.write_text(alone, "utf-8")
    place = pinned_recipe.with_suffix(".pins")
    place.write_text('build = ["tensorflow==1.0", "numpy==1.14", "six==1.16"]\n', "utf-8")
    host_file = HostFile(build_out=tmp_path / "out")
    job = RecipeJob(recipe=recipes.read(str(pinned_recipe)), host_file=host_file)
    # Another numpy than the resolved one is chosen, since keras wants it.
    packages.pin(job, pinned_recipe, ["keras==2.0"])
    assert pinned_recipe.read_text("utf-8") == alone
    resolved = ["keras==2.0", "numpy==1.19", "six==1.16", "tensorflow==1.1"]
    assert tomllib.loads(place.read_text("utf-8"))["build"] == resolved


def test_another_python_makes_resolved_packages_outdated(pinned_recipe: Path) -> None:
    text = pinned_recipe.read_text("utf-8")
    pinned_recipe.write_text(text.replace('python = "any"', 'python = "3.8"'), "utf-8")
    assert composing.has_outdated_pins(pinned_recipe)
    # An earlier tfwright did not write for what they are.
    pins = pinned_recipe.with_suffix(".pins")
    pins.write_text(re.sub("resolved_for.*", "", pins.read_text("utf-8")), "utf-8")
    assert not composing.has_outdated_pins(pinned_recipe)
