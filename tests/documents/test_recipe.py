"""Reading recipes: what is accepted, and how a fault is reported."""

import re
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import change_text, make_file

from tfwright.documents import recipe
from tfwright.documents.release import Release
from tfwright.errors import RecipeError


def fault(path: Path, old: str, new: str) -> RecipeError:
    """Put a fault into a valid recipe and return what reading it says."""
    change_text(path, old, new)
    with pytest.raises(RecipeError) as caught:
        recipe.read(str(path))
    return caught.value


def test_a_valid_recipe_loads_and_takes_its_name_from_the_file(recipe_file: Path) -> None:
    loaded = recipe.read(str(recipe_file))
    assert loaded.name == "small"
    assert loaded.source.release == Release(1, 8)


def test_a_release_that_is_stated_wins_over_the_branch(recipe_file: Path) -> None:
    change_text(recipe_file, 'branch = "r1.8"', 'branch = "r1.8"\nrelease = "1.12"')
    assert recipe.read(str(recipe_file)).source.release == Release(1, 12)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("r1.8", "'linux-r1.8-cpu'"), ("dmo", "'demo'"), ("dmeo", "'demo'"), ("nope", "")],
)
def test_an_unknown_recipe_suggests_only_what_is_like_it(name: str, meant: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe.find(name)
    assert caught.value.what.removeprefix(f"Unknown recipe {name!r}") == (
        f"; did you mean {meant}?" if meant else ""
    )


REFUSED = {
    "an unknown key": (
        "commit = ",
        "comit = ",
        (":6: unknown key source.comit", "'commit'", "source.commit is missing"),
    ),
    "an unknown table": ("[bazel]", "[bazle]", ("unknown key bazle", "'bazel'")),
    "a wrong type": ('version = "0.26.1"', "version = 26", (":14: bazel.version",)),
    "digits of another script": (
        'version = "0.26.1"',
        'version = "\u0660.26.1"',
        ("bazel.version",),
    ),
    "no such patch": (
        "\n[host]",
        'patches = [\n  "r1.8/none.patch",\n]\n[host]',
        (":8: r1.8/none.patch is not a file",),
    ),
    "an answer with a line break": (
        "[bazel]",
        '[configure.answers]\nTF_CUDA_VERSION = "9.2\\ny"\n[bazel]',
        (":14: configure.answers.TF_CUDA_VERSION", "one line of printable text"),
    ),
    "no TOML": ('version = "0.26.1"', "version = ", (":14: not valid TOML",)),
    "two faults": (
        'system = "any"\nmachine = "any"',
        'system = "BeOS"\nmachine = 3',
        ("2 faults", ":9: host.system", ":10: host.machine"),
    ),
    "a key that is set twice, after a list of flags": (
        "[bazel]",
        '[compile]\nflags = [\n  "--copt=-O2",\n  "--copt=-g",\n]\nflags = []\n[bazel]',
        ("compile.flags is set a second time",),
    ),
    "a byte order mark": ("summary", "\N{ZERO WIDTH NO-BREAK SPACE}summary", ("byte order mark",)),
    "a version of another release": (
        'branch = "r1.8"',
        'branch = "r1.8"\nversion = "1.9.0"',
        (":6: source.version: 1.9.0",),
    ),
    "the interface of TensorFlow without a release": (
        'branch = "r1.8"',
        'branch = "master"\nrelease = "none"',
        (":6: source.release: none",),
    ),
    "a project name that packaging cannot take": (
        "[bazel]",
        '[package]\nproject_name = "mine"\n[bazel]',
        ("--project_name",),
    ),
    "a substitute without a source": (
        "[bazel]",
        f'[fetch.substitutes.zlib_archive]\nreason = "gone"\nsha256 = "{"0" * 64}"\n[bazel]',
        ("urls", "git", "commit"),
    ),
    "a substitute's patch that is not among the patches": (
        "[bazel]",
        (
            f'[fetch.substitutes.zlib_archive]\nreason = "gone"\nsha256 = "{"0" * 64}"\n'
            'urls = ["https://example.org/zlib.tar.gz"]\npatches = ["r1.8/0009-zlib.patch"]\n[bazel]'
        ),
        ("r1.8/0009-zlib.patch", "source.patches"),
    ),
}


SHA = "0" * 64
MUST_BE = [
    ('python = "any"', "python = 3.10", ("not 3.1", 'Write python = "3.10".')),
    ('branch = "r1.8"', "branch = 1.8", ("must be a text in quotes", "branch =")),
    (
        'branch = "r1.8"',
        'branch = "r1.8"\npatches = "a.patch"',
        ("must be a list in brackets", 'Write patches = ["a.patch"].'),
    ),
    ('system = "any"', 'system = "linux"', ("did you mean 'Linux'?", "docs/recipe")),
    (
        'branch = "r1.8"',
        'branch = "r1.8"\nrelease = 1.8',
        ("source.release: must be a text in quotes, such as '1.8'", "docs/recipe"),
    ),
    (
        'branch = "r1.8"',
        'branch = "r1.8"\nrelease = "1.8banana"',
        ('"1.8banana" must be a TensorFlow version', "docs/recipe"),
    ),
    ('branch = "r1.8"', 'branch = "master"', ("source.release is missing", 'interface = "own"')),
    (
        "[bazel]",
        "[configure.answers]\nTF_NEED_GCP = 0\n[bazel]",
        ("TF_NEED_GCP: must be true, false or a text in quotes, not 0", "docs/recipe"),
    ),
    (
        "[bazel]",
        '[nccl]\nrebuild = "yes"\n[bazel]',
        ('nccl.rebuild: must be true or false, without quotes, not "yes"', "docs/recipe"),
    ),
    (
        "[bazel]",
        f'[[fetch.sources]]\nsha256 = "sha256:{SHA}"\n[bazel]',
        ("must be the 64 hexadecimal digits of a SHA-256 checksum", "docs/recipe"),
    ),
    (
        'version = "0.26.1"',
        'version = "latest"',
        ('bazel.version: must be a version such as 0.26.1, not "latest"', "docs/recipe"),
    ),
    (
        'python = "any"',
        'python = "3"',
        ('host.python: must be two numbers such as 3.6, or any, not "3"', "docs/recipe"),
    ),
    (
        "[bazel]",
        "[configure.answers]\ntf_need_gcp = true\n[bazel]",
        ("must be the name of a variable, in capital letters", "docs/recipe"),
    ),
    (
        "[bazel]",
        "[toolkit.cudnn]\n[bazel]",
        ("toolkit.cudnn: name its version as well: [host] cudnn",),
    ),
    (
        "[bazel]",
        '[configure.bazelrc]\nlines = ["build --x"]\n[bazel]',
        ("state the differences in configure.bazelrc.adds and omits",),
    ),
    (
        'branch = "r1.8"',
        'branch = "r1.8"\ninterface = "own"',
        ('compile.target must be stated with source.interface = "own"',),
    ),
    ('version = "0.26.1"', "", (":13: bazel.version is missing", "Add 'version'")),
]
"""What a value must be, and what to write, for people."""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [*REFUSED.values(), *MUST_BE],
    ids=[*REFUSED, *(new for _, new, _ in MUST_BE)],
)
def test_a_fault_is_refused_with_its_line_and_what_to_write(
    recipe_file: Path, old: str, new: str, named: tuple[str, ...]
) -> None:
    told = fault(recipe_file, old, new)
    assert [value for value in named if value not in f"{told.what}\n{told.remedy}"] == []
    assert told.exit_status == 2


@pytest.mark.parametrize("branch", ["--upload-pack=touch /tmp/x", "-r1.8", "r1..8", "r1.8 x", ""])
def test_a_branch_that_git_could_take_for_something_else_is_refused(
    recipe_file: Path, branch: str
) -> None:
    told = fault(recipe_file, 'branch = "r1.8"', f'branch = "{branch}"\nrelease = "1.8"')
    assert f"{recipe_file}:5: source.branch" in told.what


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% /tmp/x",
        "-u",
        "http://example.org/x.git",
        "git@host:x",
        "ssh://-oProxyCommand=x/r",
        "https://x/ --upload-pack=id",
    ],
)
def test_a_url_through_which_git_could_run_commands_is_refused(recipe_file: Path, url: str) -> None:
    assert "source.url" in fault(recipe_file, "https://example.org/tensorflow.git", url).what


@pytest.mark.parametrize(
    "path", ["../secret.patch", "/etc/passwd", "a/../../b", "~/x", "-x", "a\\b"]
)
def test_a_path_that_leaves_its_root_is_refused(recipe_file: Path, path: str) -> None:
    told = fault(recipe_file, "\n[host]", f"patches = ['{path}']\n[host]")
    assert f"{recipe_file}:7: source.patches" in told.what


def test_of_very_many_faults_the_first_ones_are_told_and_the_others_counted(
    recipe_file: Path,
) -> None:
    wrong = "".join(f"wrong_{number} = 1\n" for number in range(50))
    told = fault(recipe_file, "summary", f"{wrong}summary").what.splitlines()
    assert told[0].endswith("has 50 faults:")
    assert told[-1] == "  and 30 more"


def test_the_nccl_rebuild_is_refused_where_there_is_no_such_library(recipe_file: Path) -> None:
    recipe_file.write_text(recipe_file.read_text("utf-8") + "[nccl]\nrebuild = true\n", "utf-8")
    assert "only 1.0 to 1.12 do" in fault(recipe_file, 'branch = "r1.8"', 'branch = "r1.14"').what


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = make_file(tmp_path / "binary.toml", b"\xff\xfe\x00")
    with fails(RecipeError, "not UTF-8"):
        recipe.read(str(path))


@pytest.mark.parametrize(
    "table", ['libraries = { "@rpath/a.dylib" = "/b.dylib" }', 'rpath = ["/usr/local/cuda/lib"]']
)
def test_names_of_macos_libraries_in_a_linux_recipe_are_refused(
    recipe_file: Path, table: str
) -> None:
    change_text(recipe_file, 'system = "any"', 'system = "Linux"')
    assert "libraries" in fault(recipe_file, "[bazel]", f"[package]\n{table}\n[bazel]").what


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('[host]\nsystem = "any"\n', 15, "host is set a second time; the first one is"),
        ('version = "1"\n', 15, "bazel.version is set a second time; the first one"),
        ('x = "open\n', 15, "a text has no closing quote"),
        ('x = [\n"a"\n"b"\n]\n', 17, "a comma is missing"),
        ("x = 0.26.1\n", 15, "neither a text in quotes nor a number"),
        ("x: 1\n", 15, "no equals sign"),
        ('x = "a\\b\\w"\n', 15, "a backslash"),
        ("<<<<<<< mine\n", 15, "unfinished merge"),
    ],
)
def test_a_line_that_is_no_toml_is_explained(
    recipe_file: Path, text: str, line: int, what: str
) -> None:
    recipe_file.write_text(recipe_file.read_text("utf-8") + text, "utf-8")
    with fails(RecipeError, f"{recipe_file}:{line}", "TOML", what) as caught:
        recipe.read(str(recipe_file))
    assert "strings need quotes" not in caught.value.remedy


def test_the_name_of_a_file_that_is_none_for_a_recipe_is_no_fault_of_a_line(
    recipe_file: Path,
) -> None:
    renamed = recipe_file.rename(recipe_file.with_name("with space.toml"))
    with fails(RecipeError, "name") as caught:
        recipe.read(str(renamed))
    assert caught.value.remedy == "Rename the file."


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ("", "give either git, or package with member"),
        (
            'git = "https://a/b.git"\npackage = "pkg:npm/a@1"\nmember = "a"',
            "give either git, or package with member",
        ),
        ('package = "pkg:npm/a@1"', "give either git, or package with member"),
        (
            'git = "https://a/b.git"\nref = "v1"',
            "give git alone, git with ref and prefix, or git with blob",
        ),
        (
            'package = "pkg:npm/a@1"\nmember = "a"\nref = "v1"\nprefix = "a"',
            "ref and blob belong to git, not to a package",
        ),
    ],
)
def test_a_source_of_a_file_is_one_whole_place(recipe_file: Path, keys: str, what: str) -> None:
    table = f'[[fetch.sources]]\nsha256 = "{SHA}"\n{keys}\n[bazel]'
    assert what in fault(recipe_file, "[bazel]", table).what


def test_a_table_that_is_a_text_is_refused(recipe_file: Path) -> None:
    text = recipe_file.read_text("utf-8")
    told = fault(recipe_file, text, re.sub(r"(?s)(.*)\[source\].*?\n\n", r'source = "x"\n\1', text))
    assert "source: must be a table" in told.what


@pytest.mark.parametrize(
    ("target", "release", "other"),
    [
        (recipe.WHEEL_TARGET, "2.15", recipe.TENSORFLOW_TARGET),
        (recipe.TENSORFLOW_TARGET, "2.17", recipe.WHEEL_TARGET),
    ],
)
def test_a_target_that_a_release_has_not_is_refused_with_the_other_one(
    target: str, release: str, other: str
) -> None:
    table = recipe.PackageTable()
    with fails(RecipeError, release) as caught:
        recipe.check_makes_wheel(target, table, Release.parse(release))
    assert caught.value.remedy.startswith(f'Write target = "{other}" into [compile], ')
    recipe.check_makes_wheel(other, table, Release.parse(release))
    # Without a release nothing is known of it.
    recipe.check_makes_wheel(target, table)


def test_a_target_of_which_no_wheel_is_made_is_refused_unless_a_program_does_it() -> None:
    with fails(RecipeError, "//a:b", "package.program"):
        recipe.check_makes_wheel("//a:b", recipe.PackageTable())
    recipe.check_makes_wheel("//a:b", recipe.PackageTable(program="bazel-bin/b"))


def test_the_items_of_a_list_that_break_one_rule_are_one_fault(recipe_file: Path) -> None:
    loose = ", ".join(f'"package{number}"' for number in range(30))
    told = fault(recipe_file, "\n[bazel]", f"requirements = [{loose}]\n[bazel]").what
    assert "host.requirements.0 and 29 more of this list" in told
    assert "\n" not in told
