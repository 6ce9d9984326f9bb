"""No attempt to leave the jail gets anywhere: from login, a job, or SSH to its worker, as root of the jail or a user, in both modes.

Each attempt has a control that shows that it would get through without the protection that it tests.
"""

import itertools
from typing import Any

import pytest

from tests.cluster.escape import conftest
from tests.cluster.escape.probe import ATTEMPTS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PLACES = list(itertools.product(("userns", "host"), conftest.PLACES, ("root", "alice")))
#: Login is one machine for all who are logged in, as everywhere: there are no other jobs there.
OF_JOBS = {"see_another_job", "find_files_of_another_job"}


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_nobody_gets_out(
    ends: dict[tuple[str, str, str], dict[str, Any]], place: tuple[str, str, str], name: str
) -> None:
    """The attempt is refused, or reaches nothing."""
    if place[1] == "login" and name in OF_JOBS:
        pytest.skip("there is no other job on login")
    end = ends[place]["ends"][name]
    assert end["end"] == "held", f"{name}: {end['seen']} (held by: {ATTEMPTS[name].held_by})"


@pytest.mark.parametrize("name", [name for name, each in ATTEMPTS.items() if not each.control.startswith("none")])
def test_the_attempt_gets_through_without_its_protection(
    controls: dict[str, dict[str, dict[str, str]]], name: str
) -> None:
    """Where the capabilities are kept, outside the jail, on the Node, or with a credential, the same attempt succeeds."""
    found = controls[ATTEMPTS[name].control]
    if not found:
        pytest.skip("the Nodes of a foreign cluster are not at hand")
    assert found[name]["end"] == "through", found[name]["seen"]


@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_ids_are_those_of_the_mode(
    ends: dict[tuple[str, str, str], dict[str, Any]], place: tuple[str, str, str]
) -> None:
    """In a user namespace uid 0 is a high number on the Node; without one it is 0, and the other attempts hold all the same."""
    inside, outside, _ = map(int, ends[place]["uid_map"])
    assert inside == 0
    assert (outside >= 65536) is (place[0] == "userns")
    assert (ends[place]["user"] == 0) is (place[2] == "root")
