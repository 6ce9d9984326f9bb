"""`python3 -m soperator.agents.checks interval`: run the node's checks and report the changes; slurmd runs this at its interval.

With `prolog` or `epilog` it runs the checks of that moment, before a job starts on the node or after it has ended. With `--show` it prints the result
of each check for a person on the node, and neither remembers nor reports anything. It never fails because of a check's result, only because of its
own errors: a missing or malformed plan is exit code 2, and a report that Slurm refuses is repeated the next time.
"""

import argparse
import fcntl
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

from soperator.agents.checks import (
    log,
    memory,
    requeue,
    runner,
    supervise,
)
from soperator.agents.checks.probes.place import ProbePaths
from soperator.checks import report
from soperator.checks.check import (
    CONTEXTS,
    Check,
    CheckError,
    read_check,
)
from soperator.checks.check_state import CheckState

PLAN, MEMORY = Path("/etc/soperator/checks/plan.json"), Path("/run/soperator/checks/memory.json")
_SCONTROL = "/opt/soperator/bin/scontrol"
#: For the report, in seconds.
_PATIENCE = 2.5


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="checks", description="Run the quick checks of this node.")
    parser.add_argument("context", choices=CONTEXTS)
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--memory", type=Path, default=MEMORY)
    parser.add_argument("--scontrol", default=_SCONTROL)
    parser.add_argument("--show", action="store_true", help="print the result of each check, and change nothing")
    said = parser.parse_args()
    try:
        plan = read_plan(said.plan)
    except CheckError as error:
        broken = CheckState("plan", "broken", runner.clock(), str(error), "report")
        _report(said.scontrol, memory.load(said.memory), [broken], said.memory)
        log.write(str(error))
        sys.exit(f"soperator: {error}")
    due = [each for each in plan.checks if said.context in each.at]
    if said.show:
        _show(runner.run(due, plan.machines, memory.Memory(), ProbePaths(), runner.clock()))
        return
    with _alone(said.memory) as mine:
        if mine:
            known = memory.load(said.memory).only({each.name for each in plan.checks})
            done = runner.run(due, plan.machines, known, ProbePaths(), runner.clock())
            _report(said.scontrol, done.memory, list(done.memory.check_states.values()), said.memory, plan.renew)
            if said.context == "prolog" and plan.requeues_jobs:
                bad = requeue.new_failures(known.check_states, done.memory.check_states)
                log.write(requeue.requeue_job(said.scontrol, bad))


@dataclass(frozen=True)
class NodePlan:
    """The plan of a node.

    It has the checks, the thresholds by machine type, the seconds after which an unchanged report is repeated (0 is never), and whether a failure in
    the prolog requeues the job.
    """

    checks: Sequence[Check]
    machines: Mapping[str, Any] = field(default_factory=dict)
    renew: float = 0.0
    requeues_jobs: bool = False


def read_plan(path: Path) -> NodePlan:
    """Return the plan in a file; raises CheckError for an invalid file, also if it cannot be read."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        checks = [read_check(name, each) for name, each in said["checks"].items()]
        return NodePlan(checks, said.get("machines", {}), float(said.get("renew", 0)), said.get("turnsAway") is True)
    except OSError as error:
        raise CheckError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckError(
            error.args[0] if isinstance(error, CheckError) else f"{path}: it is no plan: {error!r}"
        ) from error


def _report(
    scontrol: str, known: memory.Memory, check_states: list[CheckState], path: Path, renew: float = 0.0
) -> None:
    """Report results that differ from the last report to this slurmctld, or whose next report is due, and remember them."""
    now = runner.clock()
    made = report.report_of(check_states, now, known.last)
    node, reported = (
        os.environ.get("SLURMD_NODENAME") or os.uname().nodename,
        (_slurmd_identifier(), report.timeless(made)),
    )
    if known.reported == reported and (known.changed_at > now or is_due(node, renew, known.reported_at, now)):
        made = replace(made, at=known.changed_at, renewed=made.at)
    if known.reported != reported or made.renewed:
        done = supervise.run_one((scontrol, "update", f"nodename={node}", f"extra={report.write(made)}"), _PATIENCE)
        if done.how == "ended" and done.code == 0:
            if known.reported[1] != reported[1]:
                log.write(
                    "; ".join(f"{each.check} is {each.state}: {each.message}" for each in check_states) or "all pass"
                )
            known = replace(known, reported=reported, reported_at=now, changed_at=made.at)
        else:
            why = done.trouble or (done.err or done.out).strip() or f"exit code {done.code}"
            log.write(f"cannot send the report yet: {why}")
    memory.save(known, path)


def is_due(node: str, renew: float, reported_at: float, now: float) -> bool:
    """Return whether an unchanged report is due again. Nodes that start together report at different times, spread over the `renew` seconds."""
    phase = crc32(node.encode()) % renew if renew else 0.0
    return bool(renew) and (now + phase) // renew != (reported_at + phase) // renew


def _slurmd_identifier() -> str:
    """Return an identifier of the slurmd that runs this program.

    It changes when slurmd restarts or executes itself again, because slurmctld may have lost the node's report then.
    """
    try:
        return sha256(Path(f"/proc/{os.getppid()}/auxv").read_bytes()).hexdigest()[:16]
    except OSError:
        return "unknown"


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether no other round is running; the lock ends with the process at the latest."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _show(done: runner.RoundResult) -> None:
    for name, verdict in sorted(done.verdicts.items()):
        print(f"{verdict.outcome:7} {name}" + (f": {verdict.message}" if verdict.message else ""))
    slowest = max(done.took.items(), key=lambda each: each[1], default=("none", 0.0))
    print(f"{len(done.verdicts)} checks; the slowest measurement was {slowest[0]} with {1000 * slowest[1]:.0f} ms")


if __name__ == "__main__":
    main()
