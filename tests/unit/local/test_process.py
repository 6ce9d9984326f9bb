"""Processes are started, recognised and stopped by identity, not by number."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.process import (
    Process,
    Records,
    identify,
    is_alive,
    only_child,
    parse_start_ticks,
    spawn,
    start_ticks,
    stop,
    tail,
    uptime,
)
from local.progress import Failure

STAT = "4242 (a (strange) name) {state} 1 4242 4242 0 -1 4194560 166 0 0 0 3 1 0 0 20 0 1 0 987654 2592768 432"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that would sleep for a minute."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_stat_with_parentheses() -> None:
    """The start time is found behind a program name that holds spaces and parentheses."""
    assert parse_start_ticks(STAT.format(state="S")) == 987654


@pytest.mark.parametrize("state", ["Z", "X"])
def test_dead_process_has_no_start(state: str) -> None:
    """A process that has ended and was not yet reaped does not count as running."""
    assert parse_start_ticks(STAT.format(state=state)) is None


def test_identity(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A running process is recognised, and has been up for less than the machine."""
    process = identify("it", child.pid, tmp_path / "log")
    assert is_alive(process)
    assert 0 <= uptime(process) < 60


def test_reused_pid_is_another(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A process with the recorded id but another start time, or from before a reboot, is not ours and is not killed."""
    process = identify("it", child.pid, tmp_path / "log")
    earlier = dataclasses.replace(process, start_ticks=process.start_ticks - 1)
    rebooted = dataclasses.replace(process, boot="another")
    assert not is_alive(earlier)
    assert not is_alive(rebooted)
    stop([earlier, rebooted], patience=0.1)
    assert child.poll() is None


def test_gone_process_has_no_start() -> None:
    """An id that no process has is no error."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert start_ticks(ended.pid) is None


def test_stop_kills_what_ignores_us(tmp_path: Path) -> None:
    """A process that ignores SIGTERM is killed once the patience is over."""
    log = tmp_path / "log"
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=log.open("w"))
    while "deaf" not in log.read_text():
        time.sleep(0.01)
    process = identify("deaf", child.pid, log)
    stop([process], patience=0.2)
    assert child.wait(timeout=5) == -9


def test_spawn_writes_its_log(tmp_path: Path) -> None:
    """What a spawned process prints is in its log, and it leads a session of its own."""
    log = tmp_path / "deep" / "log"
    pid = spawn(["sh", "-c", "echo out; echo err >&2; ps -o sid= -p $$"], log)
    deadline = time.monotonic() + 5
    while str(pid) not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert log.read_text().split() == ["out", "err", str(pid)]


def test_only_child() -> None:
    """The child of a process that forks once is found."""
    parent = subprocess.Popen(["sh", "-c", "sleep 30 & wait"])
    try:
        child = only_child(parent.pid)
        assert Path(f"/proc/{child}/stat").read_text().split()[3] == str(parent.pid)
        stop([identify("child", child, Path("log"))], patience=0)
    finally:
        parent.kill()
        parent.wait()


def test_no_child_is_a_failure() -> None:
    """A process that ends without a child is reported, not waited for."""
    parent = subprocess.Popen(["true"])
    with pytest.raises(Failure, match="ended before"):
        only_child(parent.pid)
    parent.wait()


def test_a_process_that_is_dying_is_not_dead() -> None:
    """Its first thread is a zombie, and the others still hold what it had, such as the port that its successor wants."""
    dying = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); ctypes.CDLL(None).pthread_exit(None)"
    child = subprocess.Popen([sys.executable, "-c", dying])
    process = identify("dying", child.pid, Path("log"))
    stat = Path(f"/proc/{child.pid}/stat")
    until = time.monotonic() + 10
    while ") Z" not in stat.read_text() and time.monotonic() < until:
        time.sleep(0.01)
    assert ") Z" in stat.read_text()
    assert is_alive(process)
    child.kill()
    child.wait()
    assert not is_alive(process)


def test_records_survive(tmp_path: Path) -> None:
    """What one command records, the next one reads; a half-written record is dropped."""
    process = Process("node-1/kubelet", 12, 34, "boot", "log")
    Records(tmp_path).write(process)
    (tmp_path / "torn.process").write_text('{"name": "to')
    assert Records(tmp_path).all() == [process]
    assert Records(tmp_path).read("node-1/kubelet") == process
    Records(tmp_path).forget("node-1/kubelet")
    Records(tmp_path).forget("node-1/kubelet")
    assert Records(tmp_path).all() == []


def test_records_of_many_threads(tmp_path: Path) -> None:
    """While some threads write and forget their records, others always see one that stays, and never a torn one."""
    records, stays, rounds = Records(tmp_path), Process("stays", 1, 1, "boot", "log"), 200
    records.write(stays)

    def come_and_go(number: int) -> None:
        for _ in range(rounds):
            records.write(stays)
            records.write(Process(f"thread-{number}", number, 1, "boot", "log" * 1000))
            records.forget(f"thread-{number}")

    def look(_: int) -> bool:
        return all(records.read("stays") == stays for _ in range(rounds))

    with ThreadPoolExecutor(8) as pool:
        seen = [pool.submit(look, number) for number in range(4)]
        list(pool.map(come_and_go, range(4)))
        assert all(done.result() for done in seen)


def test_tail(tmp_path: Path) -> None:
    """The last lines of a log are shown, and a missing log is said to be missing."""
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(50)))
    assert tail(log, 2).split("\n") == ["    line 48", "    line 49"]
    assert "no log" in tail(tmp_path / "none")
