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


SLICE = "sys/fs/cgroup/user.slice"
SCOPE = f"{SLICE}/build.scope"
GROUP_1 = "sys/fs/cgroup/memory"
PRESSED = "some avg10=90.00 avg60=0 avg300=0 total=1\nfull avg10={} avg60=0 avg300=0 total=1\n"
HOSTS = {
    "without a container": (
        {},
        {
            "available_memory": 8 * GIB,
            "total_memory": 16 * GIB,
            "oom_kills": 0,
            "memory_pressure": 0.0,
        },
    ),
    "a limit, less what is used but for files that are only cached": (
        {
            "proc/self/cgroup": V2,
            f"{SCOPE}/memory.max": f"{4 * GIB}\n",
            f"{SCOPE}/memory.current": f"{3 * GIB}\n",
            f"{SCOPE}/memory.stat": f"anon 5\ninactive_file {GIB}\n",
        },
        {"available_memory": 2 * GIB, "total_memory": 4 * GIB},
    ),
    "a limit of the group around ours": (
        {"proc/self/cgroup": V2, f"{SLICE}/memory.max": f"{GIB}\n", f"{SCOPE}/memory.max": "max\n"},
        {"total_memory": GIB},
    ),
    "a container that sees only itself, in version 1": (
        {
            "proc/self/cgroup": V1,
            f"{GROUP_1}/memory.limit_in_bytes": f"{2 * GIB}\n",
            f"{GROUP_1}/memory.oom_control": "under_oom 0\noom_kill 3\n",
        },
        {"total_memory": 2 * GIB, "oom_kills": 3},
    ),
    "kills and pressure of our own group": (
        {
            "proc/self/cgroup": V2,
            f"{SCOPE}/memory.max": "max\n",
            f"{SCOPE}/memory.events": "oom 4\noom_kill 2\n",
            f"{SCOPE}/memory.pressure": PRESSED.format("12.50"),
            "proc/pressure/memory": PRESSED.format("99.00"),
        },
        {"oom_kills": 2, "memory_pressure": 12.5},
    ),
    "a group that does not count kills": ({"sys/fs/cgroup/memory.max": "max\n"}, {"oom_kills": 0}),
}


@pytest.mark.parametrize(("files", "figures"), HOSTS.values(), ids=HOSTS)
def test_the_kernels_figures_are_those_of_our_group(
    root: Path, files: dict[str, str], figures: dict[str, float]
) -> None:
    write(root, files)
    assert {name: getattr(capacity, name)(root) for name in figures} == figures


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ],
)
def test_a_container_with_a_quota_is_given_a_part_of_the_processors(
    root: Path, files: dict[str, str], cores: int | None
) -> None:
    write(root, {f"sys/fs/cgroup/{name}": content for name, content in files.items()})
    assert capacity.usable_cores(root) == (cores or capacity.usable_cores(Path("/nowhere")))


def test_a_system_that_binds_no_process_has_all_its_processors(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert capacity.usable_cores(root) == 12


def test_a_system_without_the_kernels_figures_has_all_its_memory(tmp_path: Path) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert capacity.total_memory(tmp_path) == capacity.available_memory(tmp_path) == whole
