"""Bazel's modules: when they are in use, what MODULE.bazel and its lock lead to."""

import base64
import json

import pytest

from tfwright.rules import listings, modules, patched_tree
from tfwright.rules import repositories as rules
from tfwright.rules.listings import Environment
from tfwright.rules.model import Rules

ONE, TWO, THREE, FOUR = ("1" * 64, "2" * 64, "3" * 64, "4" * 64)
REGISTRY = "https://bcr.example.org"
RULES_CC = f"{REGISTRY}/modules/rules_cc/0.1.0"
SHORT = "https://example.org/a.tar.gz"


def integrity(digest: str) -> str:
    return "sha256-" + base64.b64encode(bytes.fromhex(digest)).decode()


MODULE = f"""
module(name = "org_tensorflow")
bazel_dep(name = "rules_cc", version = "0.1.0")
archive_override(
    module_name = "platforms",
    integrity = "{integrity(ONE)}",
    strip_prefix = "platforms-1",
    urls = ["{SHORT}"],
)
git_override(
    module_name = "rules_shell",
    commit = "{"a" * 40}",
    remote = "https://github.com/bazelbuild/rules_shell.git",
)
local_path_override(module_name = "tsl", path = "third_party/tsl")
single_version_override(module_name = "zlib", version = "1.3", registry = "https://example.org")
own = use_extension("//third_party:extensions.bzl", "own")
use_repo(own, "zlib")
include("//third_party:more.MODULE.bazel")
"""
EXTENSIONS = f"""
load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")

def _own(context):
    http_archive(name = "zlib", sha256 = "{TWO}", urls = ["https://example.org/zlib.tar.gz"])

own = module_extension(implementation = _own)
"""
FILES = {
    "MODULE.bazel": MODULE,
    "third_party/extensions.bzl": EXTENSIONS,
    "third_party/more.MODULE.bazel": 'pip = use_extension("@rules_python//:pip.bzl", "pip")\n',
    "WORKSPACE": f'http_archive(name = "old", sha256 = "{FOUR}", urls = ["{SHORT}"])\n',
}
LOCK = {
    "lockFileVersion": 13,
    "registryFileHashes": {
        f"{REGISTRY}/bazel_registry.json": ONE,
        f"{RULES_CC}/MODULE.bazel": TWO,
        f"{RULES_CC}/source.json": THREE,
        f"{REGISTRY}/modules/none/1/MODULE.bazel": None,
        f"{REGISTRY}/modules/../../etc/MODULE.bazel": FOUR,
        f"{REGISTRY}/modules/rules_cc/1/patches/../../../x": FOUR,
    },
    "moduleExtensions": {
        "@@rules_python~//:pip.bzl%pip": {
            "general": {
                "generatedRepoSpecs": {
                    "six": {"attributes": {"urls": ["https://example.org/six.whl"], "sha256": FOUR}}
                }
            }
        }
    },
}
SOURCE = {
    "url": "https://example.org/rules_cc.tar.gz",
    "integrity": integrity(FOUR),
    "strip_prefix": "rules_cc-0.1.0",
    "patches": {"version.patch": integrity(ONE), "../../../../x.patch": integrity(TWO)},
}


def read(lock: object = None) -> Rules:
    locked = {} if lock is None else {"MODULE.bazel.lock": json.dumps(lock)}
    return rules.read({**FILES, **locked}, ["MODULE.bazel"])


@pytest.mark.parametrize(
    ("bazelrc", "flags", "version", "files"),
    [
        ("", [], "6.5.0", "WORKSPACE"),
        ("", [], "7.4.1", "MODULE.bazel WORKSPACE"),
        ("", [], "8.0.0", "MODULE.bazel"),
        ("common --noenable_bzlmod", [], "7.4.1", "WORKSPACE"),
        ("build --enable_bzlmod=false", [], "7.4.1", "WORKSPACE"),
        (
            "common --noenable_bzlmod\ncommon:m --enable_bzlmod --noenable_workspace",
            ["--config=m"],
            "7.4.1",
            "MODULE.bazel",
        ),
        (
            "common:m --config=n\nbuild:n --noenable_bzlmod --config=m",
            ["--config=m"],
            "8.0.0",
            "WORKSPACE",
        ),
        ("common --noenable_bzlmod", ["--enable_bzlmod"], "7.4.1", "MODULE.bazel WORKSPACE"),
    ],
)
def test_flags_and_the_version_say_which_files_bazel_reads(
    bazelrc: str, flags: list[str], version: str, files: str
) -> None:
    assert modules.starting_files(bazelrc, flags, version) == tuple(files.split())


def test_overrides_and_extensions_of_the_tree_are_read() -> None:
    found = read(LOCK)
    by_name = {each.name: each for each in found.repositories if each.rule != modules.REGISTRY}
    assert by_name["platforms"].sha256 == ONE
    assert by_name["platforms"].strip_prefix == "platforms-1"
    assert by_name["rules_shell"].clone is not None
    assert by_name["zlib"].sha256 == TWO
    # WORKSPACE is not in use.
    assert "old" not in by_name


def test_an_extension_of_another_module_is_named_unless_the_lock_has_what_it_made() -> None:
    assert [entry.why for entry in read(LOCK).unreadable] == []
    without = {**LOCK, "moduleExtensions": {}}
    (fault,) = read(without).unreadable
    assert fault.file == "third_party/more.MODULE.bazel"
    assert "pip of @rules_python//:pip.bzl" in fault.why


@pytest.mark.parametrize(
    "override",
    [
        "single_version_override({0})",
        f'git_override(remote = "https://a.example/z.git", commit = "{"a" * 40}", {{0}})',
        f'archive_override(urls = ["{SHORT}"], integrity = "{integrity(ONE)}", {{0}})',
    ],
)
def test_commands_of_an_override_that_may_download_are_reported(override: str) -> None:
    arguments = 'module_name = "zlib", patches = ["//:z.patch"], patch_cmds = ["{}"]'
    for command, unread in (("curl -O https://a.example/z", ["zlib"]), ("rm z", [])):
        text = override.format(arguments.format(command))
        faults = rules.read({"MODULE.bazel": text}, ["MODULE.bazel"]).unreadable
        assert [fault.name for fault in faults] == unread


def test_a_tree_without_a_lock_says_that_its_modules_are_not_known() -> None:
    assert any(fault.file == patched_tree.LOCK for fault in read().unreadable)


def test_the_files_of_registries_lead_to_archives_and_patches() -> None:
    texts = {THREE: json.dumps(SOURCE).encode()}
    found = listings.with_chosen_files(read(LOCK), Environment(), texts.get)
    places = {
        modules.registry_path(each.urls[0]): each.sha256
        for each in found.repositories
        if each.rule in {modules.REGISTRY, modules.PATCH}
    }
    assert places == {
        "bazel_registry.json": ONE,
        "modules/rules_cc/0.1.0/MODULE.bazel": TWO,
        "modules/rules_cc/0.1.0/source.json": THREE,
        "modules/rules_cc/0.1.0/patches/version.patch": ONE,
    }
    (archive,) = [each for each in found.repositories if each.rule == "bazel_dep"]
    assert (archive.name, archive.sha256, archive.strip_prefix) == (
        "rules_cc",
        FOUR,
        "rules_cc-0.1.0",
    )


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"registryFileHashes": [1]}'])
def test_a_lock_that_is_none_is_reported(text: str) -> None:
    (fault,) = modules.read_lock(text).unreadable
    assert "is not" not in fault.file


@pytest.mark.parametrize(
    ("name", "apparent"),
    [
        ("rules_cc~", "rules_cc"),
        ("rules_cc+", "rules_cc"),
        ("rules_cc~0.0.9", "rules_cc"),
        ("_main~own~zlib", "zlib"),
        ("rules_java~~toolchains~local_jdk", "local_jdk"),
        ("zlib", "zlib"),
    ],
)
def test_the_names_that_bazel_gives_to_modules_are_understood(name: str, apparent: str) -> None:
    assert modules.apparent_name(name) == apparent
