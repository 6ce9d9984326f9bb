"""What `make demo` says when its job is refused."""

from local.demo import explained


def test_a_demand_for_accounts_is_told_with_its_remedies():
    """A cluster whose accounting is enforced refuses a user without an account; any other error is told as it is."""
    said = explained(
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
    )
    assert said.startswith("sbatch: error: ")
    assert "sacctmgr -i add user alice account=demo" in said
    assert '{"spec": {"accounting": {"enforce": null}}}' in said
    assert explained("sbatch: error: something else") == "sbatch: error: something else"
