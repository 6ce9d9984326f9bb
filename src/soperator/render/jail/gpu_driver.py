"""The GPU driver of a node: its libraries and tools in one folder, which the mount plan gives to every job of the node.

The owner of a machine owns its driver, and two kinds of machines may have two drivers under one shared root. So no driver is ever in the jail: each
node collects its own in /run/driver, and binds it at one path (decision 18). The source is one of three: the files that the container runtime mounted
into the pod, a folder (of the Node, or a volume), or a CDI specification. For the last two, an init container lists the files and slurmd's entry
script mounts them, because mounts of another container would not be visible there.
"""

import json

from soperator.api.common import Resources
from soperator.api.nodeset import Driver, NodeSetSpec
from soperator.render.parts import pod
from soperator.render.parts.model import (
    Cluster,
    Defaults,
    NodeSet,
    Object,
)
from soperator.render.parts.paths import BUNDLE

TARGET = f"{BUNDLE}/driver"
GATHERED = "/run/driver"

_ROOT = "/mnt/driver/root"
_CDI = "/mnt/driver/cdi"
_LIST = "/mnt/driver/list"


def has_driver(spec: NodeSetSpec) -> bool:
    """Return whether the nodes give a driver to their jobs."""
    return spec.gpu.vendor != "None" or spec.gpu.driver.is_given


def environment(nodeset: NodeSet) -> list[Object]:
    """Return the environment that names the driver's source for the entry script: a list of an init container, or the runtime's mounts."""
    if not has_driver(nodeset.spec):
        return []
    return pod.env(SOPERATOR_DRIVER=f"{_LIST}/files" if nodeset.spec.gpu.driver.is_given else "runtime")


def init_containers(cluster: Cluster, nodeset: NodeSet, defaults: Defaults) -> list[Object]:
    """Return the init container that lists the driver's files from the folder or the specification."""
    said = nodeset.spec.gpu.driver
    if not said.is_given:
        return []
    agent = cluster.spec.images.agents or defaults.agents
    words = ["--root", _ROOT, "--name", _name(said), "--list", f"{_LIST}/files"]
    if said.cdi:
        words += ["--cdi", _CDI, "--host-root", said.cdi.root]
    made = pod.container(cluster, "driver", agent, Resources()) | {
        "command": ["python3", "-m", "soperator.agents.driver", *words],
        "securityContext": pod.file_maker(),
        "volumeMounts": [*mounts(nodeset), *([pod.mount("cdi", _CDI, readOnly=True)] if said.cdi else [])],
    }
    return [made]


def volumes(nodeset: NodeSet) -> list[Object]:
    """Return the driver's folder, the list of its files, and the specification."""
    said = nodeset.spec.gpu.driver
    if not said.is_given:
        return []
    found = [{"name": "driver", **_source(said)}, pod.empty("driver-list", sizeLimit=pod.SMALL)]
    if said.cdi:
        found.append({"name": "cdi", "hostPath": {"path": said.cdi.spec}})
    return found


def mounts(nodeset: NodeSet) -> list[Object]:
    """Return the mounts of the driver in slurmd's container."""
    if not nodeset.spec.gpu.driver.is_given:
        return []
    return [pod.mount("driver", _ROOT, readOnly=True), pod.mount("driver-list", _LIST)]


def described(spec: NodeSetSpec) -> str:
    """Return the origin of the driver as text for the mount plan."""
    said = spec.gpu.driver
    if said.cdi:
        return f"as {said.cdi.spec} of the Node lists it"
    return f"from {_name(said)}" if said.is_given else "as the container runtime gave it to the pod"


def _name(said: Driver) -> str:
    if said.cdi:
        return said.cdi.spec
    if said.host_path:
        return f"{said.host_path.path} of the Node"
    return f"the volume {json.dumps(said.volume)[:80]}"


def _source(said: Driver) -> Object:
    if said.cdi:
        return {"hostPath": {"path": said.cdi.root}}
    if said.host_path:
        return {"hostPath": {"path": said.host_path.path}}
    return dict(said.volume or {})
