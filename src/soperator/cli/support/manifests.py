"""Reads YAML files with our kinds, as strictly as Kubernetes reads them.

A duplicate key, which YAML parsers silently accept, is a fault here. Dates stay texts, as in Kubernetes. Every fault is kept beside the readable
part, so that a person sees all of them at once.
"""

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from soperator.api.associations import SlurmAccountSpec, SlurmQOSSpec
from soperator.api.backup import SlurmBackupSpec
from soperator.api.base import API_VERSION, GROUP, Model, Problem
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.strict import read
from soperator.api.validation.validate import World

KINDS: Mapping[str, type[Model]] = {
    "SlurmCluster": SlurmClusterSpec,
    "NodeSet": NodeSetSpec,
    "HealthCheck": HealthCheckSpec,
    "SlurmAccount": SlurmAccountSpec,
    "SlurmQOS": SlurmQOSSpec,
    "SlurmBackup": SlurmBackupSpec,
}


@dataclass(frozen=True)
class Manifest:
    """One object of our kinds from a file. `spec` is None if it could not be read, and `faults` has the cause."""

    file: str
    kind: str
    namespace: str
    name: str
    spec: Model | None
    faults: list[Problem] = field(default_factory=list)


#: The deepest YAML, and by how many values aliases may enlarge a document. Kubernetes' own objects stay far below.
_DEEPEST, _MOST_REPEATED = 100, 100_000


class YamlLoader(yaml.SafeLoader):
    """A YAML loader with Kubernetes' rules: no duplicate keys, no dates, texts as keys.

    A document that is too deep, contains itself, or becomes huge by its aliases is a YAML error, because others may have written it.
    """

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a value; raise a YAML error for one that is too deep."""
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                where = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # the stubs of PyYAML say no type
                raise yaml.composer.ComposerError(None, None, f"it is more than {_DEEPEST} levels deep", where)
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_document(self, node: yaml.Node) -> Any:
        """Return the value of a document; raise a YAML error for what no program could use."""
        sizes: dict[int, int] = {}
        if _size(node, sizes) > len(sizes) + _MOST_REPEATED:
            raise _unusable("its aliases repeat too much: write the values out", node)
        try:
            return super().construct_document(node)
        except (ValueError, TypeError, OverflowError) as error:
            raise _unusable(f"a value cannot be read: {error}", node) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a map; raise a YAML error for a duplicate key, and for one that is a map or a list."""
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _unusable("a map or a list is no key", key)
            if key.value in seen:
                raise _unusable(f"the key {key.value!r} stands twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values of a node with its aliases written out; `sizes` gets that of each node. Raises a YAML error for a circle."""
    if (known := sizes.get(id(node))) is not None:
        if known == 0:
            raise _unusable("it contains itself", node)
        return known
    sizes[id(node)] = 0
    values = node.value if not isinstance(node, yaml.ScalarNode) else []
    inner = (each for pair in values for each in (pair if isinstance(pair, tuple) else (pair,)))
    sizes[id(node)] = 1 + sum(_size(each, sizes) for each in inner)
    return sizes[id(node)]


def _unusable(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


YamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(files: Iterable[Path]) -> list[Manifest]:
    """Return every object of our kinds in the files, in their order; `-` is standard input. Other kinds are skipped."""
    return [found for file in files for found in _of_file(file)]


def entries_of(files: Iterable[Path]) -> dict[tuple[str, str, str, str], str]:
    """Return the texts of the ConfigMaps in the files, by kind, namespace, name and key; files that cannot be read have none."""
    found: dict[tuple[str, str, str, str], str] = {}
    for file in files:
        try:
            documents = list(yaml.load_all(file.read_text(encoding="utf-8"), YamlLoader)) if str(file) != "-" else []
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        for each in (item for document in documents for item in _items(document) if isinstance(item, dict)):
            metadata, data = each.get("metadata"), each.get("data")
            if each.get("kind") == "ConfigMap" and isinstance(metadata, dict) and isinstance(data, dict):
                at = ("ConfigMap", str(metadata.get("namespace", "default")), str(metadata.get("name", "")))
                found |= {(*at, str(key)): text for key, text in data.items() if isinstance(text, str)}
    return found


def worlds(objects: Iterable[Manifest], partial: bool = False) -> dict[str, World]:
    """Return the objects of each namespace; an unreadable object is present by its name only."""
    out: dict[str, World] = {}
    for found in objects:
        world = out.get(found.namespace, World(partial=partial))
        spec = found.spec
        if found.kind == "SlurmCluster":
            read_spec = spec if isinstance(spec, SlurmClusterSpec) else SlurmClusterSpec()
            world = replace(world, clusters={**world.clusters, found.name: read_spec})
        elif isinstance(spec, NodeSetSpec):
            world = replace(world, node_sets={**world.node_sets, found.name: spec})
        elif isinstance(spec, HealthCheckSpec):
            world = replace(world, health_checks={**world.health_checks, found.name: spec})
        elif not isinstance(spec, SlurmAccountSpec | SlurmQOSSpec | SlurmBackupSpec):
            world = replace(world, partial=True)
        out[found.namespace] = world
    return out


def manifests_of(file: str, documents: Iterable[object]) -> list[Manifest]:
    """Return the objects of our kinds among decoded documents; `file` is shown as their source."""
    return [found for document in documents for found in _of_document(file, document)]


def _of_file(file: Path) -> Iterator[Manifest]:
    shown = "standard input" if str(file) == "-" else str(file)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        documents = list(yaml.load_all(text, YamlLoader))
    except OSError as error:
        yield _unreadable(shown, f"it cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        yield _unreadable(shown, "it is not UTF-8 text: give a YAML file")
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        yield _unreadable(shown, f"{line}{error.problem or error.context}: correct the YAML")
    else:
        for document in documents:
            for item in _items(document):
                yield from _of_document(shown, item)


def _unreadable(file: str, why: str) -> Manifest:
    return Manifest(file, "", "", "", None, [Problem("", "", why)])


def _items(document: object) -> Iterator[object]:
    if isinstance(document, dict) and document.get("kind") == "List":
        yield from document.get("items") or []
    elif document is not None:
        yield document


def _of_document(file: str, document: object) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        yield _unreadable(file, f"{str(document)[:60]!r} is not a Kubernetes object: it needs apiVersion and kind")
        return
    api, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
    if api.partition("/")[0] != GROUP:
        return
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace", "default"))
    if api != API_VERSION or kind not in KINDS:
        remedy = f"unknown kind: use {' or '.join(KINDS)} of {API_VERSION}"
        yield Manifest(
            file, kind, namespace, name, None, [Problem("apiVersion, kind", f"{api} {kind}", remedy, f"{kind} {name}")]
        )
        return
    spec, faults = read(KINDS[kind], document.get("spec", {}))
    faults += [
        Problem(key, str(document[key])[:60], "unknown field: remove it, or move it into spec")
        for key in document
        if key not in ("apiVersion", "kind", "metadata", "spec", "status")
    ]
    subject = f"{kind} {name}"
    if not name:
        faults.append(Problem("metadata.name", "missing", "this field is required: add it"))
    yield Manifest(file, kind, namespace, name, spec, [Problem(p.field, p.value, p.remedy, subject) for p in faults])
