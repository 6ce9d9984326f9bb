"""Finds the SlurmCluster of a verb, and reads its other objects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from soperator.cli.support.errors import CliError

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.kube.views import Custom
    from soperator.render.parts.model import Cluster


@asynccontextmanager
async def connected(namespace: str) -> "AsyncIterator[tuple[Api, str]]":
    """Connect to Kubernetes; yield the API, and the namespace: the given one, or that of the kubeconfig. Raises NoCluster."""
    from soperator.kube.api import Api

    async with Api.connect("soperator-cli") as api:
        yield api, namespace or api.namespace


async def find_cluster(api: "Api", namespace: str, name: str) -> "Custom":
    """Return the SlurmCluster of this name; without a name the only one of the namespace. Raises CliError."""
    from soperator.kube.errors import NotFound
    from soperator.kube.kinds import SLURMCLUSTER
    from soperator.kube.views import Custom

    if name:
        try:
            return await api.get(SLURMCLUSTER, Custom, namespace, name)
        except NotFound as error:
            if "could not find the requested resource" in error.message:
                raise CliError(NO_KINDS) from None
    found = await list_clusters(api, namespace)
    known = ", ".join(each.metadata.name for each in found)
    if name:
        remedy = f"the clusters there are {known}" if known else "there is no cluster: give another namespace with -n"
        raise CliError(f"SlurmCluster {name}: not found in namespace {namespace}; {remedy}")
    if len(found) != 1:
        remedy = f"give the name of one of {known}" if known else "it has no SlurmCluster: give another one with -n"
        raise CliError(f"namespace {namespace}: {remedy}")
    return found[0]


#: Kubernetes answers this way about a kind that it does not know.
NO_KINDS = (
    "Kubernetes does not know the kind SlurmCluster: install the chart soperator-crds, or choose another --context"
)


async def list_clusters(api: "Api", namespace: str | None) -> "list[Custom]":
    """Return the SlurmClusters of a namespace, or of all namespaces, sorted by namespace and name. Raises CliError."""
    from soperator.kube.errors import NotFound
    from soperator.kube.kinds import SLURMCLUSTER
    from soperator.kube.views import Custom

    try:
        found = (await api.list(SLURMCLUSTER, Custom, namespace)).items
    except NotFound:
        raise CliError(NO_KINDS) from None
    return sorted(found, key=lambda each: (each.metadata.namespace, each.metadata.name))


async def members_of(api: "Api", cluster: "Custom") -> "list[Custom]":
    """Return the NodeSets of a cluster, sorted by name."""
    from soperator.kube.kinds import NODESET
    from soperator.kube.views import Custom
    from soperator.reconcile.cache.decode import named

    found = (await api.list(NODESET, Custom, cluster.metadata.namespace)).items
    return sorted((each for each in found if named(each) == cluster.metadata.name), key=lambda each: each.metadata.name)


def as_cluster(custom: "Custom") -> "Cluster":
    """Return the cluster as far as its spec can be read, which is enough to address its pods."""
    from soperator.reconcile.cache.decode import partial_cluster
    from soperator.render.parts.model import Cluster

    meta = custom.metadata
    return Cluster(meta.namespace, meta.name, meta.uid, partial_cluster(custom))
