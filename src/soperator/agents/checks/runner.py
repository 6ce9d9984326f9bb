"""Runs one round of quick checks: measures in parallel, judges, remembers, and returns the changes.

Checks with equal arguments of the same probe share one measurement. Whatever a probe or a command does, the round ends within `DEADLINE`, and a check
without an answer is broken, never passed.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from soperator.agents.checks import supervise
from soperator.agents.checks.memory import Memory
from soperator.agents.checks.probes import PROBES, probe
from soperator.agents.checks.probes.place import ProbePaths
from soperator.checks.check import Check, Reading
from soperator.checks.check_state import Recovery, fold
from soperator.checks.evaluate import Machines, Verdict, judge
from soperator.checks.report import ResolvedCheck

#: Seconds for all measurements of a round together. Including the report, a round takes less than ten.
DEADLINE = 7.0
#: The exit codes by which a command reports that the node fails, or passes. Every other code means that the command is broken.
PASSES, FAILS = 0, 1


@dataclass(frozen=True)
class RoundResult:
    """The result of one round: the verdicts of the due checks, the duration of each measurement in seconds, and the state to remember."""

    verdicts: Mapping[str, Verdict]
    took: Mapping[str, float]
    memory: Memory


@dataclass(frozen=True)
class _Measured:
    """The result of a measurement: readings, or the cause of their absence."""

    readings: Sequence[Reading] = ()
    trouble: str = ""
    verdict: Verdict | None = None
    ended: supervise.TaskEnd = field(default_factory=lambda: supervise.TaskEnd("ended"))


def run(checks: Iterable[Check], machines: Machines, memory: Memory, place: ProbePaths, now: float) -> RoundResult:
    """Run the due checks, and add their verdicts to the remembered state."""
    due = [each for each in checks if memory.is_due(each, now)]
    stuck = {key: left for key, left in memory.stuck.items() if supervise.is_alive(left)}
    tasks = {key: _task(key, each, place) for each in due if (key := _key(each)) not in stuck}
    ended = supervise.run(_limited(tasks, due), DEADLINE)
    measured = {key: _measured(tasks[key], each) for key, each in ended.items()}
    measured |= {key: _Measured(trouble="the previous measurement still hangs in the kernel") for key in stuck}
    verdicts = {each.name: _verdict(each, measured[_key(each)], machines, memory) for each in due}
    left = {key: each.ended.left for key, each in measured.items() if each.ended.left}
    took = {key.partition(" ")[0]: each.ended.took for key, each in measured.items()}
    return RoundResult(verdicts, took, _remembered(memory, due, verdicts, stuck | left, now))


def _key(check: Check) -> str:
    """Return a key for the measurement: checks with equal keys share it."""
    return f"{check.probe} {json.dumps(dict(check.given), sort_keys=True)}"


def _task(key: str, check: Check, place: ProbePaths) -> supervise.Task:
    if check.probe == "command":
        return supervise.Task(
            key, check.limit, command=tuple(map(str, check.given.get("run", ()))) or ("/nonexistent",)
        )
    return supervise.Task(key, check.limit, call=_measuring(check, place))


def _measuring(check: Check, place: ProbePaths) -> Callable[[], str]:
    def measure() -> str:
        if check.probe not in PROBES:
            raise LookupError(f"unknown probe {check.probe}: use one of {', '.join(PROBES)}, command")
        return json.dumps(probe(check.probe)(check.given, place))

    return measure


def _limited(tasks: Mapping[str, supervise.Task], due: Iterable[Check]) -> list[supervise.Task]:
    """Return the tasks, each with the longest limit of the checks that share it."""
    limits: dict[str, float] = {}
    for each in due:
        limits[_key(each)] = max(each.limit, limits.get(_key(each), 0.0))
    return [supervise.Task(key, limits[key], each.command, each.call, each.environment) for key, each in tasks.items()]


def _measured(task: supervise.Task, ended: supervise.TaskEnd) -> _Measured:
    if task.command:
        return _Measured(verdict=of_command(ended), ended=ended)
    if why := supervise.failed(ended):
        return _Measured(trouble=why, ended=ended)
    try:
        return _Measured(json.loads(ended.out), ended=ended)
    except ValueError:
        return _Measured(trouble=f"its answer is not JSON: {ended.out[:100]!r}", ended=ended)


def of_command(ended: supervise.TaskEnd) -> Verdict:
    """Return the verdict of a command: exit code 1 with a message on standard output is a failure.

    A script that crashes prints no such message, so it is broken.
    """
    said = next((line.strip() for line in ended.out.splitlines() if line.strip()), "")[:200]
    if ended.trouble:
        return Verdict("broken", ended.trouble)
    if ended.code == PASSES:
        return Verdict("pass")
    if ended.code == FAILS and said:
        return Verdict("fail", said)
    last = ended.err.strip().splitlines()[-1][:200] if ended.err.strip() else said
    why = "exit code 1 without a message on standard output" if ended.code == FAILS else f"exit code {ended.code}"
    return Verdict("broken", f"{why}: {last}" if last else why)


def _verdict(check: Check, measured: _Measured, machines: Machines, memory: Memory) -> Verdict:
    if measured.verdict:
        return measured.verdict
    if measured.trouble:
        return Verdict("broken", measured.trouble)
    return judge(check, measured.readings, machines, memory.counters.get(check.name))


def _remembered(
    memory: Memory,
    due: Sequence[Check],
    verdicts: Mapping[str, Verdict],
    stuck: Mapping[str, tuple[int, str]],
    now: float,
) -> Memory:
    check_states, recoveries, ran = dict(memory.check_states), dict(memory.recoveries), dict(memory.ran)
    counters, last = dict(memory.counters), memory.last
    for check in due:
        name, verdict = check.name, verdicts[check.name]
        before, after = check_states.pop(name, None), None
        after = fold(check, before, verdict, now, recoveries.get(name))
        if after:
            check_states[name] = after
        elif before and before.is_bad:
            recoveries[name] = Recovery(now, before.relapses)
            last = ResolvedCheck(name, before.since, now, before.message)
        ran[name] = now
        if verdict.outcome != "broken":
            counters[name] = dict(verdict.counters)
    return replace(
        memory, check_states=check_states, recoveries=recoveries, ran=ran, counters=counters, stuck=stuck, last=last
    )


def clock() -> float:
    """Return the time of day, in seconds since 1970."""
    return time.time()
