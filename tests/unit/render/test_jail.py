"""The mount plan is data with properties."""

from hypothesis import given
from hypothesis import strategies as st

from soperator.api.common import Submount, Tmpfs
from soperator.render.jail import mount_plan, plan_text
from soperator.render.merge import strategic

PATHS = st.lists(st.text("abc", min_size=1, max_size=2), min_size=1, max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)


@given(st.lists(PATHS, unique=True, max_size=5))
def test_no_mount_hides_an_earlier_one(paths):
    """A target never lies above one that was mounted before it, or that one would vanish."""
    plan = mount_plan("worker", [Submount(path=path, tmpfs=Tmpfs(size="1Mi")) for path in paths], munge=True)
    targets = [each.target.rstrip("/") + "/" for each in plan]
    for later in range(len(targets)):
        assert not any(before.startswith(targets[later]) for before in targets[:later])


def test_a_plan_is_lines_of_five_fields_that_begin_with_the_root():
    """The file has the format that the C helper reads."""
    lines = plan_text(mount_plan("login", [], munge=False)).splitlines()
    assert lines[0].split("\t")[0] == "root"
    assert {len(line.split("\t")) for line in lines} == {5}


def test_what_names_plugins_and_configuration_is_read_only_in_the_jail():
    """Whoever could write it would choose what Slurm's commands, or slurmd outside the jail, load."""
    for role in ("worker", "login"):
        plan = {each.target: each.options for each in mount_plan(role, [], munge=False)}
        assert "ro" in plan["/run/slurm"]
        assert "ro" in plan["/opt/soperator"]
    assert (
        "ro" in {each.target: each.options for each in mount_plan("worker", [], False)}["/var/spool/slurmd/conf-cache"]
    )


def test_a_merge_is_by_name_and_changes_neither_side():
    """Containers and variables merge by name, null removes, other lists are replaced."""
    base = {
        "spec": {"containers": [{"name": "a", "args": ["1"], "env": [{"name": "X", "value": "1"}]}], "hostname": "h"}
    }
    patch = {
        "spec": {
            "containers": [{"name": "a", "args": ["2"], "env": [{"name": "Y", "value": "2"}]}, {"name": "b"}],
            "hostname": None,
        }
    }
    assert strategic(base, patch) == {
        "spec": {
            "containers": [
                {"name": "a", "args": ["2"], "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                {"name": "b"},
            ]
        }
    }
    assert base["spec"]["hostname"] == "h"
