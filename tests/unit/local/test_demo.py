"""What `make demo` says when its job is refused."""

import pytest

from local.demo import STATE, DemoError, chosen_kubeconfig, explained


def test_a_demand_for_accounts_is_told_with_its_remedies():
    """A cluster whose accounting is enforced refuses a user without an account; any other error is told as it is."""
    said = explained(
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
    )
    assert said.startswith("sbatch: error: ")
    assert "sacctmgr -i add user alice account=demo" in said
    assert '{"spec": {"accounting": {"enforce": null}}}' in said
    assert explained("sbatch: error: something else") == "sbatch: error: something else"


def test_a_foreign_cluster_has_to_be_named():
    """A KUBECONFIG that is set for other work is refused with both ways on; ON names a cluster, and the local one needs no name."""
    with pytest.raises(
        DemoError, match=r"KUBECONFIG=/prod is not the local cluster: `make demo ON=/prod`.*unset KUBECONFIG"
    ):
        chosen_kubeconfig({"KUBECONFIG": "/prod"})
    assert chosen_kubeconfig({"KUBECONFIG": "/prod", "ON": "/prod"}) == "/prod"
    assert chosen_kubeconfig({"KUBECONFIG": str(STATE / "kubeconfig")}) == ""
    assert chosen_kubeconfig({}) == ""
