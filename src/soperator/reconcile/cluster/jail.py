"""Reconciles the jail: gathers the inputs of the refill policy, carries out its decision, and reports the state."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.objects import Job, StatefulSet
from soperator.kube.views import Custom, Pod
from soperator.policy.cluster import jail_refill
from soperator.policy.cluster.jail_refill import JailSnapshot, JailStep
from soperator.policy.drain_reasons import JAIL
from soperator.reconcile import pod_status
from soperator.reconcile.context import Operator
from soperator.reconcile.io.jail_watch_client import REPORTS
from soperator.reconcile.memory import cluster_memory, completed_requests
from soperator.reconcile.nodeset.decision import listed_after
from soperator.render.jail.claims import jail_claim
from soperator.render.jail.populate_job import jail_image, render_populate, request
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster
from soperator.runtime.status import ReportedCondition
from soperator.slurm.node import SlurmNode, held
from soperator.slurmrest.client import SlurmError, SlurmRest

#: Seconds after which the jobs are looked at again: one that is suspended ends without a change of its node.
_SUSPENDED = 5.0
#: Seconds in which nodes are drained and resumed upon one answer of Slurm, and seconds until the next one is read.
_HOLDS, _CONTINUES = 5.0, 0.5
_HOWTO = "docs/howto/upgrade-the-jail.md"
#: The roles of pods that work in a jail.
_INSIDE = ("login", "worker", "populate", "mount-points")


@dataclass(frozen=True)
class JailStatus:
    """The snapshot of the jail: the next step, and the Job and the request on which it is based.

    `attempt` is the Job's newest pod, with the messages of its Events; `again` is the seconds until the next snapshot.
    """

    step: JailStep
    job: Job | None = None
    carried_out: str = ""
    is_filled: bool = True
    attempt: Pod | None = None
    again: float | None = None


def jail_status(operator: Operator, obj: Custom, cluster: Cluster) -> JailStatus:
    """Return the next step for the jail of a cluster."""
    if not cluster.spec.jail.has_job:
        return JailStatus(JailStep())
    cluster, _ = completed_requests.without_repeated(operator, obj, cluster)
    job = _job(operator, cluster)
    reported = str(cluster_memory.of_cluster(operator, obj).get("refilled", ""))
    made_for = job.metadata.annotations.get(labels.REQUEST, "") if job else ""
    is_complete = job is not None and _is_complete(operator, job)
    carried_out = made_for if is_complete and made_for else reported
    step = jail_refill.decide(_seen(operator, cluster, job, carried_out))
    return JailStatus(
        step, job, carried_out, is_filled=step.login and (is_complete or _login(operator, cluster) is not None)
    )


async def settle(operator: Operator, cluster: Cluster, seen: JailStatus, pointed: bool) -> tuple[JailStatus, str]:
    """Carry out the step, except for rendered objects. Return the snapshot, and the message of what Slurm refused.

    The snapshot has a Job to create only if a fresh answer from Slurm agrees. Nodes are drained and resumed on a fresh answer too, because an
    administrator may have drained one in the meantime. No node takes jobs again before the mount points exist (`pointed`).
    """
    client = operator.slurm.client(cluster.key)
    seen = await _with_job_report(operator, seen)
    step, refused = seen.step, ""
    try:
        if client and (step.drain or (step.resume and pointed)):
            known = _seen(operator, cluster, seen.job, seen.carried_out)
            nodes = await client.nodes()
            fresh = jail_refill.decide(replace(known, nodes=nodes))
            if not await _move(client, fresh, nodes, pointed):
                seen = replace(seen, again=min(seen.again or _CONTINUES, _CONTINUES))
        if _is_agreed_upon(operator, cluster, step, client):
            agreed = await _agreed(operator, cluster, seen, client)
            again = seen.again if agreed.asks_jobs or not step.asks_jobs else min(seen.again or _SUSPENDED, _SUSPENDED)
            seen = replace(seen, step=agreed, again=again)
    except SlurmError as error:
        refused = str(error)
        silent = jail_refill.decide(replace(_seen(operator, cluster, seen.job, seen.carried_out), nodes=None))
        seen = replace(seen, step=replace(silent if step.asks_jobs else step, job="keep"))
    if seen.step.job == "drop" and seen.job:
        meta = seen.job.metadata
        await operator.api.delete(kinds.JOB, meta.namespace, meta.name, Deletion(uid=meta.uid))
    return seen, refused


async def _move(client: SlurmRest, step: JailStep, nodes: Mapping[str, SlurmNode], pointed: bool) -> bool:
    """Drain and resume nodes while the answer of Slurm on which that was decided is fresh; return False if some are left. Raises SlurmError."""
    clock = asyncio.get_running_loop().time
    until = clock() + _HOLDS
    acts = [partial(client.drain, name, jail_refill.drain_reason(nodes[name])) for name in step.drain]
    acts += [partial(client.resume, name) for name in (step.resume if pointed else ())]
    for act in acts:
        if clock() >= until:
            return False
        await act()
    return True


def _is_agreed_upon(operator: Operator, cluster: Cluster, step: JailStep, client: SlurmRest | None) -> bool:
    """Return whether a step may be carried out only on a fresh answer of Slurm."""
    is_under_jobs = step.job == "make" and step.hold and client and _login(operator, cluster) is not None
    return step.asks_jobs or bool(is_under_jobs)


async def may_make(operator: Operator, cluster: Cluster, seen: JailStatus) -> bool:
    """Return whether the Job may still be created.

    The writes since `settle` may have taken long, and somebody may have resumed a node in that time.
    """
    client = operator.slurm.client(cluster.key)
    if not _is_agreed_upon(operator, cluster, seen.step, client):
        return True
    try:
        return (await _agreed(operator, cluster, seen, client)).job == "make"
    except SlurmError:
        return False


async def _agreed(operator: Operator, cluster: Cluster, seen: JailStatus, client: SlurmRest | None) -> JailStep:
    """Return the step, decided on a fresh answer of Slurm that includes its jobs; raises SlurmError."""
    known = _seen(operator, cluster, seen.job, seen.carried_out)
    if client is None:
        return jail_refill.decide(replace(known, nodes=None))
    nodes = await client.nodes()
    draining = [name for name, each in nodes.items() if each.is_draining]
    jobs = await client.jobs(await listed_after(client, nodes, draining))
    return jail_refill.decide(replace(known, nodes=held(nodes, jobs)))


async def _with_job_report(operator: Operator, seen: JailStatus) -> JailStatus:
    attempts = _attempts(operator, seen.job) if seen.job else []
    if not attempts:
        return seen
    attempt = await operator.pulls.with_events(operator.api, attempts[-1])
    return replace(seen, attempt=attempt, again=operator.pulls.wait(attempts[-1]))


def has_login(operator: Operator, cluster: Cluster) -> bool:
    """Return whether login existed before. The operator then keeps login while it checks the jail again."""
    return _login(operator, cluster) is not None


def unusable_reason(operator: Operator, cluster: Cluster, seen: JailStatus) -> str:
    """Return why nobody can work in the jail, as a message; empty if the jail is usable."""
    return "" if seen.is_filled else _message(operator, cluster, seen)


def condition(operator: Operator, cluster: Cluster, seen: JailStatus, points: str) -> ReportedCondition:
    """Return the condition JailReady. A failed repair leaves a jail in use ready."""
    if seen.is_filled and points:
        return ReportedCondition("JailReady", "False", "MountPointsMissing", points)
    if sick := _sick(operator, cluster):
        return ReportedCondition("JailReady", "False", "NotAnswering", sick)
    if not cluster.spec.jail.has_job:
        return ReportedCondition("JailReady", "True", "OnEachNode" if cluster.spec.jail.per_node else "NotOurs")
    said = _message(operator, cluster, seen)
    failed = seen.job is not None and _failure(seen.job) is not None
    if not seen.is_filled:
        closed = seen.step.hold and _login(operator, cluster) is not None
        # Another reason is reported at once, mere progress is not.
        waits = "Stuck" if seen.attempt and pod_status.is_failing(seen.attempt) else "Waiting"
        return ReportedCondition("JailReady", "False", "Failed" if failed else "Overwriting" if closed else waits, said)
    if said:
        reason = "RefillFailed" if failed else "Draining" if seen.step.hold else "Refilling"
        return ReportedCondition("JailReady", "True", reason, said)
    other = _other_image(operator, cluster, seen)
    return ReportedCondition("JailReady", "True", "FilledFromAnother" if other else "Filled", other)


def _sick(operator: Operator, cluster: Cluster) -> str:
    """Return the nodes on which no step can enter the jail, with the message of the first; empty if no worker reports a fault."""
    said = {
        each.spec.hostname: _worker_report(operator, cluster, each) for each in operator.stores.sick_pods(cluster.key)
    }
    names = sorted(name for name, words in said.items() if words)
    return f"no job step can start on {jail_refill.some(names)}: {said[names[0]]}" if names else ""


def _worker_report(operator: Operator, cluster: Cluster, worker: Pod) -> str:
    """Return a worker's message about its jail; empty if it reports no fault, or does not answer.

    That is its own answer or, from before the operator's start, the reason in Slurm.
    """
    heard = operator.memory(REPORTS).get(worker.metadata.uid)
    if heard and heard.said is not None:
        return heard.said.removeprefix(JAIL)
    node = (operator.slurm.nodes(cluster.key) or {}).get(worker.spec.hostname)
    return node.reason.removeprefix(JAIL) if node and node.our_reason.startswith(JAIL) else ""


def _message(operator: Operator, cluster: Cluster, seen: JailStatus) -> str:
    """Return a message about the progress or the failure; empty if there is neither."""
    if seen.job is None:
        return (
            f"the jail on claim {jail_claim(cluster)}: {seen.step.why}"
            if seen.step.why
            else "the jail is not filled yet"
        )
    if _is_complete(operator, seen.job):
        return f"the jail on claim {jail_claim(cluster)}: {seen.step.why}" if seen.step.why else ""
    return _progress(operator, cluster, seen.job, seen.attempt) + (f" ({seen.step.why})" if seen.step.why else "")


def _progress(operator: Operator, cluster: Cluster, job: Job, attempt: Pod | None) -> str:
    """Return the progress of a Job, or why it failed.

    It is the message of the Job's newest pod, because only that pod belongs to the current attempt.
    """
    claim, made_for = jail_claim(cluster), job.metadata.annotations.get(labels.REQUEST, "")
    what = f"Job {job.metadata.name}{f', request {made_for},' if made_for else ''}"
    attempts = _attempts(operator, job)
    attempt = attempt or (attempts[-1] if attempts else None)
    detail = pod_status.trouble(attempt, operator.stores.nodes) if attempt else ""
    failure = _failure(job)
    if failure is None:
        return f"{what} is filling the jail on claim {claim}" + (f": {detail}" if detail else "")
    last = next((text for text in (pod_status.last_words(each) for each in reversed(attempts)) if text), "")
    return (
        f"{what} could not fill the jail on claim {claim}: {last or detail or failure}; "
        f"fix the cause, then delete the Job to try again"
    )


def _attempts(operator: Operator, job: Job) -> list[Pod]:
    return sorted(operator.stores.pods.by("owner", job.metadata.uid), key=_age)


def _other_image(operator: Operator, cluster: Cluster, seen: JailStatus) -> str:
    """Return a note that the jail was filled from another image than the current one; empty if it was not, or if that is unknown."""
    wanted, made_from = jail_image(cluster, operator.defaults), _origin(operator, seen.job)
    if made_from in ("", wanted):
        return ""
    return f"filled from {made_from}; the cluster's image is {wanted}, which does not change a filled jail: to upgrade it see {_HOWTO}"


def _origin(operator: Operator, job: Job | None) -> str:
    """Return the image in the jail's own record, from the last log line of the container `seal`; otherwise the image of the Job."""
    if job is None:
        return ""
    for pod in operator.stores.pods.by("owner", job.metadata.uid):
        with suppress(ValueError, AttributeError):
            return str(json.loads(pod_status.last_words(pod, "seal")).get("image", ""))
    return job.metadata.annotations.get(labels.IMAGE, "")


def _seen(operator: Operator, cluster: Cluster, job: Job | None, carried_out: str) -> JailSnapshot:
    key = cluster.key
    asked, found = request(cluster, carried_out), operator.stores.cluster_pods(key)
    login = _login(operator, cluster)
    replicas = (login.spec.replicas, login.status.replicas) if login else (0, 0)
    workers = [each for each in found if each.metadata.labels.get(labels.ROLE) == "worker"]
    seen_workers = ((each.spec.hostname, pod_status.worker(each, operator.stores.nodes)) for each in workers)
    return JailSnapshot(
        request=asked.request,
        overwrites=asked.mode == "Overwrite" and bool(asked.request),
        job=_job_seen(operator, cluster, job, carried_out),
        has_live_pods=any(_is_live(each) for role in ("populate", "mount-points") for each in _of_role(found, role)),
        was_up=login is not None,
        is_login_closed=login is not None and login.spec.replicas == 0 and cluster.spec.login.replicas > 0,
        login_pods=max(*replicas, len(_of_role(found, "login"))),
        nodes=operator.slurm.nodes(key),
        workers={name: worker for name, worker in seen_workers if worker},
        others=_others(operator, cluster),
    )


def _others(operator: Operator, cluster: Cluster) -> str:
    """Return the pods of other clusters in the same jail, and how to end them; empty if there are none. An unreadable spec may name any claim."""
    claim, world = jail_claim(cluster), operator.namespaces.view(cluster.namespace).world
    sharing = [
        name
        for name, spec in world.clusters.items()
        if name != cluster.name
        and (
            (spec.jail.claim.name or names.jail_claim(name)) == claim
            or claim in world.unreadable_clusters.get(name, ())
        )
    ]
    for name in sharing:
        found = operator.stores.cluster_pods((cluster.namespace, name))
        if inside := sorted(each.metadata.name for role in _INSIDE for each in _of_role(found, role) if _is_live(each)):
            return f"SlurmCluster {name} has pods in the same jail, {jail_refill.some(inside)}: scale its NodeSets and its login to 0"
    return ""


def _job_seen(
    operator: Operator, cluster: Cluster, job: Job | None, carried_out: str
) -> jail_refill.PopulateJob | None:
    if job is None:
        return None
    said = job.metadata.annotations
    present = render_populate(cluster, operator.defaults, carried_out)[0]["metadata"]["annotations"][labels.TEMPLATE]
    return jail_refill.PopulateJob(
        request=said.get(labels.REQUEST, ""),
        overwrites=said.get(labels.MODE) == "Overwrite",
        is_current=said.get(labels.TEMPLATE) == present,
        is_complete=_is_complete(operator, job),
    )


def _job(operator: Operator, cluster: Cluster) -> Job | None:
    """Return the Job of this cluster, unless it is being deleted. The Job of a former cluster with the same name does not count."""
    owned: Sequence[Job] = operator.stores.children[kinds.JOB].by("owner", cluster.uid)
    found = [each for each in owned if each.metadata.name == names.populate(cluster.name)]
    return next((each for each in found if each.metadata.deletion_timestamp is None), None)


def _login(operator: Operator, cluster: Cluster) -> StatefulSet | None:
    found: StatefulSet | None = operator.stores.children[kinds.STATEFULSET].get(
        cluster.namespace, names.login(cluster.name)
    )
    return found


def _is_complete(operator: Operator, job: Job) -> bool:
    """Return whether the newest pod has succeeded: Kubernetes marks the Job as complete only some seconds later."""
    done = any(each.type == "Complete" and each.status == "True" for each in job.status.conditions)
    return done or any(each.status.phase == "Succeeded" for each in operator.stores.pods.by("owner", job.metadata.uid))


def _failure(job: Job) -> str | None:
    """Return why a Job has failed, from its condition; None while it has not failed."""
    return next(
        (
            each.message
            for each in job.status.conditions
            if each.type in ("Failed", "FailureTarget") and each.status == "True"
        ),
        None,
    )


def _is_live(pod: Pod) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed")


def _of_role(found: Sequence[Pod], role: str) -> list[Pod]:
    return [each for each in found if each.metadata.labels.get(labels.ROLE) == role]


def _age(pod: Pod) -> tuple[str, str]:
    made = pod.metadata.creation_timestamp
    return (made.isoformat() if made else "", pod.metadata.name)
