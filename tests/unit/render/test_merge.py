"""A pod template is merged over the generated pod."""

from soperator.render.parts.strategic_merge import strategic


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


def test_topology_spread_constraints_are_merged_by_their_topology_key():
    """As Kubernetes' own merge does."""
    base = {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}, {"topologyKey": "host"}]}
    patch = {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]}
    assert strategic(base, patch)["topologySpreadConstraints"] == [
        {"topologyKey": "zone", "maxSkew": 2},
        {"topologyKey": "host"},
    ]


def test_a_volume_keeps_only_the_source_that_the_patch_has():
    """Kubernetes refuses a volume with two."""
    base = {"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi", "medium": "Memory"}}, {"name": "keys"}]}
    claim = {"name": "tmp", "persistentVolumeClaim": {"claimName": "x"}}
    assert strategic(base, {"volumes": [claim]})["volumes"] == [claim, {"name": "keys"}]
    smaller = {"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}]}
    assert strategic(base, smaller)["volumes"][0] == {
        "name": "tmp",
        "emptyDir": {"sizeLimit": "2Gi", "medium": "Memory"},
    }


def test_null_removes_a_field_wherever_it_stands():
    """Also in a map and in an entry that the base lacks."""
    patch = {"a": {"b": None, "c": 1}, "env": [{"name": "X", "value": None}]}
    assert strategic({}, patch) == {"a": {"c": 1}, "env": [{"name": "X"}]}


def test_new_entries_follow_ours():
    """Init containers start in this order, and kubectl logs shows the first container."""
    base = {"initContainers": [{"name": "ours"}]}
    assert strategic(base, {"initContainers": [{"name": "theirs"}, {"name": "ours", "tty": True}]}) == {
        "initContainers": [{"name": "ours", "tty": True}, {"name": "theirs"}]
    }


def test_lists_without_a_merge_key_are_replaced():
    """Arguments, capabilities and projected sources, as Kubernetes does it."""
    base = {"args": ["a"], "capabilities": {"add": ["A"], "drop": ["ALL"]}}
    assert strategic(base, {"args": ["b"], "capabilities": {"add": []}}) == {
        "args": ["b"],
        "capabilities": {"add": [], "drop": ["ALL"]},
    }
