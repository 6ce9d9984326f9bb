import os
import signal
import sys
import time
from pathlib import Path

import pytest

from soperator.agents.checks import supervise
from soperator.agents.checks.supervise import Task


def one(limit=5.0, deadline=6.0, **said):
    """How one task ends."""
    return supervise.run([Task("it", limit, **said)], deadline)["it"]


def shell(text, **said):
    return one(command=("/bin/sh", "-c", text), **said)


def raising():
    raise ValueError("nothing there")


def test_a_function_answers_with_its_text():
    """What a probe returns comes back whole."""
    ended = one(call=lambda: "x" * 60000)
    assert (ended.how, ended.code, len(ended.out), supervise.failed(ended)) == ("ended", 0, 60000, "")


def test_a_function_that_raises_is_told_in_its_own_words():
    """The error's text is the trouble."""
    assert supervise.failed(one(call=raising)) == "ValueError: nothing there"


def test_a_command_answers_with_its_exit_code_and_both_channels():
    """Nothing of what it said is lost."""
    ended = shell("echo out; echo err >&2; exit 3")
    assert (ended.how, ended.code, ended.out, ended.err) == ("ended", 3, "out\n", "err\n")


def test_a_command_that_hangs_is_killed_at_its_limit():
    """It says so, and the others are not kept waiting."""
    began = time.monotonic()
    ended = supervise.run([Task("a", 0.3, command=("/bin/sleep", "60")), Task("b", 5, command=("/bin/true",))], 6)
    assert (ended["a"].how, ended["b"].how) == ("late", "ended")
    assert "killed" in ended["a"].trouble
    assert time.monotonic() - began < 4


def test_all_of_them_are_killed_at_the_common_deadline():
    """However generous the limits of single ones are."""
    began = time.monotonic()
    ended = supervise.run([Task(str(n), 60, command=("/bin/sleep", "60")) for n in range(5)], 0.4)
    assert {each.how for each in ended.values()} == {"late"}
    assert time.monotonic() - began < 5


def test_what_a_command_has_started_dies_with_it(tmp_path):
    """A check that forks leaves nobody behind, even when it ends by itself and its child holds its output open."""
    note = tmp_path / "pid"
    ended = shell(f"sleep 60 & echo $! > {note}; exit 0")
    assert (ended.how, ended.code) == ("ended", 0)
    assert_gone(int(note.read_text()))


def test_what_has_left_its_group_is_found_by_its_mark(tmp_path):
    """A check that makes itself a daemon does not escape."""
    note = tmp_path / "pid"
    program = (
        "import os, time\n"
        f"note = {str(note)!r}\n"
        "if os.fork():\n"
        "    while not os.path.exists(note): time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "os.setsid()\n"
        "open(note + '.new', 'w').write(str(os.getpid()))\n"
        "os.rename(note + '.new', note)\n"
        "time.sleep(60)"
    )
    ended = one(command=(sys.executable, "-c", program), limit=20, deadline=25)
    assert ended.how == "ended"
    assert_gone(int(note.read_text()))


def test_a_command_that_prints_without_end_is_killed():
    """A gigabyte is neither kept nor waited for."""
    began = time.monotonic()
    ended = one(command=("/bin/dd", "if=/dev/zero", "bs=1M", "count=1024"), limit=5)
    assert ended.how == "loud"
    assert len(ended.out) <= supervise.LOUDEST
    assert time.monotonic() - began < 4


def test_a_command_that_ends_by_a_signal_says_which():
    """That is the check's fault, and no verdict."""
    ended = shell("kill -SEGV $$")
    assert (ended.how, ended.trouble) == ("signal", "it ended by SIGSEGV")


@pytest.mark.parametrize("path", ["/nonexistent/check", "/etc/passwd", "/"])
def test_a_command_that_cannot_be_started_is_missing(path):
    """It says why."""
    ended = one(command=(path,))
    assert ended.how == "missing"
    assert "cannot be started" in ended.trouble


def test_a_command_that_closes_its_output_is_waited_for_all_the_same():
    """Its end counts, not that of its words."""
    ended = shell("exec >&- 2>&-; sleep 0.2; exit 4")
    assert (ended.how, ended.code) == ("ended", 4)


def test_a_command_that_ignores_signals_is_killed():
    """SIGKILL cannot be ignored."""
    assert shell("trap '' TERM INT HUP; sleep 60", limit=0.3).how == "late"


def test_nothing_is_left_open():
    """A hundred tasks later there are as many files open as before."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    supervise.run([Task(str(n), 5, call=lambda: "x") for n in range(100)], 30)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_process_is_known_by_its_number_and_its_start():
    """Another process of the same number is not taken for it."""
    child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
    left = (child, supervise._started(child))
    assert supervise.is_alive(left)
    assert not supervise.is_alive((child, "1"))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not supervise.is_alive(left)


def assert_gone(pid):
    """Wait until a process is gone, or nobody's any more."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} still runs")
