"""The CRDs are what the models say, small enough, and structural."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.cel_rules import NAMES, RULES
from soperator.api.validation.walk import pieces
from soperator.crdgen import generate, reference, values
from soperator.crdgen.columns import ALL, Definition
from soperator.crdgen.fields import describe, fields
from soperator.crdgen.schema import LIST_KEYS, structural

ROOT = Path(__file__).parents[3]
GENERATED = {
    **{generate.CHART / name: text for name, text in generate.files().items()},
    **{reference.FOLDER / name: text for name, text in reference.files().items()},
    values.PATH: values.text(),
}


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a schema."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key])


def root(kind: Definition) -> dict[str, Any]:
    """The schema in a CRD."""
    found: dict[str, Any] = generate.definition_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("path", GENERATED, ids=str)
def test_the_checked_in_file_is_what_the_models_say(path: Path) -> None:
    """`make crds` changes nothing."""
    assert (ROOT / path).read_text(encoding="utf-8") == GENERATED[path], "run `make crds`"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
class TestDefinition:
    """What the API server demands of a CRD."""

    def test_is_smaller_than_what_kubectl_apply_can_annotate(self, kind: Definition) -> None:
        """150 KB leave room for growth."""
        assert len(generate.text_of(kind)) < 150_000

    def test_holds_no_template_of_helm(self, kind: Definition) -> None:
        """The text stands in a chart's templates."""
        assert "{{" not in generate.text_of(kind)

    def test_is_structural(self, kind: Definition) -> None:
        """No references, titles, nulls or unions but int-or-string; every node has a type."""
        for node in nodes(root(kind)):
            assert not {"$ref", "title", "$defs", "allOf", "oneOf", "const"} & node.keys()
            assert "type" in node or node.get("x-kubernetes-int-or-string")
            assert "anyOf" not in node or node.get("x-kubernetes-int-or-string")
            assert not {"properties", "additionalProperties"} <= node.keys()
            assert node.get("default", "") is not None

    def test_describes_every_field(self, kind: Definition) -> None:
        """`kubectl explain` has a sentence for each."""
        silent = [field.path for field in fields(root(kind)["properties"]["spec"]) if not field.description]
        assert silent == []

    def test_bounds_every_list_and_text_of_ours(self, kind: Definition) -> None:
        """CEL's cost is estimated from the bounds."""
        for node in nodes(root(kind)["properties"]["spec"]):
            assert node.get("type") != "array" or "maxItems" in node

    def test_rules_search_no_text_whose_bound_is_lost(self, kind: Definition) -> None:
        """To the API server a text after orValue may have any length, and it refuses a CRD that searches one for its cost."""
        rules = [rule["rule"] for node in nodes(root(kind)) for rule in node.get("x-kubernetes-validations", [])]
        assert [rule for rule in rules if re.search(r"orValue\(''\)\.(contains|matches)\(", rule)] == []

    def test_messages_of_rules_say_a_remedy(self, kind: Definition) -> None:
        """A colon divides the fault from what to do next, and no message is longer than a terminal takes."""
        for node in nodes(root(kind)):
            for rule in node.get("x-kubernetes-validations", []):
                assert ": " in rule["message"]
                assert "\n" not in rule["message"] + rule["rule"]

    def test_reads_back_as_the_object(self, kind: Definition) -> None:
        """The YAML is the definition."""
        assert yaml.safe_load(generate.text_of(kind)) == generate.definition_of(kind)


def test_every_rule_and_list_key_belongs_to_a_model() -> None:
    """A renamed model cannot lose its rules in silence."""
    names = {
        name
        for kind in ALL
        for model in (kind.spec, kind.status)
        for name in (model.__name__, *model.model_json_schema().get("$defs", {}))
    }
    assert set(RULES) <= names
    assert set(LIST_KEYS) <= names
    assert set(NAMES) == {kind.kind for kind in ALL}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_no_field_is_a_float_and_maps_have_plain_values(kind) -> None:
    """Decimal numbers are texts, and objects with names are lists, as Kubernetes' API conventions ask."""
    floats, maps = [], []

    def walk(path: str, schema: Any) -> None:
        match schema:
            case {"type": "number"}:
                floats.append(path)
            case {"additionalProperties": {"type": "object", "properties": _}} if "status" not in path:
                maps.append(path)
            case {"additionalProperties": {"type": "object", "additionalProperties": _}}:
                maps.append(path)
        match schema:
            case dict():
                for key, value in schema.items():
                    walk(f"{path}.{key}", value)
            case list():
                for each in schema:
                    walk(path, each)

    walk("spec", structural(kind.spec))
    walk("status", structural(kind.status))
    assert (floats, maps) == ([], [])


def test_defaulting_the_schema_gives_what_the_model_gives() -> None:
    """An empty spec means the same to the API server and to us."""

    def defaulted(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
        out = dict(value)
        for name, inner in schema.get("properties", {}).items():
            if name not in out and "default" in inner:
                out[name] = inner["default"]
            if isinstance(out.get(name), dict):
                out[name] = defaulted(inner, out[name])
        return out

    for kind, given in ((ALL[0], {}), (ALL[1], {"clusterRef": {"name": "demo"}})):
        filled = defaulted(structural(kind.spec), given)
        assert kind.spec.model_validate(filled) == kind.spec.model_validate(given)


def test_pieces_name_paths_as_people_write_them() -> None:
    """Lists have numbers, fields are camelCase."""
    spec = SlurmClusterSpec.model_validate({"jail": {"submounts": [{"path": "/a", "hostPath": {"path": "/b"}}]}})
    assert "spec.jail.submounts[0].hostPath" in dict(pieces(spec))


def test_describe_says_type_default_rules_and_inner_fields() -> None:
    """The page of a field holds all that its author needs."""
    page = describe("cluster.login.service")
    assert "nodePort needs type NodePort or LoadBalancer" in page
    assert "externalTrafficPolicy" in page
    assert describe("nodeset.replicas").startswith("nodeset.replicas: integer, 0 to 10000, default 1")
    assert describe("cluster.spec.jail.submounts.path").startswith("cluster.jail.submounts.path: text")


@pytest.mark.parametrize(("path", "words"), [("node", "unknown kind"), ("cluster.login.x", "use one of replicas")])
def test_describe_names_what_there_is_for_a_wrong_path(path: str, words: str) -> None:
    """The error is a sentence."""
    with pytest.raises(KeyError, match=words):
        describe(path)


#: The fields of JSONSchemaProps in Kubernetes that ours have; the API server refuses every other one.
KNOWN = {
    "type", "format", "description", "properties", "items", "additionalProperties", "required", "default", "enum", "pattern", "nullable",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "maxProperties", "uniqueItems", "anyOf", "oneOf", "allOf", "not",
}  # fmt: skip


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_kubernetes_knows_every_word_of_a_schema(kind: Definition) -> None:
    """JSON Schema has more of them, such as propertyNames, with which the API server takes no CRD at all."""
    found = {key for node in nodes(root(kind)) for key in node if not key.startswith("x-kubernetes-")}
    assert found <= KNOWN
