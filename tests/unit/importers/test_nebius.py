"""Objects of the original become ours, and no field of them is lost unseen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.importers.nebius.whole import import_nebius
from soperator.importers.parts.fields import ForeignObject, foreign_objects
from soperator.importers.parts.report import Outcome, UnreadableInputError
from tests.unit.importers.foreign import changed, example, is_setting, leaves, lines, maps, spec, with_field

OBJECTS = example("nebius-lab")
CLUSTER, H100 = "SlurmCluster lab", "NodeSet h100"
#: Kinds of which each field has an entry; of others the object has one.
WHOLE = ("SlurmCluster", "NodeSet", "ActiveCheck")
#: Texts whose settings have entries of their own.
TEXTS = ("customSlurmConfig", "rawConfig", "nodeConfig.static", ".config")
PLACES = [
    (number, path) for number, each in enumerate(OBJECTS) if each.kind in WHOLE for path in maps(each.data) if path
]


def test_every_field_of_the_example_is_in_the_report():
    """By its whole path."""
    found = import_nebius(OBJECTS)
    told = {(each.place, each.setting.partition(": ")[0].partition("=")[0]) for each in found.entries}
    for each in (each for each in OBJECTS if each.kind in WHOLE):
        for path, value in leaves(each.data):
            if is_setting(path) and not any(text in path for text in TEXTS):
                assert (each.place, path) in told, (each.place, path, value)


def reported(objects: list[ForeignObject]) -> str:
    """What the report and the objects say, or why the objects could not be read."""
    try:
        found = import_nebius(objects)
    except UnreadableInputError as error:
        return str(error)
    return "\n".join([*(each.setting.lower() for each in found.entries), str(found.objects)])


@given(
    st.sampled_from(PLACES),
    st.text("abcxyz", min_size=1, max_size=5),
    st.sampled_from(["x", 7, True, {"y": "x"}, ["x"], "", {}, []]),
)
def test_a_field_of_tomorrow_is_in_the_report_or_in_an_object(place, name, value):
    """Wherever it stands: in a part that is passed on as it is, it is in the object, else the report names it as unknown or with its part."""
    number, path = place
    key = f"tomorrow{name}"
    objects = [with_field(each, path, key, value) if at == number else each for at, each in enumerate(OBJECTS)]
    told = reported(objects)
    assert key in told or value in ("", {}, [])


def test_an_unknown_field_is_left():
    """With a reason that says so, also where it is empty."""
    told = lines(import_nebius(changed(OBJECTS, CLUSTER, "spec.brandNew", "")), Outcome.LEFT)
    assert "SlurmCluster lab: spec.brandNew: : the import knows no such field" in told
    assert "SlurmCluster lab: spec.fieldOfTomorrow.depth: 3: the import knows no such field" in told


def test_nothing_secret_is_shown():
    """Neither a Secret nor a variable of a container."""
    assert "not-shown-anywhere" not in str(import_nebius(OBJECTS))
    assert "bm90LXNob3du" not in str(import_nebius(OBJECTS))


class TestCluster:
    """The SlurmCluster."""

    def test_a_partition_over_a_part_of_a_nodeset_is_left_out(self):
        """A whole one is carried over, and so is one over a feature."""
        made = spec(import_nebius(OBJECTS), "SlurmCluster", "lab")["partitions"]
        assert [(each["name"], each.get("nodeSets"), each.get("features")) for each in made] == [
            ("main", None, None),
            ("big", ["h100"], None),
            ("night", None, ["night"]),
        ]

    def test_structured_partitions_name_nodesets(self):
        """One that names none that is there is left out, since no NodeSets would mean all of them."""
        said = [
            {"name": "a", "isAll": True, "config": "Default=YES MaxTime=1"},
            {"name": "b", "nodeSetRefs": ["cpu", "gone"], "config": "Wrong=1"},
            {"name": "c", "nodeSetRefs": ["gone"]},
        ]
        found = import_nebius(
            changed(OBJECTS, CLUSTER, "spec.partitionConfiguration", {"configType": "structured", "partitions": said})
        )
        made = spec(found, "SlurmCluster", "lab")["partitions"]
        assert made == [{"name": "a", "default": True, "options": {"MaxTime": "1"}}, {"name": "b", "nodeSets": ["cpu"]}]
        told = lines(found, Outcome.LEFT)
        assert "nodeSetRefs: gone: no NodeSet of the objects has this name" in told
        assert "Wrong=1: a partition of Slurm" in told
        assert "partitions[2].name: c: no NodeSet of the objects belongs to it" in told

    def test_the_jail_is_not_carried_over(self):
        """Its root is at another place in the claim."""
        found = import_nebius(OBJECTS)
        assert "claim" not in spec(found, "SlurmCluster", "lab")["jail"]
        assert "jail-pvc: nothing that is carried over uses it" in lines(found, Outcome.LEFT)

    def test_workers_of_older_releases_are_a_nodeset(self):
        """With the sources and filters that they name."""
        worker = {
            "size": 3,
            "k8sNodeFilterName": "spare",
            "slurmd": {"resources": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "2"}},
            "volumes": {
                "jailSubMounts": [{"name": "old", "mountPath": "/old", "volumeSourceName": "old", "subPath": ""}]
            },
        }
        made = spec(import_nebius(changed(OBJECTS, CLUSTER, "spec.slurmNodes.worker", worker)), "NodeSet", "worker")
        assert (made["replicas"], made["gpu"]["count"], made["scheduling"]["nodeSelector"]) == (3, 2, {"pool": "spare"})
        assert made["submounts"] == [{"path": "/old", "volume": {"nfs": {"server": "nfs.example", "path": "/old"}}}]

    def test_accounting_that_is_off_stays_off(self):
        """Whatever else is said about it."""
        found = import_nebius(changed(OBJECTS, CLUSTER, "spec.slurmNodes.accounting.enabled", False))
        assert "accounting" not in spec(found, "SlurmCluster", "lab")

    def test_a_mariadb_is_new_and_empty(self):
        """And the report says so."""
        objects = changed(OBJECTS, CLUSTER, "spec.slurmNodes.accounting.externalDB.enabled", False)
        found = import_nebius(
            changed(
                objects,
                CLUSTER,
                "spec.slurmNodes.accounting.mariadbOperator",
                {"enabled": True, "storage": {"size": "5Gi"}},
            )
        )
        assert spec(found, "SlurmCluster", "lab")["accounting"]["mariadbOperator"] == {"size": "5Gi"}
        assert "the database is new and empty" in lines(found, Outcome.CHECK)


class TestNodeSets:
    """NodeSets."""

    def test_gpus_and_devices_have_fields_of_their_own(self):
        """The rest of the resources are limits."""
        made = spec(import_nebius(OBJECTS), "NodeSet", "h100")
        assert made["gpu"] == {"vendor": "nvidia", "count": 8}
        assert made["rdma"] == {"resources": {"rdma/hca": "8"}}
        assert made["resources"]["limits"] == {"cpu": "120", "memory": "1500Gi", "ephemeral-storage": "50Gi"}

    def test_a_submount_of_login_nodes_is_that_of_all_nodes(self):
        """So a NodeSet does not repeat it, and cannot have another one there."""
        found = import_nebius(OBJECTS)
        assert spec(found, "SlurmCluster", "lab")["jail"]["submounts"] == [{"path": "/data", "claimName": "data-pvc"}]
        assert [each["path"] for each in spec(found, "NodeSet", "h100")["submounts"]] == ["/scratch", "/mnt/image"]
        path = "spec.slurmd.volumes.jailSubMounts.0.volumeSource.persistentVolumeClaim.claimName"
        told = lines(import_nebius(changed(OBJECTS, H100, path, "other")), Outcome.LEFT)
        assert "NodeSet h100: submount /data: login nodes have another volume at this path" in told

    def test_a_name_that_we_reserve_is_changed(self):
        """And the report says that its nodes have other names."""
        objects = [
            ForeignObject(each.api_version, each.kind, "", "login", each.data) if each.place == H100 else each
            for each in OBJECTS
        ]
        found = import_nebius(objects)
        assert "login-b" in [each["metadata"]["name"] for each in found.objects]
        assert "NodeSet login: metadata.name: now login-b" in lines(found, Outcome.CHECK)


class TestChecks:
    """ActiveChecks."""

    def test_a_script_of_a_config_map_is_carried_over(self):
        """With a time limit in whole minutes."""
        made = spec(import_nebius(OBJECTS), "HealthCheck", "bandwidth")
        assert (made["script"][:11], made["timeLimit"], made["onFailure"]) == ("#!/bin/bash", "31m", "Drain")

    def test_newer_reactions_are_read_too(self):
        """A map instead of a flag."""
        objects = changed(OBJECTS, "ActiveCheck bandwidth", "spec.reactions", {})
        assert spec(import_nebius(objects), "HealthCheck", "bandwidth")["onFailure"] == "Report"
        objects = changed(
            objects, "ActiveCheck bandwidth", "spec.failureReactions", {"drainSlurmNode": {"drainReasonPrefix": "[x]"}}
        )
        assert spec(import_nebius(objects), "HealthCheck", "bandwidth")["onFailure"] == "Drain"

    @pytest.mark.parametrize("field", ["spec.checkType", "spec.k8sJobSpec.jobContainer.image"])
    def test_a_check_without_a_script_is_left_out(self, field):
        """It runs a container."""
        assert f"ActiveCheck users: {field}: " in lines(import_nebius(OBJECTS), Outcome.LEFT)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (
            [each for each in OBJECTS if each.kind != "SlurmCluster"],
            "the objects have 0 SlurmClusters (none): give the objects of one cluster",
        ),
        ([*OBJECTS, OBJECTS[0]], "the objects have 2 SlurmClusters (lab, lab): give the objects of one cluster"),
        (
            changed(OBJECTS, CLUSTER, "spec.slurmNodes.login.size", "two"),
            f"{CLUSTER}: spec.slurmNodes.login.size: two: it is not a whole number: correct it",
        ),
        (
            changed(OBJECTS, CLUSTER, "spec.volumeSources", 3),
            "SlurmCluster lab: spec.volumeSources: 3: it is not a list: correct it",
        ),
    ],
)
def test_what_cannot_be_read_is_one_sentence(objects, message):
    """With the object, the field and the value."""
    with pytest.raises(UnreadableInputError) as error:
        import_nebius(objects)
    assert str(error.value) == message


def test_an_unknown_kind_ends_the_import():
    """A part of a configuration looks like a whole one."""
    other = ForeignObject("slurm.nebius.ai/v2", "Fleet", "", "a", {})
    with pytest.raises(
        UnreadableInputError,
        match=r"^Fleet a: unknown kind of slurm.nebius.ai: remove the object",
    ):
        import_nebius([*OBJECTS, other])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("text", "f: 'text' is not a Kubernetes object: it needs apiVersion and kind"),
        ({"kind": "A"}, "f: \"{'kind': 'A'}\" is not a Kubernetes object: it needs apiVersion and kind"),
        ({"apiVersion": "a/v1", "kind": "A", "metadata": {}}, "f: A: metadata.name is missing: add it"),
    ],
)
def test_what_is_no_object_ends_the_import(document, message):
    """With the file."""
    with pytest.raises(UnreadableInputError) as error:
        foreign_objects("f", [document])
    assert str(error.value) == message
