"""A Slurm on machines becomes objects, and no setting of its files is lost unseen."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.importers.parts.names import nodeset_name
from soperator.importers.parts.report import Imported, Outcome, UnreadableInputError
from soperator.importers.slurm_conf.cluster import import_slurm
from soperator.importers.slurm_conf.files import SlurmFiles, candidates, wanted_paths
from soperator.slurm.conf import logical_lines
from soperator.slurm.settings.keywords import SLURM_CONF
from soperator.slurm.settings.node_keywords import NODE
from soperator.slurm.settings.partition_keywords import PARTITION

MAIN = "/etc/slurm/slurm.conf"


def imported(text: str, **others: str) -> Imported:
    """The import of a slurm.conf, and of other files in its folder by their names with _ for the dot."""
    texts = {f"/etc/slurm/{name.replace('_conf', '.conf')}": content for name, content in others.items()}
    return import_slurm(SlurmFiles(MAIN, {MAIN: text, **texts}))


def lines(found: Imported, outcome: Outcome) -> list[str]:
    """What the report says of one outcome, without the outcome."""
    return [str(each).partition("  ")[2].strip() for each in found.entries if each.outcome is outcome]


def spec(found: Imported, kind: str = "SlurmCluster", number: int = 0) -> dict:
    """The spec of an object of a kind."""
    return [each["spec"] for each in found.objects if each["kind"] == kind][number]


class TestNodes:
    """NodeName lines."""

    def test_nodes_of_one_shape_in_the_same_partitions_are_a_nodeset(self):
        """A partition over a part of the nodes makes two NodeSets, so that each partition is exact."""
        found = imported(
            "NodeName=n[1-4] CPUs=8 RealMemory=1000\nPartitionName=all Nodes=ALL\nPartitionName=a Nodes=n[1-4]\nPartitionName=b Nodes=n[3-4]"
        )
        sizes = {
            each["metadata"]["name"]: each["spec"]["replicas"] for each in found.objects if each["kind"] == "NodeSet"
        }
        assert sizes == {"n": 2, "n-b": 2}
        assert [each.get("nodeSets") for each in spec(found)["partitions"]] == [None, ["n", "n-b"], ["n-b"]]

    def test_cpus_are_the_product_of_sockets_cores_and_threads(self):
        """Where CPUs is not said."""
        found = imported("NodeName=a Boards=2 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=10")
        assert spec(found, "NodeSet")["resources"]["limits"] == {"cpu": "64", "memory": "10Mi"}

    def test_defaults_hold_for_the_nodes_that_follow(self):
        """And not for those before."""
        found = imported("NodeName=a CPUs=1\nNodeName=DEFAULT CPUs=2 Weight=7\nNodeName=b[0-1]\nNodeName=c CPUs=3")
        made = [(each["spec"]["resources"]["limits"]["cpu"], each["spec"].get("weight")) for each in found.objects[1:]]
        assert made == [("1", None), ("2", 7), ("3", 7)]

    def test_cloud_nodes_sleep(self):
        """With the timeouts of the file, in the bounds of ours."""
        found = imported("SuspendTime=300\nResumeTimeout=10\nNodeName=x[0-9] CPUs=4 RealMemory=100 State=CLOUD")
        assert spec(found, "NodeSet")["powerSaving"] == {"maxNodes": 10, "suspendTime": "300s", "resumeTimeout": "30s"}
        assert "replicas" not in spec(found, "NodeSet")

    def test_cloud_nodes_without_a_size_stay_awake(self):
        """And the report says why."""
        found = imported("NodeName=x[0-9] State=CLOUD")
        assert spec(found, "NodeSet")["replicas"] == 10
        assert "NodeSet x: State=CLOUD: powerSaving needs CPUs" in "\n".join(lines(found, Outcome.LEFT))

    def test_a_nodeset_has_no_feature_of_another_as_its_name(self):
        """A partition over the feature would otherwise take both."""
        found = imported("NodeName=a1 Feature=gpu\nNodeName=gpu1 CPUs=2")
        assert [each["metadata"]["name"] for each in found.objects[1:]] == ["a", "gpu-b"]

    def test_names_never_look_like_a_node_of_another_nodeset(self):
        """A number after a dash is the end of a node's name."""
        assert [nodeset_name("rack-12", ()), nodeset_name("r1-2-3", ()), nodeset_name("__", ())] == [
            "rack",
            "r1",
            "node",
        ]
        taken: set[str] = set()
        for _ in range(60):
            taken.add(nodeset_name("n", taken))
        assert len(taken) == 60
        assert not any(each.rpartition("-")[2].isdigit() for each in taken)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "NodeName=a[1-",
                "slurm.conf, line 1: NodeName: not a host list, because its brackets do not match: a[1-: correct it",
            ),
            (
                "NodeName=a\nNodeName=a",
                "slurm.conf, line 2: NodeName=a: slurm.conf, line 1 defines this node too: remove one of the lines",
            ),
            ("NodeName=a RealMemory=64G", "slurm.conf, line 1: realmemory: 64G: not a whole number: correct it"),
            (
                "NodeName=a\nPartitionName=p Nodes=]",
                "slurm.conf, line 2: Nodes: not a host list, because its brackets do not match: ]: correct it",
            ),
        ],
    )
    def test_what_slurm_could_not_read_is_one_sentence(self, text, message):
        """With the file and the line."""
        with pytest.raises(UnreadableInputError) as error:
            imported(text)
        assert str(error.value) == message


class TestPartitions:
    """PartitionName lines."""

    def test_a_partition_without_nodes_is_left_out(self):
        """In our spec no NodeSets would mean all of them."""
        found = imported("NodeName=a CPUs=1\nPartitionName=p MaxTime=1\nPartitionName=q Nodes=b[1-9]")
        assert "partitions" not in spec(found)
        told = lines(found, Outcome.LEFT)
        assert (
            "slurm.conf, line 2: PartitionName=p: no node of the files belongs to it, and spec.partitions would give it all of them"
            in told
        )
        assert "slurm.conf, line 3: Nodes=b[1-9]: no NodeName or NodeSet line that is carried over defines it" in told

    def test_a_partition_over_a_nodeset_of_slurm_has_its_nodes(self):
        """By feature, or by names."""
        found = imported(
            "NodeName=a[1-2] Feature=f\nNodeName=b[1-2]\nNodeSet=x Feature=f\nNodeSet=y Nodes=b1\nPartitionName=p Nodes=x,y"
        )
        assert spec(found)["partitions"] == [{"name": "p", "nodeSets": ["a", "b"]}]
        assert [each["spec"]["replicas"] for each in found.objects[1:]] == [2, 1, 1]

    def test_an_option_that_lint_refuses_is_left_out(self):
        """Unknown ones, and those over the names of login nodes."""
        found = imported("NodeName=a\nPartitionName=p Nodes=a MaxTme=1 AllocNodes=login LLN=YES")
        assert spec(found)["partitions"][0]["options"] == {"LLN": "YES"}
        assert len([each for each in lines(found, Outcome.LEFT) if each.startswith("slurm.conf, line 2: ")]) == 2


class TestGpus:
    """Gres of nodes, and gres.conf."""

    @pytest.mark.parametrize(
        ("gres", "conf", "gpu"),
        [
            ("gpu:4", "AutoDetect=nvml", {"vendor": "nvidia", "count": 4}),
            ("gpu:mi300:8(S:0-1)", "AutoDetect=rsmi", {"vendor": "amd", "count": 8, "type": "mi300"}),
            ("gpu", "Name=gpu File=/dev/dri/renderD128", {"vendor": "amd", "count": 1}),
            (
                "gpu:a:2,shard:8",
                "NodeName=a Name=gpu File=/dev/nvidia0",
                {"vendor": "nvidia", "count": 2, "type": "a", "shards": 8},
            ),
        ],
    )
    def test_the_gpus_of_a_node(self, gres, conf, gpu):
        """Type, number, shards, and the vendor that gres.conf shows."""
        assert spec(imported(f"NodeName=a CPUs=1 Gres={gres}", gres_conf=conf), "NodeSet")["gpu"] == gpu

    def test_an_unknown_vendor_is_said(self):
        """nvidia is a guess."""
        assert "NodeSet a: spec.gpu.vendor=nvidia: no line of gres.conf" in "\n".join(
            lines(imported("NodeName=a Gres=gpu:1"), Outcome.CHECK)
        )

    def test_what_the_operator_does_not_count_is_left_out(self):
        """A second type, shards that do not divide, and other kinds."""
        told = "\n".join(lines(imported("NodeName=a Gres=gpu:x:2,gpu:y:2,shard:3,nic:1,???"), Outcome.LEFT))
        for each in ("gpu:y:2", "shard:3", "nic:1", "???"):
            assert f"NodeSet a: Gres={each}: " in told


class TestSettings:
    """The other settings."""

    def test_free_settings_are_extra_lines(self):
        """As Slurm would read them again."""
        found = imported("SchedulerParameters=a,b\nPriorityType=priority/multifactor\nSlurmUser=slurm\n")
        assert (
            spec(found)["config"]["extraLines"]["slurm"]
            == "SchedulerParameters=a,b\nPriorityType=priority/multifactor\n"
        )

    def test_a_misspelt_setting_is_left_out_with_the_likely_one(self):
        """Slurm would not start with it."""
        told = lines(imported("SchedulrType=sched/backfill"), Outcome.LEFT)
        assert told[0].endswith("slurm.conf of Slurm 24.11 has no such setting: perhaps SchedulerType was meant")

    def test_passwords_are_nowhere(self):
        """Neither in the objects nor in the report."""
        found = imported(
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStoragePass=s3cret\nJobCompPass=s3cret",
            slurmdbd_conf="StorageHost=db.example\nStoragePass=s3cret",
        )
        assert "s3cret" not in str(found)
        assert spec(found)["accounting"]["externalDatabase"]["password"] == {"secretName": "slurm-external-database"}

    def test_a_database_on_the_same_host_is_not_reached(self):
        """Unless the address of slurmdbd's host is known."""
        accounted = "AccountingStorageType=accounting_storage/slurmdbd"
        assert spec(imported(accounted, slurmdbd_conf="StorageHost=localhost"))["accounting"] == {}
        found = imported(accounted, slurmdbd_conf="StorageHost=localhost\nDbdHost=mgmt1")
        assert spec(found)["accounting"]["externalDatabase"]["host"] == "mgmt1"
        assert "now mgmt1 of DbdHost" in "\n".join(lines(found, Outcome.CHECK))

    def test_every_value_of_enforce_has_a_field_or_is_said(self):
        """`all` is the five that are not about records."""
        found = imported(
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=all,nojobs,wonder"
        )
        assert spec(found)["accounting"]["enforce"] == ["associations", "limits", "qos", "safe", "wckeys", "nojobs"]
        assert "(wonder)" in "\n".join(lines(found, Outcome.LEFT))

    def test_lua_without_its_script_is_not_enabled(self):
        """slurmctld would end."""
        found = imported("JobSubmitPlugins=lua,all_partitions")
        assert spec(found)["config"]["extraLines"]["slurm"] == "JobSubmitPlugins=all_partitions\n"
        assert "job_submit.lua is not among the given files" in "\n".join(lines(found, Outcome.LEFT))

    def test_scripts_of_a_pattern_keep_their_order(self):
        """Slurm runs the last name first."""
        texts = {MAIN: "Prolog=/etc/slurm/p.d/*", "/etc/slurm/p.d/a": "#!/bin/sh\n", "/etc/slurm/p.d/b": "#!/bin/sh\n"}
        made = spec(import_slurm(SlurmFiles(MAIN, texts)))["config"]["prolog"]
        assert [each["name"] for each in made] == ["b", "a"]

    def test_a_file_that_nothing_names_is_said(self):
        """It was given for a reason."""
        assert lines(imported("ClusterName=a", notes_conf="x=1"), Outcome.LEFT) == [
            "notes.conf: the file: no setting of slurm.conf names it"
        ]


class TestIncludes:
    """Include, and where files are looked for."""

    def test_included_lines_stand_where_the_include_stands(self):
        """So a DEFAULT before it holds for its nodes."""
        found = imported(
            "ClusterName=x\nNodeName=DEFAULT Weight=3\nInclude nodes-%c.conf", **{"nodes-x_conf": "NodeName=a"}
        )
        assert spec(found, "NodeSet")["weight"] == 3

    def test_a_missing_file_ends_the_import(self):
        """With the places where it was looked for."""
        with pytest.raises(
            UnreadableInputError,
            match=r"slurm.conf, line 1: Include /a/b.conf: the file does not exist: looked for /a/b.conf and",
        ):
            imported("Include /a/b.conf")

    def test_a_circle_ends_the_import(self):
        """With the way that it takes."""
        message = r"b.conf, line 1: Include a.conf: the files include each other \(slurm.conf includes a.conf includes b.conf includes a.conf\)"
        with pytest.raises(UnreadableInputError, match=message):
            imported("Include a.conf", a_conf="Include b.conf", b_conf="Include a.conf")
        with pytest.raises(UnreadableInputError, match="include each other"):
            imported("include slurm.conf")

    def test_a_copied_folder_is_searched_by_the_end_of_a_path(self):
        """But a pattern needs its folder."""
        assert [*candidates("/etc/slurm/d/*", "copy", "")] == [
            "/etc/slurm/d/*",
            "copy/etc/slurm/d/*",
            "copy/slurm/d/*",
            "copy/d/*",
        ]
        assert [*candidates("x.conf", "copy", "")] == ["copy/x.conf"]

    def test_the_caller_learns_what_to_read(self):
        """Includes, scripts and the files beside slurm.conf."""
        wanted = wanted_paths(SlurmFiles(MAIN, {MAIN: "include a.conf\nEpilog=/x/y"}))
        assert {"/etc/slurm/a.conf", "/x/y", "/etc/slurm/x/y", "/etc/slurm/gres.conf"} <= wanted


KEYS = st.sampled_from(
    sorted({*SLURM_CONF, "Nonsense", "CacheGroups"} - {"NodeName", "NodeSet", "PartitionName", "DownNodes"})
)
ANY_KEY = st.text(string.ascii_letters + "_.", min_size=1, max_size=12).filter(
    lambda key: (
        key.lower() not in ("include", "nodename", "nodeset", "partitionname", "downnodes", "frontendname", "name")
    )
)
VALUE = st.text(string.ascii_letters + string.digits + "/,:._-@%*", min_size=1, max_size=20)
PAIR = st.builds("{}={}".format, KEYS | ANY_KEY, VALUE)
ATTRIBUTE = st.sampled_from(sorted({*NODE, "Wrong"} - {"NodeName"})) | ANY_KEY
NUMBER = st.integers(0, 10**6).map(str)
NODES = st.builds(
    lambda number, pairs: " ".join([f"NodeName=n{number}", *(f"{key}={value}" for key, value in pairs)]),
    st.integers(0, 10**6),
    st.lists(st.tuples(ATTRIBUTE, NUMBER), max_size=5),
)
PARTITIONS = st.builds(
    lambda name, nodes, pairs: " ".join(
        [f"PartitionName={name}", f"Nodes={nodes}", *(f"{key}={value}" for key, value in pairs)]
    ),
    VALUE,
    st.sampled_from(["ALL", "n[0-99999]", "none", "n1,n2"]),
    st.lists(st.tuples(st.sampled_from(PARTITION) | ANY_KEY, VALUE), max_size=5),
)
ROUGH = st.text(string.printable, max_size=40).filter(lambda text: "include" not in text.lower())
FREE_FILE = st.lists(PAIR | ROUGH, max_size=5).map("\n".join)


def attempted(text: str, others: dict[str, str]) -> Imported | str:
    """The import, or why the files could not be read."""
    try:
        return imported(text, **others)
    except UnreadableInputError as error:
        return str(error)


@given(
    st.lists(PAIR | NODES | PARTITIONS | ROUGH, max_size=12).map("\n".join),
    st.fixed_dictionaries(
        {}, optional={f"{name}_conf": FREE_FILE for name in ("gres", "cgroup", "slurmdbd", "topology")}
    ),
)
def test_every_setting_of_every_file_is_in_the_report(text, others):
    """Whatever the files hold: known, unknown, misspelt, unreadable. Only an invalid host list or number ends the import, with its line."""
    found = attempted(text, others)
    if isinstance(found, str):
        assert "line " in found
        return
    told = {(each.place, each.setting) for each in found.entries}
    for name, content in (
        ("slurm.conf", text),
        *((key.replace("_conf", ".conf"), value) for key, value in others.items()),
    ):
        for line in logical_lines(content):
            mine = [setting for place, setting in told if place == f"{name}, line {line.number}"]
            assert (
                not line.rest
                or any(setting.startswith(line.rest.strip()[:60]) for setting in mine)
                or name == "topology.conf"
            )
            for key, _ in line.pairs if name != "topology.conf" else ():
                assert any(setting.startswith(f"{key}=") for setting in mine), (name, line, mine)
            assert name != "topology.conf" or mine
