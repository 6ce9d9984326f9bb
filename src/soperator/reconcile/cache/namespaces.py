"""The objects of our kinds in a namespace, decoded and validated once per change, for any number of passes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from soperator.api.base import Problem
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World
from soperator.kube import kinds
from soperator.kube.api import Object
from soperator.kube.views import Custom
from soperator.policy.validation import cluster_problems, nodeset_problems
from soperator.reconcile.cache.decode import (
    may_be_claims,
    partial_cluster,
    partial_nodeset,
    read_cluster,
    read_nodeset,
)
from soperator.reconcile.cache.informers import NAMESPACE, Stores
from soperator.render.parts.model import Cluster, NodeSet


@dataclass(frozen=True)
class Content:
    """The objects that the validation of a namespace depends on, oldest first. Equal values give equal results of the validation."""

    clusters: tuple[tuple[str, str, bytes], ...]
    nodesets: tuple[tuple[str, str, bytes], ...]
    claims: frozenset[str]
    secrets: frozenset[str]


class NamespaceView:
    """The decoded content of a namespace: the readable objects, the partly readable ones, and the problems of each object."""

    def __init__(self, content: Content, clusters: Sequence[Custom], nodesets: Sequence[Custom]) -> None:
        self.content = content
        self.nodesets: dict[str, NodeSet] = {}
        #: NodeSets that cannot be read whole, with what can be read of them.
        self.unreadable: dict[str, NodeSet] = {}
        self._clusters: dict[str, SlurmClusterSpec] = {}
        self._may_be_claims: dict[str, frozenset[str]] = {}
        for each in clusters:
            self._add_cluster(each)
        for each in nodesets:
            self._add_nodeset(each)
        self._problems: dict[str, Sequence[Problem]] = {}

    def _add_cluster(self, obj: Custom) -> None:
        read, name = read_cluster(obj), obj.metadata.name
        if isinstance(read, Cluster):
            self._clusters[name] = read.spec
        else:
            self._clusters[name], self._may_be_claims[name] = partial_cluster(obj), may_be_claims(obj)

    def _add_nodeset(self, obj: Custom) -> None:
        read, name = read_nodeset(obj), obj.metadata.name
        if isinstance(read, NodeSet):
            self.nodesets[name] = read
        elif partial := partial_nodeset(obj):
            self.unreadable[name] = partial

    @cached_property
    def world(self) -> World:
        """The specs against which one object is validated. If a spec is only partly readable, its readable part counts."""
        return World(
            clusters=self._clusters,
            node_sets={name: each.spec for name, each in self._by_age({**self.nodesets, **self.unreadable}).items()},
            claims=self.content.claims,
            secrets=self.content.secrets,
            unreadable_clusters=self._may_be_claims,
            unreadable_node_sets=frozenset(self.unreadable),
        )

    @cached_property
    def refused(self) -> dict[str, Sequence[Problem]]:
        """The problems of each NodeSet that has any, by name."""
        found = {name: nodeset_problems(name, self.world) for name in self.nodesets}
        return {name: problems for name, problems in found.items() if problems}

    def problems(self, cluster: str) -> Sequence[Problem]:
        """Return the problems of a SlurmCluster that could be decoded."""
        if cluster not in self._problems:
            self._problems[cluster] = cluster_problems(cluster, self.world)
        return self._problems[cluster]

    def members(self, cluster: str) -> list[NodeSet]:
        """Return the NodeSets of a cluster with accepted specs, oldest first."""
        return [
            each for name, each in self.nodesets.items() if each.spec.cluster == cluster and name not in self.refused
        ]

    def configured(self, cluster: str, begun: Collection[str]) -> list[NodeSet]:
        """Return the NodeSets in Slurm's configuration, oldest first: the accepted ones, and those in `begun` even if they are refused or unreadable.

        Slurm drains a node with GPUs that gres.conf does not name, so the lines of a NodeSet stay whatever is wrong with its new spec.
        """
        others = [*self.unreadable.values(), *(self.nodesets[name] for name in self.refused)]
        kept = [each for each in others if each.spec.cluster == cluster and each.name in begun]
        return list(self._by_age({each.name: each for each in [*self.members(cluster), *kept]}).values())

    def _by_age(self, found: Mapping[str, NodeSet]) -> dict[str, NodeSet]:
        return {name: found[name] for name, _, _ in self.content.nodesets if name in found}


@dataclass(frozen=True)
class Namespaces:
    """The decoded objects of each namespace."""

    stores: Stores
    _known: dict[str, tuple[tuple[int, ...], NamespaceView]] = field(default_factory=dict)

    def view(self, namespace: str) -> NamespaceView:
        """Return the current objects of a namespace, from the caches."""
        stores, secrets = self.stores, self.stores.children[kinds.SECRET]
        versions = tuple(each.version for each in (stores.clusters, stores.nodesets, stores.claims, secrets))
        before, known = self._known.get(namespace, ((), None))
        if known is None or before != versions:
            clusters = sorted(stores.clusters.by(NAMESPACE, namespace), key=_age)
            nodesets = sorted(stores.nodesets.by(NAMESPACE, namespace), key=_age)
            claims, here = (_names(each.by(NAMESPACE, namespace)) for each in (stores.claims, secrets))
            content = Content(_texts(clusters), _texts(nodesets), claims, here)
            if known is None or known.content != content:
                known = NamespaceView(content, clusters, nodesets)
            if clusters or nodesets:
                self._known[namespace] = versions, known
            else:
                self._known.pop(namespace, None)
        return known


def _texts(found: Sequence[Custom]) -> tuple[tuple[str, str, bytes], ...]:
    return tuple((each.metadata.name, each.metadata.uid, bytes(each.spec)) for each in found)


def _names(found: Sequence[Object]) -> frozenset[str]:
    return frozenset(each.metadata.name for each in found)


def _age(each: Custom) -> tuple[str, str]:
    return str(each.metadata.creation_timestamp), each.metadata.name
