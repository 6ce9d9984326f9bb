"""The objects of a generation of Slurm's files: its own ConfigMap that never changes, the pod of its trial, and the ConfigMap that slurmctld and
slurmrestd mount.

The trial is a slurmctld with the host name of the real one, so that it reads exactly the same files. It has no credentials, no key of the cluster, no
state and no name that resolves. The controller's names resolve to its own address, and those of backups to none, because a starting leader requests
its backups to step down, and would request that of itself.
"""

import re
from collections.abc import Mapping, Sequence

from soperator.api.common import Resources
from soperator.render.jail import mount_plan
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.slurm_conf import slurm_conf, topology
from soperator.slurm.settings.state import ConfigState

#: The role of pods that try an image; those that try a generation are of the role trial.
IMAGE_TRIAL = "image-trial"
#: How the trial ends where slurmctld refused the files (images/slurm/roles/trial).
REFUSED = 65
#: Seconds after which Kubernetes ends a trial.
DEADLINE = 120
_HERE, _NOWHERE = "127.0.0.1", "255.255.255.255"
_HOST = re.compile(r"^SlurmctldHost=([^(\s]+)(?:\(([^)\s]+)\))?", re.MULTILINE)


def render_live(cluster: Cluster, files: Mapping[str, str], state: ConfigState) -> Object:
    """Return the ConfigMap that pods mount, with the record of its generation."""
    meta = pod.metadata(cluster, names.config(cluster.name), "controller")
    meta["annotations"] = {labels.TRANSACTION: state.text(), **topology.noted(cluster)}
    return _config_map(meta, files)


def render_generation(cluster: Cluster, generation: str, files: Mapping[str, str]) -> Object:
    """Return the ConfigMap that keeps one generation."""
    meta = pod.metadata(cluster, names.generation(cluster.name, generation), "configuration")
    meta["labels"][labels.GENERATION] = generation
    return _config_map(meta, files) | {"immutable": True}


def render_trial(cluster: Cluster, defaults: Defaults, generation: str) -> Object:
    """Return the pod of a trial slurmctld for a generation."""
    image, auth = pod.slurm_image(cluster, defaults), cluster.spec.auth.type
    meta = pod.metadata(cluster, names.trial(cluster.name, generation), "trial")
    meta["labels"][labels.GENERATION] = generation
    container = pod.container(cluster, "slurmctld", image, Resources()) | {
        "args": ["trial"],
        "env": pod.env(SOPERATOR_AUTH=auth),
        "securityContext": pod.unprivileged(pod.SLURM_UID),
        "volumeMounts": [
            pod.mount("config", "/etc/slurm", readOnly=True),
            pod.mount("state", "/var/spool/slurmctld"),
            pod.mount("private", pod.PRIVATE),
            *pod.scratch_mounts(),
            *([pod.mount("munge", "/run/munge")] if auth == "munge" else []),
        ],
    }
    hosts = _HOST.findall(slurm_conf.files(cluster)["slurm.conf"])
    spec = pod.base(cluster, defaults, cluster.spec.controller.scheduling) | {
        "hostname": hosts[0][0],
        "hostAliases": _aliases(hosts),
        "dnsPolicy": "Default",
        "restartPolicy": "Never",
        "activeDeadlineSeconds": DEADLINE,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [
            pod.config_map("config", names.generation(cluster.name, generation)),
            pod.empty("state", medium="Memory", sizeLimit="64Mi"),
            pod.empty("private", medium="Memory", sizeLimit=pod.SMALL),
            *pod.scratch(),
            *([pod.empty("munge", sizeLimit=pod.SMALL)] if auth == "munge" else []),
        ],
    }
    # The controller's name must not lead here, nor its peers' names from here to them.
    for name in ("subdomain", "dnsConfig"):
        spec.pop(name)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def render_image_trial(cluster: Cluster, defaults: Defaults, generation: str) -> Object:
    """Return the pod of a trial slurmctld for the cluster's image of Slurm, with the generation that slurmctld runs with."""
    made, image = render_trial(cluster, defaults, generation), pod.slurm_image(cluster, defaults)
    meta = made["metadata"]
    name = names.trial(cluster.name, mount_plan.short(generation, image))
    labelled = labels.recommended({**meta["labels"], labels.ROLE: IMAGE_TRIAL})
    return made | {"metadata": meta | {"name": name, "labels": labelled, "annotations": {labels.IMAGE: image}}}


def _aliases(hosts: Sequence[tuple[str, str]]) -> list[Object]:
    """Return the host aliases: the names of the leader resolve to the trial itself, those of backups to no host.

    `hosts` has the name of each controller and of its Service, the leader first.
    """
    own, *backups = ({name for name in host if name} for host in hosts)
    said = {_HERE: own - {hosts[0][0]}, _NOWHERE: {name for each in backups for name in each}}
    return [{"ip": ip, "hostnames": sorted(hostnames)} for ip, hostnames in said.items() if hostnames]


def _config_map(meta: Object, files: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(files)}
