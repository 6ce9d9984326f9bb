"""What a schema cannot say about one object, said once for the API server and once for ourselves.

Each rule has its CEL form, which the API server evaluates at `kubectl apply`, and its Python form, which `soperator
lint` and the pass evaluate where no API server does. Both carry the same message, and a test feeds both the same bad
inputs. Rules that compare with the former object (immutability) exist in CEL only.

CEL is written for Kubernetes 1.30: strings, lists, quantities and optional fields; cost limits are why lists and
texts of the models have upper bounds.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic.alias_generators import to_camel

from soperator.api.cluster import LoginService, Partition, SlurmClusterSpec
from soperator.api.common import HostPath, Submount
from soperator.api.nodeset import Gpu


@dataclass(frozen=True)
class Rule:
    """One condition on a piece of a spec; `message` blames `field`. A rule about changes has no `holds`."""

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""

    @property
    def camel(self) -> str:
        """The blamed field as people write it."""
        return to_camel(self.field)


RESERVED_NODESETS = ("accounting", "all", "controller", "default", "login", "rest")
RESERVED_TREES = ("/proc", "/sys", "/dev", "/run", "/opt/soperator", "/var/spool/slurmd", "/etc/pam.d/soperator-sshd")
RESERVED_PATHS = ("/", "/opt", "/etc", "/etc/pam.d", "/var", "/var/spool")
OWNED_OPTIONS = ("PartitionName", "Nodes", "Default", "Hidden")

_TREES = "|".join(tree.lstrip("/").replace(".", "[.]") for tree in RESERVED_TREES)
_RESERVED = f"^/({_TREES})(/.*)?$"
_CROOKED = "//|/[.][.]?(/|$)|./$"
_CLUSTER_NAME = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


def _cel_list(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _text(field: str) -> str:
    """CEL for a text that may be absent."""
    return f"self.?{field}.orValue('')"


def _same(field: str) -> str:
    """CEL for a text that may be absent and must not change; `has` bounds its cost where `orValue` would not."""
    now, before = (f"(!has({side}.{field}) || {side}.{field} == '')" for side in ("self", "oldSelf"))
    return f"{now} ? {before} : (has(oldSelf.{field}) && self.{field} == oldSelf.{field})"


def _sources(mount: Submount) -> int:
    return (mount.claim != "") + sum(source is not None for source in (mount.tmpfs, mount.host_path, mount.volume))


SUBMOUNT = (
    Rule(
        cel=f"[{_text('claim')} != '', has(self.tmpfs), has(self.hostPath), has(self.volume)].exists_one(given, given)",
        message="a submount needs exactly one of claim, tmpfs, hostPath and volume: keep one and remove the others",
        holds=lambda mount: _sources(mount) == 1,
    ),
    Rule(
        cel=f"{_text('subPath')} == '' || {_text('claim')} != ''",
        message="subPath is a folder inside a claim: name the claim, or remove subPath",
        holds=lambda mount: not mount.sub_path or bool(mount.claim),
        field="sub_path",
    ),
    Rule(
        cel=f"!self.path.matches('{_RESERVED}') && !(self.path in {_cel_list(RESERVED_PATHS)})",
        message=(
            f"path holds what every node mounts itself ({', '.join(RESERVED_TREES)}, or a folder above one "
            "of them): "
            "choose another path in the jail, for example /home"
        ),
        holds=lambda mount: not re.search(_RESERVED, mount.path) and mount.path not in RESERVED_PATHS,
        field="path",
    ),
    Rule(
        cel=f"self.path == '/' || !self.path.matches('{_CROOKED}')",
        message="path must be written plainly: without '//', '.', '..' and without a '/' at its end",
        holds=lambda mount: mount.path == "/" or not re.search(_CROOKED, mount.path),
        field="path",
    ),
)

HOST_PATH = (
    Rule(
        cel="!self.path.matches('/[.][.](/|$)')",
        message="path must not climb with '..': write the folder of the Node as it is",
        holds=lambda host: not re.search("/[.][.](/|$)", host.path),
        field="path",
    ),
)

GPU = (
    Rule(
        cel="(self.vendor == 'none') == (self.count == 0)",
        message=(
            "gpu.vendor and gpu.count belong together: give a vendor (nvidia or amd) and a count of at "
            "least 1, or neither"
        ),
        holds=lambda gpu: (gpu.vendor == "none") == (gpu.count == 0),
        field="count",
    ),
    Rule(
        cel=f"self.vendor != 'none' || ({_text('type')} == '' && {_text('resourceName')} == '')",
        message="gpu.type and gpu.resourceName describe GPUs: give gpu.vendor and gpu.count too, or remove them",
        holds=lambda gpu: gpu.vendor != "none" or not (gpu.type or gpu.resource_name),
        field="vendor",
    ),
)

LOGIN_SERVICE = (
    Rule(
        cel="self.type != 'ClusterIP' || self.nodePort == 0",
        message="nodePort works with type NodePort or LoadBalancer only: choose one of them, or remove nodePort",
        holds=lambda service: service.type != "ClusterIP" or service.node_port == 0,
        field="node_port",
    ),
    Rule(
        cel="self.type != 'ClusterIP' || !self.keepClientAddress",
        message=(
            "keepClientAddress works with type NodePort or LoadBalancer only: choose one of them, or "
            "remove keepClientAddress"
        ),
        holds=lambda service: service.type != "ClusterIP" or not service.keep_client_address,
        field="keep_client_address",
    ),
    Rule(
        cel="self.type == 'LoadBalancer' || size(self.?sourceRanges.orValue([])) == 0",
        message="sourceRanges works with type LoadBalancer only: choose it, or remove sourceRanges",
        holds=lambda service: service.type == "LoadBalancer" or not service.source_ranges,
        field="source_ranges",
    ),
)

_SPELLINGS = tuple(spelling for key in OWNED_OPTIONS for spelling in (key, key.lower(), key.upper()))

PARTITION = (
    Rule(
        cel="self.name.lowerAscii() != 'default'",
        message=(
            "name must not be DEFAULT, which slurm.conf reads as settings for the partitions after it: "
            "choose another name"
        ),
        holds=lambda partition: partition.name.lower() != "default",
        field="name",
    ),
    Rule(
        cel=f"!has(self.options) || self.options.all(key, !(key in {_cel_list(_SPELLINGS)}))",
        message="options must not hold what has a field of its own: use name, nodeSets, default and hidden",
        holds=lambda partition: not {key.lower() for key in partition.options} & {key.lower() for key in OWNED_OPTIONS},
        field="options",
    ),
)

CLUSTER = (
    Rule(
        cel="!has(self.partitions) || self.partitions.filter(p, p.default).size() <= 1",
        message="partitions: at most one may have default: true",
        holds=lambda spec: sum(partition.default for partition in spec.partitions) <= 1,
        field="partitions",
    ),
)

NODESET = (
    Rule(
        cel="self.cluster == oldSelf.cluster",
        message=(
            "cluster cannot be changed, for its nodes would leave their jobs: make a new NodeSet for the "
            "other cluster and delete this one"
        ),
        field="cluster",
    ),
)

CLAIM = (
    Rule(
        cel=_same("name"),
        message=(
            "name of the claim cannot be changed, for running pods hold it: copy the data and make a new "
            "cluster that names the new claim"
        ),
        field="name",
    ),
    Rule(
        cel=_same("storageClassName"),
        message="storageClassName cannot be changed, for Kubernetes never moves a claim: put the former value back",
        field="storage_class_name",
    ),
    Rule(
        cel="quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",
        message="size of a claim can only grow: give at least the former size",
        field="size",
    ),
)

AUTH = (
    Rule(
        cel="self.type == oldSelf.type",
        message=(
            "type cannot be changed on a living cluster, for daemons of the two kinds do not understand each other and its jobs "
            "would be lost: make a new cluster on the same jail"
        ),
        field="type",
    ),
)

#: By name of the model, for the schema; `of_model` is the same for an instance.
RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        Submount.__name__: SUBMOUNT,
        HostPath.__name__: HOST_PATH,
        Gpu.__name__: GPU,
        LoginService.__name__: LOGIN_SERVICE,
        Partition.__name__: PARTITION,
        SlurmClusterSpec.__name__: CLUSTER,
        "NodeSetSpec": NODESET,
        "Auth": AUTH,
        "ClaimRef": CLAIM,
        "StateClaim": CLAIM,
    }
)

#: Rules on metadata.name, by kind; `holds` takes the name.
NAMES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "SlurmCluster": (
            Rule(
                cel="size(self.metadata.name) <= 30",
                message=(
                    "metadata.name may have at most 30 characters, for names of pods begin with it: choose a "
                    "shorter one"
                ),
                holds=lambda name: len(name) <= 30,
            ),
            Rule(
                cel=f"self.metadata.name.matches('{_CLUSTER_NAME}')",
                message=(
                    "metadata.name must begin with a letter and hold only a-z, 0-9 and '-', for it begins the "
                    "names of Services: "
                    "choose another one"
                ),
                holds=lambda name: re.fullmatch(_CLUSTER_NAME, name) is not None,
            ),
        ),
        "NodeSet": (
            Rule(
                cel="size(self.metadata.name) <= 40",
                message=(
                    "metadata.name may have at most 40 characters, for Slurm node names begin with it: choose a "
                    "shorter one"
                ),
                holds=lambda name: len(name) <= 40,
            ),
            Rule(
                cel="!self.metadata.name.contains('.')",
                message=(
                    "metadata.name must hold only a-z, 0-9 and '-', for host names begin with it: choose one "
                    "without dots"
                ),
                holds=lambda name: re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) is not None,
            ),
            Rule(
                cel=f"!(self.metadata.name in {_cel_list(RESERVED_NODESETS)})",
                message=(
                    f"metadata.name must not be one of {', '.join(RESERVED_NODESETS)}, which are taken in every "
                    "cluster: choose another one"
                ),
                holds=lambda name: name not in RESERVED_NODESETS,
            ),
        ),
    }
)
