"""topology.conf from the places of nodes, and what is wrong with one that a person gives."""

import json
import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.slurm import conf, hostlist, topology
from soperator.slurm.settings.topology_lint import switch_problems as problems_at

PLACES = {
    "a-0": ("z1", "r1"),
    "a-1": ("z1", "r2"),
    "a-2": ("z1", "r1"),
    "b-0": ("z2", "r1"),
    "b-1": ("z2", ""),
    "c-0": ("", ""),
}
VALUES = st.text("ab01._-", min_size=0, max_size=30) | st.just("1" * 25) | st.just("none") | st.just("root")
GENERATED = st.dictionaries(
    st.builds(lambda stem, number: f"{stem}-{number}", st.sampled_from(["a", "b"]), st.integers(0, 40)),
    st.tuples(VALUES, VALUES),
    min_size=1,
)


def switch_problems(text):
    """The problems of a text at some field."""
    return problems_at(text, "here")


def test_a_tree_has_a_switch_for_each_place_and_each_level_above_it():
    """Racks of two zones that are called alike are two switches; what has no label lies beside those of its level."""
    assert topology.tree(PLACES) == (
        "SwitchName=none.none Nodes=c-0\n"
        "SwitchName=z1.r1 Nodes=a-[0,2]\n"
        "SwitchName=z1.r2 Nodes=a-1\n"
        "SwitchName=z2.none Nodes=b-1\n"
        "SwitchName=z2.r1 Nodes=b-0\n"
        "SwitchName=none Switches=none.none\n"
        "SwitchName=z1 Switches=z1.r1,z1.r2\n"
        "SwitchName=z2 Switches=z2.none,z2.r1\n"
        "SwitchName=root Switches=none,z1,z2\n"
    )


def test_each_block_holds_spares_that_slurm_conf_names():
    """As many as the smallest size, so that no deletion of a node makes a block too small for slurmctld."""
    places = {"a-0": ("r1",), "a-1": ("r2",)}
    assert topology.blocks(places, [4, 8]) == (
        "BlockName=r1 Nodes=a-0,soperator-spare-0-[0-3]\n"
        "BlockName=r2 Nodes=a-1,soperator-spare-1-[0-3]\n"
        "BlockSizes=4,8\n"
    )
    line = "NodeName=soperator-spare-0-[0-3],soperator-spare-1-[0-3] State=FUTURE\n"
    assert conf.render([topology.spares(places, [4, 8])]) == line


@given(GENERATED)
def test_every_tree_is_one_that_slurmctld_reads_and_names_each_node_once(places):
    """Whatever the labels are: no name twice, none too long or a long number, every node under the one root; and the order of nodes is nothing."""
    text = topology.tree(places)
    assert switch_problems(text) == []
    lines = conf.parse(text)
    nodes = [node for line in lines for node in hostlist.expand(line.get("Nodes") or "")]
    below = [child for line in lines for child in (line.get("Switches") or "").split(",") if child]
    assert sorted(nodes) == sorted(places)
    assert sorted([*below, "root"]) == sorted(line.get("SwitchName") for line in lines)
    assert not [
        line for line in lines if len(line.get("SwitchName")) > 64 or re.search(r"\d{10}", line.get("SwitchName"))
    ]
    assert topology.tree(dict(reversed(places.items()))) == text


@given(GENERATED)
def test_the_note_of_places_is_read_back(places):
    """Beside the files it says what they say."""
    assert topology.read_note(json.dumps(topology.note(places))) == places


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", ("line 1: a: this switch is below itself",)),
        ("SwitchName=a Switches=b", ("line 1: b: no line has this SwitchName",)),
        ("SwitchName=a Nodes=n\nSwitchName=a Nodes=m", ("line 2: a: another switch has this name",)),
        ("SwitchName=a", ("line 1: a: a switch has either nodes or switches",)),
        ("SwitchName=a Nodes=n Switches=b\nSwitchName=b Nodes=m", ("line 1: a: a switch has either",)),
        (
            "SwitchName=a Switches=b\nSwitchName=b Nodes=n\nSwitchName=c Switches=c,a",
            ("line 3: c: this switch is below",),
        ),
        ("SwitchName=a Switches=b[", ("line 1: b[: it is not a host list",)),
        ("SwitchName=a Switches=b[0-99999999]", ("line 1: b[0-99999999]: ", "more than 8192")),
        (f"SwitchName={'a' * 65} Nodes=n", ("at most 64 characters",)),
        (f"SwitchName=a{'1' * 20} Nodes=n", ("at most 19 digits",)),
    ],
)
def test_what_slurmctld_would_end_over_is_told_before(text, words):
    """The problem names the line, the switch and what to do."""
    said = "\n".join(map(str, switch_problems(text)))
    assert [each for each in words if each not in said] == []


def test_a_small_text_that_names_millions_of_switches_costs_little():
    """Forty bytes stand for 65,536 names; a spec has room for a thousand and a half such lines, and the operator has 512 MiB."""
    text = "".join(f"SwitchName=s{number} Switches=n[0-65535]\n" for number in range(1500))
    tracemalloc.start()
    began = time.process_time()
    found = switch_problems(text)
    assert time.process_time() - began < 2.0
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()
    assert len(found) < 200


@pytest.mark.parametrize("last", ["s0", "end"])
def test_a_long_chain_of_switches_is_walked_once(last):
    """Whether it ends or leads back to its beginning."""
    text = "".join(f"SwitchName=s{number} Switches=s{number + 1},{last}\n" for number in range(1500))
    began = time.process_time()
    found = switch_problems(f"{text}SwitchName=s1500 Nodes=x\nSwitchName=end Nodes=y\n")
    assert time.process_time() - began < 2.0
    assert [each.field for each in found] == (["here, line 1"] if last == "s0" else [])


def test_a_tree_as_in_the_manual_has_no_problem():
    """Ranges in Switches are names like any."""
    assert switch_problems("SwitchName=s[0-1] Nodes=x\n") == []
    text = "SwitchName=s0 Nodes=n[0-5]\nSwitchName=s1 Nodes=n[6-11]\nSwitchName=s2 Switches=s[0-1] LinkSpeed=900\n"
    assert switch_problems(text) == []


def test_blanks_around_the_equals_sign_hide_no_switch():
    """Slurm reads them, so a name that stands twice is reported."""
    text = "SwitchName = a Nodes = n-0\nSwitchName= a Nodes =n-1\n"
    assert {each.remedy for each in switch_problems(text)} == {"another switch has this name: choose another name"}
