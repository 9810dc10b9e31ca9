"""Why two builds' actions differ: causes before consequences."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfwright.cache import page
from tfwright.cache import usage as cache
from tfwright.documents.host_file import HostFile
from tfwright.errors import HostError, RecipeError
from tfwright.tools.cache import messages, toolchain, usage
from tfwright.tools.cache.toolchain import Toolchain
from tfwright.tools.cache.usage import CachedBuild, CacheUse


def action(
    output: str,
    *,
    arguments: tuple[str, ...] = (),
    inputs: Mapping[str, str] | None = None,
    **named: str,
) -> bytes:
    """Return a SpawnExec after its length, as Bazel writes it."""
    message = b"".join(messages.field(1, argument.encode()) for argument in ("gcc", *arguments))
    message += messages.field(2, messages.field(1, b"PATH") + messages.field(2, b"/usr/bin"))
    for path, digest in {**(inputs or {}), **named}.items():
        name = path.replace("__", "/").encode()
        message += messages.field(
            4, messages.field(1, name) + messages.field(2, messages.field(1, digest.encode()))
        )
    for made in output.split():
        message += messages.field(5, made.encode())
    message += messages.field(10, b"CppCompile")
    length = bytearray()
    size = len(message)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*length, size)) + message


@pytest.fixture
def settings(tmp_path: Path) -> HostFile:
    (tmp_path / "cache/logs").mkdir(parents=True)
    return HostFile(build_out=tmp_path)


def compared(settings: HostFile, first: bytes, second: bytes) -> cache.CacheComparison:
    for name, content in (("one", first), ("two", second)):
        (settings.cache_directory / "logs" / f"{name}.log").write_bytes(content)
    return cache.why(settings, ["one", "two"])


def test_equal_logs_have_no_difference(settings: HostFile) -> None:
    found = compared(settings, action("a.o", a__cc="1"), action("a.o", a__cc="1"))
    assert (found.same, found.changes) == (1, ())


def test_a_changed_input_is_named_with_its_digests(settings: HostFile) -> None:
    found = compared(settings, action("a.o", a__cc="1"), action("a.o", a__cc="2"))
    assert found.changes[0].what == "input a/cc: 1 became 2"


def test_a_changed_argument_is_named(settings: HostFile) -> None:
    found = compared(settings, action("a.o", arguments=("-O1",)), action("a.o", arguments=("-O2",)))
    assert found.changes[0].what == "argument '-O1' became '-O2'"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (("-O2",), ("-DNEW", "-O2"), "argument '-DNEW' came"),
        (("-DOLD", "-O2"), ("-O2",), "argument '-DOLD' went"),
        (("-g0", "-O2"), ("-g",), "arguments '-g0', '-O2' became '-g'"),
        (("-a", "-b"), ("-b", "-a"), "the same arguments are in another order"),
    ],
)
def test_arguments_that_came_and_went_are_named_wherever_they_stand(
    settings: HostFile, before: tuple[str, ...], after: tuple[str, ...], said: str
) -> None:
    found = compared(settings, action("a.o", arguments=before), action("a.o", arguments=after))
    assert found.changes[0].what == said


def test_a_flag_is_named_and_not_the_folder_that_changes_with_it(settings: HostFile) -> None:
    def compile_in(folder: str, flag: str) -> bytes:
        output = f"bazel-out/{folder}/bin/a.o"
        header = {f"bazel-out/{folder}/bin/a.h": "1"}
        return action(output, arguments=(flag, "-o", output), inputs=header)

    found = compared(settings, compile_in("k8-opt", "-g0"), compile_in("k8-dbg", "-g"))
    assert found.changes[0].what == "argument '-g0' became '-g'"
    found = compared(settings, compile_in("k8-opt", "-g"), compile_in("k8-dbg", "-g"))
    assert "another folder below bazel-out" in found.changes[0].what


def test_an_action_is_called_by_its_object_file_and_not_by_the_list_of_headers(
    settings: HostFile,
) -> None:
    made = "lib/a.d lib/a.o"
    found = compared(settings, action(made, a="1"), action(made, a="2"))
    assert found.changes[0].name == "lib/a.o"


def test_the_same_action_is_recognised_under_another_configuration(settings: HostFile) -> None:
    first, second = "bazel-out/k8-opt/bin/a.o", "bazel-out/k8-dbg/bin/a.o"
    found = compared(settings, action(first, a="1"), action(second, a="2"))
    assert (len(found.changes), found.only_first) == (1, 0)


def test_causes_come_before_what_follows_from_them(settings: HostFile) -> None:
    first = action("lib", inputs={"a.o": "1"}) + action("a.o", a__cc="1")
    second = action("lib", inputs={"a.o": "2"}) + action("a.o", a__cc="2")
    changes = compared(settings, first, second).changes
    assert [(change.name, change.follows) for change in changes] == [("a.o", False), ("lib", True)]


def test_an_equal_action_that_made_other_bytes_is_pointed_out(settings: HostFile) -> None:
    first = action("lib", inputs={"a.o": "1"}) + action("a.o", a__cc="1")
    second = action("lib", inputs={"a.o": "2"}) + action("a.o", a__cc="1")
    (change,) = compared(settings, first, second).changes
    assert not change.follows
    assert change.what == (
        "input a.o: 1 became 2; the action that makes it is the same in both builds"
    )


def test_a_log_that_is_cut_off_is_refused(settings: HostFile) -> None:
    with pytest.raises(HostError, match="not an execution log"):
        compared(settings, action("a.o", a="1")[:-3], action("a.o", a="1"))


def test_a_log_that_does_not_exist_names_how_to_get_one(settings: HostFile) -> None:
    with pytest.raises(RecipeError) as caught:
        cache.why(settings, ["none", "none"])
    assert "logs = true" in caught.value.remedy


def test_a_cache_whose_first_build_still_runs_shows_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = cache.CacheState(
        directory=tmp_path,
        held=2**20,
        limit=2**30,
        server=None,
        toolchains=(cache.KeptToolchain("3c626f2935f9" * 4, 6, {}),),
        builds=(),
        logs=(),
    )
    page.show_cache(state)
    said = capsys.readouterr().out
    assert "3c626f2935f9" in said
    assert "No build that used the cache has ended yet." in said


def kept_build(settings: HostFile, moment: str, tools: Toolchain) -> str:
    """Leave what a build leaves: its toolchain, a line of the history, a log; return its name."""
    root = settings.cache_directory
    toolchain.keep(tools, root)
    finished = time.mktime(time.strptime(moment, cache.LOG_TIME)) + 0.5
    use = CacheUse(toolchain=tools.digest)
    usage.add(root, CachedBuild(recipe="demo", finished=finished, use=use))
    (root / f"logs/demo-{moment}.log").write_bytes(action("a.o", a="1"))
    return f"demo-{moment}"


def gcc(version: str, digest: str, *programs: str) -> Toolchain:
    """Return a toolchain of a compiler and the programs that it runs."""
    inner = {f"/usr/lib/gcc/{version}/{name}": f"{name}{digest}" for name in programs}
    return Toolchain(
        {"gcc": digest, "programs of gcc": f"all {inner}", "sed": "s"},
        {"gcc": {"/usr/bin/gcc": digest}, "programs of gcc": inner},
        {"gcc": f"gcc {version}"},
    )


def test_another_compiler_is_named_with_its_versions_for_the_builds_that_were_asked_for(
    settings: HostFile,
) -> None:
    old, new = gcc("12", "a", "cc1", "ld"), gcc("11", "b", "cc1", "ld")
    first = kept_build(settings, "20261123-041919", old)
    second = kept_build(settings, "20261123-042612", old)
    third = kept_build(settings, "20261123-043000", new)
    assert cache.why(settings, [first, second]).toolchains == ()
    assert cache.why(settings, [first, third]).toolchains == (
        cache.ToolchainChange("gcc", "gcc 12", "gcc 11", ("/usr/bin/gcc",)),
        cache.ToolchainChange(
            "programs of gcc", "", "", ("/usr/lib/gcc/11/cc1", "/usr/lib/gcc/11/ld")
        ),
    )


def test_a_compiler_that_one_build_lacks_is_named_without_its_parts(settings: HostFile) -> None:
    old = Toolchain({"gcc": "a"})
    new = Toolchain({"gcc": "a", "clang": "b", "programs of clang": "c"})
    first = kept_build(settings, "20261123-041919", old)
    second = kept_build(settings, "20261123-042612", new)
    found = cache.why(settings, [first, second]).toolchains
    assert found == (cache.ToolchainChange("clang", "absent", "b", ()),)


def test_only_the_programs_that_differ_are_named_and_not_those_that_moved(
    settings: HostFile,
) -> None:
    old = Toolchain({"CUDA": "1"}, {"CUDA": {"/a/nvcc": "n", "/a/ptxas": "p"}})
    new = Toolchain({"CUDA": "2"}, {"CUDA": {"/b/nvcc": "n", "/b/ptxas": "q"}})
    first = kept_build(settings, "20261123-041919", old)
    second = kept_build(settings, "20261123-042612", new)
    found = cache.why(settings, [first, second]).toolchains
    assert found is not None
    assert found[0].files == ("/b/ptxas",)


def test_builds_that_the_history_forgot_have_unknown_toolchains(settings: HostFile) -> None:
    assert compared(settings, action("a.o"), action("a.o")).toolchains is None
