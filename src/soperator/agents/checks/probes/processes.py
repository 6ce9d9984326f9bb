"""Measures processes: hanging ones, zombies, and leftovers of jobs.

Users can give a process any name, title and environment. So the names of Slurm's and the driver's programs, and a job's number in an environment,
count only in the pod's own pid namespace. Each job has another one, which its epilog ends whole; where it cannot, Slurm drains the node. A process in
there is of that job, whatever it says of itself, and may run without any step, as an SSH session does.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soperator.agents.checks.probes.place import Given, ProbePaths
from soperator.checks.check import Reading, Value

_STEP = re.compile(rb"slurmstepd: \[(\d+)\.")
#: Seconds for which a process that ends with its job may still exist after it.
_YOUNG = 60.0
#: Programs that may hold a GPU for all users.
_DAEMONS = ("slurmd", "slurmstepd", "nvidia-persiste", "nvidia-smi", "nv-hostengine", "dcgm")


@dataclass(frozen=True)
class Process:
    """One process, as read from /proc; `age` is in seconds."""

    pid: int
    name: str
    state: str
    age: float


def processes(_: Given, place: ProbePaths) -> list[Reading]:
    """Return the numbers of `zombies` and `hanging` processes (state D), with the `names` of the latter."""
    found = list(everything(place))
    hanging = [each for each in found if each.state == "D"]
    reading: dict[str, Value] = {
        "of": "the pod",
        "zombies": sum(each.state == "Z" for each in found),
        "hanging": len(hanging),
        "names": ", ".join(f"{each.name} ({each.pid})" for each in hanging[:3]),
    }
    return [reading]


def leftovers(given: Given, place: ProbePaths) -> list[Reading]:
    """Return the leftovers of jobs that no longer run here.

    `processes` is the number of those outside all jobs that were started for such a job, `devices` those that they hold,
    and `folders` those of such jobs in `given.scratch`.
    """
    running = jobs(place)
    strays = [(each, job) for each in everything(place) if (job := _job_of(place, each)) and job not in running]
    holders = [each for each, _ in strays if _holds_a_gpu(place, each.pid)]
    folders = _folders(Path(given["scratch"]), running)
    return [
        {
            "of": "the pod",
            "processes": len(strays),
            "devices": len(holders),
            "folders": len(folders),
            "names": ", ".join(f"{each.name} ({each.pid}) of job {job}" for each, job in strays[:3]),
            "jobs": ", ".join(map(str, folders[:3])),
        }
    ]


def holders(_: Given, place: ProbePaths) -> list[Reading]:
    """`foreign`: the number of processes that hold a GPU and belong to no job and no daemon of Slurm or the driver, with their `names`."""
    found = [each for each in everything(place) if each.age >= _YOUNG and not _is_called(place, each, _DAEMONS)]
    outside = [each for each in found if _is_ours(place, each.pid) and not _number_of(place, each)]
    foreign = [each for each in outside if _holds_a_gpu(place, each.pid)]
    names = ", ".join(f"{each.name} ({each.pid})" for each in foreign[:3])
    return [{"of": "the pod", "foreign": len(foreign), "names": names}]


def jobs(place: ProbePaths) -> set[int]:
    """Return the jobs with a step on this node, from the titles of slurmstepd."""
    found = set()
    for path in place.proc.glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if _is_ours(place, path.parent.name) and (match := _STEP.match(path.read_bytes())):
                found.add(int(match[1]))
    return found


def everything(place: ProbePaths) -> Iterator[Process]:
    """Yield all processes that are visible in this pod."""
    uptime = float((place.proc / "uptime").read_text().split()[0])
    for path in place.proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            said = path.read_text(errors="replace")
            rest = said[said.rindex(")") + 2 :].split()
            name = said[said.index("(") + 1 : said.rindex(")")]
            yield Process(int(path.parent.name), name, rest[0], uptime - int(rest[19]) / os.sysconf("SC_CLK_TCK"))


def _job_of(place: ProbePaths, process: Process) -> int:
    """Return the job for which a process outside all jobs was started; 0 for one of a job, a young one, and Slurm's own programs."""
    if process.age < _YOUNG or process.state == "Z" or process.name.startswith(("slurmstepd", "slurmd")):
        return 0
    if not _is_ours(place, process.pid):
        return 0
    return _number_of(place, process)


def _is_called(place: ProbePaths, process: Process, names: tuple[str, ...]) -> bool:
    """Return whether the process has one of these names, in the pod's own pid namespace."""
    return process.name.startswith(names) and _is_ours(place, process.pid)


def _is_ours(place: ProbePaths, pid: int | str) -> bool:
    """Return whether a process is in our own pid namespace; False if that cannot be read."""
    try:
        return (place.proc / str(pid) / "ns/pid").readlink() == (place.proc / "self/ns/pid").readlink()
    except OSError:
        return True


def _number_of(place: ProbePaths, process: Process) -> int:
    """Return the job number in a process's environment; 0 if there is none."""
    with suppress(OSError, ValueError):
        for word in (place.proc / str(process.pid) / "environ").read_bytes().split(b"\0"):
            if word.startswith(b"SLURM_JOB_ID="):
                return int(word.partition(b"=")[2])
    return 0


def _holds_a_gpu(place: ProbePaths, pid: int) -> bool:
    with suppress(OSError):
        for path in (place.proc / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if re.match(r"/dev/(nvidia\d+|dri/render\w*|kfd)$", str(path.readlink())):
                    return True
    return False


def _folders(scratch: Path, running: set[int]) -> list[int]:
    """Return the jobs that do not run but still have a folder in the scratch folder, where each job's folder is called job-ID."""
    with suppress(OSError):
        found = (path.name.removeprefix("job-") for path in scratch.glob("job-*"))
        return sorted(int(name) for name in found if name.isdecimal() and int(name) not in running)
    return []
