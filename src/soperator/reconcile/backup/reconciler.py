"""Reconciles SlurmBackups: gathers, decides whether a backup is due, creates its Job, and reports the result.

The operator stores no state for it: a Job has the start and the request of its attempt. When the status has them too, the Job of a
successful backup is deleted. If both are lost, one more backup is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from soperator.api.base import Problem
from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import AlreadyExists, NotFound
from soperator.kube.objects import Job
from soperator.kube.views import Custom, Meta, ObjectMeta
from soperator.policy.backup.schedule import Attempt, BackupSnapshot, BackupStep, decide
from soperator.policy.completed_requests import is_repeated, repeated_message, with_completed
from soperator.policy.validation import backup_problems
from soperator.reconcile import pod_status
from soperator.reconcile.backup.result import attempt_of, failure, pods_of, report
from soperator.reconcile.cache.decode import read_backup, read_cluster
from soperator.reconcile.cache.informers import CLUSTER
from soperator.reconcile.context import Operator
from soperator.render.backup import job as render
from soperator.render.backup import repository
from soperator.render.backup.objects import MOST, SavedObject, objects_text
from soperator.render.parts import labels, names
from soperator.render.parts.model import Backup, Cluster
from soperator.runtime.cache.store import Key
from soperator.runtime.controller import PassOutcome, PermanentError, TransientError
from soperator.runtime.status import ReportedCondition, timestamp

#: Seconds until the next look: after a change, while a backup runs or its cluster is not ready, and at most.
_SOON, _LATER, _LONGEST = 0.5, 5.0, 3600.0
#: Seconds for which the report of a finished pod is waited for: the cache of pods may trail that of Jobs.
_REPORT = 60.0


@dataclass(frozen=True)
class BackupContext:
    """The inputs of a pass: the SlurmBackup, its cluster, and the Job of the last attempt."""

    obj: Custom
    backup: Backup
    cluster: Cluster
    job: Job | None
    attempt: Attempt


@dataclass(frozen=True)
class BackupControl:
    """Makes backups of one cluster."""

    operator: Operator

    async def reconcile(self, key: Key) -> PassOutcome:
        """Reconcile one SlurmBackup; return the result, and the seconds until the next pass."""
        obj = self.operator.stores.backups.get(*key)
        if obj is None:
            return PassOutcome("it is gone", is_gone=True)
        if obj.metadata.deletion_timestamp is not None:
            return PassOutcome("it is being deleted")
        backup, problems = self._read(obj)
        if backup is not None and (left := self._left(backup)):
            await self._forget(left)
            return PassOutcome("its cluster is gone, and the Job of the last backup is deleted", _SOON)
        if backup is None or problems:
            said = "; ".join(map(str, problems))
            return await self._report(obj, {}, ReportedCondition("Ready", "False", "InvalidSpec", said), _LATER)
        cluster = self._cluster(backup)
        if cluster is None:
            said = f"SlurmCluster {backup.spec.cluster} is refused: see its status"
            return await self._report(obj, {}, ReportedCondition("Ready", "False", "Waiting", said), _LATER)
        job = self._job(backup)
        return await self._pass(BackupContext(obj, backup, cluster, job, attempt_of(job)))

    async def report_error(self, key: Key, error: Exception) -> None:
        """Report the cause that stopped a pass, in the conditions of the object."""
        if obj := self.operator.stores.backups.get(*key):
            await self.operator.write_error_status(kinds.SLURMBACKUP, obj, error)

    async def _pass(self, context: BackupContext) -> PassOutcome:
        now, spec, known = self.operator.wall(), context.backup.spec, self.operator.status.mine(context.obj)
        step = decide(
            BackupSnapshot(
                now,
                spec.schedule,
                spec.run_request,
                spec.suspend,
                str(known.get("request", "")),
                float(known.get("attempted", 0)),
                _seconds(known.get("lastBackup", {}).get("time", "")),
                context.attempt,
                tuple(known.get("completedRequests", ())),
            )
        )
        fields, is_complete = self._fields(context, step, now)
        if not is_complete:
            return PassOutcome("the report of the backup has not arrived yet", _SOON)
        if (
            context.job is not None
            and context.attempt.phase == "succeeded"
            and known.get("lastBackup") == fields["lastBackup"]
        ):
            # Its pod would keep the claims from being deleted, although it has ended.
            await self._forget(context.job)
            return PassOutcome("the result of the backup is in the status, and its Job is deleted", _SOON)
        if not step.begin:
            return await self._report(
                context.obj, fields, self._condition(context, fields), self._wait(context, step, now)
            )
        pods = self.operator.stores.role_pods(context.cluster.key, "controller")
        if not any(map(pod_status.is_ready, pods)):
            said = f"a backup is due, and no slurmctld of SlurmCluster {context.cluster.name} is ready"
            return await self._report(context.obj, fields, ReportedCondition("Ready", "False", "Waiting", said), _LATER)
        if context.job is not None:
            # The status has its result; it goes before the next one is created, because both have one name.
            await self._report(context.obj, fields, self._condition(context, fields), None)
            await self._forget(context.job)
            return PassOutcome("the Job of the former backup is deleted", _SOON)
        await self._begin(context, step, now)
        return PassOutcome(f"a backup begins{f' for the request {step.request}' if step.request else ''}", _SOON)

    def _job(self, backup: Backup) -> Job | None:
        found = self.operator.stores.children[kinds.JOB].get(
            backup.namespace, names.backup(backup.spec.cluster, backup.name)
        )
        return found if found and _is_of(found.metadata, backup) else None

    def _left(self, backup: Backup) -> Job | None:
        """Return the Job that has ended of a cluster that is gone or goes: its pod would keep the claims from being deleted."""
        cluster = self.operator.stores.clusters.get(backup.namespace, backup.spec.cluster)
        if cluster is not None and cluster.metadata.deletion_timestamp is None:
            return None
        job = self._job(backup)
        return job if attempt_of(job).phase in ("succeeded", "failed") else None

    async def _forget(self, job: Job) -> None:
        meta = job.metadata
        await self.operator.api.delete(kinds.JOB, meta.namespace, meta.name, Deletion(uid=meta.uid))

    async def _begin(self, context: BackupContext, step: BackupStep, now: float) -> None:
        text = objects_text(self._objects(context.cluster))
        if len(text.encode()) > MOST:
            raise PermanentError(
                f"the objects of SlurmCluster {context.cluster.name} are larger than a ConfigMap may be, so there is no backup of them"
            )
        api, cluster = self.operator.api, self.operator.stores.clusters.get(*context.cluster.key)
        await self._refuse_foreign(kinds.CONFIGMAP, context)
        await api.apply(kinds.CONFIGMAP, render.render_objects(context.backup, context.cluster, text))
        slurm = str(self.operator.status.mine(cluster).get("slurm", "")) if cluster else ""
        inputs = render.AttemptInputs(step.request, slurm, self._repository_id(context))
        body = render.render_job(context.backup, context.cluster, self.operator.defaults, inputs)
        body["metadata"].setdefault("annotations", {})[labels.SINCE] = str(int(now))
        try:
            await api.create(kinds.JOB, body)
        except AlreadyExists:  # the cache does not show it yet, or it is another's
            await self._refuse_foreign(kinds.JOB, context)

    def _repository_id(self, context: BackupContext) -> str:
        """Return the id of the repository that has the last backup; empty if there is none, or if the spec names another place since then."""
        last = self.operator.status.mine(context.obj).get("lastBackup", {})
        here = repository.place(context.backup.spec.repository)
        return str(last.get("repositoryId", "")) if last.get("repository") == here else ""

    async def _refuse_foreign(self, kind: kinds.Kind, context: BackupContext) -> None:
        """Raise an error if an object of the backup's name is not this SlurmBackup's: names of two backups may add up to one."""
        backup = context.backup
        name = names.backup(context.cluster.name, backup.name)
        try:
            meta = (await self.operator.api.get(kind, Meta, backup.namespace, name)).metadata
        except NotFound:
            return
        if any(
            each.kind == "SlurmBackup" and each.name == backup.name and each.uid != backup.uid
            for each in meta.owner_references
        ):
            raise TransientError(f"{kind} {name} of a former SlurmBackup {backup.name} is still being deleted")
        if not _is_of(meta, backup):
            raise PermanentError(
                f"{kind} {name} exists and is not this SlurmBackup's, so it stays unchanged: delete it, or give the SlurmBackup another name"
            )

    def _read(self, obj: Custom) -> tuple[Backup | None, list[Problem]]:
        backup = read_backup(obj)
        if not isinstance(backup, Backup):
            return None, backup
        world = self.operator.namespaces.view(obj.metadata.namespace).world
        return backup, backup_problems(backup.name, backup.spec, world)

    def _cluster(self, backup: Backup) -> Cluster | None:
        found = self.operator.stores.clusters.get(backup.namespace, backup.spec.cluster)
        cluster = read_cluster(found) if found else None
        return cluster if isinstance(cluster, Cluster) else None

    def _objects(self, cluster: Cluster) -> list[SavedObject]:
        stores, key = self.operator.stores, cluster.key
        found: list[tuple[kinds.Kind, Custom]] = [
            (kinds.SLURMCLUSTER, each) for each in (stores.clusters.get(*key),) if each
        ]
        found += [(kinds.NODESET, each) for each in stores.nodesets_of(key)]
        found += [(kinds.HEALTHCHECK, each) for each in stores.healthchecks_of(key)]
        found += [(kinds.SLURMACCOUNT, each) for each in stores.accounts.by(CLUSTER, key)]
        found += [(kinds.SLURMQOS, each) for each in stores.qos.by(CLUSTER, key)]
        found += [(kinds.SLURMBACKUP, each) for each in stores.backups.by(CLUSTER, key)]
        return [
            SavedObject(
                kind.kind, each.metadata.name, each.metadata.labels, each.metadata.annotations, bytes(each.spec)
            )
            for kind, each in found
        ]

    def _fields(self, context: BackupContext, step: BackupStep, now: float) -> tuple[dict[str, Any], bool]:
        """Return the status fields without `why`, and whether they are complete: False until the report of a finished pod is available."""
        known, attempt = self.operator.status.mine(context.obj), context.attempt
        fields = _kept(known)
        fields["next"] = _time(step.next) if step.next != float("inf") else ""
        if attempt.phase == "none":
            return fields, True
        fields["attempted"] = max(int(attempt.began), int(fields.get("attempted", 0)))
        if attempt.phase != "running" and attempt.request:
            former = with_completed(known.get("completedRequests", ()), str(known.get("request", "")))
            fields["request"] = attempt.request
            fields["completedRequests"] = with_completed(former, attempt.request)
        began = _time(attempt.began)
        if attempt.phase == "succeeded" and known.get("lastBackup", {}).get("time") != began:
            said = report(self._pods(context))
            if said is None and now < attempt.began + render.LONGEST and now - _ended(context.job) < _REPORT:
                return fields, False
            fields["lastBackup"] = {**(said or {}), "time": began}
        return fields, True

    def _pods(self, context: BackupContext) -> Any:
        return pods_of(context.job, self.operator.stores.role_pods(context.cluster.key, render.ROLE))

    def _condition(self, context: BackupContext, fields: dict[str, Any]) -> ReportedCondition:
        """Return the condition Ready. While a backup runs, it is the result of the previous attempt."""
        last, spec = fields.get("lastBackup", {}).get("time", ""), context.backup.spec
        known_status = self.operator.status.mine(context.obj)
        known = {each.get("type"): each for each in known_status.get("conditions", ())}
        if context.attempt.phase == "running":
            pods = self._pods(context)
            said = pod_status.trouble(pods[-1], self.operator.stores.nodes) if pods else ""
            is_good = bool(last) and known.get("Ready", {}).get("status") == "True"
            said = said and f"the backup that began at {_time(context.attempt.began)} is not done yet: {said}"
            return ReportedCondition(
                "Ready", "True" if is_good else "False", "BackingUp", said or "a backup is being made"
            )
        if context.attempt.phase == "failed" and context.job is not None:
            return ReportedCondition("Ready", "False", *failure(context.job, self._pods(context)))
        if spec.suspend:
            return ReportedCondition("Ready", "True", "Suspended", "no backups are made, because suspend is true")
        if last:
            message = _repeated(context.backup, known_status) or _without(context.cluster)
            return ReportedCondition("Ready", "True", "BackedUp", message)
        return ReportedCondition("Ready", "True", "OnRequest", "no backup was made yet: set runRequest or schedule")

    def _wait(self, context: BackupContext, step: BackupStep, now: float) -> float:
        if context.attempt.phase == "running":
            return _LATER
        return min(max(step.again - now, _SOON), _LONGEST)

    async def _report(
        self, obj: Custom, fields: dict[str, Any], condition: ReportedCondition, wait: float | None
    ) -> PassOutcome:
        known = self.operator.status.mine(obj)
        is_fault = condition.status != "True" or condition.reason == "BackingUp"
        why = condition.message if is_fault else ""
        again = await self.operator.write_status(
            kinds.SLURMBACKUP, obj, {**_kept(known), **fields, "why": why}, [condition]
        )
        return PassOutcome(
            why or "nothing is due", min((each for each in (again, wait) if each is not None), default=None)
        )


def _is_of(meta: ObjectMeta, backup: Backup) -> bool:
    return any(each.uid == backup.uid for each in meta.owner_references)


def _kept(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a status that stay until a backup changes them."""
    return {
        key: value
        for key, value in status.items()
        if key in ("lastBackup", "request", "completedRequests", "attempted", "next")
    }


def _repeated(backup: Backup, status: Mapping[str, Any]) -> str:
    """Return that the request was completed before; empty if it was not."""
    value = backup.spec.run_request
    is_former = is_repeated(value, status.get("completedRequests", ()))
    return repeated_message("spec.runRequest", value) if is_former else ""


def _without(cluster: Cluster) -> str:
    """Return which records are not part of the backups, with the remedy; empty if all are."""
    if cluster.spec.accounting is None or render.has_database(cluster):
        return ""
    return "the accounting records are not part of it, because the operator does not run their database: back that up by its own means"


def _ended(job: Job | None) -> float:
    """Return when a Job ended, in seconds since 1970; 0 if that is not known."""
    moments = [each.last_transition_time for each in job.status.conditions if each.type == "Complete"] if job else []
    return moments[0].timestamp() if moments and moments[0] else 0.0


def _seconds(text: str) -> float:
    """Return a time of the status in seconds since 1970; 0 for an empty one."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _time(seconds: float) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))
