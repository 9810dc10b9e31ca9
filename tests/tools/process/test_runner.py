"""Running programs: their environment, their end, and what is said when they fail."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_program

from tfwright.errors import HostError, ToolError
from tfwright.tools.process import file_lock, runner
from tfwright.tools.process.command import Command


def python(code: str, cwd: Path, **env: str) -> Command:
    return Command((sys.executable, "-c", code), cwd, env)


def run(command: Command) -> str:
    return runner.run(command, command.cwd / "log", remedy="Mend it.")


def test_a_program_sees_only_the_environment_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NEED_CUDA", "1")
    code = "import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'))"
    assert run(python(code, tmp_path, ONLY="this")) == "['ONLY']\n"


@pytest.mark.parametrize("brief", [False, True])
def test_the_umask_of_the_caller_does_not_reach_a_program(tmp_path: Path, *, brief: bool) -> None:
    command = replace(python("open('made', 'w')", tmp_path), brief=brief)
    before = os.umask(0o077)
    try:
        run(command)
    finally:
        os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("brief", "forks"), [("False", 1), ("True", 0)])
def test_a_brief_program_is_started_without_a_fork(tmp_path: Path, brief: str, forks: int) -> None:
    script = (
        "import os, pathlib; from tfwright.tools.process import runner\n"
        "here = pathlib.Path.cwd(); forks = []\n"
        "os.register_at_fork(before=lambda: forks.append(1))\n"
        f"true = runner.Command(('/bin/true',), here, brief={brief})\n"
        "runner.run(true, here / 'log', remedy='-'); print(len(forks))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True
    )
    assert int(done.stdout) == forks


def test_a_failing_program_is_reported_with_its_status_last_lines_and_log(tmp_path: Path) -> None:
    code = "import sys; [print(n, flush=True) for n in range(40)]; sys.exit('it broke')"
    with pytest.raises(ToolError) as caught:
        run(python(code, tmp_path))
    evidence = caught.value.evidence
    assert (caught.value.remedy, evidence.status, evidence.log) == ("Mend it.", 1, tmp_path / "log")
    assert "it broke" in evidence.lines
    assert len(evidence.lines) == runner.TAIL_LINES


def test_a_program_that_a_signal_ended_is_reported_with_it(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("so far\n", "utf-8")
    command = python("", tmp_path)
    found = runner.exit_error(command, -9, tmp_path / "log", remedy="-")
    assert found.what.endswith("was ended by signal 9")
    assert found.evidence.lines == ("so far",)


@pytest.mark.medium
def test_a_child_takes_its_terminal_and_ends_by_hang_up_and_interrupt(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from tfwright.tools.process import runner\n"
        "for number in (signal.SIGHUP, signal.SIGINT):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "os.umask(0o077)\n"
        "runner.prepare_child()\n"
        "runner.prepare_child(int(sys.argv[1]))\n"
        "assert os.tcgetpgrp(int(sys.argv[1])) == os.getpgrp()\n"
        "handlers = {signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGINT)}\n"
        "assert handlers == {signal.SIG_DFL}\n"
        "assert os.umask(0) == runner.UMASK\n"
    )
    ours, theirs = os.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", code, str(theirs)],
            pass_fds=[theirs],
            start_new_session=True,
            cwd=tmp_path,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_program_that_is_not_there_is_the_hosts_fault(tmp_path: Path) -> None:
    with fails(HostError, "cannot be run"):
        run(Command(("no-such-program",), tmp_path))


def test_a_program_that_found_the_disk_full_is_the_hosts_fault(tmp_path: Path) -> None:
    with fails(HostError, "full"):
        run(python("import sys; sys.exit('cp: No space left on device')", tmp_path))


def test_an_argument_is_never_read_by_a_shell(tmp_path: Path) -> None:
    run(Command(("/bin/echo", "$(touch made); touch made"), tmp_path))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
@pytest.mark.medium
def test_a_program_and_its_children_end_with_us(tmp_path: Path, ending: signal.Signals) -> None:
    script = (
        "import sys; from pathlib import Path; from tfwright.tools.process import runner as shell\n"
        "here = Path(sys.argv[1])\n"
        "shell.run(shell.Command(('/bin/sh', '-c', 'sleep 1000 & echo $! > child; wait'), here, "
        "{'PATH': '/usr/bin:/bin'}), here / 'log', remedy='-')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.DEVNULL
    ) as caller:
        child = await_number(tmp_path / "child")
        caller.send_signal(ending)
        caller.wait(20)
    await_end(child)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_program_can_be_ended_even_if_its_caller_ignores_the_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        code = f"import signal; print(signal.getsignal({number:d}) == signal.SIG_IGN)"
        told = run(python(code, tmp_path))
    finally:
        signal.signal(number, before)
    assert told == "False\n"


@pytest.mark.medium
def test_the_lock_of_a_killed_build_lasts_until_its_programs_are_gone(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tfwright.tools.process import file_lock as "
        "lock, runner as shell\n"
        "here = Path(sys.argv[1])\n"
        "slow = ('/bin/sh', '-c', 'trap \"sleep 1; touch late; exit\" HUP; echo $$ > child; while "
        ":; do sleep 0.1; done')\n"
        "with lock.locked(here / 'lock', 'a build'):\n"
        "    shell.run(shell.Command(slow, here, {'PATH': '/usr/bin:/bin'}), here / 'log', "
        "remedy='-')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) as killed:
        await_number(tmp_path / "child")
        killed.kill()
    with file_lock.locked(tmp_path / "lock", "the next build"):
        assert (tmp_path / "late").exists()


def test_a_program_that_is_read_ends_with_us_even_when_we_are_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tfwright.tools.process import pipes\n"
        "from tfwright.tools.process.command import Command\n"
        "here = Path(sys.argv[1])\n"
        "slow = Command(('/bin/sh', '-c', 'echo $$ > child; exec sleep 60'), here, {'PATH': "
        "'/usr/bin:/bin'})\n"
        "pipes.collect(slow)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) as killed:
        child = await_number(tmp_path / "child")
        killed.kill()
    await_end(child)


def await_end(pid: int) -> None:
    """Wait until a process is gone, or is only waiting to be reaped."""
    for _ in range(400):
        try:
            if Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2].startswith("Z"):
                return
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still running")


def await_number(path: Path) -> int:
    """Wait until a file holds a number."""
    # A minute: the host may have no time for a test.
    for _ in range(3000):
        if path.exists() and path.read_text("utf-8").strip():
            return int(path.read_text("utf-8"))
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


@pytest.mark.medium
def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    # A shell: on a busy machine a Python may need the whole second to start.
    program = Command(
        ("sh", "-c", "sleep 600 & echo $!; wait"), tmp_path, {"PATH": os.environ["PATH"]}
    )
    with pytest.raises(TimeoutError):
        runner.attempt(program, tmp_path / "log", remedy="-", timeout=1)
    await_end(int((tmp_path / "log").read_text("utf-8").split()[0]))


def test_how_a_program_ended_can_be_asked_without_an_error(tmp_path: Path) -> None:
    for code, status in {
        "raise SystemExit(7)": 7,
        "import os; os.abort()": -signal.SIGABRT,
    }.items():
        assert runner.attempt(python(code, tmp_path), tmp_path / "log", remedy="-") == status


def test_a_short_program_that_hangs_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ANSWER_SECONDS", 0.2)
    program = make_program(tmp_path / "smi", "#!/bin/sh\necho asked >>log\nexec sleep 60\n")
    asked = [
        runner.short_output(Command((str(program), each), tmp_path, {}), failed=each == "b")
        for each in "abc"
    ]
    assert asked == ["", "no answer within 0 s", ""]
    assert (tmp_path / "log").read_text() == "asked\n"
