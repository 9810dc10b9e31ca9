"""Substitutes: the rule in the tree asks for them, and says nothing else than before."""

from dataclasses import replace

import pytest
from tests.failing import fails
from tests.rules.test_modules import integrity

from tfwright.documents.recipe import SubstituteTable
from tfwright.errors import RecipeError
from tfwright.rules import repositories
from tfwright.rules.model import Repository
from tfwright.tools.git.archive import Pack
from tfwright.vault import substitutes

OLD, NEW = "1" * 64, "2" * 64
WORKSPACE = 'load("//tensorflow:workspace.bzl", "tf_workspace")\ntf_workspace()\n'
RULES = f"""\
def tf_workspace():
  # Größe
  tf_http_archive(
      name = "eigen_archive",
      urls = [
          "https://mirror.example/bitbucket.example/eigen/6913f0cf7d06.tar.gz",
          "https://bitbucket.example/eigen/6913f0cf7d06.tar.gz",
      ],
      sha256 = "{OLD}",  # pinned
      strip_prefix = "eigen-6913f0cf7d06",
      build_file = "//third_party:eigen.BUILD",
  )
  tf_http_archive(name = "fft2d", sha256 = "{OLD}", urls = \
["https://mirror.example/www.example/fft.tgz", "https://old.example/fft.tgz"])
"""
TEXTS = {"WORKSPACE": WORKSPACE, "tensorflow/workspace.bzl": RULES}


def table(**keys: object) -> SubstituteTable:
    given = {
        "reason": "its server is gone",
        "sha256": NEW,
        "urls": ("https://github.com/o/r/archive/v1.tar.gz",),
        **keys,
    }
    return SubstituteTable.model_validate(given)


def found(texts: dict[str, str], name: str) -> Repository:
    return next(
        repository
        for repository in repositories.read({**TEXTS, **texts}).repositories
        if repository.name == name
    )


def test_digest_urls_and_directory_are_replaced_and_nothing_else() -> None:
    made = substitutes.rewrite_rules(TEXTS, {"eigen_archive": table(strip_prefix="r-1")})
    text = made["tensorflow/workspace.bzl"]
    one = found(made, "eigen_archive")
    assert (one.sha256, one.strip_prefix) == (NEW, "r-1")
    assert '"//third_party:eigen.BUILD"' in text
    assert "# Größe" in text
    assert "# pinned" in text
    other = found(made, "fft2d")
    assert other == replace(found({}, "fft2d"), line=other.line)


def test_the_first_url_is_on_the_trees_own_mirror_which_its_rules_insist_on() -> None:
    made = substitutes.rewrite_rules(TEXTS, {"fft2d": table(strip_prefix="r-1")})
    assert found(made, "fft2d").urls == (
        "https://mirror.example/github.com/o/r/archive/v1.tar.gz",
        "https://github.com/o/r/archive/v1.tar.gz",
    )
    assert found(made, "fft2d").strip_prefix == "r-1"


@pytest.mark.parametrize(
    "urls",
    [
        'mirrored("https://github.com/a/b/archive/v2.zip")',
        """["https://mirror.example/github.com/a/{c}.zip".format(c = "d"),
        "https://github.com/a/{c}.zip".format(c = "d")]""",
    ],
)
def test_the_mirror_is_kept_where_a_function_or_a_format_makes_the_urls(urls: str) -> None:
    rules = f"""\
def mirrored(url):
  return ["https://mirror.example/%s" % url[8:], url]

def tf_workspace():
  tf_http_archive(name = "r", urls = {urls}, sha256 = "{OLD}")
"""
    made = substitutes.rewrite_rules({**TEXTS, "tensorflow/workspace.bzl": rules}, {"r": table()})
    assert found(made, "r").urls == (
        "https://mirror.example/github.com/o/r/archive/v1.tar.gz",
        "https://github.com/o/r/archive/v1.tar.gz",
    )
    mirror = "https://mirror.example/x.zip"
    both = table(urls=(mirror, "https://github.com/x.zip"))
    made = substitutes.rewrite_rules({**TEXTS, "tensorflow/workspace.bzl": rules}, {"r": both})
    assert found(made, "r").urls == (mirror, "https://github.com/x.zip")


def test_a_packed_commit_leaves_urls_and_directory_as_they_are() -> None:
    packed = table(urls=(), git="https://example.org/eigen.git", commit="a" * 40, exclude=("test",))
    made = substitutes.rewrite_rules(TEXTS, {"eigen_archive": packed})
    before, after = found({}, "eigen_archive"), found(made, "eigen_archive")
    assert (after.urls, after.strip_prefix, after.sha256) == (before.urls, before.strip_prefix, NEW)
    wanted = substitutes.wanted_archive("eigen_archive", packed, before)
    assert wanted.pack == Pack(
        "https://example.org/eigen.git", "a" * 40, "eigen-6913f0cf7d06/", ("test",)
    )


@pytest.mark.parametrize(
    ("ending", "more", "form", "stored"),
    [
        (".zip", "", "zip", True),
        ("", ', type = "zip"', "zip", True),
        (".txz", ', type = "tar"', "tar", False),
        (".tar.bz2", "", "tar.bz2", False),
        (".tgz", "", "tar.gz", False),
        (".tar.xz", "", "tar.xz", False),
        (".txz", "", "tar.xz", False),
        (".jar", "", "zip", True),
        ("/archive", "", "tar.gz", False),
    ],
)
def test_a_packed_commit_has_the_form_of_the_archive_that_it_stands_for(
    ending: str, more: str, form: str, *, stored: bool
) -> None:
    packed = table(urls=(), git="https://example.org/r.git", commit="a" * 40)
    rule = f'archive(name = "r", url = "https://a.example/r{ending}", sha256 = "{OLD}"{more})\n'
    wanted = substitutes.wanted_archive("r", packed, found({"WORKSPACE": WORKSPACE + rule}, "r"))
    assert wanted.pack is not None
    assert (wanted.pack.form, wanted.pack.stored) == (form, stored)


def test_of_several_urls_the_first_one_says_how_bazel_unpacks_what_it_has() -> None:
    packed = table(urls=(), git="https://example.org/r.git", commit="a" * 40)
    urls = ("https://mirror.example/r.tar.xz", "https://a.example/r.zip")
    wanted = substitutes.wanted_archive("r", packed, Repository("r", "archive", "W", 1, urls, OLD))
    assert wanted.pack is not None
    assert wanted.pack.form == "tar.xz"


@pytest.mark.parametrize("ending", ["tar.zst", "deb"])
def test_a_commit_is_not_packed_for_an_archive_of_a_form_that_git_does_not_write(
    ending: str,
) -> None:
    packed = table(urls=(), git="https://example.org/r.git", commit="a" * 40)
    rule = Repository("r", "archive", "WORKSPACE", 7, (f"https://a.example/r.{ending}",), OLD)
    with fails(RecipeError, f"Bazel unpacks it as .{ending}"):
        substitutes.wanted_archive("r", packed, rule)


def test_what_another_repository_declares_by_the_same_name_is_not_what_is_replaced() -> None:
    own = Repository("r", "http_archive", "WORKSPACE", 1, ("https://example.org/r.zip",), "2" * 64)
    other = Repository(
        "r", "http_archive", "@closure//defs.bzl", 1, ("https://example.org/older.zip",), "3" * 64
    )
    assert substitutes.replaced_archive("r", (other, own)) == own
    with fails(RecipeError, "@closure//defs.bzl:1"):
        substitutes.replaced_archive("r", (other,))


def test_a_packed_commit_goes_into_its_own_directory_where_the_rule_strips_none() -> None:
    packed = table(urls=(), git="https://example.org/fft.git", commit="a" * 40, prefix="fft")
    wanted = substitutes.wanted_archive("fft2d", packed, found({}, "fft2d"))
    assert wanted.pack is not None
    assert wanted.pack.prefix == "fft/"


def test_a_text_of_the_recipe_cannot_become_code() -> None:
    made = substitutes.rewrite_rules(TEXTS, {"fft2d": table(strip_prefix='x", evil = "')})
    assert found(made, "fft2d").strip_prefix == 'x", evil = "'


def test_two_rules_of_one_name_are_both_rewritten() -> None:
    twice = TEXTS | {"tensorflow/workspace.bzl": RULES + RULES.splitlines()[-1] + "\n"}
    made = substitutes.rewrite_rules(twice, {"fft2d": table()})
    both = repositories.read({**twice, **made}).repositories
    assert {one.sha256 for one in both if one.name == "fft2d"} == {NEW}


def test_another_version_in_a_workspace_that_nothing_leads_to_stays_as_it_is() -> None:
    unread = f'http_archive(name = "fft2d", sha256 = "{"3" * 64}", url = "https://a.example/b.zip")'
    texts = {**TEXTS, "third_party/xla/workspace2.bzl": f"def workspace():\n  {unread}\n"}
    changed = substitutes.rewrite_rules(texts, {"fft2d": table()})
    assert changed == substitutes.rewrite_rules(TEXTS, {"fft2d": table()})


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({"tensorflow/workspace.bzl": "def tf_workspace():\n  pass\n"}, "declares no archive"),
        (
            {
                "tensorflow/workspace.bzl": "def tf_workspace():\n  git_repository(name = 'fft2d', "
                f"remote = 'https://a.example/b.git', commit = '{'a' * 40}')\n"
            },
            "declares no archive",
        ),
        (
            {
                "tensorflow/workspace.bzl": RULES
                + f'  native.http_archive(name = "fft2d", sha256 = "{"3" * 64}", '
                'url = "https://a.example/b.zip")\n'
            },
            "names several files",
        ),
    ],
)
def test_a_name_that_stands_for_no_one_archive_is_refused(texts: dict[str, str], why: str) -> None:
    with pytest.raises(RecipeError, match=f"fetch.substitutes.fft2d: the tree {why}"):
        substitutes.rewrite_rules({**TEXTS, **texts}, {"fft2d": table()})


MODULE = f"""\
archive_override(
    module_name = "platforms",
    integrity = "{integrity(OLD)}",
    urls = ["https://old.example/p.tgz"],
)
archive_override(module_name = "bare", urls = ["https://old.example/b.tgz"])
"""


def test_the_override_of_a_module_asks_for_the_substitute_by_its_integrity() -> None:
    texts = {**TEXTS, "MODULE.bazel": MODULE}
    pin = table(replaces="https://old.example/b.tgz")
    tables = {"platforms": table(strip_prefix="p-1"), "bare": pin}
    made = substitutes.rewrite_rules(texts, tables, starts=("MODULE.bazel",))
    assert made.keys() == {"MODULE.bazel"}
    assert "sha256 =" not in made["MODULE.bazel"]
    rules = repositories.read(made, ("MODULE.bazel",)).repositories
    assert [(one.name, one.sha256, one.strip_prefix) for one in rules] == [
        ("platforms", NEW, "p-1"),
        ("bare", NEW, ""),
    ]


def test_a_substitute_that_names_the_pinned_archive_is_accepted() -> None:
    found = repositories.read(TEXTS).repositories
    substitutes.check_replaced({"fft2d": table(replaces=OLD)}, found)


def test_substitutes_of_another_release_are_refused_all_at_once_with_the_lines_to_write() -> None:
    found = repositories.read(TEXTS).repositories
    tables = {"fft2d": table(replaces="3" * 64), "eigen_archive": table(replaces="4" * 64)}
    with fails(RecipeError, "fft2d, eigen_archive") as told:
        substitutes.check_replaced(tables, found)
    eigen = "https://bitbucket.example/eigen/6913f0cf7d06.tar.gz"
    assert told.value.evidence.lines == [
        "[fetch.substitutes.fft2d]  # tensorflow/workspace.bzl:13 https://old.example/fft.tgz",
        f'replaces = "{OLD}"',
        f"[fetch.substitutes.eigen_archive]  # tensorflow/workspace.bzl:3 {eigen}",
        f'replaces = "{OLD}"',
    ]


def test_a_substitute_that_does_not_state_what_it_replaces_is_refused() -> None:
    found = repositories.read(TEXTS).repositories
    with fails(RecipeError, "fft2d", "replaces"):
        substitutes.check_replaced({"fft2d": table()}, found)


LOOSE = """\
http_archive(name = "bare", urls = ["https://a.example/b-1.zip"], strip_prefix = "b-1")
http_archive(
    name = "empty",
    sha256 = "",
    url = "https://a.example/e.zip",
)
git_repository(name = "moving", remote = "https://a.example/m.git", tag = "v1")
http_archive(name = "spread", url = "https://a.example/s.zip", **MORE)
"""


def pin_of(url: str, **keys: object) -> SubstituteTable:
    return table(replaces=url, urls=[url], **keys)


def test_an_archive_without_a_checksum_gets_that_of_the_recipe() -> None:
    texts = {"WORKSPACE": LOOSE}
    tables = {
        "bare": pin_of("https://a.example/b-1.zip", strip_prefix="b"),
        "empty": pin_of("https://a.example/e.zip"),
    }
    rules = substitutes.with_checksums(repositories.read(texts), tables)
    substitutes.check_replaced(tables, rules.repositories)
    assert {entry.name for entry in rules.repositories if entry.sha256 == NEW} == {"bare", "empty"}
    made = repositories.read(substitutes.rewrite_rules(texts, tables)).repositories
    bare, empty, *_ = made
    assert (bare.sha256, bare.strip_prefix) == (NEW, "b")
    assert (empty.sha256, empty.urls) == (NEW, ("https://a.example/e.zip",))


def test_a_pin_of_another_address_is_refused_with_the_address_to_write() -> None:
    tables = {"bare": pin_of("https://a.example/b-0.zip")}
    rules = substitutes.with_checksums(repositories.read({"WORKSPACE": LOOSE}), tables)
    with fails(RecipeError, "fetch.substitutes") as told:
        substitutes.check_replaced(tables, rules.repositories)
    assert told.value.evidence.lines[-1] == 'replaces = "https://a.example/b-1.zip"'


def test_a_checksum_that_may_come_with_other_arguments_is_not_written_twice() -> None:
    text = 'MORE = {"strip_prefix": "s"}\n' + LOOSE
    with fails(RecipeError, "fetch.substitutes."):
        substitutes.rewrite_rules(
            {"WORKSPACE": text}, {"spread": pin_of("https://a.example/s.zip")}
        )


def test_a_table_is_proposed_for_what_a_recipe_can_pin_and_for_nothing_else() -> None:
    found = repositories.read({"WORKSPACE": LOOSE}).repositories
    bare, _, moving, *_ = found
    assert substitutes.table_lines(bare) == [
        "[fetch.substitutes.bare]",
        'reason = "WORKSPACE names no checksum"',
        'replaces = "https://a.example/b-1.zip"',
        'urls = ["https://a.example/b-1.zip"]',
    ]
    assert substitutes.table_lines(moving) == []
