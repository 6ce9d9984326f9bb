"""Describes the schemas field by field, with type, default and limits as text.

`soperator explain` and the reference pages both use it, so that they agree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from soperator.crdgen.columns import (
    ACCOUNT,
    BACKUP,
    CLUSTER,
    HEALTHCHECK,
    NODESET,
    QOS,
    Definition,
)
from soperator.crdgen.schema import Schema, structural

KINDS: Mapping[str, Definition] = MappingProxyType(
    {
        "cluster": CLUSTER,
        "nodeset": NODESET,
        "healthcheck": HEALTHCHECK,
        "account": ACCOUNT,
        "qos": QOS,
        "backup": BACKUP,
    }
)


@dataclass(frozen=True)
class Field:
    """One field: its path below spec, its type as text, its default as text (empty: none), and its description."""

    path: str
    type: str
    default: str
    description: str
    rules: tuple[str, ...]


def fields(schema: Schema, prefix: str = "") -> Iterator[Field]:
    """Yield every field of a structural schema, outer before inner, items of lists as `name[]`."""
    required = schema.get("required", [])
    for name, inner in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        default = "required" if name in required else _default(inner)
        yield Field(path, type_of(inner), default, inner.get("description", ""), rules_of(inner))
        deeper = _holder(inner)
        yield from fields(deeper, f"{path}[]" if deeper is not inner else path)


def rules_of(schema: Schema) -> tuple[str, ...]:
    """Return the messages of the rules on a part of a schema, or on the items of a list."""
    return tuple(rule["message"] for rule in _holder(schema).get("x-kubernetes-validations", []))


def type_of(schema: Schema) -> str:
    """Return the type with its limits, as text."""
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "enum" in schema:
        return " \\| ".join(schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {type_of(schema['items'])}"
        case "object" if "additionalProperties" in schema:
            return f"map of {type_of(schema['additionalProperties'])}"
        case "object":
            return "Kubernetes object" if schema.get("x-kubernetes-preserve-unknown-fields") else "object"
        case "integer":
            span = f"{schema.get('minimum', '')} to {schema.get('maximum', '')}"
            return f"integer, {span}".removesuffix(" to ")
        case other:
            return {"string": "text", "boolean": "true or false"}.get(str(other), str(other))


def describe(path: str) -> str:
    """Return the documentation of a path such as `cluster.login.service`; raises KeyError with a message for an unknown path."""
    named, *steps = path.replace("[]", "").split(".")
    kind = _kind(named)
    steps = steps[1:] if steps[:1] == ["spec"] else steps
    schema, here = structural(KINDS[kind].spec), kind
    for step in steps:
        inner = _holder(schema).get("properties", {})
        if step not in inner:
            raise KeyError(f"{here}: unknown field {step}: use one of {', '.join(inner) or 'none'}")
        schema, here = inner[step], f"{here}.{step}"
    return "\n".join(_page(here, schema))


def _kind(name: str) -> str:
    """Return the kind of a name, either short or as kubectl knows it, in any case; raises KeyError for an unknown name."""
    wanted = name.lower()
    for kind, each in KINDS.items():
        if wanted in (kind, each.kind.lower(), each.plural, *each.short_names):
            return kind
    raise KeyError(f"{name}: unknown kind: use one of {' or '.join(KINDS)}")


def _page(path: str, schema: Schema) -> Iterator[str]:
    default = _default(schema)
    yield f"{path}: {type_of(schema)}{f', default {default}' if default else ''}".replace("\\|", "|")
    yield f"  {schema.get('description', '')}"
    for rule in rules_of(schema):
        yield f"  Rule: {rule}."
    direct = [field for field in fields(_holder(schema)) if "." not in field.path]
    if direct:
        yield ""
        width = max(len(field.path) for field in direct)
        for field in direct:
            note = f" [{field.default}]" if field.default else ""
            yield f"  {field.path:<{width}}  {field.description}{note}"


def _holder(schema: Schema) -> Schema:
    """Return the schema with the properties; for a list, the schema of its items."""
    items: Schema = schema.get("items", schema)
    return items


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if default is None or isinstance(default, dict):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
