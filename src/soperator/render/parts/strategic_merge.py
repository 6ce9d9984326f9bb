"""Strategic merge of a pod template over a generated pod, with the rules of `kubectl patch`, because people know them.

Maps are merged key by key and null removes a key. Lists with a merge key are merged by it, other lists are replaced. A volume or claim keeps only the
fields of the patch, as with `kubectl apply`, because Kubernetes refuses two sources of a volume. One thing differs: new entries follow the operator's
entries instead of preceding them, because init containers start in this order. Directives such as `$patch`, and lists that cannot be merged, are
refused beforehand (`api/validation/pod_template.py`).
"""

from collections.abc import Mapping
from typing import Any

from soperator.api.validation.merge_keys import MERGE_KEYS, RETAINED


def strategic(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with the patch merged over it; neither argument is changed."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            former = merged.get(key)
            merged[key] = strategic(former if isinstance(former, Mapping) else {}, value)
        elif key in MERGE_KEYS and isinstance(value, list):
            merged[key] = _merged(merged.get(key) or [], value, key)
        else:
            merged[key] = value
    return merged


def _merged(base: list[Any], patch: list[Any], field: str) -> list[Any]:
    """Return the entries of the base in their order, each merged with the patch's of the same key, then the patch's others."""
    merged, key = list(base), MERGE_KEYS[field]
    for each in patch:
        found = next((number for number, old in enumerate(merged) if old.get(key) == each.get(key)), None)
        if found is None:
            merged.append(strategic({}, each))
        else:
            made = strategic(merged[found], each)
            merged[found] = {name: made[name] for name in made if name in each} if field in RETAINED else made
    return merged
