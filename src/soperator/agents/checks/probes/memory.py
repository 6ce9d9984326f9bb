"""Measures memory: the machine's free memory, the pod's usage while no job runs, and the processes that the kernel killed."""

from pathlib import Path

from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.agents.checks.probes.processes import jobs
from soperator.checks.check import Reading, Value


def memory(_: Given, place: ProbePaths) -> list[Reading]:
    """For the machine `available` and `swapped` in per cent.

    For the pod `held`, its memory that cannot be reclaimed, in per cent of its limit, and `jobs`, the number of its jobs.
    """
    info = _meminfo(place.proc / "meminfo")
    machine: dict[str, Value] = {"of": "memory", "available": _share(info["MemAvailable"], info["MemTotal"])}
    if info.get("SwapTotal"):
        machine["swapped"] = 100 - _share(info.get("SwapFree", 0), info["SwapTotal"])
    pod: dict[str, Value] = {"of": "the pod", "jobs": len(jobs(place))}
    used, limit, cache = _cgroup(place.sys / "fs/cgroup")
    if limit and limit < info["MemTotal"] * 1024:
        pod |= {"held": _share(max(0, used - cache), limit), "held_mib": max(0, used - cache) // 2**20}
    return [machine, pod]


def oom(_: Given, place: ProbePaths) -> list[Reading]:
    """`kills`: the number of the pod's processes that the kernel has killed for lack of memory since the pod started."""
    root = place.sys / "fs/cgroup"
    for path in (root / "memory.events", root / "memory/memory.oom_control"):
        if path.exists():
            said = dict(line.split()[:2] for line in path.read_text().splitlines() if len(line.split()) == 2)
            if "oom_kill" in said:
                return [{"of": "the pod", "kills": int(said["oom_kill"])}]
    raise ProbeError(f"{root}/memory.events has no count of killed processes")


def _meminfo(path: Path) -> dict[str, int]:
    """Return the table of /proc/meminfo, in KiB."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) >= 2}


def _cgroup(root: Path) -> tuple[int, int, int]:
    """Usage, limit and reclaimable memory, in bytes; a limit of 0 means none."""
    second = (root / "memory.current").exists()
    folder, names = (
        (root, ("memory.current", "memory.max", "inactive_file"))
        if second
        else (root / "memory", ("memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"))
    )
    try:
        used, limit = ((folder / name).read_text().strip() for name in names[:2])
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:
        return 0, 0, 0
    return int(used), 0 if limit == "max" else int(limit), int(stat.get(names[2], 0))


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
