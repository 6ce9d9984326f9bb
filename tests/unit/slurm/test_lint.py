"""Extra lines are read as Slurm reads them, so that nothing owned gets past."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.slurm.conf import settings
from soperator.slurm.settings.lint import (
    lint_cluster,
    lint_nodeset,
    lint_plugins,
    lint_text,
    shared_lines,
)
from soperator.slurm.settings.managed import OWNED


def found(text: str) -> list[tuple[str, str]]:
    """Where and what lint finds in extra lines of slurm.conf."""
    return [(problem.field, problem.value) for problem in lint_text("slurm", text, OWNED)]


@pytest.mark.parametrize(
    ("text", "line", "value"),
    [
        ("ClusterName=x", 1, "ClusterName=x"),
        ("MaxJobCount=5\nclustername=x", 2, "clustername=x"),
        ("MaxJobCount=5 ClusterName=x", 1, "ClusterName=x"),
        ("  ClusterName = x", 1, "ClusterName=x"),
        ("PluginDir+=/x", 1, "PluginDir=/x"),
        ('PluginDir="/x y"', 1, "PluginDir=/x y"),
        ("# a comment \\\nNodeName=a CPUs=1", 2, "NodeName=a"),
        ("Cluster\\\nName=x", 1, "ClusterName=x"),
        ("MaxJobCount=5 \\  \n  ClusterName=x", 1, "ClusterName=x"),
        ("Cluster\\Name=x", 1, "ClusterName=x"),
        ("Include /etc/other.conf", 1, "Include /etc/other.conf"),
        ("include\tother.conf", 1, "Include other.conf"),
        ("PartitionName=a Nodes=ALL", 1, "PartitionName=a"),
        ("nonsense", 1, "nonsense"),
        ("MaxJobCount=5 nonsense", 1, "nonsense"),
    ],
)
def test_a_line_that_must_not_be_is_named_by_its_number(text: str, line: int, value: str) -> None:
    """Case, spaces, operators, continuations and escapes hide nothing."""
    assert found(text) == [(f"slurm, line {line}", value)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# ClusterName=x",
        "MaxJobCount=5 # ClusterName=x",
        "Epilog=/opt/a\\#b",
        "SchedulerParameters=bf_continue,ClusterName",
        "SlurmctldParameters=idle_on_node_suspend",
        "GresTypes=gpu,shard",
        "MaxJobCount=5\r\n",
    ],
)
def test_what_is_the_administrators_passes(text: str) -> None:
    """Comments, values and lists that are shared are no problem."""
    assert found(text) == []


def test_a_whole_line_setting_is_one_problem() -> None:
    """The rest of NodeName's line belongs to it."""
    assert len(found("NodeName=a NodeAddr=b Port=7\nMaxJobCount=1")) == 1


@given(st.text(alphabet='aN=\\#\n "x', max_size=40))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Every setting has a key or a rest, and a line that exists."""
    for setting in settings(text):
        assert bool(setting.key) != bool(setting.rest)
        assert 1 <= setting.line <= text.count("\n") + 1


@given(st.sampled_from(sorted(OWNED)), st.sampled_from(["=", " = ", "+=", "\\\n="]), st.booleans())
def test_every_owned_key_is_found_in_every_spelling(key: str, equals: str, lower: bool) -> None:
    """No way of writing a setting gets an owned key past."""
    written = key.lower() if lower else key
    assert found(f"MaxJobCount=1\n{written}{equals}v\n")


def test_shared_lists_are_united_with_ours() -> None:
    """The last of the administrator's settings counts, and our value stays."""
    extra = "SlurmctldParameters=a\nslurmctldparameters=b,enable_configless\nGresTypes=shard\n"
    assert shared_lines(extra) == "\nGresTypes=gpu,shard\nSlurmctldParameters=enable_configless,disable_triggers,b\n"
    assert shared_lines("MaxJobCount=1\n") == ""


def test_partition_options_are_checked() -> None:
    """Owned options, bad names and values that would break the line are refused."""
    options = {"nodes": "a", "Max Time": "1", "MaxTime": "1 Nodes=x", "State": "UP", "QOS": ""}
    spec = SlurmClusterSpec.model_validate({"partitions": [{"name": "a", "options": options}]})
    assert {problem.field.rpartition(".")[2] for problem in lint_cluster(spec)} == {
        "nodes",
        "Max Time",
        "MaxTime",
        "QOS",
    }


def test_an_option_that_no_partition_has_is_told_with_the_one_that_was_meant() -> None:
    """Of another image's Slurm only its own slurmctld knows."""
    partitions = [{"name": "a", "options": {"MaxTimes": "60", "priorityTier": "5"}}]
    (problem,) = lint_cluster(SlurmClusterSpec.model_validate({"partitions": partitions}))
    assert problem.field == "spec.partitions[0].options.MaxTimes"
    assert problem.remedy.endswith("write MaxTime")
    other = {"partitions": partitions, "images": {"slurm": "my/slurm:26"}}
    assert lint_cluster(SlurmClusterSpec.model_validate(other)) == []


def test_extra_lines_of_every_file_are_checked() -> None:
    """The field says which file."""
    spec = SlurmClusterSpec.model_validate(
        {"config": {"extraLines": {"slurm": "NodeSet=a", "cgroup": "x", "gres": "Include y"}}}
    )
    assert [problem.field for problem in lint_cluster(spec)] == [
        "spec.config.extraLines.slurm, line 1",
        "spec.config.extraLines.cgroup, line 1",
        "spec.config.extraLines.gres, line 1",
    ]


def test_plugins_are_named_by_their_whole_path() -> None:
    """A line of plugstack.conf that Slurm would refuse or pass over is told, and one that loads a plugin of ours twice."""
    good = "# a site's own\nrequired /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis\n\noptional /opt/x.so # why\n"
    bad = "include /etc/slurm/plugstack.conf.d/*\nrequired x.so\nrequired\nrequired /opt/soperator/lib/slurm/spank_jail.so\n"
    assert lint_plugins("plugstack", good) == []
    problems = lint_plugins("plugstack", bad)
    assert [problem.field for problem in problems] == [f"plugstack, line {number}" for number in (1, 2, 3, 4)]
    assert problems[3].remedy.startswith("the operator loads this plugin itself")


def test_slurmd_conf_must_not_say_what_the_nodeset_says() -> None:
    """The remedy names the field of the NodeSet."""
    spec = NodeSetSpec.model_validate(
        {"clusterRef": {"name": "demo"}, "extraConf": "MemSpecLimit=512 cpus=4 Gres=gpu:1"}
    )
    assert [(problem.value, problem.remedy.split(":")[0]) for problem in lint_nodeset(spec)] == [
        ("cpus=4", "set it in resources"),
        ("Gres=gpu:1", "set it in gpu"),
    ]


def test_slurmd_conf_with_a_word_that_no_node_has_is_refused_before_it_takes_a_node_down() -> None:
    """slurmd ends at a word that it does not know; which ones another image knows is not known here."""
    spec = NodeSetSpec.model_validate(
        {"clusterRef": {"name": "demo"}, "extraConf": "Comment=x MemSpecLimt=5 TmpDisk=100"}
    )
    assert [(problem.value, problem.remedy) for problem in lint_nodeset(spec)] == [
        ("Comment=x", "a node of Slurm 24.11 has no such setting: correct it or remove the line"),
        ("MemSpecLimt=5", "a node of Slurm 24.11 has no such setting: write MemSpecLimit"),
    ]
    assert lint_nodeset(spec, has_own_slurm=True) == []
    assert lint_nodeset(spec.model_copy(update={"image": "registry.test/slurm:own"})) == []


def test_lines_about_slurmdbd_are_the_operators_where_accounting_is_on() -> None:
    """Whoever has a slurmdbd of their own says so in slurm.conf, and leaves accounting off."""
    lines = {
        "config": {
            "extraLines": {"slurm": "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=qos"}
        }
    }
    assert lint_cluster(SlurmClusterSpec.model_validate(lines)) == []
    problems = lint_cluster(SlurmClusterSpec.model_validate(lines | {"accounting": {}}))
    assert [each.field for each in problems] == [
        "spec.config.extraLines.slurm, line 1",
        "spec.config.extraLines.slurm, line 2",
    ]
    assert ["spec.accounting" in each.remedy for each in problems] == [True, True]
