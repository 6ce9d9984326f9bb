"""NodeSets of Slinky."""

from typing import Any

from soperator.importers.parts.fields import ForeignFields, steps_of
from soperator.importers.parts.gres import gres_items
from soperator.importers.parts.node_settings import read_node_text
from soperator.importers.parts.report import UnreadableInputError
from soperator.importers.parts.submounts import own_submounts
from soperator.importers.slinky import pods, reasons

_VENDORS = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}


#: Fields that mean nothing if they are off.
_OFF = ("pinToNode", "oversubscribeNode", "preferKubernetesNodeName", "taintKubeNodes")


def slurm_name(fields: ForeignFields, name: str) -> str:
    """Return the name of a NodeSet in Slurm, which its nodes begin with: the hostname of its pods without dashes around it, else its own."""
    words = (fields.carried("template.spec.hostname", str, "the name of the NodeSet, and of its nodes") or "").split()
    return words[0].strip("-") if words else name


def node_set(fields: ForeignFields, shared: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the spec of a NodeSet, and report every field. `shared` are the submounts of all nodes, which it does not repeat."""
    text = read_node_text(fields.read("extraConf"), fields.where("extraConf"), fields.report)
    sizes = pods.resources(fields, "slurmd", "spec.resources", ", spec.gpu and spec.rdma")
    spec = {
        "replicas": _replicas(fields),
        "resources": sizes,
        "gpu": _gpu(fields, sizes, text.gres),
        "rdma": {"resources": _rdma(sizes)},
        "features": list(dict.fromkeys(text.features)),
        "weight": text.weight,
        "extraConf": text.extra,
        "ssh": _ssh(fields),
        "shmSize": pods.shm_size(fields, "slurmd", "spec.shmSize"),
        "submounts": own_submounts(fields, pods.mounts(fields, "slurmd"), shared),
        "scheduling": pods.scheduling(fields, "spec.scheduling"),
        "podTemplate": pods.pod_template(fields, "spec.podTemplate"),
        "updateStrategy": _update_strategy(fields),
    }
    for name in (each for each in _OFF if fields.peek(each, bool) is False):
        fields.ours(name, "it is off")
    if not fields.peek("ordinalPadding", int):
        fields.ours("ordinalPadding", "numbers of nodes have no leading zeros")
    return spec


def _replicas(fields: ForeignFields) -> int | None:
    if fields.peek("scalingMode", str) == "DaemonSet":
        fields.ours("replicas", "it is not in use with scalingMode DaemonSet")
        return None
    fields.ours("scalingMode", "a NodeSet has a number of nodes")
    return fields.carried("replicas", int, "spec.replicas")


def _ssh(fields: ForeignFields) -> bool:
    """Return spec.ssh, which is on by default here and off there."""
    reason = "now spec.ssh: a user with a job on a node may log in there, into that job"
    if fields.peek("ssh.enabled", bool):
        return bool(fields.check("ssh.enabled", bool, reason))
    return bool(fields.carried("ssh.enabled", bool, "spec.ssh"))


def _update_strategy(fields: ForeignFields) -> dict[str, Any]:
    path, target = "updateStrategy", "spec.updateStrategy"
    kind = None
    if fields.peek(f"{path}.type", str) in ("RollingUpdate", "OnDelete"):
        kind = fields.carried(f"{path}.type", str, f"{target}.type")
    limit = fields.share(f"{path}.rollingUpdate.maxUnavailable", f"{target}.maxUnavailable")
    return {"type": kind, "maxUnavailable": limit}


def _gpu(fields: ForeignFields, sizes: dict[str, Any], gres: str) -> dict[str, Any]:
    """Return spec.gpu, and take the GPUs out of the resources; the type is that of Gres in extraConf."""
    gpu: dict[str, Any] = {}
    for part, limits in sizes.items():
        for resource, vendor in _VENDORS.items():
            if resource in limits:
                text, count = limits.pop(resource), 0
                if text.isascii() and text.isdecimal() and len(text) < 10:
                    count = int(text)
                else:
                    place = f"{fields.where(f'slurmd.resources.{part}')}.{resource}"
                    raise UnreadableInputError(f"{place}: {text[:80]}: it is not a whole number: correct it")
                if gpu and count and gpu["vendor"] != vendor:
                    reason = f"a NodeSet has GPUs of one vendor, and this one has {gpu['vendor']}: make another NodeSet"
                    fields.report.left(fields.where(f"slurmd.resources.{part}"), f"{resource}: {text}", reason)
                elif count:
                    gpu = {"vendor": vendor, "count": count}
    for item, name, kind, count in gres_items(gres):
        place, setting = fields.where("extraConf"), f"Gres={item}"
        if name == "gpu" and gpu and count == gpu["count"] and "type" not in gpu:
            gpu["type"] = kind
            fields.report.carried(place, setting, "spec.gpu")
        elif name == "gpu" and count and not gpu:
            gpu = {"vendor": "nvidia", "count": count, "type": kind}
            reason = "now spec.gpu: the resources name no GPUs, so the vendor is a guess, and each pod now gets GPUs"
            fields.report.check(place, setting, reason)
        elif name == "shard" and gpu and count % gpu["count"] == 0:
            gpu["shards"] = count
            fields.report.carried(place, setting, "spec.gpu.shards")
        else:
            fields.report.left(
                place, setting, "it does not fit to the GPUs of the resources, or is no GPU: see spec.gpu"
            )
    return gpu


def _rdma(sizes: dict[str, Any]) -> dict[str, str]:
    found = {}
    for limits in sizes.values():
        for name in [each for each in limits if each.startswith("rdma/")]:
            found[name] = limits.pop(name)
    return found


def belongs(fields: ForeignFields, controller: str) -> bool:
    """Return whether an object belongs to a Controller; if not, report all of it."""
    name = fields.peek("controllerRef.name", str)
    if name in (None, controller):
        return True
    fields.left("", f"it belongs to Controller {name}, which is not imported")
    fields.taken.add(steps_of(""))
    fields.rest(reasons.COMMON)
    return False
