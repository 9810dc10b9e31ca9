import pytest

from tfwright.wheel.inspect import leaks
from tfwright.wheel.inspect.leaks import HostDirectory, Leak, LeakSearch


def search(content: bytes, *directories: str) -> list[Leak]:
    known = [HostDirectory(path, "a part", "Patch it.") for path in directories]
    return list(LeakSearch(known).leaks("a.so", content))


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
    found = search(text.encode(), "/srv/out")
    assert found == [Leak("a.so", "/srv/out", found[0].path)]
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
        Leak("a.so", "/home/me/out/r/bazel", "/home/me/out/r/bazel/execroot/a.cc"),
        Leak("a.so", "/home/me/out", "/home/me/out/vault"),
    ]


def test_a_directory_with_a_space_or_a_letter_beyond_ascii_is_found() -> None:
    path = "/srv/böse [x] out"
    assert search(f"'{path}/a.h'".encode(), path) == [Leak("a.so", path, f"{path}/a.h")]


def test_a_file_full_of_paths_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "MOST", 5)
    assert search(b"\0/srv/out" * 5 + b"\0/srv/other", "/srv/out", "/srv/other") == [
        Leak("a.so", "/srv/out", "/srv/out")
    ]


def test_a_note_names_files_directory_meaning_and_remedy() -> None:
    wanted = LeakSearch(
        [
            HostDirectory("/srv/out", "the build_out", "Patch it."),
            HostDirectory("/srv/out/cuda", "the CUDA toolkit", "Write another."),
        ]
    )
    found = [
        *(
            leak
            for name in ("a.h", "b.so", "c.py", "d.pc")
            for leak in wanted.leaks(name, b'"/srv/out/cuda"')
        ),
        *wanted.leaks("e.so", b"/srv/out/r/tree/e.cc"),
    ]
    of_cuda, of_build = wanted.notes(found)
    assert of_cuda == (
        "4 files (a.h, b.so, c.py and 1 more) name /srv/out/cuda, the CUDA toolkit of this host. "
        "Users have no such directory, and a build on another host gives other bytes. Write another."
    )
    assert of_build.startswith(
        "e.so names /srv/out, the build_out of this host, such as /srv/out/r/tree/e.cc. Users"
    )
    assert list(wanted.notes([])) == []
