"""The alert rules: over metrics that there are, each with a page, and each fires when it should and not before.

Whether they fire is tried with Prometheus' own promtool, which `make machine` brings.
"""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from local import prometheus
from soperator.observe import cluster, operator

ROOT = Path(__file__).parents[3]
FILE = ROOT / "charts/soperator/files/alerts.yaml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]}
SERIES = {name for metric in (*cluster.METRICS, *operator.METRICS) for name in metric.series}
#: Labels whose names begin as metrics do.
LABELS = {"slurm_cluster", "slurm_cluster_namespace"}
NAME = re.compile(r"\b(?:slurm|soperator)_[a-z_]+")

S, N = 'slurm_cluster="demo",namespace="slurm"', {"slurm_cluster": "demo", "namespace": "slurm"}
OF, C = (
    'slurm_cluster="demo",slurm_cluster_namespace="slurm"',
    {"slurm_cluster": "demo", "slurm_cluster_namespace": "slurm"},
)


@dataclass
class Case:
    """Series, minute by minute; from which minute on an alert fires, and what it says; before that it does not."""

    series: dict[str, str]
    minute: int
    summary: str
    labels: dict[str, str] = field(default_factory=lambda: N)


def up(source: str) -> str:
    return f'slurm_up{{{S},source="{source}"}}'


def state(name: str, value: str, label: str = "state") -> str:
    return f'{name}{{{S},{label}="{value}"}}'


CASES = {
    "SlurmNotAnswering": Case({up("nodes"): "1 0x20", up("jobs"): "1x20"}, 4, "Slurm of cluster demo does not answer."),
    "SlurmMetricsOld": Case(
        {
            f'slurm_refresh_timestamp_seconds{{{S},source="nodes"}}': "0x60",
            f'slurm_refresh_timestamp_seconds{{{S},source="jobs"}}': "0+60x60",
        },
        36,
        "What is told of cluster demo was read 36m 0s ago.",
    ),
    "SlurmNodesDown": Case(
        {
            state("slurm_nodes", "down"): "2x20",
            state("slurm_nodes", "not_responding"): "1x20",
            state("slurm_nodes", "drained"): "9x20",
        },
        10,
        "3 nodes of cluster demo are down.",
    ),
    "SlurmManyNodesOut": Case(
        {
            f'slurm_nodes_out{{{S},by="person",reason="x"}}': "0 3x20",
            state("slurm_nodes", "idle"): "9x20",
            state("slurm_nodes", "drained"): "3x20",
        },
        11,
        "25% of the nodes of cluster demo take no jobs.",
    ),
    "SlurmNodesLeftOut": Case(
        {
            f'slurm_nodes_out{{{S},by="slurm",reason="Kill task failed"}}': "2x90",
            f'slurm_nodes_out{{{S},by="slurm",reason="down"}}': "2x90",
            f'slurm_nodes_out{{{S},by="person",reason="mine"}}': "2x90",
            state("slurm_nodes", "idle"): "90x90",
        },
        60,
        "slurmctld of cluster demo took 2 nodes out, and nobody takes that back: Kill task failed",
        {**N, "reason": "Kill task failed"},
    ),
    "SlurmDrainBudgetReached": Case(
        {state("slurm_health_nodes", "Failing"): "0 4x30", state("slurm_health_nodes", "Out"): "9x30"},
        16,
        "4 nodes of cluster demo fail a check and stay in service.",
    ),
    "SlurmChecksSilent": Case(
        {f'slurm_check_nodes{{{S},check="runner",state="suspect"}}': "2x30"},
        15,
        "2 nodes of cluster demo have stopped telling of their checks.",
    ),
    "SlurmDiskFull": Case(
        {
            f'slurm_check_nodes{{{S},check="jail-full",state="failing"}}': "3x30",
            f'slurm_check_nodes{{{S},check="disk-full",state="suspect"}}': "3x30",
        },
        5,
        "Check jail-full fails on 3 nodes of cluster demo.",
        {**N, "check": "jail-full"},
    ),
    "SlurmJailSlow": Case(
        {f'slurm_check_nodes{{{S},check="jail-latency",state="failing"}}': "1x30"},
        5,
        "Check jail-latency fails on 1 nodes of cluster demo.",
        {**N, "check": "jail-latency"},
    ),
    "SlurmQueueStuck": Case(
        {
            state("slurm_jobs_pending", "Resources", "reason"): "7x90",
            state("slurm_nodes", "idle"): "1x90",
            state("slurm_scheduler_jobs_total", "started", "event"): "5 6x90",
        },
        61,
        "7 jobs of cluster demo wait, nodes have room, and none has begun for an hour.",
    ),
    "SlurmSchedulerSlow": Case(
        {f"slurm_scheduler_cycle_seconds_total{{{S}}}": "0+30x60", f"slurm_scheduler_cycles_total{{{S}}}": "0+10x60"},
        16,
        "A cycle of the scheduler of cluster demo takes 3s.",
    ),
    "SlurmBackfillStopped": Case(
        {f"slurm_backfill_last_cycle_timestamp_seconds{{{S}}}": "60x60", f"slurm_backfill_queue_length{{{S}}}": "4x60"},
        47,
        "The last cycle of backfill in cluster demo was 46m 0s ago, and jobs wait for it.",
    ),
    "SlurmDatabaseLag": Case(
        {f"slurm_controller_dbd_queue_length{{{S}}}": "5000x20"}, 10, "5000 records of cluster demo wait for slurmdbd."
    ),
    "SlurmJobsLoseNodes": Case(
        {
            state("slurm_jobs_ended_total", "node_fail"): "0x5 12x90",
            state("slurm_jobs_ended_total", "failed"): "0+9x90",
        },
        60,
        "12 jobs of cluster demo ended within an hour because a node failed.",
    ),
    "SlurmUserAsksTooOften": Case(
        {
            f'slurm_user_rpcs_total{{{S},user="eve"}}': "0+3000x60",
            f'slurm_user_rpcs_total{{{S},user="root"}}': "0+9000x60",
        },
        18,
        "User eve of cluster demo sends slurmctld 50 requests a second.",
        {**N, "user": "eve"},
    ),
    "SoperatorNotLeading": Case(
        {'soperator_leader{instance="a"}': "1 0x20", 'soperator_leader{instance="b"}': "0x20"},
        6,
        "No operator leads: clusters run on, and nothing follows their specs.",
        {},
    ),
    "SoperatorPassesFail": Case(
        {'soperator_queue_failing{namespace="ops",controller="nodeset"}': "2x20"},
        15,
        "Passes of nodeset over 2 objects fail again and again.",
        {"namespace": "ops", "controller": "nodeset"},
    ),
    "SoperatorBehind": Case(
        {
            'soperator_queue_depth{namespace="ops",instance="a",controller="nodeset"}': "60x20",
            'soperator_leader{namespace="ops",instance="a"}': "1x20",
            'soperator_queue_depth{namespace="ops",instance="b",controller="nodeset"}': "900x20",
            'soperator_leader{namespace="ops",instance="b"}': "0x20",
        },
        15,
        "60 objects wait for a pass of nodeset.",
        {"namespace": "ops", "controller": "nodeset"},
    ),
    "SoperatorClusterNotAvailable": Case(
        {f'soperator_cluster_condition{{{OF},condition="Available"}}': "0x20"},
        15,
        "SlurmCluster slurm/demo is not available.",
        C,
    ),
    "SoperatorSlurmSilent": Case(
        {
            f'soperator_slurm_answering{{{OF},instance="a"}}': "0x20",
            f'soperator_cluster_condition{{{OF},condition="JailReady"}}': "1x20",
        },
        10,
        "slurmrestd of slurm/demo does not answer the operator, so no worker is replaced.",
        C,
    ),
    "SoperatorBackupFails": Case(
        {f'soperator_backup_ready{{{OF},backup="nightly",instance="{each}"}}': "0x70" for each in "ab"},
        60,
        "SlurmBackup slurm/nightly makes no backups of SlurmCluster demo.",
        C | {"backup": "nightly"},
    ),
    "SoperatorMetricsMissing": Case(
        {f'soperator_cluster_condition{{{OF},condition="MetricsServed"}}': "0x20"},
        15,
        "The exporter of slurm/demo does not run, so no alert about its Slurm fires.",
        C,
    ),
    "SoperatorVolumeAlmostFull": Case(
        {f'soperator_cluster_condition{{{OF},condition="JailHasRoom"}}': "0x20"},
        5,
        "JailHasRoom is False for slurm/demo.",
        {**C, "condition": "JailHasRoom"},
    ),
}


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_is_over_metrics_that_there_are(alert):
    """Renaming a metric without its alerts fails here."""
    named = set(NAME.findall(RULES[alert]["expr"])) - LABELS
    assert named
    assert named - SERIES == set()


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_has_its_page(alert):
    """The runbook that it names has a heading for it."""
    path, _, anchor = RULES[alert]["annotations"]["runbook_url"].partition("#")
    assert anchor == alert.lower()
    assert f"## {alert}\n" in (ROOT / path).read_text()
    assert RULES[alert]["labels"]["severity"] in ("critical", "warning")


def test_no_page_is_about_an_alert_that_is_gone():
    """Each heading of the runbooks is an alert."""
    headings = {
        each
        for page in ("slurm", "operator")
        for each in re.findall(r"^## (.+)$", (ROOT / f"docs/runbooks/{page}.md").read_text(), re.MULTILINE)
    }
    assert headings == set(RULES)


def test_every_metric_that_the_documents_name_is_there():
    """In runbooks and how-to pages too."""
    pages = [page for folder in ("runbooks", "howto") for page in (ROOT / "docs" / folder).glob("*.md")]
    spans = {
        span for page in pages for span in re.findall(r"`([^`\n]+)`", page.read_text()) if not span.endswith(".py")
    }
    named = {name for span in spans for name in NAME.findall(span)} - LABELS
    assert named
    assert named - SERIES - {metric.name for metric in (*cluster.METRICS, *operator.METRICS)} == set()


def test_every_alert_has_a_case():
    """None is left untried."""
    assert set(CASES) == set(RULES)


def tried(alert, case):
    """What promtool is to try: silence a minute before, and the alert at its minute."""
    rule = RULES[alert]
    fires = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {"summary": case.summary, "runbook_url": rule["annotations"]["runbook_url"]},
    }
    moments = [{"eval_time": f"{case.minute}m", "alertname": alert, "exp_alerts": [fires]}]
    if "for" in rule:
        moments.insert(0, {"eval_time": f"{case.minute - 1}m", "alertname": alert, "exp_alerts": []})
    series = [{"series": name, "values": values} for name, values in case.series.items()]
    return {"name": alert, "interval": "1m", "input_series": series, "alert_rule_test": moments}


WELL = {
    up("nodes"): "1x120",
    state("slurm_nodes", "idle"): "95x120",
    state("slurm_nodes", "drained"): "5x120",
    f'slurm_nodes_out{{{S},by="person",reason="x"}}': "5x120",
    state("slurm_jobs_pending", "Resources", "reason"): "7x120",
    state("slurm_scheduler_jobs_total", "started", "event"): "0+1x120",
    f"slurm_backfill_last_cycle_timestamp_seconds{{{S}}}": "0+60x120",
    f"slurm_backfill_queue_length{{{S}}}": "4x120",
    f"slurm_scheduler_cycle_seconds_total{{{S}}}": "0+1x120",
    f"slurm_scheduler_cycles_total{{{S}}}": "0+10x120",
    'soperator_leader{instance="a"}': "1x120",
    f'slurm_refresh_timestamp_seconds{{{S},source="nodes"}}': "0+60x120",
    f'soperator_cluster_condition{{{OF},condition="Available"}}': "1x120",
}


def test_alerts_fire_when_they_should_and_not_before(tmp_path):
    """Each at its minute, silent until then, and none of them where all is well."""
    tool = prometheus.find("promtool")
    if tool is None:
        pytest.skip("there is no promtool: `make machine` brings it")
    quiet = {
        "name": "well",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in WELL.items()],
        "alert_rule_test": [{"eval_time": "2h", "alertname": alert, "exp_alerts": []} for alert in RULES],
    }
    tests = [quiet, *(tried(alert, case) for alert, case in CASES.items())]
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([tool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
