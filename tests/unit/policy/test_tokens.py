"""When a token in a Secret is made anew."""

from dataclasses import replace

import pytest

from soperator.api.fields.rest import KeptToken
from soperator.policy.cluster.user_tokens import renewal
from soperator.slurm.user_tokens import TokenNote

WANTED = KeptToken(user="ci", secret_name="ci-token", lifetime="1h")
NOTE = TokenNote("ci", ends=7200.0, lifetime=3600.0, key="7")


def test_a_token_gives_way_when_half_of_it_is_over():
    """Whoever reads it then has the other half."""
    assert renewal(WANTED, NOTE, "7") == 5400.0


@pytest.mark.parametrize(
    "note", [None, replace(NOTE, user="root"), replace(NOTE, lifetime=60.0), replace(NOTE, key="6")]
)
def test_a_token_that_is_another_than_is_asked_for_is_made_at_once(note):
    """There is none, or it is another user's, for another time, or of a former key."""
    assert renewal(WANTED, note, "7") == 0.0
