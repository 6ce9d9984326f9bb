"""Validates objects beyond the schema of a single one.

The API server evaluates the schema and the rules of `cel_rules` at `kubectl apply`. This module finds problems that need a second object, or a text
that CEL cannot parse. `soperator lint` reports them before an apply, and the operator within seconds after it. Both have
the same list, every entry with object, field, value and remedy. A problem does not change what already runs.
"""

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType
from typing import Any

from soperator.api.associations import SlurmAccountSpec, SlurmQOSSpec
from soperator.api.backup import Repository, SlurmBackupSpec
from soperator.api.base import Model, Problem
from soperator.api.common import Resources, Submount
from soperator.api.fields.accounting import accounting_references
from soperator.api.fields.change import seconds
from soperator.api.fields.config import config_problems
from soperator.api.fields.power import LONGEST_RESUME
from soperator.api.fields.rest import rest_problems
from soperator.api.fields.service import ExposedService, service_problems
from soperator.api.fields.ssh import fault_of
from soperator.api.fields.topology import place_problems, topology_problems
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.cel_rules import NAMES, RULES
from soperator.api.validation.pod_template import pod_problems, role_problems
from soperator.api.validation.quantity import amount
from soperator.api.validation.schedule import schedule_fault
from soperator.api.validation.submounts import mount_problems, volume_problems
from soperator.api.validation.walk import pieces, shown


@dataclass(frozen=True)
class World:
    """The objects of one namespace, oldest first, because the older of two objects keeps a name that both use.

    `claims` and `secrets` are names; None means that they are not known, as in lint, so that no problem is about them. A partly invalid object is
    present with its valid part; `unreadable_clusters` has every text of such clusters that may name a claim.
    """

    clusters: Mapping[str, SlurmClusterSpec] = field(default_factory=lambda: MappingProxyType({}))
    node_sets: Mapping[str, NodeSetSpec] = field(default_factory=lambda: MappingProxyType({}))
    health_checks: Mapping[str, HealthCheckSpec] = field(default_factory=lambda: MappingProxyType({}))
    claims: frozenset[str] | None = None
    secrets: frozenset[str] | None = None
    partial: bool = False
    unreadable_clusters: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    unreadable_node_sets: frozenset[str] = frozenset()

    def members(self, cluster: str) -> Mapping[str, NodeSetSpec]:
        """Return the NodeSets of one cluster, oldest first."""
        return self._by_cluster.get(cluster, {})

    def features(self, cluster: str) -> Mapping[str, None]:
        """Return the features of a cluster's nodes; the name of a NodeSet is one."""
        if cluster not in self._features:
            members = self.members(cluster)
            own = (feature for each in members.values() for feature in each.features)
            self._features[cluster] = dict.fromkeys([*members, *own])
        return self._features[cluster]

    @cached_property
    def pods(self) -> Mapping[str, str]:
        """The prefix of a NodeSet's pod names, and the oldest NodeSet with that prefix."""
        found: dict[str, str] = {}
        for name, spec in self.node_sets.items():
            found.setdefault(f"{spec.cluster}-{name}", name)
        return found

    @cached_property
    def _by_cluster(self) -> Mapping[str, dict[str, NodeSetSpec]]:
        found: dict[str, dict[str, NodeSetSpec]] = {}
        for name, spec in self.node_sets.items():
            found.setdefault(spec.cluster, {})[name] = spec
        return found

    @cached_property
    def _features(self) -> dict[str, Mapping[str, None]]:
        return {}


#: The most problems reported of one object, and the most existing names listed in a message: an object may have room for a hundred thousand.
MOST, _SHOWN_NAMES = 100, 20


def _names_of(known: Collection[str]) -> str:
    names = list(islice(known, _SHOWN_NAMES))
    more = [f"and {len(known) - _SHOWN_NAMES} more"] if len(known) > _SHOWN_NAMES else []
    return ", ".join([*names, *more]) or "none yet"


def validate_cluster(name: str, spec: SlurmClusterSpec, world: World) -> list[Problem]:
    """Return the problems of a SlurmCluster, each with the object as its subject."""
    found = chain(
        _names("SlurmCluster", name),
        _rules(spec),
        _resources(spec),
        _keys(spec),
        _networks(spec),
        rest_problems(spec.rest.users) if spec.rest.users else (),
        *(service_problems(path, service) for path, service in _services(spec).items()),
        role_problems(spec),
        _partitions(name, spec, world),
        topology_problems(spec.topology),
        config_problems(spec.config, spec.topology.is_on),
        mount_problems("spec.jail.submounts", spec.jail.submounts, []),
        _cluster_references(spec, world),
        _shared_state(name, spec, world),
    )
    return [replace(problem, subject=f"SlurmCluster {name}") for problem in islice(found, MOST)]


def validate_nodeset(name: str, spec: NodeSetSpec, world: World) -> list[Problem]:
    """Return the problems of a NodeSet, each with the object as its subject."""
    cluster = world.clusters.get(spec.cluster)
    shared = cluster.jail.submounts if cluster else []
    found = [
        *_names("NodeSet", name),
        *_rules(spec),
        *_resources(spec),
        *(replace(problem, field=f"spec.{problem.field}") for problem in pod_problems(spec)),
        *_cluster_of(spec, world),
        *_collisions(name, spec, world),
        *_features(name, spec, world),
        *mount_problems("spec.submounts", spec.submounts, shared, spec.cluster),
        *_claims("spec.submounts", spec.submounts, world),
        *_volumes(spec, world),
        *_window(spec),
        *(place_problems(spec.topology_labels, cluster.topology) if cluster else ()),
        *_asleep(spec),
    ]
    return [replace(problem, subject=f"NodeSet {name}") for problem in found]


def validate_healthcheck(name: str, spec: HealthCheckSpec, world: World) -> list[Problem]:
    """Return the problems of a HealthCheck, each with the object as its subject."""
    found = [*_names("HealthCheck", name), *_rules(spec), *_when(spec), *_cluster_of(spec, world)]
    for number, node_set in enumerate(spec.node_sets):
        if remedy := _not_a_member(spec.cluster, node_set, world):
            found.append(Problem(f"spec.nodeSets[{number}]", node_set, remedy))
    return [replace(problem, subject=f"HealthCheck {name}") for problem in found]


def validate_tenant(name: str, spec: SlurmAccountSpec | SlurmQOSSpec, world: World | None = None) -> list[Problem]:
    """Return the problems of a SlurmAccount or a SlurmQOS, each with the object as its subject; without the other objects, only those of its own
    spec.
    """
    kind = type(spec).__name__.removesuffix("Spec")
    found = [*_names(kind, spec.name or name), *_rules(spec), *(_cluster_of(spec, world) if world else ())]
    return [replace(problem, subject=f"{kind} {name}") for problem in found]


def validate_backup(name: str, spec: SlurmBackupSpec, world: World | None = None) -> list[Problem]:
    """Return the problems of a SlurmBackup, each with the object as its subject; without the other objects, only those of its own spec."""
    found = [*_names("SlurmBackup", name), *_rules(spec)]
    if spec.schedule and (fault := schedule_fault(spec.schedule)):
        found.append(Problem("spec.schedule", spec.schedule, fault))
    if world is not None:
        found += [*_cluster_of(spec, world), *_repository(spec, world)]
    return [replace(problem, subject=f"SlurmBackup {name}") for problem in found]


def _repository(spec: SlurmBackupSpec, world: World) -> Iterator[Problem]:
    """Yield the problems of a repository: a missing claim or Secret, or a claim that a cluster of the namespace also uses."""
    claim = spec.repository.claim_name
    if claim and world.claims is not None and claim not in world.claims:
        yield Problem("spec.repository.claimName", claim, _no_claim("name another one"))
    for path, secret, content in _secrets_of(spec.repository):
        if world.secrets is not None and secret not in world.secrets:
            remedy = f"no Secret in the namespace has this name: create it with {content}"
            yield Problem(f"spec.repository.{path}", secret, remedy)
    for name in (spec.cluster, *(each for each in world.clusters if each != spec.cluster)):
        whose = "the cluster" if name == spec.cluster else f"SlurmCluster {name}"
        if what := next((what for what, used in _claims_of(name, world) if used == claim), ""):
            remedy = (
                f"it is the claim of {whose}'s {what}, whose users or loss would reach the backups: name another claim"
            )
            yield Problem("spec.repository.claimName", claim, remedy)


def _secrets_of(repository: Repository) -> Iterator[tuple[str, str, str]]:
    """Yield the Secrets that a repository names, each with the field and what it has."""
    yield "password.secretName", repository.password.secret_name, "the password of the repository"
    if store := repository.s3:
        content = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        yield "s3.credentialsSecretName", store.credentials_secret_name, content
        if store.ca:
            yield "s3.ca.secretName", store.ca.secret_name, f"the certificates in the entry {store.ca.key}"


def _claims_of(name: str, world: World) -> Iterator[tuple[str, str]]:
    """Yield the claims of a cluster and of its NodeSets, each with what it is for."""
    spec = world.clusters.get(name)
    if spec is None:
        return
    database = spec.accounting_or_default.managed_database.claim.name or f"{name}-database"
    yield from (
        ("state", _state_claim(name, spec)),
        ("jail", spec.jail.claim.name or f"{name}-jail"),
        ("database", database),
    )
    members = world.members(name).values()
    mounts = [*spec.jail.submounts, *(each for member in members for each in member.submounts)]
    yield from (("submounts", each.claim_name) for each in mounts if each.claim_name)
    volumes = [
        *(each for member in members for each in member.volumes),
        *(each.volume for each in mounts if each.volume),
    ]
    named = (each.get("persistentVolumeClaim") for each in volumes)
    yield from (("volumes", str(each.get("claimName"))) for each in named if isinstance(each, dict))


def _when(spec: HealthCheckSpec) -> Iterator[Problem]:
    if spec.when.schedule and (fault := schedule_fault(spec.when.schedule)):
        yield Problem("spec.when.schedule", spec.when.schedule, fault)
    for field_, text, least in (("timeLimit", spec.time_limit, 60), ("retryInterval", spec.retry_interval, 20)):
        if seconds(text) < least:
            yield Problem(f"spec.{field_}", text, f"give at least {least}s")


def _window(spec: NodeSetSpec) -> Iterator[Problem]:
    window = spec.update_strategy.window
    if window and (fault := schedule_fault(window.schedule)):
        yield Problem("spec.updateStrategy.window.schedule", window.schedule, fault)


def _asleep(spec: NodeSetSpec) -> Iterator[Problem]:
    """Yield the problems of a NodeSet's size: the spec must define the size of a node without a pod, and Slurm has its own limits."""
    if spec.power_saving is None:
        return
    said = {**spec.resources.requests, **spec.resources.limits}
    for key in ("cpu", "memory"):
        if key not in said:
            remedy = (
                f"with powerSaving, Slurm must know the size of nodes that have no pod: set {key} in requests or limits"
            )
            yield Problem("spec.resources", "", remedy)
    if seconds(spec.power_saving.resume_timeout) > LONGEST_RESUME:
        yield Problem("spec.powerSaving.resumeTimeout", spec.power_saving.resume_timeout, "give at most 18h")
    if not 1 <= seconds(spec.power_saving.suspend_timeout) <= LONGEST_RESUME:
        yield Problem("spec.powerSaving.suspendTimeout", spec.power_saving.suspend_timeout, "give 1s to 18h")


def _names(kind: str, name: str) -> Iterator[Problem]:
    for rule in NAMES[kind]:
        if rule.holds and not rule.holds(name):
            yield Problem("metadata.name", name, rule.message.removeprefix("metadata.name "))


def _rules(spec: Model) -> Iterator[Problem]:
    for path, piece in pieces(spec):
        for rule in RULES.get(type(piece).__name__, ()):
            if rule.holds and not rule.holds(piece):
                field = f"{path}.{rule.camel}" if rule.field else path
                yield Problem(field, shown(getattr(piece, rule.field) if rule.field else piece), rule.message)


def _resources(spec: Model) -> Iterator[Problem]:
    for path, piece in pieces(spec):
        if isinstance(piece, Resources):
            for name in sorted(piece.requests.keys() & piece.limits.keys()):
                if amount(piece.requests[name]) > amount(piece.limits[name]):
                    remedy = f"the request is larger than the limit {piece.limits[name]}: lower the request, or raise the limit"
                    yield Problem(f"{path}.requests.{name}", piece.requests[name], remedy)


def _keys(spec: SlurmClusterSpec) -> Iterator[Problem]:
    for number, key in enumerate(spec.login.root_authorized_keys):
        if fault := fault_of(key):
            yield Problem(f"spec.login.rootAuthorizedKeys[{number}]", f"entry {number + 1}", fault)


def _services(spec: SlurmClusterSpec) -> dict[str, ExposedService]:
    """Return the Services that a person configures, by their paths in the spec."""
    users = {"spec.rest.users.service": spec.rest.users.service} if spec.rest.users else {}
    return {"spec.login.service": spec.login.service, **users}


def _networks(spec: SlurmClusterSpec) -> Iterator[Problem]:
    said = {
        **{
            f"{path}.loadBalancerSourceRanges": service.load_balancer_source_ranges
            for path, service in _services(spec).items()
        },
        "spec.externalNodes.cidrs": spec.external_nodes.cidrs,
    }
    for path, networks in said.items():
        for number, network in enumerate(networks):
            try:
                ipaddress.ip_network(network, strict=False)
            except ValueError:
                yield Problem(f"{path}[{number}]", network, "write a network such as 192.0.2.0/24 or 2001:db8::/32")


def _partitions(cluster: str, spec: SlurmClusterSpec, world: World) -> Iterator[Problem]:
    seen: set[str] = set()
    for number, partition in enumerate(spec.partitions):
        path = f"spec.partitions[{number}]"
        if partition.name in seen:
            yield Problem(f"{path}.name", partition.name, "another partition has this name: choose another name")
        seen.add(partition.name)
        for place, node_set in enumerate(partition.node_sets):
            if remedy := _not_a_member(cluster, node_set, world):
                yield Problem(f"{path}.nodeSets[{place}]", node_set, remedy)
        yield from _partition_features(f"{path}.features", cluster, partition.features, world)


def _partition_features(path: str, cluster: str, features: Sequence[str], world: World) -> Iterator[Problem]:
    if world.members(cluster).keys() & world.unreadable_node_sets:
        return  # one of them may have the feature
    known = world.features(cluster)
    for place, feature in enumerate(features):
        if feature not in known and not world.partial:
            remedy = f"no NodeSet of the cluster has this feature (existing: {_names_of(known)}): add it to one, or remove it here"
            yield Problem(f"{path}[{place}]", feature, remedy)


def _not_a_member(cluster: str, node_set: str, world: World) -> str:
    other = world.node_sets.get(node_set)
    if other is None and world.partial:
        return ""
    if other is None:
        known = _names_of(world.members(cluster))
        return (
            f"no NodeSet in the namespace has this name (existing: {known}): create it, or remove it from the partition"
        )
    if other.cluster != cluster:
        return f"this NodeSet belongs to the SlurmCluster {other.cluster}: remove it from the partition"
    return ""


def _cluster_references(spec: SlurmClusterSpec, world: World) -> Iterator[Problem]:
    if world.claims is not None:
        for path, claim in (
            ("jail.claim", spec.jail.claim.name),
            ("controller.state", spec.controller.state.name),
            ("accounting.managedDatabase.claim", spec.accounting_or_default.managed_database.claim.name),
        ):
            if claim and claim not in world.claims:
                yield Problem(
                    f"spec.{path}.name", claim, _no_claim(f"remove {path}.name so that the operator creates one")
                )
    yield from _claims("spec.jail.submounts", spec.jail.submounts, world)
    if spec.accounting:
        yield from accounting_references(spec.accounting, world.claims, world.secrets)
    if world.secrets is not None:
        for number, secret in enumerate(spec.images.pull_secrets):
            if secret not in world.secrets:
                remedy = "no Secret in the namespace has this name: create it, or remove it from the list"
                yield Problem(f"spec.images.pullSecrets[{number}]", secret, remedy)
        directory = spec.sssd.config_secret_name
        if directory and directory not in world.secrets:
            remedy = "no Secret in the namespace has this name: create it with the file sssd.conf, or remove the field"
            yield Problem("spec.sssd.configSecretName", directory, remedy)


def _shared_state(name: str, spec: SlurmClusterSpec, world: World) -> Iterator[Problem]:
    """Yield a problem if an older cluster uses the same state, because two independent slurmctlds would overwrite each other's jobs."""
    mine = _state_claim(name, spec)
    for other, other_spec in world.clusters.items():
        if other == name:
            break
        if _state_claim(other, other_spec) == mine or mine in world.unreadable_clusters.get(other, ()):
            remedy = f"SlurmCluster {other} has its state there, and both would lose jobs: give each its own claim"
            yield Problem("spec.controller.state.name", mine, remedy)


def _state_claim(name: str, spec: SlurmClusterSpec) -> str:
    return spec.controller.state.name or f"{name}-state"


def _claims(path: str, submounts: list[Submount], world: World) -> Iterator[Problem]:
    for number, mount in enumerate(submounts):
        if mount.claim_name and world.claims is not None and mount.claim_name not in world.claims:
            yield Problem(f"{path}[{number}].claimName", mount.claim_name, _no_claim("remove the submount"))
        yield from _references(f"{path}[{number}].volume", mount.volume or {}, "submount", world)


def _volumes(spec: NodeSetSpec, world: World) -> Iterator[Problem]:
    if spec.gpu.driver.volume is not None:
        yield from volume_problems("spec.gpu.driver.volume", spec.gpu.driver.volume)
        yield from _references("spec.gpu.driver.volume", spec.gpu.driver.volume, "volume", world)
    for number, volume in enumerate(spec.volumes):
        yield from _references(f"spec.volumes[{number}]", volume, "volume", world)


def _references(path: str, volume: Mapping[str, Any], what: str, world: World) -> Iterator[Problem]:
    """Yield the Secrets and claims that do not exist, because a pod waits for them without a message in its status."""
    optional = (volume.get("secret") or {}).get("optional")
    secret = (volume.get("secret") or {}).get("secretName")
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if secret and not optional and world.secrets is not None and secret not in world.secrets:
        remedy = f"no Secret in the namespace has this name: create it, or remove the {what}"
        yield Problem(f"{path}.secret.secretName", secret, remedy)
    if claim and world.claims is not None and claim not in world.claims:
        yield Problem(f"{path}.persistentVolumeClaim.claimName", claim, _no_claim(f"remove the {what}"))


def _no_claim(otherwise: str) -> str:
    return f"no PersistentVolumeClaim in the namespace has this name: create it, or {otherwise}"


def _cluster_of(
    spec: NodeSetSpec | HealthCheckSpec | SlurmAccountSpec | SlurmQOSSpec | SlurmBackupSpec, world: World
) -> Iterator[Problem]:
    if spec.cluster not in world.clusters and not world.partial:
        known = _names_of(world.clusters)
        remedy = f"no SlurmCluster in the namespace has this name (existing: {known}): create it, or name another one"
        yield Problem("spec.clusterRef.name", spec.cluster, remedy)


def _collisions(name: str, spec: NodeSetSpec, world: World) -> Iterator[Problem]:
    ours = f"{spec.cluster}-{name}"
    if (other := world.pods.get(ours, name)) != name:
        remedy = f"its pods would have the names {ours}-<n> of NodeSet {other}: choose another name"
        yield Problem("metadata.name", name, remedy)
    for cluster in world.clusters:
        for role in ("accounting", "controller", "database", "login"):
            if cluster != spec.cluster and f"{cluster}-{role}" == ours:
                remedy = f"its pods would have the names {ours}-<n> of the {role} of SlurmCluster {cluster}: choose another name"
                yield Problem("metadata.name", name, remedy)
    stem, _, digits = name.rpartition("-")
    if digits.isdigit() and stem in world.members(spec.cluster):
        remedy = f"it is also the Slurm node {name} of NodeSet {stem}: choose a name that does not end in -{digits}"
        yield Problem("metadata.name", name, remedy)


def _features(name: str, spec: NodeSetSpec, world: World) -> Iterator[Problem]:
    others = world.members(spec.cluster)
    for number, feature in enumerate(spec.features):
        if feature in others and feature != name:
            remedy = (
                f"it is the name of NodeSet {feature}, whose partitions would take these nodes: choose another feature"
            )
            yield Problem(f"spec.features[{number}]", feature, remedy)
