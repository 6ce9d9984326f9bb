"""Lint refuses what the API server refuses, blames the field and says the remedy."""

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.strict import read
from soperator.api.validation.validate import World, validate_cluster, validate_nodeset
from tests.bad_inputs import CASES, Bad


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: f"{bad.kind}-{bad.field}-{bad.said[:20]}")
def test_lint_blames_the_field_and_says_the_remedy(bad: Bad) -> None:
    """Each bad input gives a problem whose field and remedy are the expected ones."""
    if bad.kind == "SlurmCluster":
        cluster, problems = read(SlurmClusterSpec, bad.spec)
        if cluster:
            problems = validate_cluster(bad.name, cluster, World(clusters={bad.name: cluster}))
    else:
        node_set, problems = read(NodeSetSpec, bad.spec)
        if node_set:
            world = World(clusters={"demo": SlurmClusterSpec()}, node_sets={bad.name: node_set})
            problems = validate_nodeset(bad.name, node_set, world)
    assert [problem for problem in problems if problem.field.startswith(bad.field) and bad.said in str(problem)]
