"""The pass of a SlurmCluster: gather, render, apply, status."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from soperator.api.base import Problem
from soperator.control import (
    accounting,
    adoption,
    anchor,
    claims,
    configuration,
    ending,
    gather,
    images,
    jail,
    keys,
    keyversions,
    repair,
    rest_users,
    room,
    rotation,
    topology,
    unreadable,
)
from soperator.control.operator import Operator
from soperator.control.read import read_cluster
from soperator.decide.adoption import Note
from soperator.decide.availability import Facts, Role, Verdict, judge
from soperator.decide.refill import Step
from soperator.decide.upgrade import Stage
from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.render import config, points
from soperator.render.model import Cluster
from soperator.render.populate import render_populate
from soperator.runtime.apply import Owner
from soperator.runtime.controller import Outcome, Terminal
from soperator.runtime.status import Condition
from soperator.runtime.store import Key

#: What a cluster's pass removes when it is rendered no more. Secrets, claims and the populate Job are never pruned.
PRUNED = (kinds.CONFIGMAP, kinds.SERVICE, kinds.STATEFULSET, kinds.DEPLOYMENT, kinds.PDB, kinds.NETWORKPOLICY)


@dataclass(frozen=True)
class Pass:
    """What a pass found and did, as far as it came; of a spec that cannot be read it knows the problems alone."""

    problems: Sequence[Problem] = ()
    #: From which images it makes its objects.
    stage: Stage | None = None
    filling: jail.Look = field(default_factory=lambda: jail.Look(Step()))
    config: configuration.Look = field(default_factory=configuration.Look)
    secrets: keys.Look = field(default_factory=keys.Look)
    keys: rotation.Turn = field(default_factory=rotation.Turn)
    users: rest_users.Look = field(default_factory=rest_users.Look)
    #: Why the database cannot be had.
    missing: str = ""
    #: Whether the jail has every mount point.
    pointed: bool = False
    #: What Slurm refused.
    refused: str = ""
    #: The note of what it applied; none where it applied nothing.
    note: Note | None = None


@dataclass(frozen=True)
class ClusterControl:
    """Brings the objects of one SlurmCluster to what its spec says."""

    operator: Operator

    async def reconcile(self, key: Key) -> Outcome:
        """One pass."""
        obj = self.operator.stores.clusters.get(*key)
        if obj is None:
            self.operator.forget_cluster(key)
            if left := ending.workers_left(self.operator, key):
                await anchor.keep(self.operator, key)
                said = f"it is gone, and {left} of its workers are left: make it again, and it takes them over"
                return Outcome(said, last=True)
            cleared = await anchor.release_lone(self.operator, key)
            return Outcome("it is gone, and so is its anchor" if cleared else "it is gone", last=True)
        if ending.is_ending(obj):
            return await self._end(obj)
        if ending.has_begun(self.operator, key):
            await self._hold(obj)
        read = read_cluster(obj)
        if isinstance(read, Cluster):
            await topology.ask(self.operator, read, gather.transaction(self.operator, read))
            read = gather.sized(self.operator, read)
        if not isinstance(read, Cluster):
            return await self._status(obj, None, Pass(problems=read))
        stage = images.stage(self.operator, obj, read)
        read = images.with_images(read, stage.wanted)
        problems = self.operator.namespaces.of(key[0]).problems(read.name) or config.too_large(read)
        read = replace(read, anchor="" if problems else await self._hold(obj))
        await images.try_out(self.operator, read, stage)
        held = adoption.configurations(self.operator, obj, read, stage.record)
        waits = unreadable.holds_configuration(self.operator, read)
        configured = await configuration.settle(self.operator, read, not problems and not waits, held)
        done = Pass(
            problems=problems,
            stage=stage,
            filling=jail.look(self.operator, obj, read),
            config=unreadable.told(configured, waits),
            keys=rotation.Turn(obj.status.get("keys", "")),
        )
        if not problems or obj.status.get("keyDigests"):  # daemons that run have keys, whatever became of their spec
            done = replace(done, secrets=await keys.settle(self.operator, obj, read))
        return await self._status(obj, read, done if problems else await self._act(obj, read, done))

    async def _hold(self, obj: Custom) -> str:
        """Let the object wait for us when it is deleted, and its children with it; before the first child is made. Returns the anchor's uid."""
        await ending.hold(self.operator, kinds.SLURMCLUSTER, obj)
        return await anchor.hold(self.operator, (obj.metadata.namespace, obj.metadata.name))

    async def _act(self, obj: Custom, cluster: Cluster, done: Pass) -> Pass:
        """Act on a spec that is accepted."""
        pointed = not gather.point_wait(self.operator, cluster, gather.members(self.operator, cluster))
        seen, refused = await jail.settle(self.operator, cluster, done.filling, pointed)
        done = replace(done, filling=seen, pointed=pointed, refused=refused)
        missing = await accounting.ask_for_database(self.operator, cluster)
        note, refused_child = None, None
        try:
            note = await self._apply(obj, cluster, done)
        except Terminal as error:  # one child that is refused holds up no rotation of keys and no token
            refused_child = error
        turned = done.keys if done.secrets.reason else await rotation.turn(self.operator, cluster, done.keys.done)
        users = await rest_users.settle(self.operator, cluster)
        if refused_child:
            raise refused_child
        return replace(done, note=note, missing=missing, keys=turned, users=users)

    async def _end(self, obj: Custom) -> Outcome:
        """A pass over a cluster that is being deleted: slurmctld stays until no worker is left."""
        if not ending.holds(obj):
            return Outcome("it is being deleted")
        rest, read = ending.rest_of_cluster(self.operator, obj), read_cluster(obj)
        if rest.nothing:
            await anchor.release(self.operator, (obj.metadata.namespace, obj.metadata.name))
            await ending.let_go(self.operator, kinds.SLURMCLUSTER, obj)
            return Outcome(f"it is let go: {rest.nothing}")
        if isinstance(read, Cluster) and gather.is_rest_ready(self.operator, read):
            self.operator.slurm.follow(read.key)
        lacking, soon = await repair.of_cluster(self.operator, obj, read)
        why = f"it is being deleted; {rest.waits}; the NodeSets say what they wait for{lacking and f'; {lacking}'}"
        kept = {key: value for key, value in obj.status.items() if key not in ("conditions", "observedGeneration")}
        said = [Condition("Available", "False", "Deleting", why)]
        again = await self.operator.tell(kinds.SLURMCLUSTER, obj, kept | {"why": why}, said)
        return Outcome(why, min(again or soon, soon) if soon else again)

    async def tell(self, key: Key, error: Exception) -> None:
        """Show what stopped a pass."""
        await self.operator.tell_error(kinds.SLURMCLUSTER, self.operator.stores.clusters.get(*key), error)

    async def _apply(self, obj: Custom, cluster: Cluster, done: Pass) -> Note | None:
        operator, seen = self.operator, done.filling
        assert done.stage is not None  # a spec that is accepted was read
        owner = Owner.of(kinds.SLURMCLUSTER, obj.metadata, cluster.anchored)
        nodesets = gather.members(operator, cluster)
        if seen.is_filled and not done.pointed:
            job = points.render_mount_points(cluster, nodesets, operator.defaults, gather.fill(operator, cluster))
            await operator.applier.apply(owner, job)
            # The pods of login and of the workers would be replaced by some that cannot mount what they are to mount.
            if jail.has_login(operator, cluster):
                return None
        basis = repair.Basis(done.stage, seen, done.config, done.pointed)
        objects, record = repair.objects(operator, cluster, basis), done.stage.record
        keep = done.config.keep | accounting.kept(operator, cluster, done.config.is_as_wanted)
        lost = claims.gone(operator, cluster)
        objects = [each for each in objects if (each["kind"], each["metadata"]["name"]) != (kinds.PVC.kind, lost)]
        if seen.step.job == "make":
            objects += render_populate(cluster, operator.defaults, seen.carried_out)
        note = adoption.of_cluster(operator, obj, cluster, record, objects, done.config.is_as_wanted)
        await operator.applier.apply(owner, objects, PRUNED, keep, note.same)
        if gather.is_rest_ready(operator, cluster):
            operator.slurm.follow(cluster.key)
        return note

    async def _status(self, obj: Custom, cluster: Cluster | None, done: Pass) -> Outcome:
        problems, turned = done.problems, done.keys
        wait = jail.why_not(self.operator, cluster, done.filling) if cluster else ""
        facts = gather.facts(self.operator, cluster, problems, wait) if cluster else Facts(problems=problems)
        accounted = (
            await accounting.look(self.operator, cluster, done.missing, done.config.state)
            if cluster
            else accounting.Look()
        )
        facts = replace(facts, slurm=facts.slurm or done.refused, keys=done.secrets.why)
        facts = replace(facts, config=done.config.why, accounting=accounted.why)
        facts = replace(facts, claims=claims.leaving(self.operator, cluster) if cluster else "")
        verdict = judge(facts)
        fields = {
            "controller": str(facts.controller),
            "login": str(facts.login),
            "rest": str(facts.rest),
            "workers": str(facts.workers),
            "address": gather.address(self.operator, cluster) if cluster else "",
            "config": done.config.state.good or obj.status.get("config", ""),
            "refilled": done.filling.carried_out,
            **images.told(obj, None if problems else done.stage),
            **adoption.told(done.note, obj),
            "keys": turned.done,
            **keyversions.told(self.operator, obj, done.secrets.versions),
            "accounting": accounting.told(accounted, obj) if cluster else obj.status.get("accounting", ""),
            "why": verdict.why,
        }
        ready = Condition("JailReady", "Unknown", "InvalidSpec")
        if cluster:
            ready = jail.condition(self.operator, cluster, done.filling, facts.points)
        said = conditions(verdict, facts, problems, ready) + (
            [images.condition(done.stage, done.config.is_held)] if done.stage else []
        )
        said += [
            *configuration.condition(done.config, self.operator.status.current(obj).get("conditions", ())),
            rotation.condition(turned, done.secrets),
            *accounting.condition(accounted),
            *(topology.condition(cluster) if cluster else []),
            *([claims.condition(facts.claims)] if cluster else []),
            *(await self._room(cluster) if cluster else []),
            *rest_users.condition(done.users),
            *(_metrics(gather.exporter(self.operator, cluster)) if cluster else []),
        ]
        again = await self.operator.tell(kinds.SLURMCLUSTER, obj, fields, said) or room.EVERY
        again = min(again, topology.again(self.operator, cluster, done.config.state) or again) if cluster else again
        soon = 1.0 if done.refused or turned.why else done.config.again
        again = min(again, accounting.SOON) if accounted.why else again
        outcome = verdict.why or turned.why or f"available with {facts.workers} workers"
        return Outcome(outcome, min(again, done.filling.again or again, done.users.again or again, soon or again))

    async def _room(self, cluster: Cluster) -> list[Condition]:
        role_pods, said = self.operator.stores.role_pods, self.operator.room
        jail = await said.of_jail(cluster, role_pods(cluster.key, "worker"))
        state = await said.of_state(cluster, role_pods(cluster.key, "controller"))
        return [*jail, *state, *await said.of_database(cluster, role_pods(cluster.key, "database"))]


def _metrics(exporter: Role | None) -> list[Condition]:
    """The condition MetricsServed; none where there is no exporter. Nothing else waits for it."""
    if exporter is None:
        return []
    if exporter.is_short:
        return [Condition("MetricsServed", "False", "ExporterNotReady", f"the exporter: {exporter.trouble}")]
    return [Condition("MetricsServed", "True", "Served")]


def conditions(verdict: Verdict, facts: Facts, problems: Sequence[Problem], jail_ready: Condition) -> list[Condition]:
    """The conditions of a SlurmCluster: the verdict, and what it stands on."""
    said = "; ".join(map(str, problems))
    return [
        Condition("Available", "True" if verdict.available else "False", verdict.reason, verdict.why),
        Condition("SpecAccepted", "False" if problems else "True", "InvalidSpec" if problems else "Accepted", said),
        jail_ready,
        Condition("Confined", "False" if facts.confined[1] else "True", *facts.confined),
        Condition("LimitsEnforced", "False" if facts.limits[1] else "True", *facts.limits),
        Condition(
            "WorkersReady",
            "False" if facts.workers.is_short else "True",
            "WorkersMissing" if facts.workers.is_short else "AllReady",
            facts.workers.trouble if facts.workers.is_short else "",
        ),
    ]
