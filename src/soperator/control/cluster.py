"""The pass of a SlurmCluster: gather, render, apply, status."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from soperator.api.base import Problem
from soperator.control import adoption, configuration, ending, gather, images, jail, room, rotation
from soperator.control.keys import ensure_keys
from soperator.control.operator import Operator
from soperator.control.read import read_cluster
from soperator.decide.admission import cluster_problems
from soperator.decide.adoption import Note
from soperator.decide.availability import Facts, Verdict, judge
from soperator.decide.refill import Step
from soperator.decide.upgrade import Stage
from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.render import config, login, points
from soperator.render.cluster import render_cluster
from soperator.render.model import Cluster
from soperator.render.populate import render_populate
from soperator.runtime.apply import Owner
from soperator.runtime.controller import Outcome
from soperator.runtime.status import Condition
from soperator.runtime.store import Key

#: What a cluster's pass removes when it is rendered no more. Secrets, claims and the populate Job are never pruned.
PRUNED = (kinds.CONFIGMAP, kinds.SERVICE, kinds.STATEFULSET, kinds.DEPLOYMENT, kinds.PDB, kinds.NETWORKPOLICY)


@dataclass(frozen=True)
class Made:
    """From which images a pass made its objects, and the note of what it made; none where it applied nothing."""

    stage: Stage
    note: Note | None = None


#: Of a spec that cannot be read nothing is known.
_NOT_LOOKED = jail.Look(Step())
_NOT_TURNED = rotation.Turn()
_NOT_SETTLED = configuration.Look()


@dataclass(frozen=True)
class ClusterControl:
    """Brings the objects of one SlurmCluster to what its spec says."""

    operator: Operator

    async def reconcile(self, key: Key) -> Outcome:
        """One pass."""
        obj = self.operator.stores.clusters.get(*key)
        if obj is None:
            self.operator.forget_cluster(key)
            return Outcome("it is gone", last=True)
        if ending.is_ending(obj):
            return await self._end(obj)
        read = read_cluster(obj)
        if isinstance(read, Cluster):
            read = gather.sized(self.operator, read)
        if not isinstance(read, Cluster):
            return await self._status(obj, None, read)
        stage = images.stage(self.operator, obj, read)
        read = images.with_images(read, stage.wanted)
        problems = cluster_problems(read.name, gather.world(self.operator, key[0])) or config.too_large(read)
        seen, refused, note = jail.look(self.operator, obj, read), "", None
        settled = await configuration.settle(self.operator, read, not problems)
        keys = rotation.Turn(obj.status.get("keys", ""))
        if not problems:
            pointed = not gather.point_wait(self.operator, read, gather.members(self.operator, read))
            seen, refused = await jail.settle(self.operator, read, seen, pointed)
            note = await self._apply(obj, read, stage, (seen, pointed), settled)
            keys = await rotation.turn(self.operator, read, keys.done)
        return await self._status(obj, read, problems, Made(stage, note), (seen, refused), settled, keys)

    async def _end(self, obj: Custom) -> Outcome:
        """A pass over a cluster that is being deleted: slurmctld stays until no worker is left."""
        if not ending.holds(obj):
            return Outcome("it is being deleted")
        rest, read = ending.rest_of_cluster(self.operator, obj), read_cluster(obj)
        if rest.nothing:
            await ending.let_go(self.operator, kinds.SLURMCLUSTER, obj)
            return Outcome(f"it is let go: {rest.nothing}")
        if isinstance(read, Cluster) and gather.is_rest_ready(self.operator, read):
            self.operator.slurm.follow((read.namespace, read.name))
        why = f"it is being deleted; {rest.waits}; the NodeSets say what they wait for"
        kept = {key: value for key, value in obj.status.items() if key not in ("conditions", "observedGeneration")}
        said = [Condition("Available", "False", "Deleting", why)]
        again = await self.operator.tell(kinds.SLURMCLUSTER, obj, kept | {"why": why}, said)
        return Outcome(why, again)

    async def tell(self, key: Key, error: Exception) -> None:
        """Show what stopped a pass."""
        await self.operator.tell_error(kinds.SLURMCLUSTER, self.operator.stores.clusters.get(*key), error)

    async def _apply(
        self, obj: Custom, cluster: Cluster, stage: Stage, jailed: tuple[jail.Look, bool], settled: configuration.Look
    ) -> Note | None:
        seen, pointed = jailed
        operator, key = self.operator, (cluster.namespace, cluster.name)
        await ending.hold(operator, kinds.SLURMCLUSTER, obj)
        await ensure_keys(operator.api, cluster, operator.stores.children[kinds.SECRET])
        owner, nodesets = Owner.of(kinds.SLURMCLUSTER, obj.metadata), gather.members(operator, cluster)
        had_login = jail.has_login(operator, cluster)
        if seen.is_filled and not pointed:
            job = points.render_mount_points(cluster, nodesets, operator.defaults, gather.fill(operator, cluster))
            await operator.applier.apply(owner, job)
            if (
                had_login
            ):  # its pods, and those of the workers, would be replaced by some that cannot mount what they are to mount
                return None
        opens = seen.step.login and pointed
        of_rest, of_login = (images.with_images(cluster, each) for each in (stage.record.workers, stage.record.login))
        shown = login.closed(of_login) if had_login and not seen.step.login else of_login
        objects = render_cluster(cluster, operator.defaults, opens or had_login, settled.state, (of_rest, shown))
        if seen.step.job == "make":
            objects += render_populate(cluster, operator.defaults, seen.carried_out)
        is_same = config.generation(cluster) == settled.state.good
        note = adoption.of_cluster(operator, obj, cluster, stage.record, objects, is_same)
        await operator.applier.apply(owner, objects, PRUNED, settled.keep, note.same)
        if gather.is_rest_ready(operator, cluster):
            operator.slurm.follow(key)
        return note

    async def _status(
        self,
        obj: Custom,
        cluster: Cluster | None,
        problems: Sequence[Problem],
        made: Made | None = None,
        jailed: tuple[jail.Look, str] = (_NOT_LOOKED, ""),
        settled: configuration.Look = _NOT_SETTLED,
        keys: rotation.Turn = _NOT_TURNED,
    ) -> Outcome:
        seen, refused = jailed
        wait = jail.why_not(self.operator, cluster, seen) if cluster else ""
        facts = gather.facts(self.operator, cluster, problems, wait) if cluster else Facts(problems=problems)
        facts = replace(facts, slurm=facts.slurm or refused, config=settled.why)
        verdict = judge(facts)
        fields = {
            "controller": str(facts.controller),
            "login": str(facts.login),
            "rest": str(facts.rest),
            "workers": str(facts.workers),
            "address": gather.address(self.operator, cluster) if cluster else "",
            "config": settled.state.good or obj.status.get("config", ""),
            "refilled": seen.carried_out,
            **images.told(obj, made.stage if made and not problems else None),
            **adoption.told(made.note if made else None, obj),
            "keys": keys.done,
            "why": verdict.why,
        }
        ready = Condition("JailReady", "Unknown", "InvalidSpec")
        if cluster:
            ready = jail.condition(self.operator, cluster, seen, facts.points)
        said = conditions(verdict, facts, problems, ready) + ([images.condition(made.stage)] if made else [])
        said += [
            *configuration.condition(settled, self.operator.status.current(obj).get("conditions", ())),
            rotation.condition(keys),
            *(await self._room(cluster) if cluster else []),
        ]
        again = await self.operator.tell(kinds.SLURMCLUSTER, obj, fields, said) or room.EVERY
        soon = refused or settled.is_moving or keys.why
        outcome = verdict.why or keys.why or f"available with {facts.workers} workers"
        return Outcome(outcome, min(1.0, again) if soon else again)

    async def _room(self, cluster: Cluster) -> list[Condition]:
        found = self.operator.stores.role_pods((cluster.namespace, cluster.name), "worker")
        return await self.operator.room.look(cluster, found)


def conditions(verdict: Verdict, facts: Facts, problems: Sequence[Problem], jail_ready: Condition) -> list[Condition]:
    """The conditions of a SlurmCluster: the verdict, and what it stands on."""
    said = "; ".join(map(str, problems))
    return [
        Condition("Available", "True" if verdict.available else "False", verdict.reason, verdict.why),
        Condition("SpecAccepted", "False" if problems else "True", "InvalidSpec" if problems else "Accepted", said),
        jail_ready,
        Condition(
            "Confined",
            "False" if facts.confined else "True",
            "HostUsers" if facts.confined else "UserNamespace",
            facts.confined,
        ),
        Condition("LimitsEnforced", "False" if facts.limits[1] else "True", *facts.limits),
        Condition(
            "WorkersReady",
            "False" if facts.workers.is_short else "True",
            "WorkersMissing" if facts.workers.is_short else "AllReady",
            facts.workers.trouble if facts.workers.is_short else "",
        ),
    ]
