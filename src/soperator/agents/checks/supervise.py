"""Runs many tasks in parallel without trusting any of them to end, to limit its output, or to clean up.

Each task runs in its own process group with a time limit. When it ends, or exceeds the limit, the whole group is killed; a program that left its
group is found by a mark in its environment. A process that cannot be killed, because it is stuck in the kernel, is left behind and reported, so that
its task is not started again until it has ended.
"""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

#: The most bytes that a task may print, on both channels together.
LOUDEST = 64 * 1024
#: How long a killed process may take to end, in seconds.
_GRACE = 0.3
_MARK = "SOPERATOR_CHECK"
_FAILED, _MISSING = 97, 127

How = Literal["ended", "signal", "late", "loud", "missing", "stuck"]


@dataclass(frozen=True)
class Task:
    """A command, or a function that returns the text of its answer; `limit` is in seconds."""

    name: str
    limit: float
    command: Sequence[str] = ()
    call: Callable[[], str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskEnd:
    """How a task ended: `code` is its exit code or its signal; `left` has the pid and the start time of each process that could not be killed."""

    how: How
    code: int = 0
    out: str = ""
    err: str = ""
    took: float = 0.0
    left: tuple[int, str] | None = None

    @property
    def trouble(self) -> str:
        """Why the task gave no answer, as a message; empty if it ended by itself."""
        match self.how:
            case "late":
                return f"it did not end within {self.took:.1f} s and was killed"
            case "loud":
                return f"it printed more than {LOUDEST // 1024} KiB and was killed"
            case "signal":
                return f"it ended by {_signal(self.code)}"
            case "missing":
                return f"it cannot be started: {self.err.strip()}"
            case "stuck":
                return f"it has hung in the kernel for {self.took:.1f} s and cannot be killed"
            case _:
                return ""


@dataclass
class _Running:
    task: Task
    pid: int
    pidfd: int
    began: float
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    pipes: dict[int, bytearray] = field(default_factory=dict)


def run(tasks: Sequence[Task], deadline: float) -> dict[str, TaskEnd]:
    """Run all tasks at once and return how each ended. Takes at most slightly longer than `deadline` seconds."""
    end = time.monotonic() + deadline
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    ended: dict[str, TaskEnd] = {}
    with selectors.DefaultSelector() as selector:
        running = [_start(task, mark, selector) for task in tasks]
        while running:
            soonest = min(_until(each, end) for each in running)
            for key, _ in selector.select(max(0.0, soonest - time.monotonic())):
                _read(key.fd, key.data, selector)
            for each in list(running):
                if how := _is_over(each, end):
                    ended[each.task.name] = _finish(each, how, selector)
                    running.remove(each)
    if any(task.command for task in tasks):
        sweep(mark)
    return ended


def run_one(command: Sequence[str], limit: float) -> TaskEnd:
    """Run one command for `limit` seconds at most, and return how it ended."""
    return run([Task("asked", limit, command=command)], limit)["asked"]


def failed(ended: TaskEnd) -> str:
    """Return why a function failed, from its exception; empty if it did not fail."""
    if ended.trouble:
        return ended.trouble
    return (
        ended.err.strip().splitlines()[-1][:300]
        if ended.code and ended.err.strip()
        else f"exit code {ended.code}" * bool(ended.code)
    )


def is_alive(left: tuple[int, str]) -> bool:
    """Return whether a process that could not be killed still exists."""
    return _started(left[0]) == left[1] != ""


def sweep(mark: str) -> int:
    """Kill the processes that carry a mark and left their group; return their number."""
    found, wanted = 0, f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)
                found += 1
    return found


def _start(task: Task, mark: str, selector: selectors.BaseSelector) -> _Running:
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(task, mark, out[1], err[1])
    for fd in (out[1], err[1]):
        os.close(fd)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # the child does it too, whichever is first
    made = _Running(task, pid, os.pidfd_open(pid), time.monotonic())
    made.pipes = {out[0]: made.out, err[0]: made.err}
    for fd in made.pipes:
        os.set_blocking(fd, False)
        selector.register(fd, selectors.EVENT_READ, made)
    selector.register(made.pidfd, selectors.EVENT_READ, made)
    return made


def _become(task: Task, mark: str, out: int, err: int) -> None:
    """The code of the child process; never returns."""
    code = _FAILED
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.closerange(3, 256)
        for each in (signal.SIGTERM, signal.SIGPIPE, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        if task.call is not None:
            _print(1, task.call())
            code = 0
        else:
            os.execve(task.command[0], list(task.command), {**os.environ, **task.environment, _MARK: mark})
    except OSError as error:
        code = _FAILED if task.call else _MISSING
        _print(2, f"{error.strerror}: {error.filename}" if error.filename else str(error))
    except BaseException as error:  # whatever it is, it is told; a child must not go on as if it were the parent
        _print(2, f"{type(error).__name__}: {error}" if type(error).__module__ == "builtins" else str(error))
    finally:
        os._exit(code)


def _print(fd: int, text: str) -> None:
    rest = text.encode(errors="replace")
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read(fd: int, running: _Running, selector: selectors.BaseSelector) -> None:
    if fd == running.pidfd:
        return
    with contextlib.suppress(BlockingIOError):
        if got := os.read(fd, LOUDEST):
            running.pipes[fd] += got
        else:
            selector.unregister(fd)
            os.close(fd)
            del running.pipes[fd]


def _until(running: _Running, end: float) -> float:
    return min(running.began + running.task.limit, end)


def _is_over(running: _Running, end: float) -> How | None:
    if len(running.out) + len(running.err) > LOUDEST:
        return "loud"
    if os.waitid(os.P_PIDFD, running.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        return "ended"
    return "late" if time.monotonic() >= _until(running, end) else None


def _finish(running: _Running, how: How, selector: selectors.BaseSelector) -> TaskEnd:
    """Kill the group, whose id stays in use until its first process is reaped; then read the rest of the pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    status = _wait(running)
    took = time.monotonic() - running.began
    for fd, buffer in running.pipes.items():
        selector.unregister(fd)
        with contextlib.suppress(BlockingIOError):
            buffer.extend(os.read(fd, LOUDEST))
        os.close(fd)
    selector.unregister(running.pidfd)
    os.close(running.pidfd)
    out, err = (bytes(each[:LOUDEST]).decode(errors="replace") for each in (running.out, running.err))
    if status is None:
        return TaskEnd("stuck", out=out, err=err, took=took, left=(running.pid, _started(running.pid)))
    if how in ("late", "loud"):
        return TaskEnd(how, out=out, err=err, took=took)
    if os.WIFSIGNALED(status):
        return TaskEnd("signal", os.WTERMSIG(status), out, err, took)
    code = os.WEXITSTATUS(status)
    if running.task.command and code == _MISSING and not out:
        return TaskEnd("missing", code, out, err, took)
    return TaskEnd("loud" if len(out) + len(err) >= LOUDEST else "ended", code, out, err, took)


def _wait(running: _Running) -> int | None:
    """Return the exit status; None for a process that does not end after a kill."""
    end = time.monotonic() + _GRACE
    while True:
        pid, status = os.waitpid(running.pid, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() >= end:
            return None
        time.sleep(0.005)


def _started(pid: int) -> str:
    """Return the start time of a process, in clock ticks since the machine's start. It distinguishes two processes with the same pid."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    rest = said[said.rindex(")") + 2 :].split()
    return "" if rest[0] in "ZX" else rest[19]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
