"""The rules about one object that a schema cannot express, each for the API server and for the operator.

Each rule has a CEL form, which the API server evaluates at `kubectl apply`, and a Python form, which `soperator lint` and the pass evaluate. Both
have the same message, and a test gives both the same bad inputs. Rules that compare with the former object (immutability) exist in CEL only.

The CEL needs Kubernetes 1.30: strings, lists, quantities and optional fields. Its cost limits require upper bounds on the lists and texts of the
models.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from soperator.api import associations, backup
from soperator.api.common import HostPath, Submount, Tmpfs
from soperator.api.fields.accounting import ACCOUNTING
from soperator.api.fields.change import DRAIN, NODE_FAILURE, UPDATE_STRATEGY
from soperator.api.fields.config import SOURCE, ConfigFile, HookScript
from soperator.api.fields.health import REPLACE
from soperator.api.fields.jail_refill import ASKED, REFILL
from soperator.api.fields.power import POWER_SAVING
from soperator.api.fields.rest import REST_USERS
from soperator.api.fields.service import SERVICE, LoginService, RestService
from soperator.api.fields.topology import TOPOLOGY
from soperator.api.healthcheck import HEALTHCHECK
from soperator.api.nodeset import (
    DRIVER,
    GPU,
    Driver,
    Gpu,
)
from soperator.api.slurmcluster import (
    Partition,
    Refill,
    SlurmClusterSpec,
)
from soperator.api.validation.cel import (
    Rule,
    cel_at_least,
    cel_grows,
    cel_list,
    cel_same,
)
from soperator.api.validation.quantity import amount
from soperator.api.validation.submounts import (
    HOST_PATH,
    LEAST,
    SUBMOUNT,
    TMPFS,
    UNBOUNDED,
)

RESERVED_NODESETS = ("accounting", "all", "controller", "database", "default", "login", "rest")
OWNED_OPTIONS = ("PartitionName", "Nodes", "Default", "Hidden")

_CLUSTER_NAME = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


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
        cel=f"!has(self.options) || self.options.all(key, !(key in {cel_list(_SPELLINGS)}))",
        message="options must not set what has its own field: use the fields name, nodeSets, default and hidden",
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
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message=(
            "clusterRef cannot be changed, because the nodes would lose their jobs: create a new NodeSet for the other cluster and delete this one"
        ),
        field="cluster_ref",
    ),
    Rule(
        cel=cel_at_least("shmSize", LEAST),
        message=f"shmSize {UNBOUNDED}",
        holds=lambda spec: amount(spec.shm_size) >= amount(LEAST),
        field="shm_size",
    ),
    Rule(
        cel="!has(self.powerSaving) || self.replicas <= 1",
        message=(
            "replicas has no effect with powerSaving, because the queue determines the number of awake nodes: set powerSaving.minNodes and maxNodes"
        ),
        holds=lambda spec: spec.power_saving is None or spec.replicas <= 1,
        field="replicas",
    ),
    Rule(
        cel="!has(self.powerSaving) || !has(self.preemptible)",
        message="with powerSaving, idle nodes release their machines by themselves: remove preemptible, or powerSaving",
        holds=lambda spec: spec.power_saving is None or spec.preemptible is None,
        field="preemptible",
    ),
)

CLAIM = (
    Rule(
        cel=cel_same("name"),
        message=(
            "name of the claim cannot be changed, because running pods use it: copy the data and create a new cluster that names the new claim"
        ),
        field="name",
    ),
    Rule(
        cel=cel_same("storageClassName"),
        message="storageClassName cannot be changed, because Kubernetes never moves a claim: restore the former value",
        field="storage_class_name",
    ),
    Rule(
        cel=cel_grows("size"),
        message="size of a claim can only grow: set at least the former size",
        field="size",
    ),
)

JAIL = (
    Rule(
        cel="!self.perNode || !has(self.claim) || !has(self.claim.name) || self.claim.name == ''",
        message="perNode gives each node its own claim: remove claim.name, and set claim.size and claim.storageClassName",
        holds=lambda jail: not (jail.per_node and jail.claim.name),
        field="per_node",
    ),
    Rule(
        cel="!self.perNode || self.populate == 'Once'",
        message="perNode fills the root of each node from the image: remove populate",
        holds=lambda jail: not (jail.per_node and jail.populate != "Once"),
        field="per_node",
    ),
    Rule(
        cel="!self.perNode || !has(self.refill) || !has(self.refill.request) || self.refill.request == ''",
        message="perNode fills the root of each node whenever its pod is created: remove refill, and change image for a new root",
        holds=lambda jail: not (jail.per_node and jail.refill.request),
        field="per_node",
    ),
    Rule(
        cel="self.perNode == oldSelf.perNode",
        message="perNode cannot be changed, because the nodes would lose the files of their users: create a new cluster",
        field="per_node",
    ),
)

CONTROLLER = (
    Rule(
        cel="(self.replicas > 1) == (oldSelf.replicas > 1) || self.?state.?name.orValue('') != ''",
        message=(
            "replicas cannot change between 1 and more on a state claim that the operator created, because the claim's "
            "access mode is fixed: name a ReadWriteMany claim in state.name when the cluster is created"
        ),
        field="replicas",
    ),
)

AUTH = (
    Rule(
        cel="self.type == oldSelf.type",
        message=(
            "type cannot be changed on an existing cluster, because daemons of the two types reject each other and jobs "
            "would be lost: create a new cluster on the same jail"
        ),
        field="type",
    ),
)

#: The rules by the name of the model, for the schema; `of_model` has the same for an instance.
RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        Refill.__name__: REFILL,
        Submount.__name__: SUBMOUNT,
        HostPath.__name__: HOST_PATH,
        Tmpfs.__name__: TMPFS,
        Gpu.__name__: GPU,
        Driver.__name__: DRIVER,
        LoginService.__name__: SERVICE,
        Partition.__name__: PARTITION,
        SlurmClusterSpec.__name__: CLUSTER,
        "NodeSetSpec": NODESET,
        "HealthCheckSpec": HEALTHCHECK,
        "PowerSaving": POWER_SAVING,
        "ReplaceSpec": REPLACE,
        "SlurmAccountSpec": associations.ACCOUNT,
        "SlurmQOSSpec": associations.QOS,
        "SlurmBackupSpec": backup.BACKUP,
        "Repository": backup.REPOSITORY,
        "UpdateStrategy": UPDATE_STRATEGY,
        "DrainSpec": DRAIN,
        "NodeFailureSpec": NODE_FAILURE,
        "Auth": AUTH,
        "ControllerSpec": CONTROLLER,
        "Jail": (*JAIL, *ASKED),
        "ClaimRef": CLAIM,
        "StateClaim": CLAIM,
        "Accounting": ACCOUNTING,
        "Topology": TOPOLOGY,
        RestService.__name__: SERVICE,
        ConfigFile.__name__: SOURCE,
        HookScript.__name__: SOURCE,
        "RestUsers": REST_USERS,
    }
)

#: Rules on metadata.name, by kind; `holds` takes the name.
NAMES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "SlurmAccount": associations.names("SlurmAccount"),
        "SlurmQOS": associations.names("SlurmQOS"),
        "SlurmBackup": backup.NAMES,
        "HealthCheck": (
            Rule(
                cel="size(self.metadata.name) <= 40",
                message="metadata.name may have at most 40 characters, because reasons in Slurm contain it: choose a shorter name",
                holds=lambda name: len(name) <= 40,
            ),
            Rule(
                cel="!self.metadata.name.contains('.')",
                message="metadata.name must contain only a-z, 0-9 and '-', because names of jobs contain it: choose a name without dots",
                holds=lambda name: re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) is not None,
            ),
        ),
        "SlurmCluster": (
            Rule(
                cel="size(self.metadata.name) <= 30",
                message=(
                    "metadata.name may have at most 30 characters, because names of pods begin with it: choose a shorter name"
                ),
                holds=lambda name: len(name) <= 30,
            ),
            Rule(
                cel=f"self.metadata.name.matches('{_CLUSTER_NAME}')",
                message=(
                    "metadata.name must begin with a letter and contain only a-z, 0-9 and '-', because names of Services begin "
                    "with it: choose another name"
                ),
                holds=lambda name: re.fullmatch(_CLUSTER_NAME, name) is not None,
            ),
        ),
        "NodeSet": (
            Rule(
                cel="size(self.metadata.name) <= 40",
                message=(
                    "metadata.name may have at most 40 characters, because Slurm node names begin with it: choose a shorter name"
                ),
                holds=lambda name: len(name) <= 40,
            ),
            Rule(
                cel="!self.metadata.name.contains('.')",
                message=(
                    "metadata.name must contain only a-z, 0-9 and '-', because host names begin with it: choose a name without dots"
                ),
                holds=lambda name: re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) is not None,
            ),
            Rule(
                cel=f"!(self.metadata.name in {cel_list(RESERVED_NODESETS)})",
                message=(
                    f"metadata.name must not be one of {', '.join(RESERVED_NODESETS)}, which every cluster uses: choose another name"
                ),
                holds=lambda name: name not in RESERVED_NODESETS,
            ),
        ),
    }
)
