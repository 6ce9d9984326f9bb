"""NodeSets of Slinky."""

from typing import Any

from soperator.importers.parts.fields import ForeignFields, steps_of
from soperator.importers.parts.gres import gres_items
from soperator.importers.parts.node_settings import read_node_text
from soperator.importers.parts.partition_settings import is_yes, options_of, report_options
from soperator.importers.parts.report import UnreadableInputError
from soperator.importers.parts.submounts import own_submounts
from soperator.importers.slinky import pods, reasons
from soperator.slurm.conf import logical_lines

_VENDORS = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}


def node_set(fields: ForeignFields, shared: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the spec of a NodeSet, and report every field. `shared` are the submounts of all nodes, which it does not repeat."""
    text = read_node_text(fields.read("extraConf"), fields.where("extraConf"), fields.report)
    sizes = pods.resources(fields, "slurmd", "spec.resources")
    strategy = "updateStrategy"
    spec = {
        "replicas": fields.carried("replicas", int, "spec.replicas"),
        "resources": sizes,
        "gpu": _gpu(fields, sizes, text.gres),
        "rdma": {"resources": _rdma(sizes)},
        "features": list(dict.fromkeys(text.features)),
        "weight": text.weight,
        "extraConf": text.extra,
        "ssh": fields.carried("ssh.enabled", bool, "spec.ssh"),
        "submounts": own_submounts(fields, pods.mounts(fields, "slurmd"), shared),
        "scheduling": pods.scheduling(fields, "spec.scheduling"),
        "podTemplate": pods.pod_template(fields, "spec.podTemplate"),
        "updateStrategy": {
            "type": fields.carried(f"{strategy}.type", str, "spec.updateStrategy.type"),
            "maxUnavailable": fields.share(
                f"{strategy}.rollingUpdate.maxUnavailable", "spec.updateStrategy.maxUnavailable"
            ),
        },
    }
    if fields.peek("scalingMode", str) == "StatefulSet":
        fields.ours("scalingMode", "a NodeSet has a number of nodes")
    return spec


def partition(fields: ForeignFields, name: str) -> dict[str, Any] | None:
    """Return the partition of a NodeSet, and report the fields that no other part takes; None if it has none of its own."""
    made: dict[str, Any] | None = None
    if fields.peek("partition.enabled", bool):
        fields.carried("partition.enabled", bool, "an entry of spec.partitions over this NodeSet")
        made = {"name": name, "nodeSets": [name]}
        for line in logical_lines(fields.read("partition.config")):
            report_options(line.pairs, fields.where("partition.config"), fields.report)
            if line.rest or line.include:
                fields.report.left(
                    fields.where("partition.config"), (line.rest or line.include)[:120], "Slurm reads Key=Value only"
                )
            values = {key.lower(): value for key, value in line.pairs}
            made |= {key: True for key in ("default", "hidden") if is_yes(values, key)}
            made["options"] = {**made.get("options", {}), **options_of(line.pairs)}
    else:
        fields.ours("partition.config", "partition.enabled is false, so it is not in use")
    fields.rest(reasons.NODESET)
    return made


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
                gpu = {"vendor": vendor, "count": count} if count else gpu
    for item, name, kind, count in gres_items(gres):
        place, setting = fields.where("extraConf"), f"Gres={item}"
        if name == "gpu" and gpu and count == gpu["count"] and "type" not in gpu:
            gpu["type"] = kind
            fields.report.carried(place, setting, "spec.gpu")
        elif name == "gpu" and not gpu:
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
