"""The policy for tenants names fields of our kinds by text: each is there, so that a field that is renamed does not get past it."""

import re
from pathlib import Path

import pytest

from soperator.api.backup import SlurmBackupSpec
from soperator.api.fields.health import CustomCheck
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from tests.unit.model_fields import has

POLICY = Path(__file__).parents[3] / "charts/soperator/templates/tenants.yaml"
KINDS = (SlurmClusterSpec, NodeSetSpec, HealthCheckSpec, SlurmBackupSpec)
NAMED = sorted(set(re.findall(r"variables\.spec((?:\.\??\w+)+)", POLICY.read_text())))


@pytest.mark.parametrize("path", NAMED)
def test_a_field_that_the_policy_names_is_one_of_a_kind(path: str) -> None:
    """Methods of CEL at the end, such as orValue, are none of the path."""
    names = [each.strip("?") for each in path.split(".") if each]
    fields = [each for each in names if each not in ("orValue", "size")]
    assert any(has(kind, fields) for kind in KINDS), ".".join(fields)


def test_what_a_check_of_the_spec_does_is_looked_at() -> None:
    """The one field that the policy reads of the entries of a list of objects."""
    assert re.findall(r"customChecks\.orValue\(\[\]\)\.all\(each, each\.\?(\w+)", POLICY.read_text()) == ["onFailure"]
    assert "on_failure" in CustomCheck.model_fields
