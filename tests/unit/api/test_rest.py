"""What is wrong with tokens that are to be kept, beyond what a schema says."""

from soperator.api.fields.rest import RestUsers, rest_problems


def problems(**said):
    return [
        (each.field.removeprefix("spec.rest.users."), each.remedy)
        for each in rest_problems(RestUsers.model_validate(said))
    ]


def test_tokens_that_are_well_have_no_problem():
    """Two users, two Secrets, within the bounds."""
    assert (
        problems(tokens=[{"user": "a", "secretName": "a"}, {"user": "b", "secretName": "b", "lifetime": "168h"}]) == []
    )


def test_each_fault_names_its_field():
    """An administrator, a Secret twice, and lives that are too short and too long."""
    tokens = [
        {"user": "root", "secretName": "a"},
        {"user": "b", "secretName": "a", "lifetime": "5m"},
        {"user": "c", "secretName": "c", "lifetime": "48h"},
    ]
    found = dict(problems(maxLifetime="24h", tokens=tokens))
    assert set(found) == {"tokens[0].user", "tokens[1].secretName", "tokens[1].lifetime", "tokens[2].lifetime"}
    assert found["tokens[2].lifetime"] == "set a time from 10m to 24h, which is maxLifetime"
    assert dict(problems(maxLifetime="720h")) == {"maxLifetime": "set a time from 10m to 168h"}
