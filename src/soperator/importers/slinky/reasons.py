"""Why fields of Slinky's objects are not carried over, by their paths below spec. A star stands for one name."""

from collections.abc import Mapping
from types import MappingProxyType

from soperator.importers.parts.report import Outcome

_OURS, _LEFT = Outcome.OURS, Outcome.LEFT
_KEYS = (_OURS, "the operator creates the keys: tokens of the former cluster are void")
_REF = (_OURS, "the objects of a cluster name it by clusterRef")
_IMAGE = (_OURS, "the operator has images of its own")
_POD = (_LEFT, "set it in podTemplate of the role, if the operator's pod needs it")
_LOG = (_OURS, "the daemons write their logs to the output of their pods")
_SSHD = (_LEFT, "the operator writes sshd_config")
_INTERNAL = (_LEFT, "the operator makes this Service, for the cluster alone")
_DIRECTORY = (_OURS, "the directory is spec.sssd of the SlurmCluster")
_SERVICE = (_LEFT, "the service has no such field here")

COMMON: Mapping[str, tuple[Outcome, str]] = MappingProxyType(
    {
        "metadata.labels": (_LEFT, "add labels and annotations of the object by hand"),
        "metadata.annotations": (_LEFT, "add labels and annotations of the object by hand"),
        "controllerRef": _REF,
        "slurmKeyRef": _KEYS,
        "jwtHs256KeyRef": _KEYS,
        "jwtKeyRef": _KEYS,
        "jwksKeyRef": (_LEFT, "tokens of an identity provider are not accepted here"),
        "external": (_OURS, "the daemon runs in the cluster"),
        "externalConfig": (_OURS, "external is false, so it is not in use"),
        "logfile": _LOG,
        "template": _POD,
        "template.spec.imagePullSecrets": _IMAGE,
        "extraSshdConfig": _SSHD,
        **{f"{each}.image": _IMAGE for each in ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login")},
        **{f"{each}.imagePullPolicy": _IMAGE for each in ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login")},
        **dict.fromkeys(("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login"), _POD),
    }
)
CONTROLLER = {
    **COMMON,
    "accountingRef": _REF,
    "sssdConfRef": _DIRECTORY,
    "highAvailability": (_LEFT, "raise controller.replicas, with a ReadWriteMany claim for the state"),
    "inplaceReconfigure": (
        _OURS,
        "the operator lets slurmctld read a changed configuration without a restart where Slurm can",
    ),
    "reconfigure": (
        _OURS,
        "the operator lets slurmctld read a changed configuration without a restart where Slurm can",
    ),
    "persistence": (_LEFT, "the state has a new claim: slurmctld cannot read the state of a newer Slurm"),
    "persistence.enabled": (_OURS, "slurmctld always has a claim for its state"),
    "persistence.accessModes": (_OURS, "the operator chooses the modes of the claims that it creates"),
    "service": _INTERNAL,
    "metrics": (_LEFT, "metrics are spec.metrics, with an exporter of the operator"),
}
NODESET = {
    **COMMON,
    "ssh.extraSshdConfig": _SSHD,
    "ssh.sssdConfRef": _DIRECTORY,
    "partition.enabled": (_OURS, "the NodeSet has no partition of its own"),
    "volumeClaimTemplates": (_LEFT, "a claim for each pod is a submount with a volume of kind ephemeral"),
    "revisionHistoryLimit": (_OURS, "the operator keeps no revisions"),
    "persistentVolumeClaimRetentionPolicy": (_LEFT, "a claim of kind ephemeral ends with its pod"),
    "minReadySeconds": (_OURS, "a node is ready when Slurm has it"),
    "ordinalPadding": (_LEFT, "numbers of nodes have no leading zeros: scripts that name nodes must name the new ones"),
    "updateStrategy.type": (_LEFT, "a time for updates is updateStrategy.window"),
    "updateStrategy.scheduledUpdate": (_LEFT, "a time for updates is updateStrategy.window"),
    **dict.fromkeys(("pinToNode", "oversubscribeNode"), (_LEFT, "where pods run is spec.scheduling")),
    "preferKubernetesNodeName": (_LEFT, "nodes have the name of the NodeSet and a number"),
    "pruneSlurmNodeRecords": (_OURS, "the operator adds nodes to Slurm and deletes them"),
    "scalingMode": (_LEFT, "a NodeSet has a number of nodes: set replicas to the number of Kubernetes Nodes"),
    "taintKubeNodes": (_LEFT, "taint the Kubernetes Nodes by hand, and set scheduling.tolerations"),
    "workloadDisruptionProtection": (_OURS, "a node with jobs is drained before it is deleted"),
}
LOGIN = {
    **COMMON,
    "initconf": (_OURS, "login pods get Slurm's files from sackd"),
    "strategy": (_OURS, "login pods are replaced one after the other"),
    "service": _SERVICE,
}
REST = {**COMMON, "service": _SERVICE}
ACCOUNTING = {**COMMON, "service": _INTERNAL}
TOKEN = {**COMMON, "refresh": (_OURS, "the operator renews a token before it expires")}

#: Kinds of Slinky's group without a rule, with what to do instead.
OTHER_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "Account": "write a SlurmAccount, or keep the database",
        "User": "write it into users of a SlurmAccount, or keep the database",
        "SlurmQOS": "write a SlurmQOS of the operator, or keep the database",
    }
)
