"""The gauge, on real programs that take a known amount of memory."""

import os
import subprocess
import sys
import time

import pytest

from tfwright.tools.process import gauge

pytestmark = pytest.mark.skipif(not gauge._PROCESSES.is_dir(), reason="there is no /proc")

MIB = 1 << 20
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
CHILD = "x = bytearray(96 << 20); x = None; print('ready', flush=True); input()"


@pytest.mark.medium
def test_an_action_counts_with_what_it_started_and_with_memory_that_it_gave_back() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as action:
        assert action.stdout
        action.stdout.readline()
        most = max(gauge.action_peaks(os.getpid()))
        action.communicate(b"\n")
    assert 96 * MIB < most < 192 * MIB


def test_a_program_that_is_gone_has_run_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert gauge.action_peaks(gone.pid) == []


@pytest.mark.medium
def test_watching_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauge, "SECONDS", 0.05)
    with (
        gauge.watching(os.getpid) as seen,
        subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as action,
    ):
        assert action.stdout
        action.stdout.readline()
        time.sleep(0.2)
        action.communicate(b"\n")
    assert seen.action > 96 * MIB
    monkeypatch.setattr(gauge, "_process_tree", lambda _: pytest.fail("it still looks"))
    time.sleep(0.2)


@pytest.mark.medium
def test_watching_costs_less_than_a_hundredth_of_a_processor() -> None:
    if sys.gettrace():
        pytest.skip("what measures the coverage costs more than the gauge")
    costs = list[float]()
    for _ in range(20):
        begun = time.process_time()
        gauge.Gauge().look(os.getpid())
        costs.append(time.process_time() - begun)
    # The least: on a host that is busy with other things each look costs more.
    assert min(costs) < gauge.SECONDS / 100


@pytest.mark.medium
def test_the_processor_time_of_a_process_and_its_ended_children_is_counted_from_the_beginning() -> (
    None
):
    # More than is asked for below: the system counts in hundredths of a second.
    burn = "import time\nwhile time.process_time() < 0.6: pass"
    program = (
        "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', "
        f"{burn!r}])\nprint('done', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as server:
        assert server.stdout
        server.stdout.readline()
        seen = gauge.Gauge()
        seen.look(server.pid)
        assert 0.5 <= seen.cpu < 10
        assert seen.together > 2**20
        later = gauge.Gauge()
        later.start(server.pid)
        later.look(server.pid)
        assert later.cpu < 0.1
        server.kill()
