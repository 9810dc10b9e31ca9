"""Reading repository rules: what is found, what is reported, and what hostile texts cannot do."""

import time

import pytest

from tfwright.rules import repositories as rules
from tfwright.rules.model import Reference, Repository, Rules, Unreadable
from tfwright.rules.patched_tree import is_relevant
from tfwright.rules.starlark import evaluator
from tfwright.tools.git.clones import Clone

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64
REPO = f"""
def _impl(ctx):
    if ctx.attr.patch_file:
        ctx.patch(ctx.attr.patch_file)
    ctx.download_and_extract(ctx.attr.urls, "", ctx.attr.sha256, ctx.attr.type)

_archive = repository_rule(implementation = _impl, \
attrs = {{"urls": attr.string_list(), "sha256": attr.string()}})

def mirrored(url):
    if not url.startswith("https://"):
        fail("no https")
    return ["https://mirror.example.org/%s" % url[8:], url]

def tf_http_archive(name, sha256, urls, **kwargs):
    if native.existing_rule(name):
        return
    _archive(name = name, sha256 = sha256, urls = urls, **kwargs)

def unused(name):
    tf_http_archive(name = "idle", sha256 = "{THREE}", urls = ["https://example.org/idle.zip"])
    tf_http_archive(name = name, sha256 = name, urls = [])
"""


def read(workspace: str, **files: str) -> Rules:
    """Read a tree with files of third_party/ beside WORKSPACE."""
    return rules.read(
        {
            "WORKSPACE": workspace,
            **{f"third_party/{name}.bzl": text for name, text in files.items()},
        }
    )


def only(found: Rules) -> Repository:
    """Return the only download of a tree in which nothing is unclear."""
    assert found.unreadable == ()
    assert len(found.repositories) == 1
    return found.repositories[0]


def archive(url: str = '"https://example.org/a.zip"', sha256: str = ONE, name: str = "a") -> str:
    """Return a rule, with a url as Starlark writes it."""
    return f'http_archive(name = "{name}", sha256 = "{sha256}", urls = [{url}])\n'


def test_a_rule_is_read_with_its_file_and_line() -> None:
    found = only(read("\n\n" + archive()))
    assert found == Repository(
        "a", "http_archive", "WORKSPACE", 3, ("https://example.org/a.zip",), ONE, by_url=True
    )
    assert found.lockable


def test_a_repeated_text_is_read() -> None:
    repeated = archive(sha256='" + "1" * 64 + "', url='"https://example.org/" + 2 * "a"')
    assert only(read(repeated)).urls == ("https://example.org/aa",)
    assert only(read(repeated)).sha256 == ONE


INTEGRITY = "sha256-ERERERERERERERERERERERERERERERERERERERERERE="
LOAD = 'load("//third_party:{0}.bzl", "{1}")\n'
SITE = "https://example.org"
LLVM = f"""
load("//third_party:repo.bzl", "tf_http_archive")
def repo(name, tag = "v1"):
    COMMIT = "abc"
    tf_http_archive(name = name, sha256 = "{ONE}", strip_prefix = "llvm-" + COMMIT, \
urls = ["{SITE}/{{c}}-{{}}.zip".format(tag, c = COMMIT)])
"""
CLANG = f"""
def _platform(os_name):
    if os_name.startswith("windows"):
        return "Win"
    return "Linux"
def _get(ctx, platform, sha256):
    ctx.download_and_extract("{SITE}/{{0}}/clang-%s.tgz".format(platform) % "7", \
output = "x", sha256 = sha256)
def _impl(ctx):
    platform = _platform(ctx.os.name)
    digests = {{"Win": "{ONE}", "Linux": "{TWO}"}}
    _get(ctx, platform, digests[platform])
clang = repository_rule(implementation = _impl)
"""
OWN_MAYBE = f"""
def _maybe(rule, name, **kwargs):
    if name not in native.existing_rules():
        rule(name = name, **kwargs)
def deps():
    _maybe(http_archive, name = "own", sha256 = "{ONE}", urls = ["{SITE}/own"])
"""
READ: dict[str, tuple[str, dict[str, str], list[tuple[str, str, list[str]]]]] = {
    "a macro that forwards its arguments is the rule": (
        LOAD.format("repo", 'tf_http_archive", "mirrored')
        + f'tf_http_archive(name = "z", sha256 = "{ONE}", urls = mirrored("{SITE}/z"))',
        {"repo": REPO},
        [("z", ONE, ["https://mirror.example.org/example.org/z", f"{SITE}/z"])],
    ),
    "parameters have the values of the calls": (
        (
            'load("//third_party:llvm.bzl", llvm = "repo")\n'
            'llvm(name = "llvm-raw")\nllvm("llvm", tag = "v2")'
        ),
        {"llvm": LLVM, "repo": REPO},
        [("llvm-raw", ONE, [f"{SITE}/abc-v1.zip"]), ("llvm", ONE, [f"{SITE}/abc-v2.zip"])],
    ),
    "a table of platforms in a rule's own code is read pair by pair": (
        LOAD.format("clang", "clang") + 'clang(name = "clang")',
        {"clang": CLANG},
        [
            ("clang", ONE, [f"{SITE}/Win/clang-7.tgz"]),
            ("clang", TWO, [f"{SITE}/Linux/clang-7.tgz"]),
        ],
    ),
    "a rule with several files gives each with its own digest": (
        (
            f'filegroup_external(name = "f", sha256_urls = {{"{ONE}": ["{SITE}/1"]}}, '
            f'sha256_urls_macos = {{"{TWO}": ["{SITE}/2"]}})'
        ),
        {},
        [("f", ONE, [f"{SITE}/1"]), ("f", TWO, [f"{SITE}/2"])],
    ),
    "a rule for Java gives its sources as well": (
        (
            f'java_import_external(name = "j", jar_sha256 = "{ONE}", jar_urls = ["{SITE}/j"], '
            f'srcjar_sha256 = "{TWO}", srcjar_urls = ["{SITE}/s"])'
        ),
        {},
        [("j", ONE, [f"{SITE}/j"]), ("j", TWO, [f"{SITE}/s"])],
    ),
    "an artifact of Maven is where Maven keeps it": (
        (
            f'maven(name = "g", artifact = "com.google:guava:18.0", artifact_sha256 = "{ONE}", '
            f'server_urls = ["{SITE}/m2/"])'
        ),
        {},
        [("g", ONE, [f"{SITE}/m2/com/google/guava/18.0/guava-18.0.jar"])],
    ),
    "both branches of a condition count": (
        f'if x:\n    u = "{SITE}/1"\nelse:\n    u = "{SITE}/2"\n{archive("u")}',
        {},
        [("a", ONE, [f"{SITE}/1"]), ("a", ONE, [f"{SITE}/2"])],
    ),
    "each turn of a loop counts": (
        f'for n in ["x", "y"]:\n    http_archive(name = n, sha256 = "{ONE}", url = "{SITE}/" + n)',
        {},
        [("x", ONE, [f"{SITE}/x"]), ("y", ONE, [f"{SITE}/y"])],
    ),
    "Bazel's own maybe is seen through, and one of the tree": (
        'load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")\n'
        + LOAD.format("own", "deps")
        + f'maybe(http_archive, name = "theirs", sha256 = "{TWO}", url = "{SITE}/theirs")\ndeps()',
        {"own": OWN_MAYBE},
        [("theirs", TWO, [f"{SITE}/theirs"]), ("own", ONE, [f"{SITE}/own"])],
    ),
    "a macro that calls itself is read once": (
        LOAD.format("a", "f") + "f()",
        {"a": f"def f():\n  f()\n  {archive()}"},
        [("a", ONE, [f"{SITE}/a.zip"])],
    ),
    "a load renames some symbols before it names others": (
        'load("//third_party:own.bzl", mine = "deps", "_maybe",\n)\nmine()',
        {"own": OWN_MAYBE},
        [("own", ONE, [f"{SITE}/own"])],
    ),
    "an entry of a dictionary is a list of address and checksum": (
        (
            f'FILES = {{"1.0": ["{SITE}/a", "{ONE}"]}}\nentry = FILES["1.0"]\n'
            'http_archive(name = "a", url = entry[0], sha256 = entry[1])'
        ),
        {},
        [("a", ONE, [f"{SITE}/a"])],
    ),
    "an integrity is the checksum of a file": (
        f'http_archive(name = "a", url = "{SITE}/a", integrity = "{INTEGRITY}")',
        {},
        [("a", "11" * 32, [f"{SITE}/a"])],
    ),
    "a switch that is off leads nowhere, and a version is a part of a name": (
        LOAD.format("tool", "tool") + 'tool("tool-1.2-x")\ntool("tool-1.3-x", extra = None)',
        {
            "tool": f"""
def tool(name, extra = False):
    if extra and name:
        http_archive(name = "extra", urls = [extra.url], sha256 = "{TWO}")
    url = "{SITE}/{{}}".format(name.split("-")[1])
    http_archive(name = "tool", url = url, sha256 = "{ONE}")
"""
        },
        [("tool", ONE, [f"{SITE}/1.2"]), ("tool", ONE, [f"{SITE}/1.3"])],
    ),
    "files that are laid over an archive, and its patches, are downloads of their own": (
        (
            f'archive(name = "a", url = "{SITE}/a", sha256 = "{TWO}",\n'
            f'    remote_file_urls = {{"lib/x.so": ["{SITE}/x"]}},\n'
            f'    remote_file_integrity = {{"lib/x.so": "{INTEGRITY}"}},\n'
            f'    remote_patches = {{"{SITE}/p": "{INTEGRITY}"}})'
        ),
        {},
        [
            ("a", TWO, [f"{SITE}/a"]),
            ("a", "11" * 32, [f"{SITE}/x"]),
            ("a", "11" * 32, [f"{SITE}/p"]),
        ],
    ),
}


@pytest.mark.parametrize(("workspace", "files", "expected"), READ.values(), ids=READ)
def test_what_a_tree_downloads_is_read(
    workspace: str, files: dict[str, str], expected: list[tuple[str, str, list[str]]]
) -> None:
    found = read(workspace, **files)
    reached = [(one.name, one.sha256, [*one.urls]) for one in found.repositories if one.reached]
    assert sorted(reached) == sorted(expected)
    assert found.unreadable == ()


def test_a_macro_that_is_called_counts_as_the_rule_with_its_values() -> None:
    workspace, files, _ = READ["a macro that forwards its arguments is the rule"]
    called = next(one for one in read(workspace, **files).repositories if one.reached)
    assert (called.rule, called.file, called.line) == ("tf_http_archive", "WORKSPACE", 2)
    workspace, files, _ = READ["parameters have the values of the calls"]
    found = [one for one in read(workspace, **files).repositories if one.reached]
    assert {one.strip_prefix for one in found} == {"llvm-abc"}


def test_what_nothing_leads_to_is_marked_as_not_reached() -> None:
    found = only(read("", repo=REPO))
    assert (found.name, found.sha256, found.reached) == ("idle", THREE, False)


def test_a_download_that_only_running_would_reveal_is_reported_where_it_is() -> None:
    hidden = (
        'def _impl(ctx):\n    ctx.download(ctx.os.environ["URL"], "x")\nhidden = '
        "repository_rule(implementation = _impl)"
    )
    found = read('load("//third_party:hidden.bzl", "hidden")\nhidden(name = "x")', hidden=hidden)
    assert [(place.file, place.line, place.name) for place in found.unreadable] == [
        ("third_party/hidden.bzl", 2, "x")
    ]
    assert "download" in found.unreadable[0].why


@pytest.mark.parametrize(
    ("commands", "harmless"),
    [
        ('["sed -i \'s|a|b|\' x.cc && rm -rf test; mv a b", "find . -name x\\ncp a b"]', True),
        ("None", True),
        ('["curl -o x https://example.org/x"]', False),
        ('["rm a; python fetch.py"]', False),
        ('["sed -i s/a/b/ deps.bzl"]', False),
        ('["echo \'"]', False),
        ("commands()", False),
    ],
)
def test_commands_that_may_download_or_change_rules_are_reported(
    commands: str, *, harmless: bool
) -> None:
    rule = f'archive(name = "a", url = "{SITE}/a", sha256 = "{ONE}", patch_cmds = {commands})'
    found = read(rule)
    assert [one.name for one in found.repositories] == ["a"]
    assert [place.name for place in found.unreadable] == ([] if harmless else ["a"])


def test_a_macro_of_a_file_that_is_not_there_is_reported_where_it_is_called() -> None:
    found = read('load("//third_party:gone.bzl", "repositories")\nrepositories()')
    why = "repositories: '//third_party:gone.bzl': the file third_party/gone.bzl is missing"
    assert found.unreadable == (Unreadable("WORKSPACE", 2, why),)


@pytest.mark.parametrize(
    ("rule", "url", "commit"),
    [
        (
            'new_git_repository(name = "g", remote = "git@example.org:g.git", commit = "abc")',
            "git@example.org:g.git",
            "abc",
        ),
        (
            'container_pull(name = "c", registry = "a.example", repository = "c", digest = "sha256:1")',
            "a.example/c",
            "sha256:1",
        ),
    ],
    ids=["a clone", "a container"],
)
def test_a_rule_without_a_checksum_is_listed_and_is_not_lockable(
    rule: str, url: str, commit: str
) -> None:
    found = only(read(rule))
    assert (found.urls, found.commit, found.lockable) == ((url,), commit, False)


def test_of_what_bazel_itself_declares_only_rules_of_languages_count_as_reached() -> None:
    text = 'load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")\n'
    text += archive(name="remotejdk11_win")
    text += f'maybe(http_archive, "rules_cc", sha256 = "{TWO}", urls = ["{SITE}/rules_cc.zip"])\n'
    tools = 'local_repository(name = "bazel_tools", path = __embedded_dir__)'
    found = rules.read_bazel({"java/jdk.WORKSPACE": text, "tools.WORKSPACE": tools})
    made = [(one.name, one.sha256, one.reached, one.of_bazel) for one in found.repositories]
    assert made == [("remotejdk11_win", ONE, False, True), ("rules_cc", TWO, True, True)]
    assert {one.file for one in found.repositories} == {"@bazel//java/jdk.WORKSPACE"}
    assert found.unreadable == ()


@pytest.mark.parametrize(
    ("commit", "cloned"), [("d" * 40, True), ("v1.0", False), ("d" * 7, False)]
)
def test_a_rule_that_clones_pins_what_it_clones_only_by_a_whole_commit_id(
    commit: str, *, cloned: bool
) -> None:
    url = "https://example.org/r.git"
    rule = f'git_repository(name = "r", remote = "{url}", commit = "{commit}")'
    (repository,) = read(rule).repositories
    assert repository.clone == (Clone(url, commit) if cloned else None)


def test_a_macro_of_another_repository_is_nested_until_that_is_there() -> None:
    found = read(
        'load("@closure//closure:defs.bzl", "closure_repositories")\nclosure_repositories()'
    )
    call = Reference("closure", "closure/defs.bzl", "WORKSPACE", 2, "closure_repositories")
    load = Reference("closure", "closure/defs.bzl", "WORKSPACE", 1)
    assert found == Rules((), (), (call, load))
    repositories = (
        'load("@closure//closure:versions.bzl", "V")\nload("@other//:deps.bzl", "deps")\n'
    )
    repositories += (
        "def closure_repositories(omit_a = False):\n    if not omit_a:\n        "
        + archive('"https://example.org/" + V')
        + "    deps()"
    )
    files = {
        "closure/defs.bzl": 'load("//closure:repositories.bzl", "closure_repositories")',
        "closure/repositories.bzl": repositories,
        "closure/versions.bzl": 'V = "v1"',
    }
    followed = rules.follow(call, files)
    assert followed
    place = "@closure//closure/repositories.bzl"
    made = only(followed)
    assert (made.file, made.urls) == (place, ("https://example.org/v1",))
    deeper = Reference("other", "deps.bzl", place, 6, "deps")
    assert rules.join_rules(found, {call: followed}) == Rules((made,), (), (load, deeper))
    assert rules.follow(load, files) == Rules((), (), (Reference("other", "deps.bzl", place, 2),))
    assert rules.follow(load, {"closure/other.bzl": ""}) is None


def test_a_nested_macro_that_is_not_in_its_repository_is_reported() -> None:
    call = Reference("closure", "defs.bzl", "WORKSPACE", 2, "gone")
    for files, why in (
        ({}, "the file defs.bzl is missing"),
        ({"defs.bzl": ""}, "gone is not a constant"),
    ):
        fault = Unreadable("@closure//defs.bzl", 1, why)
        assert rules.follow(call, files) == Rules((), (fault,))


def test_a_file_that_is_no_starlark_is_reported_with_its_line() -> None:
    found = read("a = 1\nif:\n")
    assert found.unreadable[0].file == "WORKSPACE"
    assert "line 2" in found.unreadable[0].why


HOSTILE = {
    "a repeated text": archive('"a" * 10**9'),
    "a wide percent": archive('"https://example.org/%999999999d" % 1'),
    "a width from outside": archive('"https://example.org/%*d" % (999999999, 1)'),
    "a wide format": archive('"https://example.org/{:>999999999}".format("a")'),
    "a nested format": archive('"https://example.org/{:{}}".format("a", 999999999)'),
    "an attribute in a format": archive('"https://example.org/{0.__class__}".format("a")'),
    "a doubled text": 'x0 = "aaaaaaaa"\n'
    + "".join(f"x{i + 1} = x{i} + x{i}\n" for i in range(100))
    + archive("x100"),
    "a huge number": f"x = 0x{'f' * 100_000}\n" + archive('"https://example.org/%d" % x'),
    "deep brackets": "[" * 100_000 + "]" * 100_000,
    "many signs": "-" * 200_000 + "1",
    "a long sum": archive("+".join(['"a"'] * 50_000)),
    "many names": "".join(f"a{i} = 1\n" for i in range(5_000)),
    "more forms than can be": "".join(
        f"if a:\n  x{i} = 'a'\nelse:\n  x{i} = 'b'\n" for i in range(40)
    )
    + archive("+".join(f"x{i}" for i in range(40))),
    "a null byte": "\0",
    "a huge file": "#" * 5_000_000,
    "a path for a digest": archive(sha256="../../etc/passwd"),
    "a path for a name": archive(name="../a"),
    "a url that is none": archive('"javascript:alert(1)"'),
    "a line break in a url": archive('"https://example.org/a\\nb"'),
    "a label that leaves": 'load("@evil//../..:passwd.bzl", "f")\nf()',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_reported_and_neither_hangs_nor_fills_memory(text: str) -> None:
    started = time.monotonic()
    found = read(text)
    assert found.unreadable
    assert all(len(place.why) < 1000 for place in found.unreadable)
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"{'  ' * i}for a in [1, 2, 3, 4, 5, 6, 7, 8]:\n" for i in range(1, 13))
        + f"{'  ' * 13}f()",
        "  f1()\n"
        + "".join(f"def f{i}():\n  f{i + 1}()\n  f{i + 1}()\n" for i in range(1, 60))
        + "def f60():\n  f()",
    ],
    ids=["loops in loops", "macros that call the next one twice"],
)
def test_work_without_end_is_given_up_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    # A tenth of what a real tree takes, to be quick.
    monkeypatch.setattr(evaluator, "MOST_STEPS", 20_000)
    found = read('load("//third_party:a.bzl", "f0")\nf0()', a=f"def f0():\n{body}")
    why = "takes more than 20,000 steps to read; what was found is not all"
    assert found.unreadable[-1].why == why


NAMED = "urls = [" + ", ".join(f'"https://a/{n}"' for n in range(500)) + "]\n"


@pytest.mark.medium
@pytest.mark.parametrize(
    "text",
    [
        NAMED + 'http_archive(name = "a", urls = urls)\n' * 100,
        NAMED + "u = urls + urls\nfail(u + u + u + u)\n" * 2000,
        't = "a" * 1\n' + 'http_archive(name = "a", url = t)\n' * 30_000,
        "".join(f"a{n} = 1\n" for n in range(1900)) + "b = 1\n" * 4000,
        't = "%s" % ("x" + "y")\n' * 5000 + 'load("a.bzl", "x")\n' * 1000,
    ],
    ids=["urls", "sums", "texts", "names", "characters"],
)
def test_all_work_is_counted(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(evaluator, "MOST_STEPS", 20_000)
    assert read(text).unreadable[-1].why.startswith("takes more than 20,000")


@pytest.mark.parametrize(
    "text",
    [
        'load("@%s!", "x")\nx()' % ("a" * 400_000),
        'http_archive(name = "a", url = "https://a/%s.zip")' % ("packages/aa/aa/x/a-1" * 20_000),
        'http_archive(name = "a", url = "' + "{0}" * 20_000 + '".format("' + "a" * 60_000 + '"))',
        "%s(url = 1, name = 2)" % ("a" * 500_000),
    ],
    ids=["label", "address", "format", "name"],
)
def test_a_long_text_takes_no_time_and_is_reported_in_short(text: str) -> None:
    begun = time.process_time()
    found = read(text).unreadable
    assert time.process_time() - begun < 5
    assert found
    assert max(len(fault.why) for fault in found) < 500


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("WORKSPACE", True),
        ("third_party/llvm/workspace.bzl", True),
        ("tensorflow/BUILD", False),
        ("tensorflow/core/WORKSPACE", False),
    ],
)
def test_only_what_workspace_can_lead_to_is_relevant(path: str, *, expected: bool) -> None:
    assert is_relevant(path) is expected


def test_an_address_that_is_none_leaves_the_other_ones_of_its_archive() -> None:
    urls = ["no address", "https://a.example/b.zip", "file:///etc/passwd"]
    (found,) = read(f'http_archive(name = "a", sha256 = "{ONE}", urls = {urls})').repositories
    assert "https://a.example/b.zip" in found.urls
    assert "no address" not in found.urls


VENDORED = """
def _vendored_impl(ctx):
    ctx.symlink(ctx.path(ctx.attr.parent).dirname.get_child(ctx.attr.relpath), ".")

vendored = repository_rule(implementation = _vendored_impl, attrs = {"relpath": attr.string()})
"""


@pytest.mark.parametrize(
    "declaration",
    ['vendored(name = "xla", relpath = "third_party/xla")']
    + [
        f'local_repository(name = "xla", path = "{path}")'
        for path in ("third_party/xla", "./third_party/xla/")
    ],
)
def test_a_folder_that_is_a_repository_is_read_with_what_its_callers_pass(declaration: str) -> None:
    found = rules.read(
        {
            "WORKSPACE": 'load("//third_party:vendored.bzl", "vendored")\n'
            f'{declaration}\nload("@xla//llvm:workspace.bzl", "llvm")\nllvm("llvm-raw")\n',
            "third_party/vendored.bzl": VENDORED,
            "third_party/xla/llvm/workspace.bzl": 'load("//llvm:pins.bzl", "PIN")\n'
            'def llvm(name):\n    http_archive(name = name, sha256 = PIN, urls = ["https://example.org/l"])\n',
            "third_party/xla/llvm/pins.bzl": f'PIN = "{ONE}"\n',
        }
    )
    repository = only(found)
    assert (repository.name, repository.sha256, repository.reached) == ("llvm-raw", ONE, True)
    assert repository.file == "third_party/xla/llvm/workspace.bzl"
    assert not found.references


def test_a_folder_that_is_not_in_the_tree_makes_no_repository_of_it() -> None:
    outside = 'local_repository(name = "xla", path = "../xla")\n'
    found = read(f'{outside}load("@xla//:w.bzl", "w")\nw()\n')
    assert [way.archive for way in found.references] == ["xla", "xla"]


@pytest.mark.parametrize("label", ["one.bzl", ":one.bzl", "@//deps:one.bzl", "@@//deps:one.bzl"])
def test_each_spelling_of_a_label_leads_to_the_file(label: str) -> None:
    found = rules.read(
        {
            "WORKSPACE": 'load("//deps:all.bzl", "all")\nall()\n',
            "deps/all.bzl": f'load("{label}", "one")\ndef all():\n    one()\n',
            "deps/one.bzl": f"def one():\n    {archive()}",
        }
    )
    assert only(found).file == "deps/one.bzl"


@pytest.mark.parametrize(("integrity", "readable"), [("sha512-AAAA", True), ("sha256-%%", False)])
def test_an_integrity_that_is_no_sha256_pins_nothing(integrity: str, *, readable: bool) -> None:
    found = read(f'http_archive(name = "a", url = "{SITE}/a", integrity = "{integrity}")')
    assert not any(one.lockable for one in found.repositories)
    assert bool(found.unreadable) is not readable
