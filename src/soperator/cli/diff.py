"""`soperator diff`: shows what a change of files would change in a cluster, and which pods it would restart.

The objects are rendered as the operator would render them, with its own images, and compared with the digests that it stored on the objects in
Kubernetes. Slurm's files are compared line by line with those that slurmctld runs with.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.support.output import NamespaceOption, OutputFormat, OutputOption, emit
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.api.base import Model
    from soperator.kube.api import Api
    from soperator.render.parts.model import (
        Cluster,
        Defaults,
        NodeSet,
        Object,
    )
    from soperator.slurm.settings.state import ConfigState

#: The effect of a changed object of a kind on what runs.
_MEANS = {
    "StatefulSet": "its pods are replaced",
    "Deployment": "its pods are replaced, new ones first",
}


@dataclass(frozen=True)
class LiveCluster:
    """The state of a cluster in Kubernetes: the digests of its objects by `Kind/name`, Slurm's files with their state, and the pods' templates by
    NodeSet.
    """

    uid: str = ""
    applied: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    state: "ConfigState | None" = None
    status: Mapping[str, Any] = field(default_factory=dict)
    templates: Mapping[str, Sequence[str]] = field(default_factory=dict)


def diff(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... | CLUSTER", help="YAML files (- for standard input), or the name of a SlurmCluster."
        ),
    ],
    namespace: NamespaceOption = "",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Show what applying the files would change and restart, or what the operator has yet to change for a cluster's current spec.

    Exit code 0: nothing. 1: something. 2: the comparison is impossible.
    """
    from soperator.kube.errors import KubeError

    try:
        lines = asyncio.run(_diff(what, namespace))
    except (KubeError, _Unclear) as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None
    emit(output, {"changes": lines}, lines or ["Nothing would change."])
    raise typer.Exit(1 if lines else 0)


class _Unclear(Exception):  # noqa: N818
    """The comparison is impossible; the message has the cause."""


def compare(
    live: LiveCluster, cluster: "Cluster", nodesets: "Sequence[NodeSet]", defaults: "Defaults"
) -> Iterator[str]:
    """Yield a line for each change in one cluster. New images are rolled out in stages, of which only the first is shown."""
    from soperator.policy.cluster.images import RunningImages
    from soperator.reconcile.cluster import images
    from soperator.render.slurm_conf import slurm_conf
    from soperator.render.worker import pod

    stage = images.staged(live.status, cluster, defaults, RunningImages())
    first, workers, login = (
        images.with_images(cluster, each) for each in (stage.wanted, stage.record.workers, stage.record.login)
    )
    yield from _of_files(live, slurm_conf.files(first))
    yield from _of_objects(live, first, (workers, login), defaults)
    cluster = workers
    for each in nodesets:
        old = [name for name in live.templates.get(each.name, ()) if name != pod.template_hash(cluster, each, defaults)]
        if old:
            yield f"NodeSet {each.name}: {len(old)} pods are replaced, each after its jobs have ended"
        if (
            not each.spec.power_saving
            and each.name in live.templates
            and len(live.templates[each.name]) != each.spec.replicas
        ):
            yield f"NodeSet {each.name}: {len(live.templates[each.name])} pods become {each.spec.replicas}"


def _of_files(live: LiveCluster, files: Mapping[str, str]) -> Iterator[str]:
    from soperator.slurm.settings import diff as settings_diff

    found = settings_diff.effect(live.files, files)
    if not found.files or not live.files:
        return
    yield from settings_diff.diff(live.files, files)
    of = f" ({', '.join(found.settings)})" if found.settings else ""
    yield f"configuration{of}: {found.act}; slurmrestd's pods are replaced, new ones first"
    yield from (f"danger: {each}" for each in found.dangers)


def _of_objects(
    live: LiveCluster, cluster: "Cluster", of: "tuple[Cluster, Cluster]", defaults: "Defaults"
) -> Iterator[str]:
    from soperator.render.cluster.objects import render_cluster
    from soperator.slurm.settings.state import ConfigState

    objects = render_cluster(cluster, defaults, True, live.state or ConfigState(), of)
    wanted = {f"{each['kind']}/{each['metadata']['name']}": each for each in objects}
    digests = {name: _digest(each, cluster) for name, each in wanted.items()}
    for name in sorted(wanted.keys() - live.applied.keys()):
        yield f"{name}: is made"
    for name in sorted(wanted.keys() & live.applied.keys()):
        if live.applied[name] != digests[name]:
            means = _MEANS.get(name.split("/")[0], "")
            yield f"{name}: changes" + (f", {means}" if means else "")


def _digest(obj: "Object", cluster: "Cluster") -> str:
    from soperator.kube.kinds import SLURMCLUSTER
    from soperator.runtime.apply import Owner, digest_as_child

    return digest_as_child(obj, Owner(SLURMCLUSTER, cluster.namespace, cluster.name, cluster.uid))


async def _diff(what: Sequence[str], namespace: str) -> list[str]:
    from soperator.kube.api import Api

    async with Api.connect("soperator-cli") as api:
        where = namespace or api.namespace
        given = _given(what)
        lines: list[str] = []
        for name in sorted({each for kind, each, _ in given if kind == "SlurmCluster"} if given else set(what)):
            cluster, nodesets = await _specs(api, where, name, given)
            live = await _live(api, cluster)
            found = list(compare(live, replace(cluster, uid=live.uid), nodesets, await _defaults(api)))
            lines += [f"SlurmCluster {name}:", *found] if found else []
        return lines


def _given(what: Sequence[str]) -> "list[tuple[str, str, Model]]":
    """Return the kind, the name and the spec of each object in the files; empty if the argument is a cluster's name."""
    if not any(each == "-" or Path(each).exists() or each.endswith((".yaml", ".yml")) for each in what):
        return []
    from soperator.cli.support.manifests import load

    found = load([Path(each) for each in what])
    if faults := [f"{each.file}: {fault}" for each in found for fault in each.faults]:
        raise _Unclear("\n".join(faults))
    if not any(each.kind == "SlurmCluster" for each in found):
        raise _Unclear("the files contain no SlurmCluster: give its name, or a file that contains it")
    return [(each.kind, each.name, each.spec) for each in found if each.spec]


async def _specs(
    api: "Api", namespace: str, name: str, given: "Iterable[tuple[str, str, Model]]"
) -> "tuple[Cluster, list[NodeSet]]":
    """Return the cluster and its NodeSets: from the files if these contain them, otherwise from Kubernetes."""
    from soperator.api.nodeset import NodeSetSpec
    from soperator.api.slurmcluster import SlurmClusterSpec
    from soperator.kube.errors import NotFound
    from soperator.kube.kinds import NODESET, SLURMCLUSTER
    from soperator.kube.views import Custom
    from soperator.reconcile.cache.decode import read_cluster, read_nodeset
    from soperator.render.cluster.objects import after_start, with_members
    from soperator.render.parts.model import Cluster, NodeSet

    mine = {each: spec for kind, each, spec in given if kind == "NodeSet" and isinstance(spec, NodeSetSpec)}
    asked = next((spec for _, each, spec in given if each == name and isinstance(spec, SlurmClusterSpec)), None)
    if asked:
        cluster = Cluster(namespace, name, "", asked)
    else:
        try:
            read = read_cluster(await api.get(SLURMCLUSTER, Custom, namespace, name))
        except NotFound:
            raise _Unclear(
                f"SlurmCluster {name}: not found in namespace {namespace}, and no file has this name"
            ) from None
        if not isinstance(read, Cluster):
            raise _Unclear("\n".join(map(str, read)))
        cluster = read
    there = [read_nodeset(each) for each in (await api.list(NODESET, Custom, namespace)).items]
    sets = {each.name: each for each in there if isinstance(each, NodeSet)}
    sets |= {
        each: NodeSet(namespace, each, sets[each].uid if each in sets else "", spec) for each, spec in mine.items()
    }
    members = [each for each in sets.values() if each.spec.cluster == name]
    return await _with_contents(api, after_start(with_members(cluster, members))), members


async def _with_contents(api: "Api", cluster: "Cluster") -> "Cluster":
    """Return the cluster with the entries of ConfigMaps and Secrets to which its config refers, as Kubernetes has them."""
    from soperator.api.fields.config import entries
    from soperator.reconcile.cluster import site_files

    found = [each for each in entries(cluster.spec.config) if each.ref]
    contents, faults = await site_files.read(api, cluster.namespace, {each.ref for each in found if each.ref})
    if faulty := next((each for each in found if each.ref in faults), None):
        assert faulty.ref is not None
        raise _Unclear(f"SlurmCluster {cluster.name}: {faulty.field}: {faults[faulty.ref]}, or remove the entry")
    return replace(cluster, contents=contents)


async def _live(api: "Api", cluster: "Cluster") -> LiveCluster:
    from soperator.kube import kinds
    from soperator.kube.errors import NotFound
    from soperator.kube.objects import ConfigMap
    from soperator.kube.views import Custom, Meta
    from soperator.render.parts import labels, names
    from soperator.runtime.apply_ledger import APPLIED
    from soperator.slurm.settings.state import ConfigState, read_state

    mine = f"{labels.CLUSTER}={cluster.name}"
    applied: dict[str, str] = {}
    for kind in (
        kinds.CONFIGMAP,
        kinds.SERVICE,
        kinds.STATEFULSET,
        kinds.DEPLOYMENT,
        kinds.PDB,
        kinds.NETWORKPOLICY,
        kinds.PVC,
    ):
        for each in (await api.list(kind, Meta, cluster.namespace, mine)).items:
            applied[f"{kind.kind}/{each.metadata.name}"] = each.metadata.annotations.get(APPLIED, "")
    templates: dict[str, list[str]] = {}
    for each in (await api.list(kinds.POD, Meta, cluster.namespace, f"{mine},{labels.ROLE}=worker")).items:
        templates.setdefault(each.metadata.labels.get(labels.NODESET, ""), []).append(
            each.metadata.annotations.get(labels.TEMPLATE, "")
        )
    try:
        config = await api.get(kinds.CONFIGMAP, ConfigMap, cluster.namespace, names.config(cluster.name))
        there = await api.get(kinds.SLURMCLUSTER, Custom, cluster.namespace, cluster.name)
    except NotFound:
        return LiveCluster("", applied, {}, ConfigState(), {}, templates)
    state = read_state(config.metadata.annotations.get(labels.TRANSACTION, ""))
    return LiveCluster(there.metadata.uid, applied, config.data, state, there.status, templates)


async def _defaults(api: "Api") -> "Defaults":
    """Return the images of the installed operator, as its Deployment names them, and its namespace."""
    import msgspec

    from soperator.kube.kinds import DEPLOYMENT
    from soperator.kube.views import Custom
    from soperator.reconcile.app import options

    found = (await api.list(DEPLOYMENT, Custom, None, "app.kubernetes.io/name=soperator")).items
    if not found:
        return options({}, use_lease=False).defaults
    own = {"POD_NAMESPACE": found[0].metadata.namespace}  # which its Deployment takes from its pod
    return options(_environment(msgspec.json.decode(found[0].spec)) | own, use_lease=False).defaults


def _environment(spec: Mapping[str, Any]) -> dict[str, str]:
    containers = spec["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in containers[0].get("env", ()) if "value" in each}
