"""The machine's measure, read off small copies of /proc and /sys."""

import os
from pathlib import Path

import pytest

from tfwright.tools.process import capacity
from tfwright.tools.process.capacity import GIB

MEMINFO = "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n"
V1 = "5:cpuset:/\n4:memory:/docker/abc\n0::/\n"
V2 = "0::/user.slice/build.scope\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {"proc/meminfo": MEMINFO})
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "ascii")


def test_without_a_container_the_kernels_figures_hold(root: Path) -> None:
    assert (
        capacity.memory(root),
        capacity.total(root),
        capacity.kills(root),
        capacity.pressure(root),
    ) == (8 * GIB, 16 * GIB, 0, 0.0)


def test_a_limit_counts_less_what_is_used_but_for_the_files_that_are_only_cached(
    root: Path,
) -> None:
    scope = "sys/fs/cgroup/user.slice/build.scope"
    used = {
        "memory.max": f"{4 * GIB}\n",
        "memory.current": f"{3 * GIB}\n",
        "memory.stat": f"anon 5\ninactive_file {GIB}\n",
    }
    write(
        root,
        {"proc/self/cgroup": V2, **{f"{scope}/{name}": content for name, content in used.items()}},
    )
    assert (capacity.memory(root), capacity.total(root)) == (2 * GIB, 4 * GIB)


def test_a_limit_of_a_group_around_ours_counts_too(root: Path) -> None:
    scope = "sys/fs/cgroup/user.slice"
    write(
        root,
        {
            "proc/self/cgroup": V2,
            f"{scope}/memory.max": f"{GIB}\n",
            f"{scope}/build.scope/memory.max": "max\n",
        },
    )
    assert capacity.total(root) == GIB


def test_a_container_that_sees_only_itself_is_found_in_version_1(root: Path) -> None:
    group = "sys/fs/cgroup/memory"
    write(
        root,
        {
            "proc/self/cgroup": V1,
            f"{group}/memory.limit_in_bytes": f"{2 * GIB}\n",
            f"{group}/memory.oom_control": "under_oom 0\noom_kill 3\n",
        },
    )
    assert (capacity.total(root), capacity.kills(root)) == (2 * GIB, 3)


def test_kills_and_pressure_are_those_of_our_own_group(root: Path) -> None:
    scope = "sys/fs/cgroup/user.slice/build.scope"
    pressed = (
        "some avg10=90.00 avg60=0 avg300=0 total=1\nfull avg10=12.50 avg60=0 avg300=0 total=1\n"
    )
    write(
        root,
        {
            "proc/self/cgroup": V2,
            f"{scope}/memory.max": "max\n",
            f"{scope}/memory.events": "oom 4\noom_kill 2\n",
        },
    )
    write(
        root,
        {
            f"{scope}/memory.pressure": pressed,
            "proc/pressure/memory": pressed.replace("12.50", "99.00"),
        },
    )
    assert (capacity.kills(root), capacity.pressure(root)) == (2, 12.5)


@pytest.mark.parametrize(
    "files",
    [
        {"cpu.max": "100000 100000\n"},
        {"cpu.max": "50000 100000\n"},
        {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"},
    ],
)
def test_a_container_is_given_a_part_of_the_processors(root: Path, files: dict[str, str]) -> None:
    write(root, {f"sys/fs/cgroup/{name}": content for name, content in files.items()})
    assert capacity.cores(root) == 1


@pytest.mark.parametrize(
    "files",
    [
        {"cpu.max": "max 100000\n"},
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
    ],
)
def test_no_quota_leaves_all_processors(root: Path, files: dict[str, str]) -> None:
    write(root, {f"sys/fs/cgroup/{name}": content for name, content in files.items()})
    assert capacity.cores(root) == capacity.cores(Path("/nowhere"))


def test_a_system_that_binds_no_process_has_all_its_processors(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert capacity.cores(root) == 12


def test_a_system_without_the_kernels_figures_has_all_its_memory(tmp_path: Path) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert capacity.total(tmp_path) == capacity.memory(tmp_path) == whole


def test_a_group_that_does_not_count_kills_has_none(root: Path) -> None:
    write(root, {"sys/fs/cgroup/memory.max": "max\n"})
    assert capacity.kills(root) == 0
