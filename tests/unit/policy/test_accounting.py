"""What is said of accounting."""

import pytest

from soperator.policy.cluster.accounting import AccountingSnapshot, judge
from soperator.policy.cluster.conditions import Role

READY, SHORT = Role(1, 1), Role(0, 1, "pod demo-accounting-0: it is starting")
DENIED = "error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.7' (using password: YES)"


def test_all_is_well_when_slurmctld_runs_with_a_configuration_that_names_slurmdbd():
    """Then there is nothing to say."""
    assert judge(AccountingSnapshot(READY, READY, named=True)) == ("Accounting", "")
    assert judge(AccountingSnapshot(READY, None, named=True)) == ("Accounting", "")


def test_the_first_cause_in_the_order_of_start_up_is_told():
    """A database that cannot be had, one that is not ready, slurmdbd, slurm.conf."""
    assert judge(AccountingSnapshot(SHORT, SHORT, "no kind MariaDB", DENIED)) == ("NoDatabase", "no kind MariaDB")
    assert judge(AccountingSnapshot(SHORT, SHORT, said=DENIED))[0] == "DatabaseNotReady"
    assert judge(AccountingSnapshot(SHORT, READY))[0] == "SlurmdbdNotReady"
    assert judge(AccountingSnapshot(READY, READY))[0] == "Starting"


@pytest.mark.parametrize(
    ("said", "reason", "remedy"),
    [
        (DENIED, "WrongPassword", "correct the password"),
        (
            "error: mysql_real_connect failed: 1044 Access denied for user 'a'@'%' to database 'b'",
            "NoRights",
            "all rights",
        ),
        (
            "error: mysql_real_connect failed: 2002 Can't connect to server on 'db' (115)",
            "DatabaseDown",
            "host and port",
        ),
        ("error: mysql_real_connect failed: 2005 Unknown server host 'db' (-2)", "DatabaseDown", "name of its host"),
        (
            "error: mysql_real_connect failed: 2026 TLS/SSL error: Certificate verification failure",
            "NoTls",
            "certificates",
        ),
        (
            "error: mysql_real_connect failed: 3159 Connections using insecure transport are prohibited",
            "NoTls",
            "requires TLS",
        ),
        ("error: mysql_query failed: 1114 The table 'x' is full", "DatabaseFull", "enlarge the volume"),
        ("the database does not know the cluster demo: it is another one", "UnknownCluster", "remove spec.accounting"),
        ("fatal: something else", "SlurmdbdNotReady", "something else"),
    ],
)
def test_an_error_of_the_database_is_one_word_and_a_remedy(said, reason, remedy):
    """By its number; what is not known is told as it was said."""
    found, why = judge(AccountingSnapshot(SHORT, None, said=said))
    assert found == reason
    assert said in why
    assert remedy in why


def test_a_slurmctld_that_was_told_keeps_its_records():
    """Who reads it need not fear for them; before that there are none."""
    assert "slurmctld keeps its records" in judge(AccountingSnapshot(SHORT, READY, named=True))[1]
    assert "slurmctld" not in judge(AccountingSnapshot(SHORT, READY))[1].replace("slurmdbd", "")
