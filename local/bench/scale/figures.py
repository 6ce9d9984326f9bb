"""The figures of `make bench-scale`, their goals, and the values of a Go operator on a machine with two cores.

The peer's values are those of Slinky's slurm-operator f2ed3fc of 2026-08-20, measured on 2026-11-22 with the API server, KWOK and the fakes
of this bench, best of two runs; the values of the rollout are of an earlier day and version of the bench.
"""

from dataclasses import dataclass

from local.paths import DEFAULT_STATE

FILE = DEFAULT_STATE / "bench-scale.jsonl"
SIZES = (1, 100, 1000, 5000)


@dataclass(frozen=True)
class Goal:
    """One figure, its limit in `unit` (None for a figure without a limit), and the peer's value (None if it was not measured)."""

    key: str
    title: str
    unit: str
    limit: float | None
    peer: float | None = None


GOALS = (
    Goal("grow-1000.created", "1,000 workers: last pod created after apply", "s", 8, 19.6),
    Goal("grow-1000.cpu", "1,000 workers: operator's CPU until all are ready", "s", 4, 12.5),
    Goal("grow-1000.rss", "1,000 workers: operator's peak memory (VmHWM)", "MiB", 80, 185),
    Goal("grow-1000.requests", "1,000 workers: requests until all are ready", "requests", 1100, 3087),
    Goal("roll-1000.done", "image change on 1,000 idle workers: whole rollout", "s", 60, 69),
    Goal("roll-1000.cpu", "image change on 1,000 idle workers: CPU", "s", 20, 33),
    Goal("roll-1000.requests", "image change on 1,000 idle workers: requests", "requests", 2200, 5124),
    Goal("idle-1000.cpu", "idle at 1,000 workers: CPU, of a core", "%", 0.5, 10.5),
    Goal("idle-1000.requests", "idle at 1,000 workers: requests, without those that KWOK causes", "per min", 12, 40),
    Goal("fifty.ready", "50 clusters × 3 workers: all ready", "s", 9, 9.4),
    Goal("fifty.cpu", "50 clusters × 3 workers: CPU", "s", 3.4, 3.4),
    Goal("fifty.requests", "50 clusters × 3 workers: requests", "requests", 1750, 1581),
    Goal("fifty.above", "50 clusters × 3 workers: requests of each cluster besides one for each child", "requests", 5),
    Goal("fifty.rss", "50 clusters × 3 workers: peak memory", "MiB", 100, 100),
    Goal("idle-50.cpu", "idle with 50 clusters: CPU, of a core", "%", 1, 4.3),
    Goal("idle-50.requests", "idle with 50 clusters: requests, without those that KWOK causes", "per min", 12, 530),
    Goal("grow-5000.created", "5,000 workers: last pod created after apply", "s", 60),
    Goal("grow-5000.rss", "5,000 workers: peak memory", "MiB", 110),
    Goal("replace-5000.cpu", "5,000 workers, one pod deleted: CPU of the 10 s in which it is replaced", "ms", 100),
)
