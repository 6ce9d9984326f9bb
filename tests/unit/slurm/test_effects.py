"""What a change of Slurm's files asks for."""

import re

from hypothesis import given
from hypothesis import strategies as st

from local import keywords as asked
from soperator.slurm.settings import keywords
from soperator.slurm.settings.diff import (
    DANGERS,
    FIXED,
    diff,
    effect,
    fixed,
)

OLD = {
    "slurm.conf": "SlurmctldPort=6817\nSlurmctldParameters=a,generation=1\nPartitionName=main Nodes=ALL\n",
    "gres.conf": "",
}


def changed(text: str) -> dict[str, str]:
    """The same files with another slurm.conf."""
    return OLD | {"slurm.conf": text}


def test_the_same_files_ask_for_nothing() -> None:
    """Nothing is said to change."""
    assert effect(OLD, OLD).act == "nothing"


def test_most_settings_are_read_again() -> None:
    """The last of two settings counts, and the name of the generation is none."""
    found = effect(OLD, changed(OLD["slurm.conf"].replace("=1", "=2") + "MaxJobCount=5\nMaxJobCount=6\n"))
    assert (found.files, found.settings, found.restarts) == (("slurm.conf",), ("MaxJobCount",), False)
    assert "reconfigure" in found.act


def test_ports_and_authentication_need_a_restart() -> None:
    """A reconfigure leaves them as they were."""
    found = effect(OLD, changed(OLD["slurm.conf"].replace("6817", "6917")))
    assert found.restarts
    assert found.act.startswith("slurmctld restarts")
    assert fixed(OLD) == "slurmctldport=6817"


def test_a_change_that_endangers_jobs_says_so() -> None:
    """The setting is named as it was written."""
    assert effect(OLD, changed(OLD["slurm.conf"] + "SwitchType=switch/hpe_slingshot\n")).dangers == (
        f"SwitchType: {DANGERS['switchtype']}",
    )


def test_a_new_file_is_a_change_and_the_diff_shows_it() -> None:
    """So is one that goes."""
    new = OLD | {"topology.conf": "SwitchName=a Nodes=b\n"}
    assert effect(OLD, new).files == effect(new, OLD).files == ("topology.conf",)
    assert list(diff(OLD, new))[-1] == "+SwitchName=a Nodes=b"


def test_every_setting_that_is_named_is_one_of_slurm() -> None:
    """No misspelt name is in the tables."""
    names = {each.lower() for each in keywords.SLURM_CONF}
    assert FIXED | DANGERS.keys() <= names


def test_the_keywords_are_as_they_are_generated() -> None:
    """The file is what the generator writes of the same keys."""
    keys = sorted(keywords.SLURM_CONF, key=str.lower)
    assert asked.FILE.read_text() == asked.module(keys, keywords.VERSION)
    assert re.fullmatch(r"\d+\.\d+", keywords.VERSION)


@given(st.lists(st.sampled_from(["A=1", "A=2", "B=1", "SlurmdPort=1", "SlurmdPort=2", "# x", ""])))
def test_a_change_and_its_reverse_ask_for_the_same(lines: list[str]) -> None:
    """What restarts in one direction restarts in the other."""
    new = changed("\n".join(lines))
    there, back = effect(OLD, new), effect(new, OLD)
    assert (there.files, set(there.settings), there.restarts) == (back.files, set(back.settings), back.restarts)
