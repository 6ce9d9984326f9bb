"""Computes the result of a deep check from its job, apart from the history so that the same rules serve single nodes and groups.

Only the check's own verdict is a pass or a failure, with one exception: a node that fails during a check does not pass it. A job that was preempted,
that Slurm no longer knows, or that was cancelled before it started, has no result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soperator.checks import deep_evaluate
from soperator.checks.check import Reading, Value
from soperator.checks.deep_check import DeepCheck
from soperator.checks.evaluate import Verdict
from soperator.policy.healthcheck.types import Run, RunResult
from soperator.slurm import check_job
from soperator.slurm.job import CheckJob

_AGAIN = frozenset({"PREEMPTED", "REVOKED", "RECONFIG_FAIL"})
_LATE = frozenset({"TIMEOUT", "DEADLINE"})
_SENTENCE, _LOG = 200, 512


@dataclass(frozen=True)
class ReadingRules:
    """The rules and values that evaluate a shipped check: its file, the thresholds of the spec, and its peers' readings."""

    check: DeepCheck
    limits: Mapping[str, Value]
    peers: Sequence[Reading]


def outcome(run: Run, job: CheckJob | None, minutes: int, judge: ReadingRules | None = None) -> RunResult:
    """Return the result of a run that has ended, or that Slurm no longer knows (None). Without a judge the script's exit code is the verdict."""
    if job is None or job.states & _AGAIN:
        return RunResult(run, run.at, None)
    at = job.ended or run.at
    if "CANCELLED" in job.states:  # by somebody who does not want it now, if it had begun
        return RunResult(run, at, None, is_repeated=not job.had_node)
    said = check_job.said_of(job.comment)
    log = said[1][-_LOG:] if said else ""
    verdict = _verdict(job, said, minutes)
    if judge and judge.check.per != "node":
        return _of_several(run, at, verdict, said)
    if judge and said and verdict.outcome == "pass":
        answer = deep_evaluate.of_node(judge.check, said[1], run.node, judge.peers, judge.limits)
        return RunResult(run, at, answer.verdict, log, readings=answer.readings)
    return RunResult(run, at, Verdict("broken", verdict.message) if judge and said else verdict, log)


def _of_several(run: Run, at: float, verdict: Verdict, said: tuple[int, str] | None) -> RunResult:
    """Return the reading of a job on several nodes. One job cannot tell which node is bad, so a result without a reading counts as broken."""
    log = said[1][-_LOG:] if said else ""
    if verdict.outcome != "pass" or said is None:
        return RunResult(run, at, Verdict("broken", verdict.message), log)
    readings = deep_evaluate.read(said[1])
    if isinstance(readings, str):
        return RunResult(run, at, Verdict("broken", readings), log)
    found = tuple(
        each for each in deep_evaluate.named(readings, run.nodes) if set(deep_evaluate.nodes_of(each)) == set(run.nodes)
    )
    says = "" if found else f"no reading of {' '.join(run.nodes)}"[:_SENTENCE]
    return RunResult(run, at, Verdict("broken" if says else "pass", says), log, readings=found)


def _verdict(job: CheckJob, said: tuple[int, str] | None, minutes: int) -> Verdict:
    if job.states & {"NODE_FAIL", "BOOT_FAIL"}:
        return Verdict("fail", "the node failed while it ran the check")
    if job.states & _LATE:
        return Verdict("broken", f"it did not end within {minutes} min")
    if said is None:
        states = "+".join(sorted(job.states))
        return Verdict("broken", f"job {job.number} ended ({states}) without a result in its AdminComment")
    code, text = said
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    match code:
        case 0:
            return Verdict("pass")
        case 1 if last:
            return Verdict("fail", last[:_SENTENCE])
        case 1:
            return Verdict("broken", "exit code 1 without a line of output that names the cause")
        case _:
            return Verdict("broken", f"exit code {code}{': ' if last else ''}{last}"[:_SENTENCE])
