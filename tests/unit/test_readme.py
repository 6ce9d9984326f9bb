"""README's list of what is not there denies nothing that the API has a field for."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec

README = Path(__file__).parents[2] / "README.md"
#: The word under which people would look for a feature, and the field by which it is switched on.
FEATURES: dict[str, tuple[type[BaseModel], str]] = {
    "accounting": (SlurmClusterSpec, "accounting"),
    "sacct": (SlurmClusterSpec, "accounting"),
    "exported metrics": (SlurmClusterSpec, "metrics"),
    "health check": (SlurmClusterSpec, "health"),
    "backup controller": (SlurmClusterSpec, "controller.replicas"),
    "rotation of keys": (SlurmClusterSpec, "auth.rotateRequest"),
    "topology": (SlurmClusterSpec, "topology"),
    "rest for users": (SlurmClusterSpec, "rest.users"),
    "on-demand": (NodeSetSpec, "powerSaving"),
    "rolling": (NodeSetSpec, "updateStrategy"),
    "gives way": (NodeSetSpec, "preemptible"),
}


def missing() -> str:
    """The section, in one line and small letters."""
    section = README.read_text().partition("## What is not there yet")[2].partition("\n## ")[0]
    assert section, "the section has another title"
    return " ".join(section.lower().split())


def has(model: type[BaseModel], path: str) -> bool:
    """Whether the kind's spec has a field of this path, in the words of YAML."""
    schema = model.model_json_schema(by_alias=True)
    here = schema
    for name in path.split("."):
        found = here.get("properties", {}).get(name)
        if found is None:
            return False
        refs = [each["$ref"] for each in (found, *found.get("anyOf", ()), *found.get("allOf", ())) if "$ref" in each]
        here = schema["$defs"][refs[0].rpartition("/")[2]] if refs else found
    return True


@pytest.mark.parametrize("feature", FEATURES)
def test_what_has_a_field_is_not_said_to_be_missing(feature: str) -> None:
    """A field that goes away takes its line of this table along."""
    model, path = FEATURES[feature]
    assert has(model, path), f"{model.__name__} has no {path}"
    assert feature not in missing(), f"README denies {feature}, and {model.__name__}.{path} switches it on"


#: The figures of a row of README's table, and what they are called in docs/performance.md.
MEASURED = {
    "1,000 simulated workers: CPU until ready, peak memory": (
        "1,000 workers: operator's CPU until all are ready",
        "1,000 workers: operator's peak memory (VmHWM)",
    ),
    "50 clusters of 3 workers: all ready, CPU": ("50 clusters × 3 workers: all ready", "50 clusters × 3 workers: CPU"),
}


def cells(page: Path, first: str) -> list[str]:
    """The cells of the row of a table that begins with a word, without emphasis."""
    (row,) = re.findall(rf"^\| {re.escape(first)} \|(.*)\|$", page.read_text(), re.MULTILINE)
    return [each.strip().strip("*") for each in row.split("|")]


@pytest.mark.parametrize("row", MEASURED)
def test_the_figures_of_the_comparison_are_the_measured_ones(row: str) -> None:
    """A new run of `make bench-scale` takes README's table along: ours is the best run, and Slinky's the column peer."""
    measured = [cells(README.parent / "docs/performance.md", name) for name in MEASURED[row]]
    ours, original, slinky = cells(README, row)
    assert original == "not measured"
    assert ours == ", ".join(each[1] for each in measured)
    assert slinky == ", ".join(each[6] for each in measured)
