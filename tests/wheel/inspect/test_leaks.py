import pytest

from tfwright.wheel.inspect import leaks
from tfwright.wheel.inspect.leaks import HostDirectory, Leak, LeakSearch


def search(content: bytes, *directories: str, library: bool = True) -> list[Leak]:
    known = [HostDirectory(path, "a part", "Patch it.") for path in directories]
    wanted = LeakSearch(known, guess=True)
    return list(wanted.leaks("a.so", content, library=library))


@pytest.mark.parametrize(
    "path",
    [
        *(f"{home}/tf/a.cc" for home in ("/home/me", "/Users/me", "/root")),
        "/private/var/tmp/_bazel_me/1/execroot/tf/a.cc",
        "/b/bazel-out/k8-opt/a.h",
    ],
)
def test_what_looks_like_a_path_of_a_builder_is_found_in_a_library(path: str) -> None:
    content = b"\0" + path.encode() + b"\0"
    assert search(content) == [Leak("a.so", "", 1, path)]
    assert search(content, library=False) == [], "documentation has examples"


@pytest.mark.parametrize(
    "text",
    [
        b"bazel-out/k8-opt/bin/a.cc",
        b"/proc/self/cwd/bazel-out/a.cc",
        b"https://example.org/home/page",
        b"/usr/lib/libm.so",
        b"share/home/x",
    ],
)
def test_a_path_that_is_no_builders_is_not(text: bytes) -> None:
    assert search(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '#define TOOLKIT "/srv/out/toolkits/cuda"',
        "-I/srv/out/toolkits/cuda -L/x",
        "PATH=/bin:/srv/out/toolkits/cuda",
        "file:///srv/out/toolkits/cuda.",
        "/srv/out/toolkits/cuda",
    ],
)
def test_a_directory_of_this_host_is_found_in_any_file(text: str) -> None:
    found = search(text.encode(), "/srv/out", library=False)
    assert found == [Leak("a.so", "/srv/out", 1, found[0].path)]
    assert found[0].path.startswith("/srv/out/toolkits/cuda")


@pytest.mark.parametrize(
    "text",
    [
        b"/srv/out2/a.h",
        b"/srv/out-old",
        b"/srv/out.bak/a.h",
        b"/mnt/srv/out/a.h",
        b"https://example.org/srv/out/a.h",
        b"srv/out/a.h",
    ],
)
def test_a_longer_name_and_the_rest_of_another_path_are_not_the_directory(text: bytes) -> None:
    assert search(text, "/srv/out") == []


@pytest.mark.parametrize("path", ["/", "/w", "/build", "/a/b", "relative/path"])
def test_a_directory_that_may_be_in_any_file_by_chance_is_not_looked_for(path: str) -> None:
    assert search(b"\0/w/a.cc\0/build/a.cc\0/a/b/c\0relative/path\0", path) == []


def test_a_path_belongs_to_the_innermost_directory_and_counts_once() -> None:
    content = b"/home/me/out/r/bazel/execroot/a.cc\0/home/me/out/vault\0/home/you/a.cc"
    assert search(content, "/home/me/out", "/home/me/out/r/bazel") == [
        Leak("a.so", "/home/me/out/r/bazel", 1, "/home/me/out/r/bazel/execroot/a.cc"),
        Leak("a.so", "/home/me/out", 1, "/home/me/out/vault"),
        Leak("a.so", "", 1, "/home/you/a.cc"),
    ]


def test_a_directory_with_a_space_or_a_letter_beyond_ascii_is_found() -> None:
    path = "/srv/böse [x] out"
    assert search(f"'{path}/a.h'".encode(), path) == [Leak("a.so", path, 1, f"{path}/a.h")]


def test_a_file_full_of_paths_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "MOST", 5)
    assert search(b"\0/srv/out" * 9, "/srv/out")[0].times == 5


def test_paths_are_counted_and_one_is_shown() -> None:
    content = b"\0".join(b"/home/me/%d.cc" % number for number in range(9))
    assert search(content) == [Leak("a.so", "", 9, "/home/me/0.cc")]


def test_a_note_names_files_directory_meaning_and_remedy() -> None:
    out = HostDirectory("/srv/out", "the build_out", "Patch it.")
    wanted = LeakSearch([out, HostDirectory("/srv/out/cuda", "the CUDA toolkit", "Write another.")])
    found = [*wanted.leaks("e.so", b"/srv/out/r/tree/e.cc", library=True)]
    for name in ("a.h", "b.so", "c.py", "d.pc"):
        found += wanted.leaks(name, b'"/srv/out/cuda"', library=False)
    of_cuda, of_build = wanted.notes(found)
    assert of_cuda == (
        "4 files (a.h, b.so, c.py and 1 more) name /srv/out/cuda, the CUDA toolkit of this host. "
        "Users have no such directory, and a build on another host gives other bytes. Write another."
    )
    assert of_build.startswith(
        "e.so names /srv/out, the build_out of this host, such as /srv/out/r/tree/e.cc. Users"
    )
    assert list(wanted.notes([])) == []
