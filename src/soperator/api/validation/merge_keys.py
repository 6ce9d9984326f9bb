"""The field by which Kubernetes merges each list of a pod, and the problems of such lists in a podTemplate.

Source: the patchMergeKey and patchStrategy tags of PodSpec, Container and PodTemplateSpec. Other lists are replaced as a whole, because Kubernetes
does so.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from soperator.api.base import Problem

MERGE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "containers": "name",
        "initContainers": "name",
        "volumes": "name",
        "env": "name",
        "volumeMounts": "mountPath",
        "volumeDevices": "devicePath",
        "ports": "containerPort",
        "imagePullSecrets": "name",
        "hostAliases": "ip",
        "topologySpreadConstraints": "topologyKey",
        "resourceClaims": "name",
        "schedulingGates": "name",
    }
)
#: Lists whose entries keep only the fields that the patch has of them (patchStrategy retainKeys): a volume has one source.
RETAINED = frozenset({"volumes", "resourceClaims"})


def list_problems(field: str, value: object) -> Iterable[Problem]:
    """Yield the problems of lists in a podTemplate that cannot be merged: not a list, or entries without the merge key."""
    for key, below in value.items() if isinstance(value, Mapping) else ():
        here = f"{field}.{key}"
        if key not in MERGE_KEYS:
            yield from list_problems(here, below)
        elif not isinstance(below, list):
            yield Problem(here, str(below)[:80], f"it must be a list with entries that are merged by {MERGE_KEYS[key]}")
        else:
            for number, each in enumerate(below):
                yield from _entry_problems(f"{here}[{number}]", each, MERGE_KEYS[key])
                yield from list_problems(f"{here}[{number}]", each)


def _entry_problems(field: str, entry: object, key: str) -> Iterable[Problem]:
    if not isinstance(entry, Mapping):
        yield Problem(field, str(entry)[:80], f"it must be a map of fields, with {key}")
    elif not isinstance(entry.get(key), str | int) or not entry[key]:
        yield Problem(f"{field}.{key}", str(entry.get(key, ""))[:80], f"entries are merged by {key}: set it")
