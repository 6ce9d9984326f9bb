"""Why fields of the original are not carried over, by their paths. A star stands for one name."""

from collections.abc import Mapping
from types import MappingProxyType

from soperator.importers.parts.report import Outcome

_OURS, _LEFT = Outcome.OURS, Outcome.LEFT
_IMAGE = (_OURS, "the operator has images of its own")
_PORT = (_OURS, "the operator chooses the ports")
_MUNGE = (_OURS, "the operator's daemons use auth/slurm; set spec.auth.type for munge, with a new key")
_APPARMOR = (_LEFT, "AppArmor profiles are set in podTemplate of the role")
_CHECKS = (_LEFT, "health checks are spec.health and HealthChecks")
_TOPOLOGY = (_LEFT, "set spec.topology, with labels of Kubernetes Nodes as its levels")
_INIT = (_LEFT, "init containers are set in podTemplate of the role")
_METADATA = (_LEFT, "add labels and annotations of the object by hand")
_MOUNTS = (_LEFT, "mounts outside the jail are volumes and volumeMounts of a NodeSet, and podTemplate of other roles")
_LIMITS = (_LEFT, "limits of the daemons are those of the container runtime")
_NCCL = (_LEFT, "put NCCL's settings into /etc/nccl.conf of the jail")

METADATA = {"metadata.labels": _METADATA, "metadata.annotations": _METADATA}

_CONTAINER = {
    "image": _IMAGE,
    "imagePullPolicy": _IMAGE,
    "command": (_LEFT, "the operator chooses the command"),
    "args": (_LEFT, "the operator chooses the arguments"),
    "port": _PORT,
    "appArmorProfile": _APPARMOR,
    "securityLimitsConfig": _LIMITS,
}


def _containers(path: str) -> dict[str, tuple[Outcome, str]]:
    return {f"{path}.{key}": reason for key, reason in _CONTAINER.items()}


CLUSTER: Mapping[str, tuple[Outcome, str]] = MappingProxyType(
    {
        **METADATA,
        "crVersion": (_OURS, "it is the version of the former operator"),
        "clusterType": (_OURS, "a NodeSet names its GPUs"),
        "maintenance": (_LEFT, "scale NodeSets and login to 0 instead"),
        "pause": (_LEFT, "scale NodeSets and login to 0 instead"),
        "ncclSettings": _NCCL,
        "populateJail": (_LEFT, "the jail is filled from an image of this operator: see spec.jail"),
        "periodicChecks": _CHECKS,
        "healthCheckConfig": _CHECKS,
        "k8sNodeFilters": (_LEFT, "no role that is carried over names the filter"),
        "secrets": (_LEFT, "the operator makes new SSH host keys: clients must accept them once"),
        "telemetry": (_LEFT, "metrics are spec.metrics, and logs are those of the pods"),
        "sConfigController": (_OURS, "the operator itself hands out Slurm's files"),
        "useDefaultAppArmorProfile": _APPARMOR,
        "slurmTopologyConfigMapRefName": _TOPOLOGY,
        "topology": _TOPOLOGY,
        "plugStackConfig": (_LEFT, "spec.jobContainers has the defaults of Pyxis' options"),
        "mpiConfig": (_LEFT, "add mpi.conf to spec.config.files"),
        "slurmNodes.*.customInitContainers": _INIT,
        "slurmNodes.*.munge": _MUNGE,
        "slurmNodes.*.volumes.customMounts": _MOUNTS,
        **_containers("slurmNodes.*.*"),
        "slurmNodes.exporter": (_OURS, "the exporter has settings of its own in spec.metrics"),
        "slurmNodes.rest": (_OURS, "the operator has a slurmrestd of its own; spec.rest.users is one for users"),
        "slurmNodes.accounting.slurmdbdConfig": (
            _LEFT,
            "write it into spec.config.extraLines.slurmdbd if slurmdbd.conf has it",
        ),
        "slurmNodes.accounting.mariadbOperator": (_LEFT, "set it in spec.accounting.mariadbOperator.spec"),
        "slurmNodes.accounting.externalDB": (_LEFT, "set it in spec.accounting.externalDatabase"),
        "slurmNodes.worker": (_LEFT, "the SlurmCluster has no workers of its own: NodeSets have them"),
        "slurmNodes.worker.cgroupVersion": (_OURS, "limits of jobs are spec.jobs.limits"),
        "slurmNodes.worker.waitForController": (_OURS, "a worker waits for slurmctld"),
        "slurmNodes.worker.enableGDRCopy": (_LEFT, "the device of GDRCopy is a volume of the NodeSet"),
        "slurmNodes.worker.slurmNodeExtra": (_LEFT, "nodes have no field Extra here: use features"),
        "slurmNodes.worker.supervisordConfigMapRefName": (_LEFT, "there is no supervisord"),
        "slurmNodes.*.sshdConfigMapRefName": (_LEFT, "the operator writes sshd_config"),
        "slurmNodes.login.sshdServiceLoadBalancerIP": (
            _LEFT,
            "set the annotation of your load balancer in login.service.annotations",
        ),
    }
)

NODESET: Mapping[str, tuple[Outcome, str]] = MappingProxyType(
    {
        **METADATA,
        "ephemeralNodes": (_LEFT, "nodes on demand are spec.powerSaving"),
        "ephemeralTopologyWaitTimeout": _TOPOLOGY,
        "enableHostUserNamespace": (_LEFT, "user namespaces are spec.security.userNamespace of the SlurmCluster"),
        "munge": _MUNGE,
        "slurmd.image": _IMAGE,
        "slurmd.port": _PORT,
        "slurmd.customEnv": (_LEFT, "environment variables of slurmd are set in podTemplate"),
        "slurmd.cgroupVersion": (_OURS, "limits of jobs are spec.jobs.limits"),
        "slurmd.security.limitsConfig": _LIMITS,
        "slurmd.security.appArmorProfile": _APPARMOR,
        "slurmd.security.procMount": (_OURS, "the operator chooses what of /proc a pod sees"),
        "slurmd.volumes.spool": (_OURS, "slurmd's spool is a folder of the Node, or of the pod"),
        "slurmd.volumes.customVolumeMounts": _MOUNTS,
        "nodeConfig.dynamic": (_LEFT, "nodes have no field Extra here: use features"),
        "nodeConfig.gresConfig": (_LEFT, "the operator writes gres.conf from spec.gpu"),
        "gpu.enabled": (_OURS, "spec.gpu has the number of GPUs of the resources"),
        "gpu.nvidia": (_LEFT, "the device of GDRCopy is a volume of the NodeSet"),
        "configMapRefSupervisord": (_LEFT, "there is no supervisord"),
        "configMapRefSshd": (_LEFT, "the operator writes sshd_config"),
        "customInitContainers": _INIT,
    }
)

CHECK: Mapping[str, tuple[Outcome, str]] = MappingProxyType(
    {
        **METADATA,
        **dict.fromkeys(
            (
                *("successfulJobsHistoryLimit", "failedJobsHistoryLimit", "nodeSelector", "affinity", "tolerations"),
                *("podTemplateNameRef", "checkType", "name"),
            ),
            (_OURS, "a HealthCheck runs as a job of Slurm, and keeps its results by itself"),
        ),
        "slurmJobSpec.jobContainer": (_OURS, "the operator submits the job"),
        "slurmJobSpec.mungeContainer": _MUNGE,
        "slurmJobSpec.eachWorkerJobArray": (_OURS, "each node runs the check"),
        "slurmJobSpec.eachWorkerJobs": (_OURS, "each node runs the check"),
        "reactions": (
            _LEFT,
            "set onFailure, and spec.health.replace.condition of the SlurmCluster for a condition of Nodes",
        ),
        "failureReactions": (
            _LEFT,
            "set onFailure, and spec.health.replace.condition of the SlurmCluster for a condition of Nodes",
        ),
        "successReactions": (_LEFT, "a node that passes again is resumed with onFailure DrainAndRetest"),
        "k8sJobSpec": (_LEFT, "a HealthCheck runs a script as a job of Slurm, and no container of Kubernetes"),
    }
)

#: Kinds of the original's group without a counterpart.
OTHER_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "JailedConfig": "copy the files into the jail",
        "NodeConfigurator": "Kubernetes Nodes are configured by their provider",
        "NodeSetPowerState": "it is a record of the former operator",
        "ResourcePatchPolicy": "settings without a field are in podTemplate",
        "RollingUpdateState": "it is a record of the former operator",
    }
)
