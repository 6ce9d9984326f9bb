"""Assigns processes to jobs, by attributes that no user can change: the pid namespace of each job, and the titles of slurmstepd.

A process in a pid namespace below a job's, as in a container, is assigned by its parents. If Slurm has a cgroup for the job, CPU and memory are the
kernel's sums of that cgroup. Nothing here opens a file of the jail, which may hang. Sources: proc(5), cgroups(7).
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from soperator.agents.usage.tally import Key, ProcessCpuTime, Snapshot

_STEP = re.compile(rb"slurmstepd: \[(\d+)\.")
_GPU = re.compile(r"^/dev/(?:dri/)?(nvidia\d+|renderD\d+)$")
_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class UsagePaths:
    """The paths to read; tests use their own."""

    proc: Path = Path("/proc")
    jobs: Path = Path("/run/jail/jobs")
    cgroups: Path = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _Process:
    """One process; `own` and `of_children` are CPU seconds of the process itself, and of its children that it has waited for."""

    key: Key
    parent: int
    own: float
    of_children: float
    memory: int
    space: str
    step: int


@dataclass
class _Job:
    members: list[_Process] = field(default_factory=list)
    steps: list[_Process] = field(default_factory=list)


def measure(place: UsagePaths) -> dict[int, Snapshot]:
    """Return the current usage of each job of this node, by job number."""
    found = {each.key[0]: each for each in _everything(place)}
    spaces, own = dict(_spaces(place)), found[1].space if 1 in found else ""
    jobs: dict[int, _Job] = {}
    for each in found.values():
        if number := _job_of(each, found, spaces, own):
            job = jobs.setdefault(number, _Job())
            (job.steps if each.step and each.space == own else job.members).append(each)
    return {number: _snapshot(place, number, job, found) for number, job in jobs.items()}


def _snapshot(place: UsagePaths, number: int, job: _Job, found: Mapping[int, _Process]) -> Snapshot:
    """slurmstepd's own time counts as Slurm's; the time of its ended tasks counts as the job's."""
    spent = {each.key: ProcessCpuTime(each.own + each.of_children, _parent(each, found)) for each in job.members}
    spent |= {each.key: ProcessCpuTime(each.of_children, None) for each in job.steps}
    used, memory = _of_cgroup(place, number, job)
    return Snapshot(
        spent,
        sum(each.memory for each in job.members) if memory is None else memory,
        len(job.members),
        frozenset(_gpus(place, job)),
        used,
    )


def _parent(process: _Process, found: Mapping[int, _Process]) -> Key | None:
    parent = found.get(process.parent)
    return parent.key if parent else None


def _job_of(process: _Process, found: Mapping[int, _Process], spaces: Mapping[str, int], own: str) -> int:
    """Return the job of a process, from its pid namespace, its parents or its title; 0 if it has none.

    A title counts only in the pod's own namespace.
    """
    each: _Process | None = process
    for _ in range(len(found)):
        if each is None:
            break
        if number := spaces.get(each.space) or (each.step if each.space == own else 0):
            return number
        each = found.get(each.parent)
    return 0


def _spaces(place: UsagePaths) -> Iterator[tuple[str, int]]:
    """Yield the pid namespaces of jobs, from the records that spank/record.c writes: the pid of each job's first process, and its start time."""
    for folder in place.jobs.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            pid, start = (folder / "pid").read_text().split()[:2]
            process = _read(place, int(pid))
            if process.key[1] == int(start) and process.space:
                yield process.space, int(folder.name)


def _everything(place: UsagePaths) -> Iterator[_Process]:
    for path in place.proc.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            yield _read(place, int(path.name))


def _read(place: UsagePaths, pid: int) -> _Process:
    """One process; raises OSError or ValueError if it has ended."""
    folder = place.proc / str(pid)
    said = (folder / "stat").read_text(errors="replace")
    rest = said[said.rindex(")") + 2 :].split()
    user, system, child_user, child_system = (int(each) / _TICKS for each in rest[11:15])
    resident, shared = (int(each) for each in (folder / "statm").read_text().split()[1:3])
    space, step = "", 0
    with suppress(OSError):
        space = str((folder / "ns/pid").readlink())
    if "(slurmstepd" in said and (match := _STEP.match((folder / "cmdline").read_bytes())):
        step = int(match[1])
    key = (pid, int(rest[19]))
    return _Process(
        key, int(rest[1]), user + system, child_user + child_system, max(0, resident - shared) * _PAGE, space, step
    )


def _of_cgroup(place: UsagePaths, number: int, job: _Job) -> tuple[float | None, int | None]:
    """Return the seconds and bytes of the job's cgroup, version 2; None for each that is missing."""
    for each in (*job.members, *job.steps):
        with suppress(OSError, ValueError, KeyError):
            lines = (place.proc / str(each.key[0]) / "cgroup").read_text().splitlines()
            path = next(line[3:] for line in lines if line.startswith("0::"))
            above, found, _ = f"{path}/".partition(f"/job_{number}/")
            if found:
                folder = place.cgroups / f"{above}{found}".strip("/")
                cpu = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
                return int(cpu["usage_usec"]) / 1e6, int((folder / "memory.current").read_text())
    return None, None


def _gpus(place: UsagePaths, job: _Job) -> Iterator[str]:
    """Yield the GPUs in the job's /dev, where the plugin binds each one under its name on the Node."""
    seen = set()
    for each in job.members:
        with suppress(OSError, IndexError):
            folder = place.proc / str(each.key[0])
            space = (folder / "ns/mnt").readlink()
            if space in seen:
                continue
            seen.add(space)
            for line in (folder / "mountinfo").read_text(errors="replace").splitlines():
                if match := _GPU.match(line.split()[4]):
                    yield match[1]
