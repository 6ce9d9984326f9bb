"""The figures of `make bench` and their goals."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One figure: `limit` is the goal in `unit`, or None if each run has its own; `runs` is the number of runs for a verdict."""

    key: str
    title: str
    unit: str
    goal: str
    limit: float | None
    runs: int = 5


FIGURES = (
    Figure("cold", "`make demo`, empty caches", "s", "≤ 20 min", 1200.0, runs=1),
    Figure("warm", "`make demo` with everything built (`make down` before)", "s", "≤ 60 s", 60.0),
    Figure(
        "start",
        "cluster up, images present: `kubectl apply` → first successful `srun -N2 hostname` over SSH, empty jail",
        "s",
        "≤ 20 s",
        20.0,
    ),
    Figure(
        "writes",
        "writes by the operator until convergence, without Events and Lease",
        "requests",
        "≤ children + 10",
        None,
    ),
    Figure(
        "alone-never",
        "`kubectl apply` → the operator's last write, API server alone, `populate: Never`: workers too",
        "s",
        "≤ 1 s",
        1.0,
    ),
    Figure("alone-once", "the same, `populate: Once`: no worker yet, for no Job ever ends there", "s", "≤ 1 s", 1.0),
    Figure("idle", "3 min idle: writes besides the Lease, lists and gets", "requests", "0", 0.0, runs=1),
    Figure("lease", "3 min idle: updates of the Lease", "per min", "≤ 12 per min", 12.0, runs=1),
    Figure("memory", "operator's resident memory (VmRSS), one cluster", "MiB", "≤ 75 MiB", 75.0, runs=1),
    Figure("ready", "operator start → /readyz answers 200, API server alone", "s", "≤ 1 s", 1.0),
    Figure("worker", "worker pod deleted → its Slurm node idle again", "s", "≤ 15 s", 15.0),
)

#: What each part of the bench measures.
PARTS: Mapping[str, tuple[str, ...]] = {
    "cold": ("cold",),
    "alone": ("ready", "alone-never", "alone-once"),
    "warm": ("warm",),
    "start": ("start", "writes"),
    "idle": ("idle", "lease"),
    "memory": ("memory",),
    "worker": ("worker",),
}
