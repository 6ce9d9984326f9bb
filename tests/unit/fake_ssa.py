"""Server-side apply, as far as tests need it.

Each manager's last applied configuration is kept whole. Applying removes what that manager had applied and no longer
does, then merges the rest in; a field that is null goes, as the real server drops it. Lists whose items all have one of
the usual keys are merged by it, as the real schema's `listType: map` says; all other lists are replaced. Co-ownership
is not modelled: a removed field is gone even if another manager applied it too.
"""

import copy
from typing import Any

Json = dict[str, Any]

#: Fields that are applied whole, whatever is in them (`x-kubernetes-map-type: atomic`).
ATOMIC = frozenset({"selector", "podSelector", "namespaceSelector"})
KEYS = ("uid", "containerPort", "port", "mountPath", "devicePath", "type", "name")


def _key_of(items: list[Any]) -> str | None:
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    return next((key for key in KEYS if all(key in item for item in items)), None)


def apply(live: Any, previous: Any, desired: Any) -> Any:
    """Return `live` after a manager whose last configuration was `previous` applied `desired`."""
    match live, desired:
        case dict(), dict():
            return _apply_dict(live, previous if isinstance(previous, dict) else {}, desired)
        case list(), list() if (key := _key_of([*live, *desired])) is not None:
            return _apply_list(key, live, previous if isinstance(previous, list) else [], desired)
        case _:
            return copy.deepcopy(desired)


def _apply_dict(live: Json, previous: Json, desired: Json) -> Json:
    kept = {key: value for key, value in live.items() if key in desired or key not in previous}
    merged = {
        key: copy.deepcopy(value) if key in ATOMIC else apply(live[key], previous.get(key), value)
        for key, value in desired.items()
        if key in live
    }
    added = {key: copy.deepcopy(value) for key, value in desired.items() if key not in live}
    gone = {key for key, value in desired.items() if value is None}
    return {key: value for key, value in {**kept, **merged, **added}.items() if key not in gone}


def _apply_list(key: str, live: list[Json], previous: list[Json], desired: list[Json]) -> list[Json]:
    wanted = {item[key]: item for item in desired}
    before = {item.get(key): item for item in previous}
    result = [
        apply(item, before.get(item[key]), wanted[item[key]]) if item[key] in wanted else item
        for item in live
        if item[key] in wanted or item[key] not in before
    ]
    present = {item[key] for item in live}
    return result + [copy.deepcopy(item) for item in desired if item[key] not in present]
