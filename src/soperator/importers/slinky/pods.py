"""Parts of Slinky's pods: where they run, the size of their containers, and the volumes that users see."""

import re
from typing import Any

from soperator.api.validation.submounts import RESERVED, RESERVED_PATHS
from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.submounts import with_source

_TEMPLATE = "template.spec"


def scheduling(fields: ForeignFields, target: str) -> dict[str, Any]:
    """Return where the pods of a role may run, from the pod template."""
    return {
        "nodeSelector": fields.carried(f"{_TEMPLATE}.nodeSelector", dict, f"{target}.nodeSelector"),
        "affinity": fields.carried(f"{_TEMPLATE}.affinity", dict, f"{target}.affinity"),
        "tolerations": fields.carried(f"{_TEMPLATE}.tolerations", list, f"{target}.tolerations"),
        "priorityClassName": fields.carried(f"{_TEMPLATE}.priorityClassName", str, f"{target}.priorityClassName"),
    }


def pod_template(fields: ForeignFields, target: str) -> dict[str, Any]:
    """Return labels and annotations of the pods."""
    return {
        "metadata": {
            "labels": fields.carried("template.metadata.labels", dict, f"{target}.metadata.labels"),
            "annotations": fields.carried("template.metadata.annotations", dict, f"{target}.metadata.annotations"),
        }
    }


def resources(fields: ForeignFields, container: str, target: str, further: str = "") -> dict[str, Any]:
    """Return requests and limits of a container; `further` names other fields that may get a part of them."""
    return {
        key: fields.quantities(f"{container}.resources.{key}", f"{target}.{key}{further}")
        for key in ("requests", "limits")
    }


def mounts(fields: ForeignFields, container: str) -> list[dict[str, Any]]:
    """Return the mounts of a container as submounts: what users see there, they see in the jail here."""
    volumes, found = _volumes(fields), []
    for number in fields.indexes(f"{container}.volumeMounts"):
        here = f"{container}.volumeMounts[{number}]"
        name, path = fields.peek(f"{here}.name", str) or "", _path(fields, here)
        if path in RESERVED_PATHS or re.search(RESERVED, path):
            fields.left(here, "nodes have mounts of the operator there: mount it at another path, or in podTemplate")
            continue
        if name not in volumes:
            fields.left(here, "its volume is not in template.spec.volumes: add it to submounts")
            continue
        index, source = volumes[name]
        fields.carried(f"{_TEMPLATE}.volumes[{index}]", dict, "the source of a submount")
        fields.ours(f"{here}.name", "a submount has no name")
        fields.carried(f"{here}.mountPath", str, "path of a submount")
        mount: dict[str, Any] = {"path": path}
        if sub_path := fields.carried(f"{here}.subPath", str, "subPath of a submount"):
            mount["subPath"] = sub_path
        if fields.carried(f"{here}.readOnly", bool, "readOnly of a submount"):
            mount["readOnly"] = True
        volume = with_source(source, mount, fields.report, fields.where(here))
        found.append({**mount, **volume})
    return found


def shm_size(fields: ForeignFields, container: str, target: str) -> str:
    """Return the size of a volume in memory at /dev/shm, and report it; empty without one, or without a size."""
    volumes = _volumes(fields)
    for number in fields.indexes(f"{container}.volumeMounts"):
        here = f"{container}.volumeMounts[{number}]"
        index, source = volumes.get(fields.peek(f"{here}.name", str) or "", (0, {}))
        memory = source.get("emptyDir")
        if _path(fields, here) == "/dev/shm" and isinstance(memory, dict) and memory.get("medium") == "Memory":
            at = f"{_TEMPLATE}.volumes[{index}]"
            size = fields.carried(f"{at}.emptyDir.sizeLimit", str, target) or ""
            for part in (here, f"{at}.name", f"{at}.emptyDir.medium"):
                fields.ours(part, "each job has its own /dev/shm")
            return size
    return ""


def _volumes(fields: ForeignFields) -> dict[str, tuple[int, dict[str, Any]]]:
    volumes = {}
    for number in fields.indexes(f"{_TEMPLATE}.volumes"):
        volume = fields.peek(f"{_TEMPLATE}.volumes[{number}]", dict) or {}
        volumes[str(volume.get("name"))] = number, {key: each for key, each in volume.items() if key != "name"}
    return volumes


def _path(fields: ForeignFields, mount: str) -> str:
    return (fields.peek(f"{mount}.mountPath", str) or "").rstrip("/") or "/"


def service(fields: ForeignFields, target: str) -> dict[str, Any]:
    """Return the Service of a role for clients outside."""
    inner = "service.spec"
    return {
        "type": fields.carried(f"{inner}.type", str, f"{target}.type"),
        "port": fields.carried("service.port", int, f"{target}.port"),
        "nodePort": fields.carried("service.nodePort", int, f"{target}.nodePort"),
        "annotations": fields.carried("service.metadata.annotations", dict, f"{target}.annotations"),
        "labels": fields.carried("service.metadata.labels", dict, f"{target}.labels"),
        "loadBalancerClass": fields.carried(f"{inner}.loadBalancerClass", str, f"{target}.loadBalancerClass"),
        "loadBalancerSourceRanges": fields.carried(
            f"{inner}.loadBalancerSourceRanges", list, f"{target}.loadBalancerSourceRanges"
        ),
        "externalTrafficPolicy": fields.carried(
            f"{inner}.externalTrafficPolicy", str, f"{target}.externalTrafficPolicy"
        ),
        "sessionAffinity": fields.carried(f"{inner}.sessionAffinity", str, f"{target}.sessionAffinity"),
    }
