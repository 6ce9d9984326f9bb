"""Reconciles SlurmClusters: gathers, renders, applies and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from soperator.api.base import Problem
from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.policy.cluster.conditions import (
    Availability,
    ClusterFacts,
    Role,
    judge,
)
from soperator.policy.cluster.images import Stage
from soperator.policy.cluster.jail_refill import JailStep
from soperator.policy.cluster.render_record import RenderRecord
from soperator.reconcile import (
    anchor,
    finalizers,
    inputs,
    render_record,
    repair,
)
from soperator.reconcile.cache.decode import read_cluster
from soperator.reconcile.cluster import (
    accounting,
    claims,
    images,
    jail,
    site_files,
    slurm_config,
    topology,
    user_rest_api,
    workload_changes,
)
from soperator.reconcile.context import Operator
from soperator.reconcile.io import volume_capacity
from soperator.reconcile.keys import key_files, key_rotation, key_versions
from soperator.reconcile.memory import cluster_memory, completed_requests
from soperator.reconcile.nodeset import unreadable
from soperator.render.jail import mount_points
from soperator.render.jail.populate_job import render_populate
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf
from soperator.runtime.apply import Owner
from soperator.runtime.cache.store import Key
from soperator.runtime.controller import PassOutcome, PermanentError, TransientError
from soperator.runtime.status import ReportedCondition

#: The kinds that a cluster's pass deletes when they are no longer rendered. Secrets, claims and the populate Job are never pruned.
PRUNED = (kinds.CONFIGMAP, kinds.SERVICE, kinds.STATEFULSET, kinds.DEPLOYMENT, kinds.PDB, kinds.NETWORKPOLICY)


@dataclass(frozen=True)
class Pass:
    """The findings and actions of a pass, up to the point where it stopped; for an unreadable spec only the problems."""

    problems: Sequence[Problem] = ()
    #: From which images it makes its objects.
    stage: Stage | None = None
    filling: jail.JailStatus = field(default_factory=lambda: jail.JailStatus(JailStep()))
    config: slurm_config.ConfigStatus = field(default_factory=slurm_config.ConfigStatus)
    secrets: key_files.KeyStatus = field(default_factory=key_files.KeyStatus)
    keys: key_rotation.KeyPassResult = field(default_factory=key_rotation.KeyPassResult)
    users: user_rest_api.UserRestStatus = field(default_factory=user_rest_api.UserRestStatus)
    #: Why the database cannot be had.
    missing: str = ""
    #: Whether the jail has every mount point.
    pointed: bool = False
    #: What Slurm refused.
    refused: str = ""
    #: The record of what it applied; None where it applied nothing.
    note: RenderRecord | None = None
    #: Messages about requests that were completed before.
    repeated: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterControl:
    """Reconciles the objects of one SlurmCluster with its spec."""

    operator: Operator

    async def reconcile(self, key: Key) -> PassOutcome:
        """Reconcile one SlurmCluster; return the result, and the seconds until the next pass."""
        obj = self.operator.stores.clusters.get(*key)
        if obj is None:
            self.operator.forget_cluster(key)
            if left := finalizers.workers_left(self.operator, key):
                await anchor.keep(self.operator, key)
                said = f"it no longer exists, but {left} of its workers do: create it again, and it adopts them"
                return PassOutcome(said, is_gone=True)
            cleared = await anchor.release_without_cluster(self.operator, key)
            return PassOutcome("it and its anchor no longer exist" if cleared else "it no longer exists", is_gone=True)
        if finalizers.is_ending(obj):
            return await self._end(obj)
        if finalizers.has_begun(self.operator, key):
            await self._hold(obj)
        read = read_cluster(obj)
        if isinstance(read, Cluster):
            await topology.fetch_found_nodes(self.operator, read, inputs.transaction(self.operator, read))
            await site_files.fetch(self.operator, read)
            read = inputs.sized(self.operator, read)
        if not isinstance(read, Cluster):
            return await self._status(obj, None, Pass(problems=read))
        read, repeated = completed_requests.without_repeated(self.operator, obj, read)
        stage = images.stage(self.operator, obj, read)
        read = images.with_images(read, stage.wanted)
        problems = self.operator.namespaces.view(key[0]).problems(read.name) or slurm_conf.too_large(read)
        read = replace(read, anchor="" if problems else await self._hold(obj))
        await images.try_out(self.operator, read, stage)
        held = render_record.configurations(self.operator, obj, read, stage.record)
        waits = unreadable.holds_configuration(self.operator, read)
        is_held = bool(waits) or site_files.holds_configuration(read)
        configured = await slurm_config.settle(self.operator, read, not problems and not is_held, held)
        configured = unreadable.with_hold(unreadable.with_hold(configured, waits), *self._files_trouble(read))
        done = Pass(
            problems=problems,
            stage=stage,
            filling=jail.jail_status(self.operator, obj, read),
            config=configured,
            keys=key_rotation.KeyPassResult(obj.status.get("keys", "")),
            repeated=repeated,
        )
        if not problems or cluster_memory.of_cluster(self.operator, obj).get(
            "keyDigests"
        ):  # daemons that run have keys, whatever became of their spec
            done = replace(done, secrets=await key_files.settle(self.operator, obj, read))
        is_refused = problems or done.secrets.reason == "KeyForeign"  # whose content any pod that mounts it would have
        return await self._status(obj, read, done if is_refused else await self._act(obj, read, done))

    def _files_trouble(self, cluster: Cluster) -> tuple[str, str]:
        return site_files.trouble(self.operator, cluster), slurm_config.FILES_MISSING

    async def _hold(self, obj: Custom) -> str:
        """Add our finalizer to the object, and create the anchor for its children, before the first child. Return the anchor's uid."""
        await finalizers.add_finalizer(self.operator, kinds.SLURMCLUSTER, obj)
        return await anchor.hold(self.operator, (obj.metadata.namespace, obj.metadata.name))

    async def _act(self, obj: Custom, cluster: Cluster, done: Pass) -> Pass:
        """Reconcile a cluster whose spec is accepted."""
        pointed = not inputs.point_wait(self.operator, cluster, inputs.members(self.operator, cluster))
        seen, refused = await jail.settle(self.operator, cluster, done.filling, pointed)
        done = replace(done, filling=seen, pointed=pointed, refused=refused)
        missing = await accounting.request_database(self.operator, cluster)
        note, refused_child = None, None
        try:
            note = await self._apply(obj, cluster, done)
        except PermanentError as error:  # one refused child delays no rotation of keys and no token
            refused_child = error
        rotated = done.keys if done.secrets.reason else await key_rotation.turn(self.operator, cluster, done.keys.done)
        users = await user_rest_api.settle(self.operator, cluster)
        if refused_child:
            raise refused_child
        return replace(done, note=note, missing=missing, keys=rotated, users=users)

    async def _end(self, obj: Custom) -> PassOutcome:
        """Reconcile a cluster that is being deleted: slurmctld stays until no worker is left."""
        if not finalizers.has_finalizer(obj):
            return PassOutcome("it is being deleted")
        rest, read = finalizers.rest_of_cluster(self.operator, obj), read_cluster(obj)
        if rest.nothing:
            await anchor.release(self.operator, (obj.metadata.namespace, obj.metadata.name))
            await finalizers.remove_finalizer(self.operator, kinds.SLURMCLUSTER, obj)
            return PassOutcome(f"it is let go: {rest.nothing}")
        if isinstance(read, Cluster) and inputs.is_rest_ready(self.operator, read):
            self.operator.slurm.follow(read.key)
        lacking, soon = await repair.of_cluster(self.operator, obj, read)
        why = f"it is being deleted; {rest.waits}; see the status of its NodeSets{lacking and f'; {lacking}'}"
        kept = {key: value for key, value in obj.status.items() if key not in ("conditions", "observedGeneration")}
        said = [ReportedCondition("Available", "False", "Deleting", why)]
        again = await self.operator.write_status(kinds.SLURMCLUSTER, obj, kept | {"why": why}, said)
        return PassOutcome(why, min(again or soon, soon) if soon else again)

    async def report_error(self, key: Key, error: Exception) -> None:
        """Report the cause that stopped a pass, in the conditions of the object."""
        await self.operator.write_error_status(kinds.SLURMCLUSTER, self.operator.stores.clusters.get(*key), error)

    async def _apply(self, obj: Custom, cluster: Cluster, done: Pass) -> RenderRecord | None:
        operator, seen = self.operator, done.filling
        assert done.stage is not None  # a spec that is accepted was read
        owner = Owner.from_metadata(kinds.SLURMCLUSTER, obj.metadata, cluster.anchored)
        nodesets = inputs.members(operator, cluster)
        if seen.is_filled and not done.pointed:
            job = mount_points.render_mount_points(cluster, nodesets, operator.defaults, inputs.fill(operator, cluster))
            await operator.applier.apply(owner, job)
            # Login pods and workers would be replaced by pods that cannot mount their volumes.
            if jail.has_login(operator, cluster):
                return None
        basis = repair.RenderInputs(done.stage, seen, done.config, done.pointed)
        objects, record = repair.objects(operator, cluster, basis), done.stage.record
        keep = done.config.keep | accounting.kept(operator, cluster, done.config.is_as_wanted)
        lost = claims.gone(operator, cluster)
        objects = [each for each in objects if (each["kind"], each["metadata"]["name"]) != (kinds.PVC.kind, lost)]
        note = render_record.of_cluster(operator, obj, cluster, record, objects, done.config.is_as_wanted)
        changes = await workload_changes.differences(operator, objects, note)
        await operator.applier.apply(owner, objects, PRUNED, keep, note.same)
        workload_changes.emit(operator, obj, changes)
        if seen.step.job == "make":
            await self._make_job(owner, cluster, seen)
        if inputs.is_rest_ready(operator, cluster):
            operator.slurm.follow(cluster.key)
        return note

    async def _make_job(self, owner: Owner, cluster: Cluster, seen: jail.JailStatus) -> None:
        """Create the Job that fills the jail. This is the last step, right after a query to Slurm, because the Job may end running jobs."""
        if not await jail.may_make(self.operator, cluster, seen):
            raise TransientError("the jail cannot be filled again yet: some Slurm nodes are no longer drained")
        await self.operator.applier.apply(
            owner, render_populate(cluster, self.operator.defaults, seen.carried_out), at_once=True
        )

    async def _status(self, obj: Custom, cluster: Cluster | None, done: Pass) -> PassOutcome:
        problems, rotated = done.problems, done.keys
        wait = jail.unusable_reason(self.operator, cluster, done.filling) if cluster else ""
        facts = inputs.facts(self.operator, cluster, problems, wait) if cluster else ClusterFacts(problems=problems)
        accounted = (
            await accounting.status(self.operator, cluster, done.missing, done.config.state)
            if cluster
            else accounting.AccountingStatus()
        )
        facts = replace(facts, slurm=facts.slurm or done.refused, keys=done.secrets.why)
        facts = replace(facts, config=done.config.why, accounting=accounted.why)
        facts = replace(facts, claims=claims.leaving(self.operator, cluster) if cluster else "")
        verdict, memory = judge(facts), cluster_memory.of_cluster(self.operator, obj)
        fields = {
            "controller": _role(facts.controller),
            "login": _role(facts.login),
            "rest": _role(facts.rest),
            "workers": _role(facts.workers),
            "address": inputs.address(self.operator, cluster) if cluster else "",
            "config": done.config.state.good or memory.get("config", ""),
            "refilled": done.filling.carried_out or memory.get("refilled", ""),
            "slurm": self.operator.slurm.version((obj.metadata.namespace, obj.metadata.name))
            or obj.status.get("slurm", ""),
            **images.status_fields(memory, None if problems else done.stage),
            **render_record.status_fields(done.note, memory),
            "keys": rotated.done,
            **key_versions.status_fields(self.operator, obj, done.secrets.versions),
            "accounting": accounting.status_field(accounted, memory) if cluster else memory.get("accounting", ""),
            "why": verdict.why,
        }
        fields["completedRequests"] = completed_requests.status_field(memory, fields)
        await cluster_memory.remember_cluster(self.operator, obj, fields)
        ready = ReportedCondition("JailReady", "Unknown", "InvalidSpec")
        if cluster:
            ready = jail.condition(self.operator, cluster, done.filling, facts.points)
        said = conditions(verdict, facts, problems, ready) + (
            [images.condition(done.stage, done.config.is_held)] if done.stage else []
        )
        said += [
            *slurm_config.condition(done.config, self.operator.status.current(obj).get("conditions", ())),
            key_rotation.condition(rotated, done.secrets),
            *accounting.condition(accounted),
            *(topology.condition(cluster) if cluster else []),
            *([claims.condition(facts.claims)] if cluster else []),
            *(await self._room(cluster) if cluster else []),
            *user_rest_api.condition(done.users),
            *(_metrics(inputs.exporter(self.operator, cluster)) if cluster else []),
        ]
        said = completed_requests.with_messages(said, done.repeated)
        again = await self.operator.write_status(kinds.SLURMCLUSTER, obj, fields, said) or volume_capacity.EVERY
        again = min(again, topology.again(self.operator, cluster, done.config.state) or again) if cluster else again
        again = min(again, site_files.again(self.operator, cluster) or again) if cluster else again
        soon = 1.0 if done.refused or rotated.why else done.config.again
        again = min(again, accounting.SOON) if accounted.why else again
        outcome = verdict.why or rotated.why or f"available with {facts.workers} workers"
        return PassOutcome(outcome, min(again, done.filling.again or again, done.users.again or again, soon or again))

    async def _room(self, cluster: Cluster) -> list[ReportedCondition]:
        role_pods, said = self.operator.stores.role_pods, self.operator.capacity
        jail = await said.of_jail(cluster, role_pods(cluster.key, "worker"))
        state = await said.of_state(cluster, role_pods(cluster.key, "controller"))
        return [*jail, *state, *await said.of_database(cluster, role_pods(cluster.key, "database"))]


def _role(role: Role) -> dict[str, int | str]:
    """Return the status field of one role."""
    return {"replicas": role.wanted, "readyReplicas": role.ready, "summary": str(role)}


def _metrics(exporter: Role | None) -> list[ReportedCondition]:
    """Return the condition MetricsServed; none without an exporter. No other condition depends on it."""
    if exporter is None:
        return []
    if exporter.is_short:
        return [ReportedCondition("MetricsServed", "False", "ExporterNotReady", f"the exporter: {exporter.trouble}")]
    return [ReportedCondition("MetricsServed", "True", "Served")]


def conditions(
    verdict: Availability, facts: ClusterFacts, problems: Sequence[Problem], jail_ready: ReportedCondition
) -> list[ReportedCondition]:
    """Return the conditions of a SlurmCluster: Available, and the conditions from which it is derived."""
    said = "; ".join(map(str, problems))
    return [
        ReportedCondition("Available", "True" if verdict.available else "False", verdict.reason, verdict.why),
        ReportedCondition(
            "SpecAccepted", "False" if problems else "True", "InvalidSpec" if problems else "Accepted", said
        ),
        jail_ready,
        ReportedCondition("Confined", "False" if facts.confined[1] else "True", *facts.confined),
        ReportedCondition("LimitsEnforced", "False" if facts.limits[1] else "True", *facts.limits),
        ReportedCondition(
            "WorkersReady",
            "False" if facts.workers.is_short else "True",
            "WorkersMissing" if facts.workers.is_short else "AllReady",
            facts.workers.trouble if facts.workers.is_short else "",
        ),
    ]
