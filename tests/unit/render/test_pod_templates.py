"""What the podTemplate of a role becomes: it is merged over the pods of this role, and over no others."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster import objects
from soperator.render.jail import mount_points, populate_job
from soperator.render.parts.model import Cluster, Defaults

DEFAULTS = Defaults("slurm:1", "login:1", "munge:1", "populate:1", "jail:1")
ALL = {"accounting": {}, "rest": {"users": {}}, "metrics": {"exporter": {}}}
GIVEN = {
    "metadata": {"annotations": {"example.org/team": "ml"}},
    "spec": {"runtimeClassName": "kata", "containers": [{"name": "agent", "image": "agent:1"}]},
}


def templates(spec):
    """The pod templates of a cluster by the names of their objects."""
    cluster = objects.after_start(Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate(spec)))
    made = [*objects.render_cluster(cluster, DEFAULTS, jail_ready=True), *objects.render_accounted(cluster, DEFAULTS)]
    return {each["metadata"]["name"]: each["spec"]["template"] for each in made if "template" in each.get("spec", {})}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("controller", "demo-controller"),
        ("login", "demo-login"),
        ("rest", "demo-rest"),
        ("rest.users", "demo-rest-users"),
        ("accounting.slurmdbd", "demo-accounting"),
        ("accounting.managedDatabase", "demo-database"),
        ("metrics.exporter", "demo-exporter"),
    ],
)
def test_a_pod_template_is_merged_over_its_role(path, name):
    """What was there stays, containers by name; the templates of all other roles are what they were."""
    spec = SlurmClusterSpec.model_validate(ALL).model_dump(by_alias=True, exclude_unset=True)
    place = spec
    for key in path.split("."):
        place = place.setdefault(key, {})
    place["podTemplate"] = GIVEN
    before, after = templates(ALL), templates(spec)
    assert {each for each in after if after[each] != before[each]} == {name}
    was, made = before[name], after[name]
    assert made["metadata"]["labels"] == was["metadata"]["labels"]
    assert made["metadata"]["annotations"] == {**was["metadata"].get("annotations", {}), "example.org/team": "ml"}
    assert made["spec"] == was["spec"] | {
        "runtimeClassName": "kata",
        "containers": [*was["spec"]["containers"], {"name": "agent", "image": "agent:1"}],
    }


def test_the_pod_template_of_the_jail_is_merged_over_its_jobs_and_over_nothing_else():
    """The Job that fills the jail, and the one that makes mount points in it."""
    jail = {"submounts": [{"path": "/data", "claimName": "data"}]}
    plain, given = (
        Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate({"jail": jail | more}))
        for more in ({}, {"podTemplate": GIVEN})
    )
    for render in (populate_job.render_populate, lambda *said: mount_points.render_mount_points(said[0], [], said[1])):
        (was,), (made,) = (render(each, DEFAULTS) for each in (plain, given))
        was, made = was["spec"]["template"], made["spec"]["template"]
        assert made["spec"]["containers"] == [*was["spec"]["containers"], {"name": "agent", "image": "agent:1"}]
        assert made["spec"]["runtimeClassName"] == "kata"
        assert made["metadata"]["labels"] == was["metadata"]["labels"]
    assert templates({"jail": {"podTemplate": GIVEN}}) == templates({})
