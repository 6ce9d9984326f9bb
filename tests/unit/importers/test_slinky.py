"""Objects of Slinky become ours, and no field of them is lost unseen."""

import copy
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.importers.parts.fields import ForeignObject
from soperator.importers.parts.report import Imported, Outcome, UnreadableInputError
from soperator.importers.slinky.whole import import_slinky
from soperator.slurm.conf import logical_lines
from soperator.slurm.settings.keywords import SLURM_CONF
from soperator.slurm.settings.partition_keywords import PARTITION
from tests.unit.importers.foreign import changed, example, is_setting, leaves, lines, maps, spec, with_field

OBJECTS = example("slinky-grid")
CONTROLLER, LOGIN, H100, CPU = (
    "Controller slurm",
    "LoginSet slurm-login-main",
    "NodeSet slurm-worker-h100",
    "NodeSet cpu",
)
ACCOUNTING, TOKEN = "Accounting slurm", "Token portal"
#: Kinds of which each field has an entry; of others the object has one.
WHOLE = ("Controller", "NodeSet", "LoginSet", "RestApi", "Accounting", "Token")
#: Texts whose settings have entries of their own.
TEXTS = ("spec.extraConf", "spec.partition.config")
PLACES = [
    (number, path)
    for number, each in enumerate(OBJECTS)
    if each.kind in WHOLE
    for path in maps(each.data)
    if path and path[0] != "status"
]
CLUSTER = ("SlurmCluster", "grid-two")


def cluster(objects: list[ForeignObject]) -> dict:
    """The spec of the SlurmCluster that the objects become."""
    return spec(import_slinky(objects), *CLUSTER)


def with_lines(*said: str) -> list[ForeignObject]:
    """The example with other lines of slurm.conf."""
    return changed(OBJECTS, CONTROLLER, "spec.extraConf", "\n".join(said))


def test_every_field_of_the_example_is_in_the_report():
    """By its whole path."""
    told = {(each.place, each.setting.partition(": ")[0].partition("=")[0]) for each in import_slinky(OBJECTS).entries}
    for each in (each for each in OBJECTS if each.kind in WHOLE):
        for path, value in leaves(each.data):
            if is_setting(path) and path not in TEXTS:
                assert (each.place, path) in told, (each.place, path, value)


def attempted(objects: list[ForeignObject]) -> Imported | str:
    """The import, or why the objects could not be read."""
    try:
        return import_slinky(objects)
    except UnreadableInputError as error:
        return str(error)


def reported(objects: list[ForeignObject]) -> str:
    """What the report and the objects say, or why the objects could not be read."""
    found = attempted(objects)
    if isinstance(found, str):
        return found
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
    assert key in reported(objects) or value in ("", {}, [])


@given(st.sampled_from(PLACES), st.data(), st.sampled_from([None, "x", -1, True, {}, [], {"x": "y"}, ["x"], [{}]]))
def test_a_value_of_another_kind_is_read_or_refused_in_one_sentence(place, data, value):
    """Whatever a field holds, the import ends with objects, or with the object that cannot be read."""
    number, path = place
    here: Any = OBJECTS[number].data
    for step in path:
        here = here[step]
    key = data.draw(st.sampled_from([*here, "x"]))
    found = attempted([with_field(each, path, key, value) if at == number else each for at, each in enumerate(OBJECTS)])
    assert found.objects if isinstance(found, Imported) else found.startswith((OBJECTS[number].place, "the objects"))


VALUE = st.text(string.ascii_letters + string.digits + "/,:._-@%*", min_size=1, max_size=20)
ANY_KEY = st.text(string.ascii_letters, min_size=1, max_size=12).filter(lambda key: key.lower() != "include")
PAIR = st.builds("{}={}".format, st.sampled_from(sorted(SLURM_CONF)) | ANY_KEY, VALUE)
PARTITION_LINE = st.builds(
    lambda name, nodes, pairs: " ".join(
        [f"PartitionName={name}", f"Nodes={nodes}", *map("{0[0]}={0[1]}".format, pairs)]
    ),
    VALUE | st.just("DEFAULT"),
    st.sampled_from(["ALL", "h100", "cpu,h100", "gone", "night", ""]),
    st.lists(st.tuples(st.sampled_from(PARTITION) | ANY_KEY, VALUE), max_size=4),
)
ROUGH = st.text(string.printable, max_size=40)
#: The places of texts with settings: of the Controller, of an Accounting, of a NodeSet's nodes and of its partition.
SETTINGS = st.sampled_from(
    [
        (CONTROLLER, "spec.extraConf"),
        (ACCOUNTING, "spec.extraConf"),
        (H100, "spec.extraConf"),
        (H100, "spec.partition.config"),
    ]
)


@given(SETTINGS, st.lists(PAIR | PARTITION_LINE | ROUGH, max_size=8).map("\n".join))
def test_every_setting_of_every_text_is_in_the_report(where, text):
    """Whatever the texts hold: known, unknown, misspelt, unreadable."""
    place, path = where
    found = import_slinky(changed(OBJECTS, place, path, text))
    told = [each.setting for each in found.entries if each.place.startswith(f"{place}: {path}")]
    for line in logical_lines(text):
        for key, _ in line.pairs:
            assert any(setting.startswith(f"{key}=") for setting in told), (line, told)
        assert not line.rest or any(setting.startswith(line.rest[:60]) for setting in told), (line, told)
        assert not line.include or any(line.include[:60] in setting or line.rest for setting in told), (line, told)


NAMES = st.lists(
    st.sampled_from(["gpu", "gpu-1", "gpu-b", "gpu-1-2", "login", "all", "login-b", "big"]), unique=True, min_size=1
)


@given(NAMES, st.lists(st.lists(st.sampled_from(["gpu", "gpu-1", "gpu-b", "login", "gone"]), max_size=3), max_size=4))
def test_no_node_gets_into_a_partition_that_it_was_not_in(names, wanted):
    """Also where names change, and one that changes takes the former name of another."""
    node_set = next(each for each in OBJECTS if each.place == CPU)
    objects = [each for each in OBJECTS if each.kind != "NodeSet"]
    for name in names:
        data = copy.deepcopy(dict(node_set.data))
        data["spec"]["extraConf"], data["spec"]["partition"] = f"Feature=was-{name}", {"enabled": True}
        objects.append(ForeignObject(node_set.api_version, "NodeSet", "grid", name, data))
    said = [f"PartitionName=p{number} Nodes={','.join(nodes)}" for number, nodes in enumerate(wanted)]
    found = import_slinky(changed(objects, CONTROLLER, "spec.extraConf", "\n".join(said)))
    members = {each["metadata"]["name"]: each["spec"] for each in found.objects if each["kind"] == "NodeSet"}
    there = {name: [name] for name in names} | {f"p{number}": nodes for number, nodes in enumerate(wanted)}
    made = {each["name"]: each for each in spec(found, *CLUSTER)["partitions"]}
    assert set(made) == {name for name, nodes in there.items() if nodes and set(nodes) <= set(names)}
    for name, partition in made.items():
        assert [members[each]["features"] for each in partition["nodeSets"]] == [[f"was-{old}"] for old in there[name]]


def test_nothing_secret_is_shown():
    """Neither a Secret nor a variable of a container."""
    assert "not-shown-anywhere" not in str(import_slinky(OBJECTS))
    assert "bm90LXNob3du" not in str(import_slinky(OBJECTS))


class TestController:
    """The Controller, which becomes the SlurmCluster."""

    def test_without_a_cluster_name_it_has_the_name_of_the_object(self):
        """And the report names the one that the database has."""
        found = import_slinky(changed(OBJECTS, CONTROLLER, "spec.clusterName", ""))
        assert spec(found, "SlurmCluster", "slurm")
        assert "now slurm: without clusterName the former name in the database is grid_slurm" in lines(
            found, Outcome.CHECK
        )

    def test_a_default_partition_restricts_those_that_follow(self):
        """So a group that was kept out stays out; a setting of the partition's own line wins."""
        made = cluster(
            with_lines(
                "PartitionName=before Nodes=ALL",
                "PartitionName=DEFAULT AllowGroups=staff Nodes=cpu",
                "PartitionName=after MaxTime=1",
                "PartitionName=open AllowGroups=ALL Nodes=h100",
            )
        )["partitions"]
        assert made[1:] == [
            {"name": "before"},
            {"name": "after", "nodeSets": ["cpu"], "options": {"AllowGroups": "staff", "MaxTime": "1"}},
            {"name": "open", "nodeSets": ["h100"], "options": {"AllowGroups": "ALL"}},
        ]

    def test_a_partition_over_single_nodes_is_left_out(self):
        """As is one without nodes, which would have all of them here, and one with a name that Slurm would not take."""
        found = import_slinky(
            with_lines(
                "PartitionName=one Nodes=h100-0",
                "PartitionName=none",
                "PartitionName=some Nodes=cpu,gone",
                "PartitionName=a/b Nodes=cpu",
            )
        )
        assert [each["name"] for each in spec(found, *CLUSTER)["partitions"]] == ["h100"]
        assert lines(found, Outcome.LEFT).count("its nodes are not those of NodeSets or of features") == 5
        assert "PartitionName=a/b: a name has at most 64 letters" in lines(found, Outcome.LEFT)

    def test_without_a_partition_the_report_says_who_gets_the_nodes(self):
        """The operator's own partition has all of them."""
        objects = changed(with_lines(), H100, "spec.partition.enabled", False)
        found = import_slinky(objects)
        assert "partitions" not in spec(found, *CLUSTER)
        assert "spec.partitions: no partition is carried over: the operator makes one" in lines(found, Outcome.CHECK)

    def test_limits_are_enforced_where_there_is_accounting(self):
        """Without accounting the report says that nothing is."""
        assert cluster(OBJECTS)["accounting"]["enforce"] == ["limits", "qos", "nojobs"]
        found = import_slinky([each for each in OBJECTS if each.kind != "Accounting"])
        assert "accounting" not in spec(found, *CLUSTER)
        told = lines(found, Outcome.LEFT)
        assert "AccountingStorageEnforce=limits,qos,nojobs: without accounting nothing is enforced" in told
        assert "spec.accountingRef.name: slurm: no Accounting of the objects has this name" in told

    def test_scripts_run_in_the_order_of_their_names(self):
        """Over all ConfigMaps of a hook, as there."""
        more = ForeignObject("v1", "ConfigMap", "grid", "more", {"data": {"15-x": "#!/bin/sh\n", "bad": "exit 0"}})
        path = "spec.prologScriptRefs"
        found = import_slinky(changed([*OBJECTS, more], CONTROLLER, path, [{"name": "slurm-prolog"}, {"name": "more"}]))
        made = spec(found, *CLUSTER)["config"]["prolog"]
        assert [each["name"] for each in made] == ["10-first.sh", "15-x", "20-check.sh"]
        assert f"{path}, more: bad: it does not begin with the line of an interpreter" in lines(found, Outcome.LEFT)

    def test_a_file_that_the_operator_writes_is_left_out(self):
        """As is one that is too long, and one of another namespace is not read."""
        maps_of = {"slurm.conf": "A=b", "mpi.conf": "PMIxDebug=1", "long.conf": "x" * 65537}
        mine = ForeignObject("v1", "ConfigMap", "grid", "files", {"data": maps_of})
        other = ForeignObject("v1", "ConfigMap", "elsewhere", "files", {"data": {"x.conf": "a"}})
        path = "spec.configFileRefs"
        found = import_slinky(changed([*OBJECTS, mine, other], CONTROLLER, path, [{"name": "files"}]))
        assert spec(found, *CLUSTER)["config"]["files"] == [{"name": "mpi.conf", "text": "PMIxDebug=1"}]
        told = lines(found, Outcome.LEFT)
        assert "files: slurm.conf: the operator writes this file" in told
        assert "files: long.conf: it is longer than 64 KiB" in told

    def test_a_config_map_with_binary_data_is_not_read_to_the_end(self):
        """And the report says so."""
        assert "ConfigMap slurm-config: binaryData.table.bin: it is not text" in lines(
            import_slinky(OBJECTS), Outcome.LEFT
        )


class TestNodeSets:
    """NodeSets."""

    def test_nodes_keep_their_names(self):
        """They begin with the hostname of the pods, and else with the name of the object."""
        found = import_slinky(OBJECTS)
        assert [each["metadata"]["name"] for each in found.objects] == ["grid-two", "h100", "cpu"]

    def test_a_name_that_we_reserve_is_changed(self):
        """The partition keeps its name, and users their scripts."""
        found = import_slinky(changed(OBJECTS, H100, "spec.template.spec.hostname", "login-"))
        assert spec(found, *CLUSTER)["partitions"][0]["name"] == "login"
        assert spec(found, *CLUSTER)["partitions"][0]["nodeSets"] == ["login-b"]
        assert f"{H100}: metadata.name: now login-b" in lines(found, Outcome.CHECK)

    def test_gpus_and_devices_have_fields_of_their_own(self):
        """The type and the shards are those of Gres."""
        made = spec(import_slinky(OBJECTS), "NodeSet", "h100")
        assert made["gpu"] == {"vendor": "nvidia", "count": 8, "type": "h100", "shards": 16}
        assert made["rdma"] == {"resources": {"rdma/hca": "8"}}
        assert made["resources"]["limits"] == {"cpu": "120", "memory": "1500Gi"}

    @pytest.mark.parametrize(
        ("gres", "gpu", "told"),
        [
            ("gpu:a100:2", {"vendor": "nvidia", "count": 2, "type": "a100"}, ""),
            ("gpu:0,shard:4", None, "Gres=shard:4: it does not fit to the GPUs"),
            ("fpga:1", None, "Gres=fpga:1: it does not fit to the GPUs of the resources, or is no GPU"),
        ],
    )
    def test_gpus_of_gres_alone(self, gres, gpu, told):
        """The resources name none, so the vendor is a guess."""
        found = import_slinky(changed(OBJECTS, CPU, "spec.extraConf", f"Gres={gres}"))
        assert spec(found, "NodeSet", "cpu").get("gpu") == gpu
        assert told in lines(found, Outcome.LEFT)
        assert ("the vendor is a guess" in lines(found, Outcome.CHECK)) == bool(gpu)

    def test_other_numbers_of_gpus_in_gres_are_left_out(self):
        """The resources say how many a pod has; a second vendor is another NodeSet."""
        found = import_slinky(changed(OBJECTS, H100, "spec.extraConf", "Gres=gpu:4"))
        assert spec(found, "NodeSet", "h100")["gpu"] == {"vendor": "nvidia", "count": 8}
        assert "Gres=gpu:4: it does not fit" in lines(found, Outcome.LEFT)
        limits = {"nvidia.com/gpu": 8, "amd.com/gpu": "4"}
        found = import_slinky(changed(OBJECTS, H100, "spec.slurmd.resources.limits", limits))
        assert spec(found, "NodeSet", "h100")["gpu"]["vendor"] == "nvidia"
        assert "amd.com/gpu: 4: a NodeSet has GPUs of one vendor" in lines(found, Outcome.LEFT)

    def test_ssh_stays_off(self):
        """Here it is on unless a NodeSet says otherwise."""
        found = import_slinky(OBJECTS)
        assert (spec(found, "NodeSet", "h100")["ssh"], spec(found, "NodeSet", "cpu")["ssh"]) == (True, False)

    def test_a_mount_of_the_operator_is_left_out(self):
        """Memory at /dev/shm is the size of that of jobs; without a limit it says nothing."""
        found = import_slinky(OBJECTS)
        made = spec(found, "NodeSet", "h100")
        assert (made["shmSize"], [each["path"] for each in made["submounts"]]) == ("64Gi", ["/scratch"])
        assert "mountPath: /run/sshd: nodes have mounts of the operator there" in lines(found, Outcome.LEFT)
        found = import_slinky(changed(OBJECTS, H100, "spec.template.spec.volumes.0", {"name": "shm", "emptyDir": {}}))
        assert "shmSize" not in spec(found, "NodeSet", "h100")
        assert "volumeMounts[0].mountPath: /dev/shm: nodes have mounts" in lines(found, Outcome.LEFT)

    def test_a_claim_that_is_read_only_stays_so(self):
        """Also where the mount does not say it."""
        claim = {"name": "scratch", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}}
        found = import_slinky(changed(OBJECTS, H100, "spec.template.spec.volumes.2", claim))
        made = spec(found, "NodeSet", "h100")["submounts"]
        assert made == [{"path": "/scratch", "subPath": "s", "readOnly": True, "claimName": "c"}]

    def test_one_pod_for_each_kubernetes_node_has_no_number(self):
        """So a person sets it."""
        found = import_slinky(OBJECTS)
        assert "replicas" not in spec(found, "NodeSet", "cpu")
        assert f"{CPU}: spec.scalingMode: DaemonSet: a NodeSet has a number of nodes" in lines(found, Outcome.LEFT)

    def test_those_of_another_controller_are_left_out(self):
        """With every field."""
        found = import_slinky(changed(OBJECTS, CPU, "spec.controllerRef.name", "other"))
        assert [each["metadata"]["name"] for each in found.objects] == ["grid-two", "h100"]
        assert f"{CPU}: spec.extraConf: Feature=nightly: it belongs to Controller other" in lines(found, Outcome.LEFT)


class TestServices:
    """LoginSets, RestApis, Tokens and Accountings."""

    def test_without_a_login_set_there_are_no_login_nodes(self):
        """Here there is one unless the number says otherwise."""
        assert cluster([each for each in OBJECTS if each.kind != "LoginSet"])["login"] == {"replicas": 0}

    def test_an_entry_of_sssd_with_another_name_is_reported(self):
        """The operator reads sssd.conf only."""
        found = import_slinky(changed(OBJECTS, LOGIN, "spec.sssdConfRef.key", "conf"))
        assert "spec.sssdConfRef.key: conf: the entry must have the name sssd.conf" in lines(found, Outcome.LEFT)

    @pytest.mark.parametrize("user", ["root", "slurm", ""])
    def test_a_token_with_all_rights_is_left_out(self, user):
        """A Secret is no place for it."""
        assert "tokens" not in cluster(changed(OBJECTS, TOKEN, "spec.username", user))["rest"]["users"]

    def test_a_token_has_the_secret_of_before(self):
        """Its name follows from those of token and user if none is set; a lifetime that is too long is left out."""
        found = import_slinky(
            changed(changed(OBJECTS, TOKEN, "spec.secretRef", None), TOKEN, "spec.lifetime", "8760h0m0s")
        )
        made = spec(found, *CLUSTER)["rest"]["users"]["tokens"]
        assert made == [{"user": "portal", "secretName": "portal-jwt-portal"}]
        assert "Secret portal-jwt-portal: now spec.rest.users.tokens" in lines(found, Outcome.CHECK)
        assert f"{TOKEN}: spec.lifetime: 8760h0m0s: a token lives from 10m to 168h" in lines(found, Outcome.LEFT)

    def test_an_age_that_is_none_is_left_out(self):
        """Records that nobody purges fill the database."""
        found = import_slinky(changed(OBJECTS, ACCOUNTING, "spec.extraConf", "PurgeJobAfter=soon"))
        assert "purge" not in spec(found, *CLUSTER)["accounting"]
        assert "PurgeJobAfter=soon: write hours, days or months" in lines(found, Outcome.LEFT)

    def test_a_database_without_a_password_is_a_new_one(self):
        """And the report says that it is empty."""
        found = import_slinky(changed(OBJECTS, ACCOUNTING, "spec.storageConfig", {"host": "db.example.com"}))
        assert "externalDatabase" not in spec(found, *CLUSTER)["accounting"]
        assert "spec.storageConfig.host: db.example.com: it has no host or no Secret" in lines(found, Outcome.LEFT)

    def test_an_accounting_that_nobody_names_is_left_out(self):
        """With every field."""
        found = import_slinky(changed(OBJECTS, CONTROLLER, "spec.accountingRef.name", "other"))
        assert "accounting" not in spec(found, *CLUSTER)
        assert f"{ACCOUNTING}: spec.storageConfig.port: 3306: the Controller does not name it" in lines(
            found, Outcome.LEFT
        )


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (
            [each for each in OBJECTS if each.kind != "Controller"],
            "the objects have 0 Controllers (none): give the objects of one cluster",
        ),
        ([*OBJECTS, OBJECTS[0]], "the objects have 2 Controllers (slurm, slurm): give the objects of one cluster"),
        (
            changed(OBJECTS, CONTROLLER, "spec.external", True),
            "Controller slurm: spec.external: true: slurmctld runs elsewhere, and the import would make a second one: NodeSets cannot join it yet",
        ),
        (
            changed(OBJECTS, ACCOUNTING, "spec.external", True),
            "Accounting slurm: spec.external: true: slurmdbd must run in the cluster: import without this object, and set spec.accounting",
        ),
        (
            changed(OBJECTS, LOGIN, "spec.replicas", "two"),
            f"{LOGIN}: spec.replicas: two: it is not a whole number: correct it",
        ),
        (
            changed(OBJECTS, H100, "spec.slurmd.resources.limits", {"nvidia.com/gpu": "1k"}),
            f"{H100}: spec.slurmd.resources.limits.nvidia.com/gpu: 1k: it is not a whole number: correct it",
        ),
        (
            changed(OBJECTS, H100, "spec.template.spec.hostname", "cpu-"),
            f"{CPU}: cpu is the name of another NodeSet in Slurm too: change its hostname",
        ),
        (
            [*OBJECTS, ForeignObject("slinky.slurm.net/v2", "Fleet", "", "a", {})],
            "Fleet a: unknown kind of slinky.slurm.net: remove the object; the import knows Controller, NodeSet, LoginSet, RestApi, "
            "Accounting, Token, Account, User, SlurmQOS",
        ),
    ],
)
def test_what_cannot_be_read_is_one_sentence(objects, message):
    """With the object, the field and the value."""
    with pytest.raises(UnreadableInputError) as error:
        import_slinky(objects)
    assert str(error.value) == message
