"""Strategic merge of a pod template over a generated pod, as Kubernetes does it for `kubectl patch`.

Maps are merged key by key and null removes a key. Lists of named items are merged by name, other lists are replaced. Directives such as `$patch` are
refused (`api/validation/pod_template.py`). Source: Kubernetes' patchMergeKey tags of PodSpec and Container.
"""

from collections.abc import Mapping
from typing import Any

_MERGE_KEYS = {
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


def strategic(base: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with the patch merged over it; neither argument is changed."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = strategic(merged[key], value)
        elif key in _MERGE_KEYS and isinstance(value, list):
            merged[key] = _by_name(merged.get(key, []), value, _MERGE_KEYS[key])
        else:
            merged[key] = value
    return merged


def _by_name(base: list[Any], patch: list[Any], key: str) -> list[Any]:
    merged = {each.get(key): each for each in base}
    for each in patch:
        merged[each.get(key)] = strategic(merged.get(each.get(key), {}), each)
    return list(merged.values())
