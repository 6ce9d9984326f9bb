"""Selects the images of a cluster's parts from its spec, what is remembered of it, and the state of its pods (`policy/cluster/images`).

A trial pod runs a new image of slurmctld with the configuration that slurmctld runs with. The Slurm version that the trial reports is
remembered before it is used, so that no restart of the operator reverts a step.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from soperator.kube.views import Custom, Pod
from soperator.policy.cluster import images as cluster_images
from soperator.policy.cluster.images import ImageRecord, Images, Stage
from soperator.reconcile import inputs, pod_status
from soperator.reconcile.cache.decode import field as text_of
from soperator.reconcile.cluster import accounting
from soperator.reconcile.cluster.trial_pods import create, remove, trial_of
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster, Defaults
from soperator.render.slurm_conf import trial
from soperator.runtime.status import ReportedCondition

ROLES = ("slurm", "login", "munge", "agents", "sssd", "mariadb", "proxy")


def stage(operator: Operator, obj: Custom, cluster: Cluster) -> Stage:
    """Return the desired images of each part of a cluster; `cluster` has the images of its object."""
    memory = cluster_memory.of_cluster(operator, obj)
    return staged(memory, cluster, operator.defaults, _running(operator, cluster, memory))


async def try_out(operator: Operator, cluster: Cluster, found: Stage) -> None:
    """Create the pods that try images, and delete all others."""
    good, all_trials = _good(operator, cluster), operator.stores.role_pods(cluster.key, trial.IMAGE_TRIAL)
    tried = _of_these_files(all_trials, good)
    over = {
        image: pod for image, pod in tried.items() if image not in found.tries or trial_of(operator, pod).end == "lost"
    }
    others = [pod for pod in all_trials if pod.metadata.labels.get(labels.GENERATION) != good]
    await remove(operator, [*over.values(), *others])
    for image in found.tries:
        if image not in tried and good:
            tried_with = with_images(cluster, {"slurm": image})
            await create(operator, trial.render_image_trial(tried_with, operator.defaults, good))


def staged(
    status: Mapping[str, Any], cluster: Cluster, defaults: Defaults, running: cluster_images.RunningImages
) -> Stage:
    """Return the decision of the image policy for a status, the operator's images, and the running ones."""
    spec = cluster.spec
    desired = cluster_images.DesiredImages(
        said=_spec_images(cluster),
        own=_own(defaults),
        request=spec.upgrade.request,
        follows=spec.upgrade.mode == "WithOperator",
    )
    return cluster_images.stage(_record(status), desired, running)


def of_workers(operator: Operator, obj: Custom, cluster: Cluster) -> Cluster:
    """Return the cluster with the images from which workers may be created now."""
    record = _record(cluster_memory.of_cluster(operator, obj))
    made = record.workers if record else {**_own(operator.defaults), **_spec_images(cluster)}
    return with_images(cluster, made)


def with_images(cluster: Cluster, images: Images) -> Cluster:
    """Return the same cluster with the images of all its parts set."""
    spec = cluster.spec
    named = spec.images.model_copy(update={role: images[role] for role in ROLES if images.get(role)})
    jail = spec.jail.model_copy(update={"image": images.get("jail", spec.jail.image)})
    return replace(cluster, spec=spec.model_copy(update={"images": named, "jail": jail}))


def status_fields(memory: Mapping[str, Any], found: Stage | None) -> dict[str, Any]:
    """Return the record as a field of the status; without a stage the former record."""
    if found is None:
        return {"images": memory["images"]} if "images" in memory else {}
    versions = {"versions": dict(found.versions)} if found.versions else {}
    return {"images": {key: value for key, value in asdict(found.record).items() if value} | versions}


def condition(found: Stage, is_config_held: bool) -> ReportedCondition:
    """Return the condition UpToDate."""
    if is_config_held and not found.reason:
        why = (
            "this operator version renders another slurm.conf for this spec; the cluster keeps its current one: "
            "set spec.upgrade.request to a new value to adopt it"
        )
        return ReportedCondition("UpToDate", "False", "Held", why)
    return ReportedCondition("UpToDate", "False" if found.reason else "True", found.reason or "AsAsked", found.why)


def _spec_images(cluster: Cluster) -> dict[str, str]:
    images = cluster.spec.images
    said = {role: getattr(images, role) for role in ROLES} | {"jail": cluster.spec.jail.image}
    return {role: image for role, image in said.items() if image}


def _own(defaults: Defaults) -> dict[str, str]:
    found = {role: getattr(defaults, role) for role in (*ROLES, "jail")}
    return {role: image for role, image in found.items() if image}


def _record(status: Mapping[str, Any]) -> ImageRecord | None:
    """Return the record in the status; None if the operator has not written the status yet."""
    kept = status.get("images")
    if not isinstance(kept, dict) or not all(kept.get(each) for each in ("defaults", "workers", "login")):
        return None
    return ImageRecord(kept["defaults"], kept["workers"], kept["login"], kept.get("request", ""))


def _good(operator: Operator, cluster: Cluster) -> str:
    """Return the generation of the configuration that slurmctld runs with."""
    return inputs.transaction(operator, cluster).good


def _of_these_files(trials: Iterable[Pod], good: str) -> dict[str, Pod]:
    """Return the pods that try images with a generation of the configuration, by image."""
    return {_image(pod): pod for pod in trials if pod.metadata.labels.get(labels.GENERATION) == good}


def _running(operator: Operator, cluster: Cluster, status: Mapping[str, Any]) -> cluster_images.RunningImages:
    key, good = cluster.key, _good(operator, cluster)
    slurmctlds = operator.stores.role_pods(key, "controller")
    known = {_image(pod) if pod_status.is_ready(pod) else "" for pod in slurmctlds}
    own = _with_images_of_their_own(operator, cluster)
    workers = operator.stores.role_pods(key, "worker")
    trials = operator.stores.role_pods(key, trial.IMAGE_TRIAL)
    counted = Counter(_image(pod) for pod in workers if pod.metadata.labels.get(labels.NODESET) not in own)
    return cluster_images.RunningImages(
        slurmctld=next(iter(known)) if len(known) == 1 else "",
        workers=counted,
        placed=sorted({_image(pod) for pod in slurmctlds if pod.metadata.deletion_timestamp is None}),
        versions=dict(status.get("images", {}).get("versions", {})),
        trials={image: trial_of(operator, pod) for image, pod in _of_these_files(trials, good).items()},
        may_try=bool(good),
        slurmdbd=accounting.slurmdbd(operator, cluster, status),
    )


def _with_images_of_their_own(operator: Operator, cluster: Cluster) -> set[str]:
    return {each.metadata.name for each in operator.stores.nodesets_of(cluster.key) if text_of(each, "image")}


def _image(pod: Pod) -> str:
    return pod.metadata.annotations.get(labels.IMAGE, "")
