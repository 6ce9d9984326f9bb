"""No attempt to leave the jail gets anywhere: from login, a job, SSH to its worker, or its container, as root of the jail or a user, in both modes.

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
#: What every user may give himself: to be root of a user namespace, with mounts of his own in it.
ROOT = {
    "hold_dangerous_capabilities",
    "gain_capabilities",
    "gain_capabilities_by_a_file",
    "make_a_mount_namespace",
    "mount_a_tmpfs",
    "mount_by_the_new_calls",
    "clone_the_tree",
}
#: And what root of a container may do besides: to change the mounts that were made for it, for they are the user's own.
MOUNTS = {"bind_a_folder", "mount_an_overlay", "take_the_bundle_off", "take_the_root_off"}
#: What gets through because it leads to nothing but the user's own, by place and user. A container bounds nobody's capabilities.
OWN = {
    ("container", "alice"): {"hold_dangerous_capabilities"},
    ("container", "root"): ROOT | MOUNTS,
    ("under", "alice"): ROOT,
    ("under", "root"): ROOT,
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_nobody_gets_out(ends: dict[tuple[str, str, str], dict[str, Any]], name: str) -> None:
    """The attempt is refused everywhere, or reaches nothing, or nothing but what the user made."""
    differs = {}
    for place in PLACES:
        if place[1] == "login" and name in OF_JOBS:
            continue
        end = ends[place]["ends"][name]
        wanted = "through" if name in OWN.get(place[1:], ()) else "held"
        if end["end"] != wanted:
            differs["-".join(place)] = f"{end['end']} instead of {wanted}: {end['seen']}"
    assert differs == {}, f"{name} (held by: {ATTEMPTS[name].held_by})"


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
    """In a user namespace uid 0 is a high number on the Node; without one it is 0. A container knows nobody but its user."""
    inside, outside, count = map(int, ends[place]["uid_map"])
    user = ends[place]["user"]
    assert (user == 0) is (place[2] == "root" or place[1] == "under")
    if place[1] in ("container", "under"):
        assert (inside, count) == (user, 1)
        assert (outside == 0) is (place[2] == "root")
        return
    assert inside == 0
    assert (outside >= 65536) is (place[0] == "userns")


@pytest.mark.parametrize("user", ["root", "alice"])
@pytest.mark.parametrize("mode", ["userns", "host"])
def test_under_a_container_lies_the_jail_of_its_job(
    ends: dict[tuple[str, str, str], dict[str, Any]], mode: str, user: str
) -> None:
    """Who takes the container's root off stands in the same shared root as the user's jobs, and no container's own root is that."""
    assert ends[mode, "under", user]["root"] == ends[mode, "job", user]["root"]
    assert ends[mode, "container", user]["root"] != ends[mode, "job", user]["root"]
