"""The schema accepts what the model accepts, and refuses what the model refuses."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from soperator.api.validation.strict import read
from soperator.crdgen.columns import ALL, CLUSTER, NODESET, Definition
from soperator.crdgen.generate import definition_of
from soperator.crdgen.schema import structural
from soperator.crdgen.values import values_schema
from tests.examples import examples

Schema = dict[str, Any]

JUNK = st.one_of(
    st.integers(-5, 5), st.booleans(), st.text(max_size=5), st.just([]), st.just({}), st.just("/a"), st.just("1Gi")
)


def closed(schema: Schema) -> Schema:
    """The schema with unknown fields refused, as kubectl's strict validation does."""
    out = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in schema:
        out["properties"] = {name: closed(inner) for name, inner in schema["properties"].items()}
    if schema.get("type") == "object" and "x-kubernetes-preserve-unknown-fields" not in schema:
        out.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            out[key] = closed(schema[key])
    return out


def likely(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.one_of(st.integers(-1, 100), st.sampled_from(["1", "1Gi", "500m", "x", "1.5"]))
    if "enum" in schema:
        return st.sampled_from([*schema["enum"], "other"])
    match schema["type"]:
        case "object" if "properties" in schema:
            fields = schema["properties"]
            always = st.just(frozenset(schema.get("required", ()))) | st.just(frozenset())
            some = st.frozensets(st.sampled_from(sorted(fields)), max_size=2)
            names = st.tuples(always, some).map(lambda both: sorted(both[0] | both[1]))
            return names.flatmap(lambda chosen: st.fixed_dictionaries({name: mostly(fields[name]) for name in chosen}))
        case "object":
            values = likely(schema["additionalProperties"]) if "additionalProperties" in schema else JUNK
            return st.dictionaries(st.sampled_from(["a", "cpu", "b c"]), values, max_size=2)
        case "array":
            return st.lists(likely(schema["items"]), max_size=2)
        case "integer":
            low = schema.get("minimum", 0)
            return st.integers(low - 1, min(schema.get("maximum", low + 9), low + 9) + 1)
        case "boolean":
            return st.booleans()
        case _:
            return st.sampled_from(["", "a", "a-b", "A.b_c", "/a/b", "a b", "x\ny", "x" * 300])


def mostly(schema: Schema) -> st.SearchStrategy[Any]:
    """Values for one field. Of an object a few fields are given at a time, so that a fault in one does not hide the verdict on all others."""
    return st.one_of(likely(schema), likely(schema), JUNK)


@cache
def both(kind: Definition) -> tuple[st.SearchStrategy[Any], Draft7Validator]:
    """Likely specs of a kind, and the judge of them."""
    schema = structural(kind.spec)
    return likely(schema), Draft7Validator(closed(schema))


@pytest.mark.parametrize("kind", [CLUSTER, NODESET], ids=lambda kind: kind.kind)
@settings(max_examples=examples(200), suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_schema_and_model_agree(kind: Definition, data: st.DataObject) -> None:
    """For any value, the API server's schema and lint's reading come to the same verdict."""
    values, validator = both(kind)
    value = data.draw(values)
    if kind is NODESET:
        value.setdefault("clusterRef", {"name": "demo"})
    spec, problems = read(kind.spec, value)
    faults = [f"{list(error.path)} {error.message}" for error in validator.iter_errors(value)]
    assert (spec is None) == bool(faults), (faults, [str(problem) for problem in problems])


def test_values_schema_takes_specs_and_refuses_unknown_fields() -> None:
    """The chart's values are our specs and no second vocabulary."""
    validator = Draft7Validator(values_schema())
    assert validator.is_valid(
        {"name": "", "cluster": {"login": {"replicas": 2}}, "nodeSets": {"worker": {"replicas": 2}}}
    )
    assert not validator.is_valid({"nodeSets": {"worker": {"replica": 2}}})
    assert not validator.is_valid({"nodeSets": {"worker": {"clusterRef": {"name": "demo"}}}})
    assert not validator.is_valid({"cluster": {"loggin": {}}})
    assert validator.is_valid(
        {"nodeSets": {"w": {"podTemplate": {"spec": {"anything": 1}}, "resources": {"limits": {"cpu": 2}}}}}
    )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_every_rule_names_fields_that_are_there(kind: Definition) -> None:
    """The API server refuses a definition whose rule has a field of a former name."""
    root = definition_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert [f"{path}: {field}" for path, field in _foreign_fields(root, "")] == []


def _foreign_fields(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """Fields of `self` that a rule names and that its object lacks."""
    known = node.get("properties", {})
    for rule in node.get("x-kubernetes-validations", ()) if known else ():
        for field in re.findall(r"\b(?:self|oldSelf)\.\??([a-z]\w*)", rule["rule"]):
            if field not in known:
                yield path, field
    for name, each in known.items():
        yield from _foreign_fields(each, f"{path}.{name}")
    if isinstance(node.get("items"), dict):
        yield from _foreign_fields(node["items"], f"{path}[]")
