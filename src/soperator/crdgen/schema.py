"""Converts a pydantic model to the structural schema that a CustomResourceDefinition requires.

Kubernetes accepts a part of OpenAPI v3: no references, no null type, no titles, and complete defaults. Defaults of nested objects are written as
`{}`, because the API server fills inner defaults only if the outer object exists. An empty text, list or map is not a default, because its absence
means the same, and stored objects stay as short as their author wrote them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core import core_schema

from soperator.api.base import Model
from soperator.api.validation.cel import Rule
from soperator.api.validation.cel_rules import RULES

Schema = dict[str, Any]

#: Models whose lists are maps: two entries with one key are refused, and appliers may own entries apart.
LIST_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "Partition": "name",
        "CustomCheck": "name",
        "CheckThresholds": "check",
        "MachineTypeThresholds": "machineType",
        "ConfigFile": "name",
        "HookScript": "name",
        "Submount": "path",
        "NodeStatus": "node",
        "RunStatus": "job",
        "Condition": "type",
        "AccountUser": "name",
    }
)

#: What JSON Schema has and Kubernetes refuses: `validate()` looks at the names of a map.
_UNKNOWN = ("propertyNames", "patternProperties")
_INT_OR_STRING = "x-kubernetes-int-or-string"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


class _WithFactories(GenerateJsonSchema):
    """Pydantic's generator of schemas, extended by the defaults that a factory creates."""

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:
        """Return the default in the form that a person would write."""
        factory = schema.get("default_factory")
        if factory is None or schema.get("default_factory_takes_data"):
            return schema.get("default", NoDefault)
        made = factory()  # type: ignore[call-arg]
        return made.model_dump(by_alias=True, exclude_unset=True) if isinstance(made, Model) else made


def json_schema(model: type[Model]) -> Schema:
    """Return the model's JSON schema, with references, by camelCase names."""
    return model.model_json_schema(by_alias=True, schema_generator=_WithFactories)


def structural(model: type[Model]) -> Schema:
    """Return the model's structural schema, with CEL rules and list keys, ready for a CustomResourceDefinition."""
    schema = json_schema(model)
    definitions = schema.pop("$defs", {})
    return _structural(schema, definitions, model.__name__)


def validations(rules: tuple[Rule, ...]) -> list[Schema]:
    """Return rules in the form of x-kubernetes-validations."""
    return [
        {"rule": rule.cel, "message": rule.message} | ({"fieldPath": f".{rule.camel}"} if rule.field else {})
        for rule in rules
    ]


def _name_of(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def _unwrapped(node: Schema) -> Schema:
    """Return the inner schema of an optional field with the outer description; Kubernetes drops a null before it validates."""
    options = [option for option in node.get("anyOf", []) if option.get("type") != "null"]
    if len(options) != 1:
        return node
    inner: Schema = options[0]
    return inner | {key: value for key, value in node.items() if key != "anyOf"}


def _structural(node: Schema, definitions: Mapping[str, Schema], name: str = "") -> Schema:
    node = _unwrapped(node)
    if "$ref" in node:
        name = _name_of(node["$ref"])
        node = definitions[name] | {key: value for key, value in node.items() if key != "$ref"}
    out = {
        key: value
        for key, value in node.items()
        if key not in ("title", "properties", "items", "additionalProperties", "default", *_UNKNOWN)
    }
    if properties := node.get("properties"):
        out["properties"] = {key: _structural(value, definitions) for key, value in properties.items()}
    named = {"": node.get("additionalProperties"), **node.get("patternProperties", {})}
    if (values := next(filter(None, named.values()), None)) and not node.get(_PRESERVE):
        out["additionalProperties"] = _structural(values, definitions)
    if items := node.get("items"):
        out |= _list_of(items, definitions)
    if (default := node.get("default")) not in (None, "", [], {}) or (default == {} and _has_defaults(out)):
        out["default"] = default
    if node.get(_INT_OR_STRING):
        del out["type"]
        out |= {"anyOf": [{"type": "integer"}, {"type": "string"}], "minimum": 0}
    if rules := RULES.get(name):
        out["x-kubernetes-validations"] = validations(rules)
        if out.get("default") == {}:
            out["default"] = _defaults(out["properties"])
    return out


def _has_defaults(schema: Schema) -> bool:
    return any("default" in inner for inner in schema.get("properties", {}).values())


def _defaults(properties: Schema) -> Schema:
    """Return `{}` with all defaults filled in, because the API server evaluates rules on a default before it fills it."""
    return {key: value["default"] for key, value in properties.items() if "default" in value}


def _list_of(items: Schema, definitions: Mapping[str, Schema]) -> Schema:
    key = LIST_KEYS.get(_name_of(items.get("$ref", "")))
    out: Schema = {"items": _structural(items, definitions)}
    return out | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} if key else out
