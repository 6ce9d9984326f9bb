"""Slurm's own account root, above all others, is nobody's object."""

import pytest

from soperator.api.associations import SlurmAccountSpec
from soperator.api.validation.cel_rules import NAMES
from soperator.api.validation.validate import validate_tenant


@pytest.mark.parametrize(
    ("name", "spec", "is_refused"),
    [
        ("root", {}, True),
        ("root", {"name": ""}, True),
        ("physics", {"name": "root"}, True),
        ("root", {"name": "physics"}, False),
    ],
)
def test_no_object_stands_for_the_account_root(name: str, spec: dict[str, str], is_refused: bool) -> None:
    """However it comes to the name, an empty one included."""
    found = validate_tenant(name, SlurmAccountSpec.model_validate({"clusterRef": {"name": "demo"}} | spec))
    assert bool(found) is is_refused


def test_the_api_server_takes_an_empty_name_for_none() -> None:
    """As the operator does."""
    (rule,) = [each for each in NAMES["SlurmAccount"] if "'root'" in each.cel]
    assert "self.spec.name != ''" in rule.cel
