"""Objects that people applied to former versions, in the words of decision 105, stay valid, mean the same, and are held back by no new check."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.strict import read
from soperator.api.validation.validate import World
from soperator.crdgen.columns import CLUSTER, NODESET
from soperator.crdgen.schema import structural
from soperator.policy.validation import problems
from tests.unit.crdgen.test_schema import closed

FILES = sorted((Path(__file__).parent / "old").glob("*.yaml"))
KINDS = {"SlurmCluster": CLUSTER, "NodeSet": NODESET}
CRDS = Path(__file__).parents[3] / "charts/soperator-crds/templates"


def objects(file: Path) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_todays_schema_takes_them(file: Path) -> None:
    """The API server would neither refuse one nor drop a field of it, and nothing that is said is read otherwise."""
    for each in objects(file):
        model = KINDS[each["kind"]].spec
        faults = [error.message for error in Draft7Validator(closed(structural(model))).iter_errors(each["spec"])]
        spec, found = read(model, each["spec"])
        assert (faults, found) == ([], []), each["metadata"]["name"]
        assert spec is not None
        said = spec.model_dump(by_alias=True, mode="json", exclude_unset=True)
        assert said == each["spec"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_check_of_today_holds_them_back(file: Path) -> None:
    """The operator goes on with every one of them."""
    specs = {(each["kind"], each["metadata"]["name"]): each["spec"] for each in objects(file)}
    world = World(
        clusters={
            name: SlurmClusterSpec.model_validate(spec)
            for (kind, name), spec in specs.items()
            if kind == "SlurmCluster"
        },
        node_sets={name: NodeSetSpec.model_validate(spec) for (kind, name), spec in specs.items() if kind == "NodeSet"},
        partial=True,
    )
    assert [str(each) for each in problems(world)] == []


def test_the_version_that_they_were_stored_in_is_served() -> None:
    """Both definitions serve and store v1alpha1."""
    for file in CRDS.glob("*.yaml"):
        versions = {each["name"]: each for each in yaml.safe_load(file.read_text())["spec"]["versions"]}
        assert (versions["v1alpha1"]["served"], versions["v1alpha1"]["storage"]) == (True, True)
