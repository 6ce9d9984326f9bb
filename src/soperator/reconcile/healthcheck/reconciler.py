"""Reconciles HealthChecks: gathers, queries the runs that may have ended, decides, acts and reports.

What is remembered (`memory/object_memory`, `policy/healthcheck/status_codec`) is written before the status. Submitted jobs that it lacks, because the
operator died or the write failed, are found by their name: each process lists the whole queue once, and again after any failure.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from soperator.api.base import Problem
from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.policy import drain_reasons
from soperator.policy.healthcheck import multi_node, single_node
from soperator.policy.healthcheck import status_codec as books
from soperator.policy.healthcheck.job_result import outcome
from soperator.policy.healthcheck.types import (
    Action,
    Cancel,
    CheckHistory,
    CheckPlan,
    RedrainNode,
    ResumeNode,
    Run,
    RunResult,
    Submit,
)
from soperator.policy.validation import healthcheck_problems
from soperator.reconcile import finalizers
from soperator.reconcile.cache.decode import read_healthcheck
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.context import Operator
from soperator.reconcile.healthcheck.context import CheckContext, stand, with_fresh
from soperator.reconcile.healthcheck.finalize import withdraw
from soperator.reconcile.memory import object_memory
from soperator.render.parts.model import HealthCheck
from soperator.runtime.cache.store import Key
from soperator.runtime.controller import PassOutcome
from soperator.runtime.events import EventNote, Regarding
from soperator.runtime.status import ReportedCondition
from soperator.slurm import check_job
from soperator.slurm.hostlist import expand
from soperator.slurm.job import CheckJob
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmError

#: Checks whose memory has every job, since when the others lack one, and when a deletion was observed first (by the event loop's clock).
_LEARNED: Slot[str, bool] = per_object("checks whose jobs are all known")
_WANTED: Slot[str, float] = per_object("time from which jobs of a check are searched")
_ENDING: Slot[str, float] = per_object("since when a check is deleted")
_AT_ONCE = 16
#: Seconds: between two queries of a job whose node looks free, and at most between two queries of any job.
_OFTEN, _SELDOM = 1.5, 120.0
#: Seconds until the next look: while a node is open for a test, and while nothing is known.
_SOON, _LATER = 1.0, 5.0
_NAMED = 3


@dataclass(frozen=True)
class HealthCheckControl:
    """Runs one check on the nodes of its cluster."""

    operator: Operator
    asked: dict[int, float] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> PassOutcome:
        """Reconcile one HealthCheck; return the result, and the seconds until the next pass."""
        obj = self.operator.stores.healthchecks.get(*key)
        if obj is None:
            return PassOutcome("it is gone", is_gone=True)
        if finalizers.is_ending(obj):
            return await self._end(obj)
        await object_memory.recall(self.operator, kinds.HEALTHCHECK, obj)
        check, problems = self._read(obj)
        if check is None or problems:
            said = "; ".join(map(str, problems))
            await self._write_why(obj, ReportedCondition("Ready", "False", "InvalidSpec", said), said)
            return PassOutcome(said)
        ground, why = await stand(self.operator, check)
        if ground is None:
            await self._write_why(obj, ReportedCondition("Ready", "False", "Waiting", why), why)
            return PassOutcome(why, _LATER)
        return await self._pass(obj, ground)

    async def _end(self, obj: Custom) -> PassOutcome:
        """Reconcile a check that is being deleted; its status shows what it waits for."""
        outcome = await withdraw(
            self.operator, obj, _clock() - self.operator.memory(_ENDING).setdefault(obj.metadata.uid, _clock())
        )
        if outcome.requeue_after is not None:
            await self._write_why(
                obj, ReportedCondition("Ready", "False", "Deleting", outcome.message), outcome.message
            )
        return outcome

    async def report_error(self, key: Key, error: Exception) -> None:
        """Report an error that stopped a pass; the history stays unchanged."""
        if obj := self.operator.stores.healthchecks.get(*key):
            self.operator.memory(_LEARNED).pop(obj.metadata.uid, None)
            await self.operator.tell_error(kinds.HEALTHCHECK, obj, error)

    def _read(self, obj: Custom) -> tuple[HealthCheck | None, Sequence[Problem]]:
        read = read_healthcheck(obj)
        if isinstance(read, list):
            return None, read
        return read, healthcheck_problems(read.name, read.spec, self.operator.namespaces.view(read.namespace).world)

    async def _pass(self, obj: Custom, ground: CheckContext) -> PassOutcome:
        """Reconcile a check that may run. The order of the steps makes it safe to end the operator between any two of them:

        1. The finalizer is added before the first job, so that a deletion always finds and ends the jobs.
        2. The last written history is read. Where it may lack a job (`learned`), the jobs of this check are found by their name.
        3. Nodes and jobs are queried after that, so that decisions use answers that are newer than the history.
        4. Results are added to the history before the decision: a node that was opened for a test is drained again first (`closes`).
        5. From the first action on, the history may lag behind Slurm: `learned` is cleared before it, and set again only after that is written.
        6. Jobs are ended and nodes resumed or drained before new jobs are submitted, so that no limit is exceeded in between. The node of a retest is
           still drained when its job is submitted; a later pass resumes it, when Slurm shows the job as pending.
        7. The history is written next, and the status last. Events may be sent twice, and no decision depends on them.
        """
        await finalizers.hold(self.operator, kinds.HEALTHCHECK, obj)
        wish, now, uid = ground.wish, self.operator.wall(), obj.metadata.uid
        before = books.read(wish.name, object_memory.known(self.operator, kinds.HEALTHCHECK, obj), wish.then)
        book = single_node.begin(before, wish, ground.places, now)
        try:
            if uid not in self.operator.memory(_LEARNED):
                since = self.operator.memory(_WANTED).setdefault(uid, _clock())
                book = _learn(book, await ground.client.runs(check_job.job_name(wish.name), since), uid)
                self.operator.memory(_WANTED).pop(uid, None)
            ground = await with_fresh(ground, book)
            ended, waits = await self._fetch_jobs(ground, book)
            nodes = {each.name: each.node for each in ground.places if each.node}
            policy = multi_node if wish.shared else single_node
            folded, closes = policy.fold(book, wish, ended, nodes)
            folded = multi_node.advance(folded, wish, ground.places, now)
            plan = policy.decide(folded, wish, ground.places, now, waits)
            self.operator.memory(_LEARNED).pop(uid, None)
            failed = await self._act(
                ground, [*closes, *(each for each in plan.actions if not isinstance(each, Submit))]
            )
            begun, refused = await self._submit(
                ground, [each for each in plan.actions if isinstance(each, Submit)], now
            )
        except SlurmError as error:
            await self._write_why(obj, ReportedCondition("Ready", "False", "SlurmRefused", str(error)), str(error))
            return PassOutcome(str(error), _LATER)
        after = replace(folded, runs=(*folded.runs, *begun))
        self._events(obj, before, after)
        again = await self._write(
            obj, ground, before, after, replace(plan, said="; ".join(filter(None, (failed, refused, plan.said))))
        )
        if not refused:
            self.operator.memory(_LEARNED)[uid] = True
        is_open = closes or any(each.retest for each in after.runs)
        moments = [plan.again, again, _SOON if is_open else None, _LATER if failed or refused else None]
        return PassOutcome(
            plan.said or "nothing is due", min((each for each in moments if each is not None), default=None)
        )

    async def _fetch_jobs(self, ground: CheckContext, book: CheckHistory) -> tuple[list[RunResult], frozenset[int]]:
        """Return the runs that have ended, and the jobs that are pending. A job is queried when the state of its node suggests that it has ended."""
        nodes, now = {each.name: each.node for each in ground.places}, _clock()
        asked = [each for each in book.runs if self._may_be_over(each, [nodes.get(name) for name in each.nodes], now)]
        for each in asked:
            self.asked[each.job] = now
        for gone in [each for each, at in self.asked.items() if now - at > 2 * _SELDOM]:
            del self.asked[gone]
        ended: list[RunResult] = []
        waits: set[int] = set()
        for start in range(0, len(asked), _AT_ONCE):
            part = asked[start : start + _AT_ONCE]
            for run, job in zip(
                part, await asyncio.gather(*(ground.client.run(each.job) for each in part)), strict=True
            ):
                if job is None or job.name != check_job.job_name(ground.wish.name) or job.user != 0:
                    ended.append(outcome(run, None, ground.minutes))
                elif job.is_over:
                    ended.append(outcome(run, job, ground.minutes, ground.judge(book)))
                elif job.is_waiting:
                    waits.add(run.job)
        return ended, frozenset(waits)

    def _may_be_over(self, run: Run, nodes: Iterable[SlurmNode | None], now: float) -> bool:
        since = now - self.asked.get(run.job, float("-inf"))
        is_busy = all(each is not None and each.is_busy for each in nodes)
        return since >= (_SELDOM if is_busy and not run.retest else _OFTEN)

    async def _act(self, ground: CheckContext, actions: Iterable[Action]) -> str:
        """Carry out the actions except submissions; return the first refusal. A node that a person has drained since the last query stays drained."""
        refusals: list[str] = []
        for each in actions:
            try:
                match each:
                    case Cancel(run):
                        await ground.client.cancel(run.job)
                    case ResumeNode(node):
                        found = (await ground.client.only([node])).get(node)
                        if found and found.is_drained and drain_reasons.is_of_check(found):
                            await ground.client.resume(node)
                    case RedrainNode(node, why):
                        found = (await ground.client.only([node])).get(node)
                        if found and not (
                            found.is_draining or found.is_down
                        ):  # otherwise it is a drain of a person, or of Slurm
                            await ground.client.drain(node, why)
            except SlurmError as error:
                refusals.append(str(error))
        return refusals[0] if refusals else ""

    async def _submit(self, ground: CheckContext, wanted: Sequence[Submit], now: float) -> tuple[list[Run], str]:
        """Submit the jobs; return the runs that began, and the first refusal, after which no further job is submitted."""
        begun: list[Run] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            answers = await asyncio.gather(*(_post(ground, each) for each in part), return_exceptions=True)
            for each, answer in zip(part, answers, strict=True):
                if isinstance(answer, int):
                    begun.append(Run(answer, each.node, now, each.retest, each.others))
                    self.asked[answer] = _clock()
            if refused := next((each for each in answers if isinstance(each, SlurmError)), None):
                return begun, str(refused)
            if failed := next((each for each in answers if isinstance(each, BaseException)), None):
                raise failed
        return begun, ""

    async def _write(
        self, obj: Custom, ground: CheckContext, before: CheckHistory, after: CheckHistory, plan: CheckPlan
    ) -> float | None:
        """Write the status: at once if the history has changed; otherwise later, in the returned number of seconds."""
        bad = [name for name, each in after.cases.items() if each.standing.is_bad]
        passed = len(after.ran.keys() - after.cases.keys())
        last = max(after.ran.values(), default=0.0)
        written, said = books.write(after), _summary(after)
        fields = {
            **written,
            **({"lastRunTime": books.time_text(last)} if last else {}),
            "nodes": len(ground.places),
            "passingNodes": passed,
            "failingNodes": len(bad),
            "summary": f"{passed}/{len(ground.places)}",
            "activeRuns": len(after.runs),
            "why": "; ".join(filter(None, (said, plan.said))),
        }
        conditions = [
            ReportedCondition("Ready", "True", "Suspended" if ground.wish.suspended else "Scheduled", plan.said),
            ReportedCondition("Passing", "False" if said else "True", _reason(after), said),
        ]
        await object_memory.remember(self.operator, kinds.HEALTHCHECK, obj, written)
        if books.write(before) != written:
            await self.operator.write_status_at_once(kinds.HEALTHCHECK, obj, fields, conditions)
            self.operator.pace.wrote(obj.metadata.uid)
            return None
        return await self.operator.write_status(kinds.HEALTHCHECK, obj, fields, conditions)

    async def _write_why(self, obj: Custom, condition: ReportedCondition, why: str) -> None:
        """Write to the status why the pass cannot continue; the history there stays unchanged."""
        kept = {
            key: value
            for key, value in self.operator.status.mine(obj).items()
            if key not in ("conditions", "why", "observedGeneration")
        }
        kept |= object_memory.known(self.operator, kinds.HEALTHCHECK, obj)
        await self.operator.write_status(kinds.HEALTHCHECK, obj, {**kept, "why": why}, [condition])

    def _events(self, obj: Custom, before: CheckHistory, after: CheckHistory) -> None:
        """Emit Events: for a node that fails, and for one that passes again."""
        where = Regarding(kinds.HEALTHCHECK, obj.metadata)
        for name, case in after.cases.items():
            former = before.cases.get(name)
            if case.standing.state == "failing" and (former is None or former.standing.state == "suspect"):
                note = f"{name}: {case.standing.says} (job {case.job})"
                self.operator.recorder.emit(where, EventNote("Warning", "Failing", note, "Check"))
        for past in after.ended:
            if past not in before.ended:
                note = f"{past.node} passes again (job {past.job}); its last failure was: {past.says}"
                self.operator.recorder.emit(where, EventNote("Normal", "Passing", note, "Check"))


def _learn(book: CheckHistory, jobs: Iterable[CheckJob], owner: str) -> CheckHistory:
    """Return the history, extended by jobs of this object that it lacks. Slurm's job numbers only grow."""
    found = [
        Run(each.number, names[0], each.submitted, each.partition == check_job.RETEST, tuple(names[1:]))
        for each in jobs
        if check_job.is_of(each, owner) and each.number > book.top and (names := _names(each.node))
    ]
    return replace(book, runs=(*book.runs, *found))


def _names(nodes: str) -> list[str]:
    """Return the node names of a host list; empty if the text is not a host list."""
    try:
        return expand(nodes)
    except ValueError:
        return []


async def _post(ground: CheckContext, each: Submit) -> int:
    gpus = ground.gpus.get(each.node.rpartition("-")[0], 0)
    body = check_job.submission(
        ground.check.uid, ground.check.name, each.nodes, ground.script(each.node), ground.minutes, each.retest, gpus
    )
    return await ground.client.submit(body)


def _reason(book: CheckHistory) -> str:
    return "NodesFail" if book.cases else "SlowTogether" if book.notes else "NodesPass"


def _summary(book: CheckHistory) -> str:
    """Return the nodes that do not pass, as one sentence per state."""
    parts = []
    for state in ("failing", "recovering", "suspect", "broken"):
        found = sorted(name for name, each in book.cases.items() if each.standing.state == state)
        if found:
            said = [f"{name} ({book.cases[name].standing.says})" for name in found[:_NAMED]]
            more = [f"and {len(found) - _NAMED} more"] if found[_NAMED:] else []
            parts.append(f"{len(found)} {state}: {', '.join([*said, *more])}")
    return "; ".join([*parts, *(each.says for each in book.notes[-_NAMED:])])


def _clock() -> float:
    return asyncio.get_running_loop().time()
