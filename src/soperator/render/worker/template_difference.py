"""The first difference between a worker's running pod and the current template, in the words of a pod's spec, so that a rollout names its cause.

The API server fills defaults into a pod, and webhooks add to it. So only rendered fields are compared, part by part. Other fields of a pod count only
if nothing else differs, and only if no default can have set them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from soperator.api.validation.quantity import amount
from soperator.render.parts import labels
from soperator.render.parts.model import Object

#: The container to which a difference belongs where it names none.
MAIN = "slurmd"
_LENGTH = 100
_ANNOTATIONS = {labels.PLAN: "mounts of the jail", labels.CONFIG: "slurm.conf"}
_VOLUMES = {"plan": "mounts of the jail"}
#: Environment variables with settings of the Slurm node.
_NODE = "SOPERATOR_NODE_CONF"
#: Those of its settings that are updated in Slurm, so that they are seldom the reason for a new pod.
_UPDATED = ("Feature=", "Weight=")
_NAMED = ("initContainers", "containers", "volumes")
#: Parts of a pod to which the API server adds nothing.
_EXACT = ("nodeSelector", "affinity", "command", "args")


def first_difference(old: Mapping[str, Any], new: Object) -> str:
    """Return the first difference as a short text such as `image a → b`; empty without a difference."""
    found = next(_differences(old, new), "")
    return found if len(found) <= _LENGTH else f"{found[: _LENGTH - 1]}…"


def _differences(old: Mapping[str, Any], new: Object) -> Iterator[str]:
    was, spec = old.get("spec", {}), new["spec"]
    pairs = list(_containers(was, spec))
    for part in (_image, _resources, _environment):
        for before, after in pairs:
            yield from part(before, after, _place(after))
    yield from _volumes(was.get("volumes", ()), spec.get("volumes", ()))
    for before, after in pairs:
        yield from _others(before, after, _place(after))
    for key, value in spec.items():
        if key not in _NAMED and not _same(was.get(key), value, exact=key in _EXACT):
            yield key
    yield from _metadata(old.get("metadata", {}), new["metadata"])
    for before, after in pairs:
        yield from _record(before, after, _place(after))
    yield from _gone(was, spec)


def _place(container: Object) -> str:
    return "" if container["name"] == MAIN else f" of container {container['name']}"


def _containers(was: Mapping[str, Any], spec: Object) -> Iterator[tuple[Mapping[str, Any], Object]]:
    for kind in ("containers", "initContainers"):
        known = {each["name"]: each for each in was.get(kind, ())}
        for each in spec.get(kind, ()):
            yield known.get(each["name"], {}), each


def _image(before: Mapping[str, Any], after: Object, of: str) -> Iterator[str]:
    if not before:
        yield f"a new container {after['name']}"
    elif before.get("image") != after["image"]:
        yield f"image{of} {before.get('image')} → {after['image']}"


def _resources(before: Mapping[str, Any], after: Object, of: str) -> Iterator[str]:
    had, has = before.get("resources", {}), after.get("resources", {})
    for kind in ("limits", "requests"):
        wanted = has.get(kind, {})
        for name, value in wanted.items():
            if not _same(had.get(kind, {}).get(name), value):
                yield f"resources.{kind}.{name}{of} {had.get(kind, {}).get(name, 'none')} → {value}"
    for name in had.get("limits", {}):
        if name not in has.get("limits", {}):
            yield f"resources.limits.{name}{of} {had['limits'][name]} → none"


def _environment(before: Mapping[str, Any], after: Object, of: str) -> Iterator[str]:
    known, wanted = _variables(before), _variables(after)
    for name in [*wanted, *(each for each in known if each not in wanted)]:
        if name not in wanted or not _same(known.get(name), wanted[name]):
            if name != _NODE or name not in known:
                yield f"environment variable {name}{of}"
            elif line := _node_line(known[name], wanted[name]):
                yield line


def _record(before: Mapping[str, Any], after: Object, _of: str) -> Iterator[str]:
    known, wanted = _variables(before), _variables(after)
    if _NODE in known and _NODE in wanted and (line := _node_line(known[_NODE], wanted[_NODE], updated=True)):
        yield line


def _variables(container: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each for each in container.get("env", ())}


def _node_line(old: Mapping[str, Any], new: Mapping[str, Any], updated: bool = False) -> str:
    """The settings of the Slurm node that are new, as slurmd has them on its command line: those that can be updated in Slurm, or all others."""
    had, has = (
        [each for each in str(line.get("value", "")).split() if each.startswith(_UPDATED) == updated]
        for line in (old, new)
    )
    found = " ".join(each for each in has if each not in had)
    return found or ("a setting of the Slurm node is removed" if had != has else "")


def _others(before: Mapping[str, Any], after: Object, of: str) -> Iterator[str]:
    for key, value in after.items():
        if key not in ("image", "resources", "env") and not _same(before.get(key), value, exact=key in _EXACT):
            yield f"{key}{of}"


def _volumes(before: Sequence[Mapping[str, Any]], after: Sequence[Object]) -> Iterator[str]:
    known = {each["name"]: each for each in before}
    for each in after:
        if not _same(known.get(each["name"]), each):
            yield _VOLUMES.get(each["name"], f"volume {each['name']}")


def _metadata(before: Mapping[str, Any], after: Object) -> Iterator[str]:
    for key, value in after.get("annotations", {}).items():
        if key not in (labels.TEMPLATE, labels.SAFE_TO_EVICT) and before.get("annotations", {}).get(key) != value:
            yield _ANNOTATIONS.get(key, f"annotation {key}")
    for key, value in after.get("labels", {}).items():
        if key != labels.PROTECTED and before.get("labels", {}).get(key) != value:
            yield f"label {key}"


def _gone(was: Mapping[str, Any], spec: Object) -> Iterator[str]:
    for kind in _NAMED:
        wanted = {each["name"] for each in spec.get(kind, ())}
        for each in was.get(kind, ()):
            if each["name"] not in wanted:
                yield f"{'volume' if kind == 'volumes' else 'container'} {each['name']} is gone"


def _same(old: Any, new: Any, exact: bool = False) -> bool:
    """Return whether a pod has all rendered fields; unless `exact`, it may have more."""
    if isinstance(new, Mapping):
        if not isinstance(old, Mapping):
            return not new
        return all(_same(old.get(key), value, exact) for key, value in new.items()) and not (exact and old.keys() - new)
    if isinstance(new, Sequence) and not isinstance(new, str):
        if not isinstance(old, Sequence):
            return not new
        if exact:
            return list(old) == list(new)
        return all(any(_same(one, each) for one in old) for each in new)
    return bool(old == new) or (new in (None, "", False, 0) and old is None) or _same_quantity(old, new)


def _same_quantity(old: object, new: object) -> bool:
    try:
        return amount(str(old)) == amount(str(new))
    except ValueError:
        return False
