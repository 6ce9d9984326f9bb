"""Reconciles Slurm's configuration: gathers the inputs of its policy, and carries out the decision.

The record is in the annotations of the files' ConfigMap. The files of a generation that is no longer desired are read from its own ConfigMap, so that
an operator that has just started can restore it.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from soperator.kube import kinds
from soperator.kube.views import Pod
from soperator.policy.cluster.config_invariants import violation
from soperator.policy.cluster.slurm_config import (
    ConfigProgress,
    ConfigSnapshot,
    ConfigStep,
    LoginGeneration,
    Trial,
    Unanswered,
    decide,
    has_read,
    pause,
    taken_back,
)
from soperator.reconcile import inputs, pod_status
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.cluster import config_files
from soperator.reconcile.cluster.trial_pods import create, remove, trial_of
from soperator.reconcile.context import Operator
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf
from soperator.render.slurm_conf import trial as slurm_conf_trial
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition
from soperator.slurm import daemon_log
from soperator.slurm.node import SlurmNode
from soperator.slurm.settings import diff
from soperator.slurm.settings.state import ConfigState
from soperator.slurmrest.client import SlurmError

#: By the uid of a login pod: the generation that its sackd serves.
_HANDED: Slot[Key, dict[str, LoginGeneration]] = per_cluster("generations that login nodes serve")
#: Whether slurmds have read the configuration, by Slurm's answer and the state for which that was found.
_SLURMDS: Slot[Key, tuple[Mapping[str, SlurmNode], ConfigState, Mapping[str, bool]]] = per_cluster(
    "slurmds that have read it"
)
#: The queries of slurmctld's pods that had no result.
_UNANSWERED: Slot[Key, Unanswered] = per_cluster("queries of slurmctld without a result")
#: How much of a diff a condition shows.
_SHOWN = 1500
#: Seconds until the next look while a change is on its way.
_SOON = 1.0
#: The reason where an entry that the spec refers to is missing, or cannot be used.
FILES_MISSING = "FilesMissing"
#: Reasons after which nothing is on its way.
_ENDS = ("", "Refused", "RolledBack", "NodeSetUnreadable", FILES_MISSING)


@dataclass(frozen=True)
class ConfigStatus:
    """A snapshot of the configuration and the step to take.

    It has the desired generation, and whether an older operator version rendered it; the record, as read or just written; the step; the ConfigMaps in
    use; the number of daemons, and of those that have read the generation; whether nodes are known, and whether no slurmctld reported its generation.
    """

    wanted: str = ""
    is_held: bool = False
    state: ConfigState = field(default_factory=ConfigState)
    step: ConfigStep = field(default_factory=ConfigStep)
    keep: frozenset[str] = frozenset()
    read: int = 0
    daemons: int = 0
    is_heard: bool = True
    query_after: float = 0.0
    now: float = 0.0

    @property
    def is_as_wanted(self) -> bool:
        """Whether slurmctld runs with the desired generation."""
        return self.wanted == self.state.good

    @property
    def again(self) -> float | None:
        """The seconds until the next snapshot, even if nothing in Kubernetes changes earlier."""
        is_over = self.state.is_settled and self.step.reason in _ENDS
        if not self.step.reason or is_over:
            return None
        if self.step.reason == "Behind":
            return pause(self.state, self.now)
        return max(_SOON, self.query_after)

    @property
    def why(self) -> str:
        """The message to report at once. At a cluster's first start slurmctld's pod explains enough, and a late daemon is not a failure."""
        is_told = self.state.good or self.step.reason == FILES_MISSING
        return self.step.why if is_told and self.step.reason != "Behind" else ""


async def settle(operator: Operator, cluster: Cluster, is_accepted: bool, held: Collection[str] = ()) -> ConfigStatus:
    """Take the next step towards the spec's configuration, or for a refused spec towards the former one.

    A generation in `held` counts as the desired one if it is already in use.
    """
    rendered = slurm_conf.generation(cluster) if is_accepted else ""
    said = await running(operator, cluster, rendered)
    state, foreign = await config_files.restore(operator, cluster, said)
    seen = await _seen(operator, cluster, state, rendered, held)
    seen = replace(seen, heard=ConfigProgress(running=said)) if said and not seen.state.generation else seen
    step = decide(seen)
    if broken := violation(seen, step):
        why = f"a step would break a rule of the configuration, so nothing was done: {broken}; report this as a defect"
        step = ConfigStep("rest", state, "InvariantBroken", why)
    step = step if step.why or not foreign else ConfigStep(step.act, step.state, "Changed", foreign)
    await _clear(operator, cluster, seen)
    try:
        state = await _act(operator, cluster, seen, step)
        step = replace(step, why=taken_back(state)) if step.act == "restore" else step
    except SlurmError as error:
        step = replace(step, why=f"{step.why}, which fails: {error}")
        state = seen.state
    used = {state.generation, state.good, seen.wanted} - {""}
    keep = frozenset({names.config(cluster.name), *(names.generation(cluster.name, each) for each in used)})
    daemons = _daemons(operator, cluster, state)
    read = 1 + sum(each is True for each in daemons.values()) if state.is_settled else 0
    is_heard = operator.slurm.nodes(cluster.key) is not None
    silent = None if state.is_settled and state.generation else operator.memory(_UNANSWERED).get(cluster.key)
    query_after = silent.wait(asyncio.get_running_loop().time()) if silent else 0.0
    return ConfigStatus(
        seen.wanted, seen.wanted in held, state, step, keep, read, 1 + len(daemons), is_heard, query_after, seen.now
    )


def condition(look: ConfigStatus, former: Sequence[Mapping[str, Any]]) -> list[ReportedCondition]:
    """Return the condition ConfigApplied; none at a cluster's first start, unless a file is missing, because slurmctld's pod has the cause.

    It does not change until Slurm has answered.
    """
    if not look.state.good and look.step.reason == FILES_MISSING:
        return [ReportedCondition("ConfigApplied", "False", FILES_MISSING, look.step.why)]
    if not look.state.good:
        return []
    reported = next((each for each in former if each["type"] == "ConfigApplied" and each["reason"] == "Applied"), None)
    if reported and not look.is_heard and not look.step.why:
        return [ReportedCondition("ConfigApplied", "True", "Applied", reported.get("message", ""))]
    read = f"{look.read}/{look.daemons} daemons have read configuration {look.state.generation[:8]}"
    if look.step.why:
        return [ReportedCondition("ConfigApplied", "False", look.step.reason, f"{look.step.why}; {read}")]
    if not look.state.tries:  # there was nothing to activate: a count would be written again for each new node
        read = f"every daemon started with configuration {look.state.generation[:8]}"
    return [ReportedCondition("ConfigApplied", "True", "Applied", read)]


async def _seen(
    operator: Operator, cluster: Cluster, state: ConfigState, rendered: str, held: Collection[str]
) -> ConfigSnapshot:
    kept = operator.stores.children[kinds.CONFIGMAP].get(
        cluster.namespace, names.generation(cluster.name, state.refused)
    )
    state = state if kept else replace(state, refused="", refusal="")  # deleting it requests another attempt
    former = next((each for each in (state.generation, state.good) if each in held), "")
    wanted = former if former and rendered else rendered
    controllers = operator.stores.role_pods(cluster.key, "controller")
    fallen = next((each for each in controllers if _fallen(each)), None)
    made = fallen.metadata.creation_timestamp if fallen else None
    await _ask_logins(operator, cluster, state)
    daemons = _daemons(operator, cluster, state) if state.is_settled else {}
    return ConfigSnapshot(
        wanted=wanted,
        state=state,
        now=operator.wall(),
        fixed=diff.fixed(slurm_conf.files(cluster)),
        trial=_trial(operator, cluster, wanted),
        heard=await _progress(operator, cluster, wanted, state, controllers),
        fallen=slurm_conf.place(cluster, _fallen(fallen)) if fallen else "",
        is_fallen_new=made is None or made.timestamp() >= state.since,
        behind=[name for name, has in daemons.items() if has is False],
        silent=[name for name, has in daemons.items() if has is None],
        has_run=_has_run(operator, cluster, controllers),
    )


def _has_run(operator: Operator, cluster: Cluster, controllers: Sequence[Pod]) -> bool:
    """Return whether slurmctld exists and has run: its pod shows that, or the status has an applied configuration."""
    if operator.stores.children[kinds.STATEFULSET].get(cluster.namespace, names.controller(cluster.name)) is None:
        return False
    obj = operator.stores.clusters.get(*cluster.key)
    reported = operator.status.current(obj).get("config", "") if obj else ""
    return bool(reported) or any(pod_status.has_run(each, "slurmctld") for each in controllers)


async def running(operator: Operator, cluster: Cluster, rendered: str = "") -> str:
    """Return the generation that slurmctld runs with, queried only if no record has it."""
    state = config_files.state(operator, cluster)
    if state.generation:
        return ""
    answers = await _query(operator, cluster, (rendered, state), operator.stores.role_pods(cluster.key, "controller"))
    return next((each.running for each in answers if each.running), "")


async def _progress(
    operator: Operator, cluster: Cluster, wanted: str, state: ConfigState, controllers: Sequence[Pod]
) -> ConfigProgress | None:
    """slurmctld's report, queried only while a generation is being activated; files count as present when every pod has them."""
    if state.is_settled or not state.generation:
        return None
    heard = await _query(operator, cluster, (wanted, state), controllers)
    if not heard:
        return None
    late = [each.mounted for each in heard if each.mounted != state.generation]
    return ConfigProgress(
        late[0] if late else state.generation, next((each.running for each in heard if each.running), "")
    )


async def _query(operator: Operator, cluster: Cluster, about: object, pods: Sequence[Pod]) -> list[ConfigProgress]:
    """Return the answers of slurmctld's ready pods; none if the last query had no result, and is not due again."""
    ready = [each for each in pods if pod_status.is_ready(each)]
    asked = (about, [(each.metadata.uid, pod_status.began(each, "slurmctld")) for each in ready])
    clock, silent = asyncio.get_running_loop().time, operator.memory(_UNANSWERED)
    last = silent.get(cluster.key)
    if not ready or (last and last.asked == asked and last.wait(clock()) > 0.0):
        return []
    said = [await operator.pod_exec.controller(each.metadata.namespace, each.metadata.name) for each in ready]
    if heard := [each for each in said if each]:
        silent.pop(cluster.key, None)
    else:
        silent[cluster.key] = Unanswered(asked, last.since if last and last.asked == asked else clock(), clock())
    return heard


def _daemons(operator: Operator, cluster: Cluster, state: ConfigState) -> dict[str, bool | None]:
    """Return for each slurmd that is up, and each sackd of login, whether it has read the last activated generation; None if unknown."""
    slurmds = _slurmds(operator, cluster, state)
    handed = operator.memory(_HANDED).get(cluster.key, {})
    old = [each.metadata for each in _old_logins(operator, cluster, state)]
    said = {each.name: handed.get(each.uid, LoginGeneration()).generation for each in old}
    logins = {each.metadata.name: True for each in _logins(operator, cluster)}
    return {**slurmds, **logins} | {name: has == state.generation if has else None for name, has in said.items()}


async def _ask_logins(operator: Operator, cluster: Cluster, state: ConfigState) -> None:
    """Ask each sackd that started before the last change for the generation that it serves, until it serves slurmctld's generation."""
    handed, now = operator.memory(_HANDED).get(cluster.key, {}), operator.wall()
    old = [each.metadata for each in _old_logins(operator, cluster, state)] if state.is_settled else []
    known = {each.uid: handed.get(each.uid, LoginGeneration()) for each in old}
    asked = [each for each in old if known[each.uid].is_due(state, now)]
    said = await asyncio.gather(*(operator.pod_exec.login(each.namespace, each.name) for each in asked))
    answers = {each.uid: LoginGeneration(has, now) for each, has in zip(asked, said, strict=True)}
    operator.memory(_HANDED)[cluster.key] = known | answers


def _old_logins(operator: Operator, cluster: Cluster, state: ConfigState) -> list[Pod]:
    """Return the login pods whose sackd did not start with the generation that slurmctld last activated."""

    def began(login: Pod) -> float | None:
        sackd = next((each for each in login.status.init_container_statuses if each.name == "sackd"), None)
        since = sackd.state.running.started_at if sackd and sackd.state.running else None
        return since.timestamp() if since else None

    return [each for each in _logins(operator, cluster) if not ((at := began(each)) and has_read(at, state))]


def _logins(operator: Operator, cluster: Cluster) -> list[Pod]:
    return [each for each in operator.stores.role_pods(cluster.key, "login") if pod_status.is_ready(each)]


def _slurmds(operator: Operator, cluster: Cluster, state: ConfigState) -> Mapping[str, bool]:
    """Return for each slurmd that is up whether it has read the generation. The same answer is read once: it may have thousands of nodes."""
    nodes = operator.slurm.nodes(cluster.key)
    if nodes is None:
        return {}
    last = operator.memory(_SLURMDS).get(cluster.key)
    if last is None or last[0] is not nodes or last[1] != state:
        found = {each.name: has_read(each.started, state) for each in nodes.values() if each.is_up}
        last = operator.memory(_SLURMDS)[cluster.key] = (nodes, state, found)
    return last[2]


def _trial(operator: Operator, cluster: Cluster, wanted: str) -> Trial | None:
    found = next(
        (each for each in operator.stores.role_pods(cluster.key, "trial") if _generation(each) == wanted), None
    )
    if found is None or found.metadata.deletion_timestamp is not None:
        return None
    trial = trial_of(operator, found)
    return replace(trial, said=slurm_conf.place(cluster, trial.said)) if trial.end == "refused" else trial


async def _act(operator: Operator, cluster: Cluster, seen: ConfigSnapshot, step: ConfigStep) -> ConfigState:
    """Carry out a step; return the new snapshot."""
    match step.act:
        case "try":
            if seen.state != inputs.transaction(
                operator, cluster
            ):  # forgiven, and so it is to stay when it is kept again
                await config_files.write(
                    operator, cluster, await _files(operator, cluster, seen.state.generation), seen.state
                )
            await _keep(operator, cluster, seen.wanted)
            await create(operator, slurm_conf_trial.render_trial(cluster, operator.defaults, seen.wanted))
        case "drop":
            await remove(operator, operator.stores.role_pods(cluster.key, "trial"))
        case "write":
            await _keep(operator, cluster, seen.wanted)
            return await config_files.write(operator, cluster, slurm_conf.files(cluster), step.state)
        case "nudge":
            await _nudge(operator, cluster, seen.state.generation)
        case "ask":
            client = operator.slurm.client(cluster.key)
            if client is None:
                raise SlurmError("slurmrestd has not answered yet")
            await client.reconfigure()
            return await config_files.write(
                operator, cluster, await _files(operator, cluster, seen.state.generation), step.state
            )
        case "note":
            return await config_files.write(
                operator, cluster, await _files(operator, cluster, seen.state.generation), step.state
            )
        case "restore":
            former = await _files(operator, cluster, seen.state.good)
            tried = await _files(operator, cluster, seen.state.generation)
            changes = "\n".join(diff.diff(former, tried, 0))
            reported = f"{step.state.refusal}\n{changes[:_SHOWN]}"
            return await config_files.write(
                operator, cluster, former, replace(step.state, refusal=reported, fixed=diff.fixed(former))
            )
        case "revive":
            await remove(
                operator, [each for each in operator.stores.role_pods(cluster.key, "controller") if _fallen(each)]
            )
    return seen.state


async def _keep(operator: Operator, cluster: Cluster, wanted: str) -> None:
    """Store the desired generation in its own ConfigMap."""
    if operator.stores.children[kinds.CONFIGMAP].get(cluster.namespace, names.generation(cluster.name, wanted)) is None:
        await config_files.keep(operator, cluster, wanted, slurm_conf.files(cluster))


async def _files(operator: Operator, cluster: Cluster, of: str) -> Mapping[str, str]:
    """Return the files of a generation."""
    found = await config_files.read(operator, cluster, of)
    if found is None:
        raise SlurmError(f"ConfigMap {names.generation(cluster.name, of)} is gone: correct spec.config")
    return found


async def _nudge(operator: Operator, cluster: Cluster, of: str) -> None:
    """Change an annotation of slurmctld's pods, so that the kubelet updates a changed ConfigMap at once instead of within a minute."""
    for each in operator.stores.role_pods(cluster.key, "controller"):
        meta = each.metadata
        if meta.annotations.get(labels.CONFIG) != of and meta.deletion_timestamp is None:
            said = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "annotations": {labels.CONFIG: of}}
            await operator.api.apply(kinds.POD, {"apiVersion": "v1", "kind": "Pod", "metadata": said})


async def _clear(operator: Operator, cluster: Cluster, seen: ConfigSnapshot) -> None:
    """Delete the trial pods of generations that are no longer desired, or that are already written."""
    trials = operator.stores.role_pods(cluster.key, "trial")
    over = seen.wanted and (seen.wanted == seen.state.generation)
    await remove(operator, [each for each in trials if over or _generation(each) != seen.wanted])


def _fallen(pod: Pod) -> str:
    """Return the last log line of a slurmctld that ended by itself and does not run; empty if it runs or has not started."""
    status = next((each for each in pod.status.container_statuses if each.name == "slurmctld"), None)
    if status is None or status.state.running or pod.metadata.deletion_timestamp is not None:
        return ""
    end = status.state.terminated or status.last_state.terminated
    if end is None or not end.exit_code:
        return ""
    return daemon_log.cause(end.message) or end.message.strip()[-300:] or f"it ended with {end.exit_code}"


def _generation(pod: Pod) -> str:
    return pod.metadata.labels.get(labels.GENERATION, "")
