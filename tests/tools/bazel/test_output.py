"""Reading what Bazel writes. The texts are as Bazel 0.24.1 and 0.26.1 wrote them on a terminal."""

from dataclasses import replace

import pytest

from tfwright.progress import Progress
from tfwright.tools.bazel.output import Display, download_faults, failed_repositories

BUILD = (
    "Starting local Bazel server and connecting to it...\r\n"
    "Loading: \r\n\rLoading: 0 packages loaded\r\n    currently loading: \r\n"
    "\r\rAnalyzing: target //:all (5 packages loaded, 29 targets configured)\r\n    Fetching "
    "@local_config_cc; fetching\r\n"
    "\r\rINFO: Analysed target //:all (10 packages loaded, 81 targets configured).\r\nBuilding: "
    "checking cached actions\r\n"
    "\r[0 / 8] [-----] Writing file hello-2.params\r\n"
    "\r[1,615 / 4,024] 2 actions, 1 running\r\n    Executing genrule //:slow0; 1s "
    "linux-sandbox\r\n    [-----] Linking hello\r\n"
    "\r\r\rINFO: From Executing genrule //:all:\r\n[11 / 12] Executing genrule //:all; 0s "
    "linux-sandbox\r\n"
    "\rwarning: something\r\n[12 / 12] checking cached actions\r\n"
    "\rINFO: Build completed successfully, 1,012 total actions\r\n\rINFO: Build completed "
    "successfully, 1,012 total actions\r\n"
)
KEPT = [
    "Starting local Bazel server and connecting to it...",
    "INFO: Analysed target //:all (10 packages loaded, 81 targets configured).",
    "INFO: From Executing genrule //:all:",
    "warning: something",
    "INFO: Build completed successfully, 1,012 total actions",
]


def coloured(text: str) -> str:
    """Return the text as Bazel writes it with colours, when its way of erasing lines is seen in full."""
    return (
        text.replace("\r\n", "\n")
        .replace("\r", "\r\x1b[1A\x1b[K")
        .replace("INFO:", "\x1b[32mINFO:\x1b[0m")
        .replace("\n", "\r\n")
    )


@pytest.mark.parametrize("text", [BUILD, coloured(BUILD)], ids=["plain", "coloured"])
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_only_the_lines_that_stay_are_kept_however_the_text_is_cut(text: str, size: int) -> None:
    display = Display()
    kept = [
        line
        for start in range(0, len(text), size)
        for line in display.feed(text[start : start + size])
    ]
    assert kept + display.close() == KEPT
    assert display.actions == 1012


@pytest.mark.parametrize(
    ("end", "progress"),
    [
        (
            "29 targets configured)\r\n",
            Progress(
                0, None, doing="Analyzing: target //:all (5 packages loaded, 29 targets configured)"
            ),
        ),
        ("hello-2.params\r\n", Progress(0, 8, doing="Writing file hello-2.params")),
        (
            "[-----] Linking hello\r\n",
            Progress(1615, 4024, doing="Executing genrule //:slow0; 1s linux-sandbox"),
        ),
        (
            "[12 / 12] checking cached actions\r\n",
            Progress(12, 12, doing="checking cached actions"),
        ),
    ],
)
def test_the_bar_is_read_while_it_is_drawn(end: str, progress: Progress) -> None:
    display = Display()
    display.feed(BUILD[: BUILD.index(end) + len(end)])
    assert replace(display.progress, running=()) == progress


def test_failed_actions_are_counted_while_bazel_keeps_going() -> None:
    display = Display()
    display.feed(
        "\rERROR: /w/BUILD:5:1: Couldn't build file b.o: C++ compilation of rule '//:bad' failed "
        "(Exit 1)\n\n[7 / 8] Linking x\n"
    )
    display.feed(
        "\rERROR: /w/BUILD:6:1: Executing genrule //:badgen failed (Exit 3) bash failed\n[8 / 8] "
        "done\n"
    )
    assert display.progress == Progress(8, 8, doing="done", failures=2)


def test_waiting_for_another_client_is_shown() -> None:
    display = Display()
    display.feed(
        "Another command (pid=31) is running. Waiting for it to complete on the server...\n"
    )
    assert "Another command (pid=31)" in display.progress.doing


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            (
                "   java.io.IOException: Error downloading [http://a/x.zip, http://b/x.zip] to "
                "/o/x.zip: All mirrors are down: [connect timed out, GET returned 404]"
            ),
            "All mirrors are down: [connect timed out, GET returned 404]",
        ),
        (
            (
                "ERROR: /w/BUILD:1:1: no such package '@d//': Error downloading [http://a/x.zip] to "
                "/o/x.zip: GET returned 404 Not Found and referenced by '//:g'"
            ),
            "GET returned 404 Not Found",
        ),
    ],
)
def test_a_failed_download_is_recognised(line: str, why: str) -> None:
    (fault,) = download_faults(["INFO: x", line])
    assert (fault.url, fault.why) == ("http://a/x.zip", why)


def test_the_actions_that_run_are_told_with_their_seconds_the_longest_first() -> None:
    display = Display()
    display.feed("[9 / 12] 3 actions, 2 running\n")
    display.feed("    Compiling a.cc; 2s linux-sandbox\n    Linking b.so; 41s local\n")
    display.feed("    [Prepa] Compiling c.cc\n")
    assert [(action.name, action.seconds) for action in display.progress.running] == [
        ("Linking b.so", 41.0),
        ("Compiling a.cc", 2.0),
    ]
    display.feed("[11 / 12] Compiling c.cc; 3s remote-cache, linux-sandbox\n")
    assert [action.name for action in display.progress.running] == ["Compiling c.cc"]
    display.feed("[12 / 12] checking cached actions\n")
    assert display.progress.running == ()


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: An error occurred during the fetch of repository 'nasm':",
        "ERROR: /t/BUILD:1:1: no such package '@nasm//': Error cloning repository: gone",
    ],
)
def test_a_repository_that_was_not_made_is_named(line: str) -> None:
    other = "ERROR: no such package '@zlib//lib': BUILD file not found"
    assert failed_repositories([line, other]) == {"nasm"}
