"""Starts processes that outlive this program, identifies them later, and stops only those.

A process id alone is not sufficient, because the kernel reuses it. A record therefore has the id together with the start time (field 22 of
/proc/PID/stat, in clock ticks since boot) and the boot id, and identifies a process only if all three agree.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from local.progress import Failure


@dataclass(frozen=True)
class Process:
    """One recorded process: the data that identifies it later; `is_leaving` once it is being stopped."""

    name: str
    pid: int
    start_ticks: int
    boot: str
    log: str
    is_leaving: bool = False


def boot_id() -> str:
    """Return the random id that the kernel generated at boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def parse_start_ticks(stat: str) -> int | None:
    """Return the start time in /proc/PID/stat's text, or None if the process is already dead (a zombie without threads).

    The second field is the program's name in parentheses and may itself have spaces and parentheses (proc(5)). A zombie that still has
    threads is being killed, and they hold its ports and files.
    """
    fields = stat[stat.rindex(")") + 2 :].split()
    is_dead = fields[0] in {"Z", "X"} and int(fields[17]) <= 1
    return None if is_dead else int(fields[19])


def start_ticks(pid: int) -> int | None:
    """Return when ``pid`` started, or None if no such process exists."""
    try:
        return parse_start_ticks(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def identify(name: str, pid: int, log: Path) -> Process:
    """Return the identity of the process that has ``pid`` now."""
    return Process(name, pid, start_ticks(pid) or 0, boot_id(), str(log))


def is_alive(process: Process) -> bool:
    """Return whether this process still runs; a later process with the same id does not count."""
    return process.boot == boot_id() and process.start_ticks == start_ticks(process.pid)


def uptime(process: Process) -> float:
    """Return the seconds since the process started."""
    since_boot = float(Path("/proc/uptime").read_text().split()[0])
    return since_boot - process.start_ticks / os.sysconf("SC_CLK_TCK")


def spawn(argv: Sequence[str], log: Path, env: dict[str, str] | None = None) -> int:
    """Start ``argv`` in a session of its own with its output in ``log``; return its pid."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd="/", env=env
        )
    child.returncode = 0  # We never wait for it; this keeps Popen from warning that it is still running.
    return child.pid


def only_child(pid: int, patience: float = 5.0) -> int:
    """Return the pid of the one child of ``pid``, as soon as it exists: nsenter and unshare fork once."""
    deadline = time.monotonic() + patience
    children: list[str] = []
    while time.monotonic() < deadline and start_ticks(pid) is not None:
        with suppress(FileNotFoundError, ProcessLookupError):  # It may end between the look and the reading.
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.005)
    raise Failure(f"process {pid} ended before it started its child")


def signal_process(process: Process, number: signal.Signals) -> None:
    """Send a signal to exactly this process; if it has ended, or its id was reused, no process receives one."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if is_alive(process):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def wait_gone(processes: Iterable[Process], patience: float) -> list[Process]:
    """Wait until none of ``processes`` runs, at most ``patience`` seconds; return those that still run."""
    deadline = time.monotonic() + patience
    left = [process for process in processes if is_alive(process)]
    while left and time.monotonic() < deadline:
        select.select([], [], [], 0.02)
        left = [process for process in left if is_alive(process)]
    return left


def stop(processes: Sequence[Process], patience: float = 3.0) -> None:
    """Send SIGTERM to the processes, and SIGKILL to those that still run after ``patience`` seconds."""
    for process in processes:
        signal_process(process, signal.SIGTERM)
    for process in wait_gone(processes, patience):
        signal_process(process, signal.SIGKILL)
    left = wait_gone(processes, 10.0)
    if left:
        raise Failure(f"{left[0].name} (pid {left[0].pid}) does not end even by SIGKILL")


class Records:
    """The records of one cluster's processes, one file each, so that a crash of this program loses none.

    Several threads use them at once (a cluster's Nodes start in parallel), so a record is created and removed atomically.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, name: str) -> Path:
        return self.folder / f"{name.replace('/', '@')}.process"

    def write(self, process: Process) -> None:
        """Store the record of a process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._file(process.name)
        partial = file.with_suffix(f".{threading.get_native_id()}")
        partial.write_text(json.dumps(asdict(process)))
        partial.rename(file)

    def forget(self, name: str) -> None:
        """Delete the record of a process; does nothing if there is none."""
        self._file(name).unlink(missing_ok=True)

    def read(self, name: str) -> Process | None:
        """Return the process recorded under ``name``."""
        return next((process for process in self.all() if process.name == name), None)

    def all(self) -> list[Process]:
        """Return every process that was started and not stopped, by name."""
        found = []
        for file in sorted(self.folder.glob("*.process")):
            # Another thread may have forgotten it since the listing; a power cut may have left it empty.
            with suppress(FileNotFoundError, ValueError, TypeError):
                found.append(Process(**json.loads(file.read_text())))
        return found


def tail(log: str | Path, lines: int = 15) -> str:
    """Return the last lines of a log, indented, for an error message."""
    try:
        text = Path(log).read_text(errors="replace")
    except FileNotFoundError:
        return "    (no log)"
    return "\n".join(f"    {line[:300]}" for line in text.splitlines()[-lines:]) or "    (empty log)"
