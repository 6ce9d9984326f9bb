"""What is read of a spec that this release cannot read whole."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.partial import as_far_as_readable, texts


def read(**said: Any) -> SlurmClusterSpec | None:
    """A SlurmCluster's spec, as far as it can be read."""
    return as_far_as_readable(SlurmClusterSpec, json.dumps(said).encode())


@pytest.mark.parametrize(
    "later",
    [
        {"auth": {"type": "ofTheNextRelease"}},
        {"auth": "ofTheNextRelease", "login": {"replicas": "some"}},
        {"login": {"replicas": -1, "scheduling": {"tolerations": 5}}},
        {"partitions": [{"name": "good"}, {"name": 5}, {"noName": ""}, {"name": "/"}]},
        {"accounting": {"externalDatabase": {"host": 7}, "enforce": "perhaps"}},
        {"controller": {"replicas": "two", "state": {"name": "mine"}}},
    ],
    ids=str,
)
def test_what_can_be_read_is_read(later: dict[str, Any]) -> None:
    """One value of a later release hides none of the others."""
    mine = {"state": {"name": "mine"}}
    found = read(**{"controller": mine, "externalNodes": {"cidrs": ["192.0.2.0/24"]}, **later})
    assert found is not None
    assert found.controller.state.name == "mine"
    assert found.external_nodes.cidrs == ["192.0.2.0/24"]
    if "partitions" in later:
        assert [each.name for each in found.partitions] == ["good"]


def test_without_a_field_that_must_be_there_nothing_is_read() -> None:
    """A NodeSet that names no cluster is nobody's."""
    assert as_far_as_readable(NodeSetSpec, b'{"clusterRef": 5, "replicas": 2}') is None
    assert as_far_as_readable(NodeSetSpec, b'{"clusterRef": {"name": "demo"}, "replicas": "two"}') == NodeSetSpec(
        cluster_ref={"name": "demo"}
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([each.alias or name for name, each in SlurmClusterSpec.model_fields.items()])


@given(st.dictionaries(FIELDS, JSON | st.dictionaries(FIELDS, JSON, max_size=3), max_size=4))
def test_a_cluster_can_always_be_read_in_part(said: dict[str, Any]) -> None:
    """No field of it must be there, so whatever else it says its name counts."""
    assert read(**said) is not None


def test_every_text_of_a_piece_is_found() -> None:
    """Wherever a later release has put the name of a claim."""
    assert set(texts({"a": "x", "b": [{"c": "y"}, 5, None], "d": {}})) == {"x", "y"}
