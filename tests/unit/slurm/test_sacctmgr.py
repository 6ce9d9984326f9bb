"""What sacctmgr prints is read, and values are compared by what they mean."""

import pytest

from soperator.slurm import sacctmgr
from soperator.slurm.sacctmgr import ASSOCIATION, BETWEEN, QOS

#: As sacctmgr 24.11.5 printed it, with fields of no interest left out.
PHYSICS = {
    "Fairshare": "10",
    "GrpTRES": "cpu=64,gres/gpu=8,mem=10001M",
    "GrpWall": "1-12:00:00",
    "QOS": "gold,normal",
    "DefaultQOS": "gold",
}


def row(account, user="", partition="", number="3", parent="", fields=None, comment=""):
    said = fields or {}
    return "|".join(
        ["demo", account, user, partition, number, parent, *(said.get(each, "") for each in ASSOCIATION), comment]
    )


def printed(associations, accounts="root|root|default root account\n", qos="", users="alice|physics\n"):
    return f"{BETWEEN}\n".join(("".join(f"{each}\n" for each in associations), accounts, qos, users))


def test_an_answer_is_read():
    """Accounts, users, one of them for a partition only, descriptions with bars, QOS, default accounts."""
    lines = [
        row("physics", parent="root", fields=PHYSICS, comment="soperator:slurm/physics"),
        row("physics", "alice", "gpu", "4"),
    ]
    gold = "|".join(["gold", *("100" if each == "Priority" else "" for each in QOS), "a | b"])
    found = sacctmgr.read(printed(lines, "physics|uni x|all | of it\n", f"{gold}\n"))
    account = found.account("physics")
    assert (account.parent, account.comment, account.fields["GrpWall"]) == (
        "root",
        "soperator:slurm/physics",
        "1-12:00:00",
    )
    assert [(each.user, each.partition, each.number) for each in found.associations if each.user] == [
        ("alice", "gpu", "4")
    ]
    assert found.accounts == {"physics": ("uni x", "all | of it")}
    assert (found.qos["gold"][0]["Priority"], found.qos["gold"][1]) == ("100", "a | b")
    assert found.defaults == {"alice": "physics"}


def test_a_line_that_is_no_record_is_skipped():
    """A line break in a comment that somebody set by hand makes one."""
    found = sacctmgr.read(printed([row("physics", comment="first"), "second line", row("root")]))
    assert set(found.parents) == {"physics", "root"}


def test_half_an_answer_is_none():
    """One that was cut off says nothing."""
    with pytest.raises(ValueError, match="did not answer every query"):
        sacctmgr.read(printed([row("root")]).partition(BETWEEN)[0])


@pytest.mark.parametrize(
    ("sort", "one", "other"),
    [
        ("time", "90", "01:30:00"),
        ("time", "2160", "1-12:00:00"),
        ("time", "1-12", "1-12:00:00"),
        ("time", "100:30", "01:41:00"),
        ("time", "1:00:01", "61"),
        ("tres", "cpu=64,mem=512G", "mem=524288,cpu=64"),
        ("tres", "mem=1536M", "mem=1.50G"),
        ("tres", "GRES/GPU=2", "gres/gpu=2"),
        ("tres", "gres/gpumem=2G", "gres/gpumem=2147483648"),
        ("set", "normal,gold", "gold,normal"),
        ("set", "DenyOnLimit,NoDecay", "nodecay,denyonlimit"),
        ("seconds", "90", "00:01:30"),
        ("seconds", "90000", "1-01:00:00"),
        ("factor", "0.5", "0.500000"),
        ("word", "Parent", "parent"),
        ("count", "0", "0"),
    ],
)
def test_values_that_mean_the_same(sort, one, other):
    """As a person writes them, and as sacctmgr prints them."""
    assert not sacctmgr.differ(sort, one, other)


@pytest.mark.parametrize(
    ("sort", "one", "other"),
    [
        ("count", "0", ""),
        ("time", "1", ""),
        ("tres", "cpu=4", "cpu=4,mem=1G"),
        ("set", "gold", ""),
        ("count", "3", "three"),
    ],
)
def test_values_that_do_not(sort, one, other):
    """No limit is another thing than a limit of nothing."""
    assert sacctmgr.differ(sort, one, other)


def test_a_tres_that_is_not_wanted_is_taken_back_by_name():
    """sacctmgr leaves what a command does not name."""
    assert sacctmgr.written("tres", "cpu=4", "cpu=9,mem=1G,gres/gpu=2") == "cpu=4,mem=-1,gres/gpu=-1"
    assert sacctmgr.off("GrpTRES", "tres", "cpu=9,mem=1G") == "cpu=-1,mem=-1"


def test_what_is_back_is_not_taken_back_again():
    """As sacctmgr prints what nobody has set."""
    unset = {
        "Fairshare": "1",
        "Priority": "0",
        "PreemptMode": "cluster",
        "GraceTime": "00:00:00",
        "UsageFactor": "1.000000",
    }
    for name, sort in {**QOS, **ASSOCIATION}.items():
        assert sacctmgr.off(name, sort, unset.get(name, "")) is None, name
