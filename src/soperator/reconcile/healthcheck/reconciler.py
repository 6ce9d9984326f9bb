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
from soperator.policy.completed_requests import is_repeated, repeated_message
from soperator.policy.healthcheck import multi_node, single_node
from soperator.policy.healthcheck import status_codec as status_codec
from soperator.policy.healthcheck.invariants import violation
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
from soperator.reconcile.healthcheck.context import CheckContext, gather, with_fresh
from soperator.reconcile.healthcheck.finalize import finalize
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
_ENDING: Slot[str, float] = per_object("time from which a check is being deleted")
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
        context, why = await gather(self.operator, check)
        if context is None:
            await self._write_why(obj, ReportedCondition("Ready", "False", "Waiting", why), why)
            return PassOutcome(why, _LATER)
        return await self._pass(obj, context)

    async def _end(self, obj: Custom) -> PassOutcome:
        """Reconcile a check that is being deleted; its status shows what it waits for."""
        outcome = await finalize(
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
            await self.operator.write_error_status(kinds.HEALTHCHECK, obj, error)

    def _read(self, obj: Custom) -> tuple[HealthCheck | None, Sequence[Problem]]:
        read = read_healthcheck(obj)
        if isinstance(read, list):
            return None, read
        return read, healthcheck_problems(read.name, read.spec, self.operator.namespaces.view(read.namespace).world)

    async def _pass(self, obj: Custom, context: CheckContext) -> PassOutcome:
        """Reconcile a check that may run. The order of the steps makes it safe to end the operator between any two of them:

        1. The finalizer is added before the first job, so that a deletion always finds and ends the jobs.
        2. The last written history is read. Where it may lack a job (`learned`), the jobs of this check are found by their name.
        3. Nodes and jobs are queried after that, so that decisions use answers that are newer than the history.
        4. Results are added to the history before the decision: a node that was opened for a test is drained again first (`closes`).
        5. The invariants of `policy/healthcheck/invariants` are asserted before the first action. A decision that breaks one has no effect in Slurm
           (a node that was opened for a test is still drained), the history stays as it was written last, and the condition names the invariant.
        6. From the first action on, the history may lag behind Slurm: `learned` is cleared before it, and set again only after that is written.
        7. Jobs are ended and nodes resumed or drained before new jobs are submitted, so that no limit is exceeded in between. The node of a retest is
           still drained when its job is submitted; a later pass resumes it, when Slurm shows the job as pending.
        8. The history is written next, and the status last. Events may be sent twice, and no decision depends on them.
        """
        await finalizers.add_finalizer(self.operator, kinds.HEALTHCHECK, obj)
        settings, now, uid = context.settings, self.operator.wall(), obj.metadata.uid
        before = status_codec.read(
            settings.name, object_memory.known(self.operator, kinds.HEALTHCHECK, obj), settings.on_failure
        )
        history = single_node.begin(before, settings, context.targets, now)
        try:
            if uid not in self.operator.memory(_LEARNED):
                since = self.operator.memory(_WANTED).setdefault(uid, _clock())
                history = _learn(history, await context.client.runs(check_job.job_name(settings.name), since), uid)
                self.operator.memory(_WANTED).pop(uid, None)
            context = await with_fresh(context, history)
            ended, waits = await self._fetch_jobs(context, history)
            nodes = {each.name: each.node for each in context.targets if each.node}
            policy = multi_node if settings.shared else single_node
            folded, closes = policy.fold(history, settings, ended, nodes)
            folded = multi_node.advance(folded, settings, context.targets, now)
            plan = policy.decide(folded, settings, context.targets, now, waits)
            if broken := violation(folded, settings, context.targets, plan.actions):
                await self._act(context, closes)  # a bad node does not stay in service
                return await self._fail_closed(obj, broken)
            self.operator.memory(_LEARNED).pop(uid, None)
            failed = await self._act(
                context, [*closes, *(each for each in plan.actions if not isinstance(each, Submit))]
            )
            begun, refused = await self._submit(
                context, [each for each in plan.actions if isinstance(each, Submit)], now
            )
        except SlurmError as error:
            await self._write_why(obj, ReportedCondition("Ready", "False", "SlurmRefused", str(error)), str(error))
            return PassOutcome(str(error), _LATER)
        after = replace(folded, runs=(*folded.runs, *begun))
        self._events(obj, before, after)
        requeue_after = await self._write(
            obj, context, before, after, replace(plan, message="; ".join(filter(None, (failed, refused, plan.message))))
        )
        if not refused:
            self.operator.memory(_LEARNED)[uid] = True
        is_open = closes or any(each.retest for each in after.runs)
        moments = [plan.requeue_after, requeue_after, _SOON if is_open else None, _LATER if failed or refused else None]
        return PassOutcome(
            plan.message or "nothing is due", min((each for each in moments if each is not None), default=None)
        )

    async def _fail_closed(self, obj: Custom, broken: str) -> PassOutcome:
        """Report a decision that breaks an invariant, and do nothing else. The next pass decides from a new observation."""
        message = (
            f"a decision would break a rule of deep checks, so nothing was done: {broken}; report this as a defect"
        )
        self.operator.recorder.emit(
            Regarding(kinds.HEALTHCHECK, obj.metadata), EventNote("Warning", "InvariantBroken", message, "Check")
        )
        await self._write_why(obj, ReportedCondition("Ready", "False", "InvariantBroken", message), message)
        return PassOutcome(message, _LATER)

    async def _fetch_jobs(self, context: CheckContext, history: CheckHistory) -> tuple[list[RunResult], frozenset[int]]:
        """Return the runs that have ended, and the jobs that are pending. A job is queried when the state of its node suggests that it has ended."""
        nodes, now = {each.name: each.node for each in context.targets}, _clock()
        asked = [
            each for each in history.runs if self._may_be_over(each, [nodes.get(name) for name in each.nodes], now)
        ]
        for each in asked:
            self.asked[each.job] = now
        for gone in [each for each, at in self.asked.items() if now - at > 2 * _SELDOM]:
            del self.asked[gone]
        ended: list[RunResult] = []
        waits: set[int] = set()
        for start in range(0, len(asked), _AT_ONCE):
            part = asked[start : start + _AT_ONCE]
            for run, job in zip(
                part, await asyncio.gather(*(context.client.run(each.job) for each in part)), strict=True
            ):
                if job is None or job.name != check_job.job_name(context.settings.name) or job.user != 0:
                    ended.append(outcome(run, None, context.minutes))
                elif job.is_over:
                    ended.append(outcome(run, job, context.minutes, context.judge(history)))
                elif job.is_waiting:
                    waits.add(run.job)
        return ended, frozenset(waits)

    def _may_be_over(self, run: Run, nodes: Iterable[SlurmNode | None], now: float) -> bool:
        since = now - self.asked.get(run.job, float("-inf"))
        is_busy = all(each is not None and each.is_busy for each in nodes)
        return since >= (_SELDOM if is_busy and not run.retest else _OFTEN)

    async def _act(self, context: CheckContext, actions: Iterable[Action]) -> str:
        """Carry out the actions except submissions; return the first refusal. A node that a person has drained since the last query stays drained."""
        refusals: list[str] = []
        for each in actions:
            try:
                match each:
                    case Cancel(run):
                        await context.client.cancel(run.job)
                    case ResumeNode(node):
                        found = (await context.client.only([node])).get(node)
                        if found and found.is_drained and drain_reasons.is_of_check(found):
                            await context.client.resume(node)
                    case RedrainNode(node, why):
                        found = (await context.client.only([node])).get(node)
                        if found and not (
                            found.is_draining or found.is_down
                        ):  # otherwise it is a drain of a person, or of Slurm
                            await context.client.drain(node, why)
            except SlurmError as error:
                refusals.append(str(error))
        return refusals[0] if refusals else ""

    async def _submit(self, context: CheckContext, wanted: Sequence[Submit], now: float) -> tuple[list[Run], str]:
        """Submit the jobs; return the runs that began, and the first refusal, after which no further job is submitted."""
        begun: list[Run] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            answers = await asyncio.gather(*(_post(context, each) for each in part), return_exceptions=True)
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
        self, obj: Custom, context: CheckContext, before: CheckHistory, after: CheckHistory, plan: CheckPlan
    ) -> float | None:
        """Write the status: at once if the history has changed; otherwise later, in the returned number of seconds."""
        bad = [name for name, each in after.failures.items() if each.check_state.is_bad]
        passed = len(after.last_runs.keys() - after.failures.keys())
        last = max(after.last_runs.values(), default=0.0)
        written, said = status_codec.write(after), _summary(after)
        fields = {
            **written,
            **({"lastRunTime": status_codec.time_text(last)} if last else {}),
            "nodes": len(context.targets),
            "passingNodes": passed,
            "failingNodes": len(bad),
            "summary": f"{passed}/{len(context.targets)}",
            "activeRuns": len(after.runs),
            "why": "; ".join(filter(None, (said, plan.message))),
        }
        conditions = [
            ReportedCondition(
                "Ready",
                "True",
                "Suspended" if context.settings.suspended else "Scheduled",
                "; ".join(filter(None, (_repeated(context.settings.request, after.completed_requests), plan.message))),
            ),
            ReportedCondition("Passing", "False" if said else "True", _reason(after), said),
        ]
        await object_memory.remember(self.operator, kinds.HEALTHCHECK, obj, written)
        if status_codec.write(before) != written:
            await self.operator.write_status_at_once(kinds.HEALTHCHECK, obj, fields, conditions)
            self.operator.status_throttle.wrote(obj.metadata.uid)
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
        for name, failure in after.failures.items():
            former = before.failures.get(name)
            if failure.check_state.state == "failing" and (former is None or former.check_state.state == "suspect"):
                note = f"{name}: {failure.check_state.message} (job {failure.job})"
                self.operator.recorder.emit(where, EventNote("Warning", "Failing", note, "Check"))
        for past in after.ended:
            if past not in before.ended:
                note = f"{past.node} passes again (job {past.job}); its last failure was: {past.message}"
                self.operator.recorder.emit(where, EventNote("Normal", "Passing", note, "Check"))


def _learn(history: CheckHistory, jobs: Iterable[CheckJob], owner: str) -> CheckHistory:
    """Return the history, extended by jobs of this object that it lacks. Slurm's job numbers only grow."""
    found = [
        Run(each.number, names[0], each.submitted, each.partition == check_job.RETEST, tuple(names[1:]))
        for each in jobs
        if check_job.is_of(each, owner) and each.number > history.highest_job and (names := _names(each.node))
    ]
    return replace(history, runs=(*history.runs, *found))


def _names(nodes: str) -> list[str]:
    """Return the node names of a host list; empty if the text is not a host list."""
    try:
        return expand(nodes)
    except ValueError:
        return []


async def _post(context: CheckContext, each: Submit) -> int:
    gpus = context.gpus.get(each.node.rpartition("-")[0], 0)
    body = check_job.submission(
        context.check.uid, context.check.name, each.nodes, context.script(each.node), context.minutes, each.retest, gpus
    )
    return await context.client.submit(body)


def _repeated(request: str, completed: Sequence[str]) -> str:
    """Return that the request was completed before; empty if it was not."""
    return repeated_message("spec.when.runRequest", request) if is_repeated(request, completed) else ""


def _reason(history: CheckHistory) -> str:
    return "NodesFail" if history.failures else "SlowTogether" if history.findings else "NodesPass"


def _summary(history: CheckHistory) -> str:
    """Return the nodes that do not pass, as one sentence per state."""
    parts = []
    for state in ("failing", "recovering", "suspect", "broken"):
        found = sorted(name for name, each in history.failures.items() if each.check_state.state == state)
        if found:
            said = [f"{name} ({history.failures[name].check_state.message})" for name in found[:_NAMED]]
            more = [f"and {len(found) - _NAMED} more"] if found[_NAMED:] else []
            parts.append(f"{len(found)} {state}: {', '.join([*said, *more])}")
    return "; ".join([*parts, *(each.message for each in history.findings[-_NAMED:])])


def _clock() -> float:
    return asyncio.get_running_loop().time()
