"""What `make bench-scale` measures and what is good enough: the table of issue 5, with what the faster Go peer does on a machine of two cores."""

from dataclasses import dataclass

from local.paths import DEFAULT_STATE

FILE = DEFAULT_STATE / "bench-scale.jsonl"
SIZES = (1, 100, 1000, 5000)


@dataclass(frozen=True)
class Goal:
    """One figure, its limit in `unit` (None for one that another figure judges), and the peer's value (None where it was not measured)."""

    key: str
    title: str
    unit: str
    limit: float | None
    peer: float | None = None


GOALS = (
    Goal("grow-1000.created", "1,000 workers: last pod created after apply", "s", 10, 31),
    Goal("grow-1000.cpu", "1,000 workers: operator's CPU until all are ready", "s", 6, 12.6),
    Goal("grow-1000.rss", "1,000 workers: operator's peak memory (VmHWM)", "MiB", 90, 195),
    Goal("grow-1000.requests", "1,000 workers: requests until all are ready", "requests", 1100, 3107),
    Goal("roll-1000.done", "image change on 1,000 idle workers: whole rollout", "s", 60, 69),
    Goal("roll-1000.cpu", "image change on 1,000 idle workers: CPU", "s", 20, 33),
    Goal("roll-1000.requests", "image change on 1,000 idle workers: requests", "requests", 2200, 5124),
    Goal("idle-1000.cpu", "idle at 1,000 workers: CPU, of a core", "%", 1, 8.7),
    Goal("idle-1000.requests", "idle at 1,000 workers: requests", "per min", 12, 52),
    Goal("fifty.ready", "50 clusters × 3 workers: all ready", "s", 12, 16.7),
    Goal("fifty.cpu", "50 clusters × 3 workers: CPU", "s", 5, 4.6),
    Goal("fifty.requests", "50 clusters × 3 workers: requests", "requests", None, 1616),
    Goal("fifty.above", "50 clusters × 3 workers: requests of each cluster besides one for each child", "requests", 5),
    Goal("fifty.rss", "50 clusters × 3 workers: peak memory", "MiB", 100, 132),
    Goal("grow-5000.created", "5,000 workers: last pod created after apply", "s", 60),
    Goal("grow-5000.rss", "5,000 workers: peak memory", "MiB", 128),
    Goal("replace-5000.cpu", "5,000 workers, one pod deleted: CPU of the 10 s in which it is replaced", "ms", 50),
)
