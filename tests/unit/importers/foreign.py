"""The examples of foreign objects, and ways to change them."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from soperator.cli.support.manifests import YamlLoader
from soperator.importers.parts.fields import ForeignObject, foreign_objects
from soperator.importers.parts.report import Imported, Outcome

GOLDEN = Path(__file__).parents[2] / "golden/imports"
SERVER = ("name", "namespace", "uid", "creationTimestamp", "resourceVersion")


def example(case: str) -> list[ForeignObject]:
    """The objects of an example."""
    texts = (file.read_text() for file in sorted((GOLDEN / case / "given").iterdir()))
    return [found for text in texts for found in foreign_objects("example", list(yaml.load_all(text, YamlLoader)))]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that is no map and no list, with its path; empty ones say nothing."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    elif value not in (None, ""):
        yield path, value


def is_setting(path: str) -> bool:
    """Whether a path is that of a setting, and no part that Kubernetes fills in."""
    return path.split(".")[0] not in ("apiVersion", "kind", "status", "data") and path not in {
        f"metadata.{each}" for each in SERVER
    }


def maps(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all maps of settings."""
    if isinstance(value, dict):
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from maps(each, (*path, key))


def with_field(found: ForeignObject, path: tuple[str | int, ...], key: str, value: object) -> ForeignObject:
    """The object with one more field."""
    data: Any = copy.deepcopy(dict(found.data))
    place = data
    for step in path:
        place = place[step]
    place[key] = value
    return ForeignObject(found.api_version, found.kind, found.namespace, found.name, data)


def changed(objects: list[ForeignObject], place: str, path: str, value: object) -> list[ForeignObject]:
    """The objects with another value of one field."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    return [with_field(each, tuple(steps), last, value) if each.place == place else each for each in objects]


def lines(found: Imported, outcome: Outcome) -> str:
    """What the report says of one outcome."""
    return "\n".join(str(each) for each in found.entries if each.outcome is outcome)


def spec(found: Imported, kind: str, name: str) -> dict:
    """The spec of one of our objects."""
    return next(each["spec"] for each in found.objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
