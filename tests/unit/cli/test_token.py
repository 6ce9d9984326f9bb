"""`soperator token` refuses what is no bounded time before it asks anybody, and a user who may not have one."""

import pytest

from soperator.cli.support.errors import CliError
from soperator.cli.token import bounded
from soperator.reconcile.keys.user_tokens import refusal


def test_a_lifetime_is_bounded_by_the_clusters():
    """Up to the bound it is taken; beyond, too short and without a unit it is refused with what to write."""
    assert bounded("8h", "24h") == 8 * 3600
    for wrong in ("48h", "30s", "8"):
        with pytest.raises(CliError, match=f"--lifetime: {wrong}: "):
            bounded(wrong, "24h")


@pytest.mark.parametrize(("user", "uid", "admin", "words"), [
    ("alice", 1000, False, ""),
    ("ghost", None, False, "slurmctld does not know user ghost"),
    ("ghost", None, True, "slurmctld does not know user ghost"),
    ("toor", 0, False, "user toor is an administrator of Slurm"),
    ("slurm", 64030, False, "user slurm is an administrator of Slurm"),
    ("root", -1, False, "user root is an administrator of Slurm"),
    ("root", 0, True, ""),
])  # fmt: skip
def test_a_user_is_refused_by_the_number_that_slurmctld_knows(user, uid, admin, words):
    """Another name for root is root; who is unknown gets none whatever is allowed."""
    assert refusal(user, uid, admin).startswith(words)
    assert bool(refusal(user, uid, admin)) is bool(words)
