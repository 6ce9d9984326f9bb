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
