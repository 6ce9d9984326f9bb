"""What slurmctld of 24.11 said when it refused a file, in one sentence."""

from hypothesis import given
from hypothesis import strategies as st

from soperator.slurm.daemon_log import cause

NOISE = (
    "slurmctld: error: Configured MailProg is invalid\n"
    "slurmctld: error: Could not open node state file /var/spool/slurmctld/node_state: No such file or directory\n"
    "slurmctld: error: NOTE: Trying backup state save file. Information may be lost!\n"
)


def test_the_cause_and_the_end_are_told() -> None:
    """Errors of any first start are passed over."""
    said = NOISE + (
        "slurmctld: error: Parsing error at unrecognized key: Bogus\n"
        'slurmctld: error: Parse error in file /etc/slurm/slurm.conf line 30: " Bogus=3"\n'
        "slurmctld: fatal: Unable to process configuration file\n"
    )
    assert cause(said) == (
        "Parsing error at unrecognized key: Bogus; "
        'Parse error in file /etc/slurm/slurm.conf line 30: " Bogus=3"; Unable to process configuration file'
    )


def test_an_end_alone_is_enough_and_none_is_nothing() -> None:
    """slurmctld does not always say an error first."""
    assert cause("slurmctld: fatal: Invalid node names in partition x\n") == "Invalid node names in partition x"
    assert cause(NOISE + "slurmctld: Running as primary controller\n") == ""


def test_slurmd_refuses_gres_conf_in_its_own_words() -> None:
    """That a made-up node is not like its machine is no cause."""
    said = (
        "slurmd-trial-0: error: Node configuration differs from hardware: CPUs=1:2(hw)\n"
        "slurmd-trial-0: fatal: Invalid GRES record for gpu, invalid count abc\n"
    )
    assert cause(said) == "Invalid GRES record for gpu, invalid count abc"


@given(st.text())
def test_any_log_is_read(log: str) -> None:
    """Whatever a daemon writes, the sentence is one of bounded length."""
    assert len(cause(log)) <= 600
