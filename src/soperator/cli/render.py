"""`soperator render`: prints the objects that the operator would create from a file, without a Kubernetes cluster."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.api.nodeset import NodeSetSpec
    from soperator.cli.support.manifests import Manifest
    from soperator.render.parts.model import (
        Cluster,
        Defaults,
        NodeSet,
        Object,
    )


def render(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files; - for standard input.")],
    registry: Annotated[
        str, typer.Option(help=("Registry and common prefix of the operator's default images."))
    ] = "localhost/soperator",
    tag: Annotated[str, typer.Option(help="Tag of the default images; default: this version.")] = "",
) -> None:
    """Print every Kubernetes object of the clusters in the files, except keys, which only the operator creates."""
    import yaml

    from soperator import __version__
    from soperator.cli.support.manifests import entries_of, load

    objects = load(files)
    if faults := [f"{found.file}: {problem}" for found in objects for problem in found.faults]:
        for fault in faults:
            say(fault, err=True)
        raise typer.Exit(1)
    typer.echo(
        yaml.safe_dump_all(
            _rendered(objects, _defaults(registry, tag or __version__), entries_of(files)), sort_keys=False
        ),
        nl=False,
    )


def _defaults(registry: str, tag: str) -> "Defaults":
    from soperator.render.parts.model import Defaults

    roles = ("slurm", "login", "munge", "agents", "jail", "sssd", "mariadb", "proxy")
    return Defaults(**{role: f"{registry}/{role}:{tag}" for role in roles})


def _rendered(
    objects: "list[Manifest]", defaults: "Defaults", given: "Mapping[tuple[str, str, str, str], str]"
) -> "list[Object]":
    """Return the objects of each cluster and of its NodeSets, as the operator would apply them to a namespace that has only these ConfigMaps."""
    from soperator.api.nodeset import NodeSetSpec
    from soperator.api.slurmcluster import SlurmClusterSpec
    from soperator.render.cluster.objects import after_start, with_members
    from soperator.render.parts.model import Cluster, NodeSet

    out: list[Object] = []
    for found in objects:
        if isinstance(found.spec, SlurmClusterSpec):
            node_sets = [
                NodeSet(other.namespace, other.name, "", other.spec)
                for other in objects
                if isinstance(other.spec, NodeSetSpec)
                and (other.namespace, other.spec.cluster) == (found.namespace, found.name)
            ]
            cluster = after_start(with_members(Cluster(found.namespace, found.name, "", found.spec), node_sets))
            out += _of_cluster(_with_contents(cluster, given), node_sets, defaults)
    return out


def _with_contents(cluster: "Cluster", given: "Mapping[tuple[str, str, str, str], str]") -> "Cluster":
    """Return the cluster with the contents in the files; a missing entry is reported, and replaced by a comment."""
    from soperator.api.fields.config import entries
    from soperator.render.slurm_conf import site_files

    refs = [each.ref for each in entries(cluster.spec.config) if each.ref]
    at = {ref: (ref.kind, cluster.namespace, ref.name, ref.key) for ref in refs}
    made = replace(cluster, contents={ref: given[key] for ref, key in at.items() if key in given})
    for each in site_files.missing(made):
        assert each.ref is not None
        what = f"{each.ref.kind} {each.ref.name} with the key {each.ref.key} is not in the files"
        say(f"SlurmCluster {cluster.name}: {each.field}: {what}, so its content is left out", err=True)
    return made


def _of_cluster(cluster: "Cluster", node_sets: "list[NodeSet]", defaults: "Defaults") -> "list[Object]":
    from soperator.render.cluster.objects import render_accounted, render_cluster
    from soperator.render.jail import mount_points, populate_job
    from soperator.render.slurm_conf import health_checks, slurm_conf, trial
    from soperator.render.worker import pod
    from soperator.slurm.settings import diff
    from soperator.slurm.settings.state import ConfigState

    name, files = slurm_conf.generation(cluster), slurm_conf.files(cluster)
    state = ConfigState(name, name, asked=name, fixed=diff.fixed(files))
    out = [trial.render_live(cluster, files, state), *render_cluster(cluster, defaults, True, state)]
    out += render_accounted(cluster, defaults)
    out += populate_job.render_populate(cluster, defaults)
    out += mount_points.render_mount_points(cluster, node_sets, defaults)
    for node_set in node_sets:
        out += [pod.render_plan(cluster, node_set), *health_checks.render(cluster, node_set)]
        out += [pod.render_worker(cluster, node_set, index, defaults) for index in range(_pods(node_set.spec))]
    return [_unowned(each) for each in out]


def _pods(spec: "NodeSetSpec") -> int:
    """Return the number of pods that exist at the same time; with power saving it is one, to show a pod that a job starts."""
    return max(1, spec.power_saving.min_nodes) if spec.power_saving else spec.replicas


def _unowned(each: "Object") -> "Object":
    """Return the object without owner references, because an owner that does not exist has no uid."""
    return each | {"metadata": {key: value for key, value in each["metadata"].items() if key != "ownerReferences"}}
