"""What became of jobs, computed from the marks that they left: which were lost, and which ran again although Slurm's own rule did not say so.

A unit is a job or one task of an array. Each time it runs it leaves one mark when it begins and one when its work is done. By Slurm's rule a
batch job whose node dies runs again, with a higher restart count. What slurmctld heard in its last seconds before a SIGKILL it has not written down
yet (state_save.c writes every SAVE_MAX_WAIT = 5 s): Slurm itself then forgets jobs, starts or ends. Such units are counted apart, and only a
crash within `SAVE` seconds after the act makes one of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

SAVE = 7.0


@dataclass(frozen=True)
class Unit:
    """What was asked for: `key` is ours, for a slurmctld that forgot a job gives its number to another; `at` is when sbatch had answered."""

    key: str
    task: int
    at: float


@dataclass(frozen=True)
class Mark:
    """One line that a job wrote: in which run of it (0 is the first), what (`began` or `ended`), when."""

    key: str
    task: int
    run: int
    what: str
    at: float


@dataclass
class Verdict:
    """How many units there are, how many runs Slurm repeated by its own rule, and every fault in words."""

    jobs: int = 0
    requeued: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    unsaved: list[str] = field(default_factory=list)


def read_marks(text: str) -> list[Mark]:
    """Marks from lines such as `array-1.7.0.began:1763755000.1 worker-0`; a line that a job was about to write is left out."""
    found = []
    for line in text.splitlines():
        name, _, said = line.partition(":")
        words = name.rsplit(".", 3)
        if len(words) == 4 and said.split():
            found.append(Mark(words[0], int(words[1]), int(words[2]), words[3], float(said.split()[0])))
    return found


def judge(units: Iterable[Unit], marks: Iterable[Mark], crashes: Sequence[float] = ()) -> Verdict:
    """The verdict over units of which none is in Slurm's queue any more; `crashes` are the times at which slurmctld was killed."""
    of: defaultdict[tuple[str, int], list[Mark]] = defaultdict(list)
    for mark in marks:
        of[mark.key, mark.task].append(mark)
    verdict = Verdict()
    for unit in units:
        verdict.jobs += 1
        mine = sorted(of[unit.key, unit.task], key=lambda mark: mark.at)
        verdict.requeued += max((mark.run for mark in mine), default=0)
        if not any(mark.what == "ended" for mark in mine):
            last = mine[-1].at if mine else unit.at
            told = f"{unit.key}.{unit.task} {'began and ' if mine else ''}left no end"
            (verdict.unsaved if _is_unsaved(max(last, unit.at), crashes) else verdict.lost).append(told)
        for at, told in _repeats(mine):
            (verdict.unsaved if _is_unsaved(at, crashes) else verdict.twice).append(f"{unit.key}.{unit.task} {told}")
    return verdict


def _repeats(mine: Sequence[Mark]) -> Iterable[tuple[float, str]]:
    """Each beginning that should not have been, with the moment of what Slurm should have known then."""
    begun: dict[int, float] = {}
    done: float | None = None
    for mark in mine:
        if mark.what == "ended":
            done = mark.at
            continue
        if mark.run in begun:
            yield begun[mark.run], f"began twice as run {mark.run}"
        elif done is not None:
            yield done, f"began again as run {mark.run} after it had ended"
        begun[mark.run] = mark.at


def _is_unsaved(at: float, crashes: Sequence[float]) -> bool:
    return any(0 <= crash - at <= SAVE for crash in crashes)
