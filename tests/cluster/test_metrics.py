"""What a real Prometheus gets of a real cluster: every metric, every query of every dashboard and alert, names that nobody should choose, silence."""

import http.client
import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from local import monitoring, prometheus
from soperator.observe import cluster, operator
from soperator.observe.dashboards import DASHBOARDS
from soperator.observe.exposition import LONGEST
from tests.cluster.lab import OPERATOR, Lab, condition, is_ready, local

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "charts/soperator/files/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
#: What a name may hold that somebody thought up: it must stay one label, one line and one text.
WEIRD = 'we"ird \\ {name="x"} </td><script>alert(1)</script>'
REASON = 'he said "no" \\ and left'
#: What this cluster rightly has nothing of, for no node has generic resources, and all checks pass.
ABSENT = {
    "slurm_gres", "slurm_node_gres", "slurm_node_gres_allocated", "slurm_check_nodes", "slurm_node_check_value",
    "soperator_backup_ready",
}  # fmt: skip
#: A selector of one metric, as the alerts have it.
SELECTOR = re.compile(r"\b(?:slurm|soperator)_[a-z_]+(?:\{[^}]*\})?(?!\w)(?!\s*[,)]\s*\()")
#: Seconds: what an answer of slurmrestd took is paid back by a rest nine times as long, and a busy machine takes seconds for one.
PATIENCE = 300
FOR_DASHBOARDS = {"$namespace": "slurm", "$cluster": "demo", "$__rate_interval": "1m"}


@dataclass
class Watched:
    """A cluster with its exporter, and the Prometheus that scrapes it."""

    lab: Lab

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series of an instant query; fails with Prometheus' words."""
        url = f"{monitoring.URL}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from error
        return found

    def value(self, query: str) -> float:
        """The value of the one series of a query; NaN where there is none."""
        found = self.ask(query)
        return float(found[0]["value"][1]) if found else float("nan")

    def address(self, role: str) -> str:
        """Where the exporter, or the operator, listens."""
        pods = self.lab.pods(namespace=OPERATOR) if role == "operator" else self.lab.pods(role)
        (ip,) = {pod["status"]["podIP"] for pod in pods.values() if is_ready(pod)}
        return f"http://{ip}:8080"

    def get(self, role: str, path: str) -> str:
        """What the exporter, or the operator, answers."""
        return read(self.address(role) + path)


def read(url: str) -> str:
    """What an address answers."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module")
def watched(lab: Lab, alice: str) -> Iterator[Watched]:
    """Metrics on, a Prometheus, and something to tell of: jobs that run and wait under a strange account, a drained node, a reservation."""
    if not lab.target.is_local or prometheus.find("prometheus") is None:
        pytest.skip("Prometheus runs beside the local cluster: `make machine` brings it")
    had = lab.look("slurmcluster", lab.cluster)["spec"].get("metrics")
    run(lab, "-m", "local.monitoring")
    made = Watched(lab)
    try:
        lab.until(
            "the exporter is served", lambda: condition(lab.status(), "MetricsServed")["status"] == "True", PATIENCE
        )
        lab.until("its jobs are read", lambda: made.value('slurm_up{source="jobs"}') == 1, PATIENCE)
        busy(lab)
        yield made
    finally:
        lab.ssh(
            "root",
            "scancel -u alice; scontrol delete reservation=quiet; scontrol update nodename=worker-1 state=resume || true",
        )
        run(lab, "-m", "local.monitoring", "--stop")
        lab.patch("slurmcluster", lab.cluster, {"metrics": {"exporter": None, **had} if had else None})
        lab.until("the exporter is gone", lambda: had or not lab.pods("exporter"), PATIENCE)
        lab.wait_available()


def run(lab: Lab, *words: str) -> str:
    """What our own program printed."""
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def busy(lab: Lab) -> None:
    """Jobs, a drain and a reservation; their names come as files, for a shell would take its part of them."""
    script = f"""
import subprocess
def run(*words): subprocess.run(words, check=True)
weird = {WEIRD!r}
for number in range(2):
    run("sbatch", "-A", weird, "-J", weird + "\\n" + weird, "--comment", "a\\nb" + weird, "-w", "worker-0", "--wrap", "sleep 600")
run("sbatch", "-w", "worker-1", "--begin", "now+1hour", "--wrap", "true")
"""
    lab.ssh("alice", "cat > busy.py; python3 busy.py", script.encode())
    root = f"""
import subprocess
subprocess.run(["scontrol", "update", "nodename=worker-1", "state=drain", "reason=" + {REASON!r}], check=True)
subprocess.run(["scontrol", "create", "reservation=quiet", "starttime=now+2hours", "duration=60", "users=alice", "nodes=worker-1"], check=True)
"""
    lab.ssh("root", "python3 -", root.encode())


def test_every_metric_is_there_and_well_formed(watched: Watched) -> None:
    """What the registry says is served, and nothing else; promtool has nothing to say about it."""
    wanted, until = {each.name for each in cluster.METRICS} - ABSENT, time.monotonic() + PATIENCE

    def served() -> set[str]:
        families = list(text_string_to_metric_families(watched.get("exporter", "/metrics")))
        return {each.name + ("_total" if each.type == "counter" else "") for each in families}

    while wanted - served() and time.monotonic() < until:
        time.sleep(1)
    assert wanted - served() == set()
    names = {each for each in served() if not each.startswith("process_")}
    assert names - wanted <= ABSENT
    text = watched.get("operator", "/metrics")
    told = {each.name + ("_total" if each.type == "counter" else "") for each in text_string_to_metric_families(text)}
    assert {each.name for each in operator.METRICS} <= told
    for said in (watched.get("exporter", "/metrics"), text):
        done = subprocess.run(
            [str(prometheus.find("promtool")), "check", "metrics"],
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_name_is_a_label_whatever_it_holds(watched: Watched) -> None:
    """Quotes, backslashes, braces and markup of an account, a job and a drain come to Prometheus as they are, and to the page as text."""
    account = json.dumps(WEIRD.lower()[:LONGEST])
    watched.lab.until(
        "the job runs", lambda: watched.value(f'slurm_account_jobs{{account={account},state="running"}}') == 1, PATIENCE
    )
    assert watched.value(f'slurm_account_jobs{{account={account},state="pending"}}') == 1
    assert (
        watched.value('slurm_user_jobs{user="alice",state="running"}') == 1
    )  # whom slurmrestd knows by her number alone
    reason = json.dumps(REASON)
    watched.lab.until(
        "the drain is told", lambda: watched.value(f'slurm_nodes_out{{by="person",reason={reason}}}') == 1, PATIENCE
    )
    page = watched.get("exporter", "/")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "he said &quot;no&quot;" in page


def test_every_query_of_every_dashboard_has_an_answer(watched: Watched) -> None:
    """None is an error, and none is empty but those whose panel says why that is well."""
    queries = {
        (page.name, panel.title, legend): (substituted(expression), bool(panel.quiet))
        for page in DASHBOARDS
        for panel in page.panels
        for legend, expression in panel.expressions.items()
    }

    def empty() -> list[tuple[str, str, str]]:
        return [where for where, (query, may_be) in queries.items() if not watched.ask(query) and not may_be]

    watched.lab.until("no query is empty", lambda: not empty(), PATIENCE)
    assert len(queries) > 50


def substituted(expression: str) -> str:
    """A query as Grafana would ask it."""
    for variable, value in FOR_DASHBOARDS.items():
        expression = expression.replace(variable, value)
    return expression


def test_every_alert_is_evaluated_over_series_that_there_are(watched: Watched) -> None:
    """Prometheus takes the rules and evaluates them without an error, and each selector in them finds something where all is well."""
    with urllib.request.urlopen(f"{monitoring.URL}/api/v1/rules", timeout=30) as answer:
        groups = json.load(answer)["data"]["groups"]
    told = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert told.keys() == {rule["alert"] for rule in RULES}
    assert {(name, rule["health"], rule.get("lastError", "")) for name, rule in told.items()} == {
        (name, "ok", "") for name in told
    }
    empty = {
        (rule["alert"], selector)
        for rule in RULES
        for selector in selectors(rule["expr"])
        if selector.partition("{")[0] not in ABSENT and not watched.ask(selector)
    }
    quiet = {'slurm_nodes_out{by="slurm", reason!~"down|not_responding|rebooting|unknown"}'}  # slurmctld drained none
    quiet |= {'slurm_user_rpcs_total{user!~"root|slurm"}'} & {selector for _, selector in empty}
    assert {selector for _, selector in empty} - quiet == set()


def selectors(expression: str) -> set[str]:
    """The selectors of a query; what stands after `by` are labels."""
    return set(SELECTOR.findall(re.sub(r"by \([^)]*\)", "", expression)))


def test_a_storm_of_scrapes_harms_nobody(watched: Watched) -> None:
    """Of hundreds at once a part is answered; Slurm is asked no more often, and the exporter's memory stays within its bound."""
    asked = 'sum(slurm_rpcs_total{rpc=~"REQUEST_JOB_INFO|REQUEST_STATS_INFO"})'
    before = watched.value(asked)
    url = f"{watched.address('exporter')}/metrics"
    with ThreadPoolExecutor(32) as pool:
        answers = [each for each in pool.map(answered, [url] * 300) if each]
    assert len(answers) >= 50
    assert all("slurm_up" in each for each in answers)
    watched.lab.until("it answers again", lambda: "slurm_up" in answered(url), 10)
    memory = watched.value('process_resident_memory_bytes{job="slurm"}')
    assert memory < 200 * 2**20
    assert watched.value(asked) - before < 50


def answered(url: str) -> str:
    """What is there; nothing from who turns the client away."""
    try:
        return read(url)
    except (OSError, http.client.HTTPException):
        return ""


def test_a_slurmctld_that_stands_still_is_told(watched: Watched) -> None:
    """`slurm_up` falls and the alert begins to count, while what was read last is still served; all is well again when it goes on."""
    lab = watched.lab
    local("pod", "pause", f"{lab.namespace}/{lab.cluster}-controller-0", "slurmctld")
    try:
        lab.until("the silence is told", lambda: watched.value('min(slurm_up{source=~"nodes|diag"})') == 0, PATIENCE)
        assert watched.ask("slurm_nodes")
        alert = 'ALERTS{alertname="SlurmNotAnswering",slurm_cluster="demo"}'
        lab.until("the alert is pending", lambda: watched.ask(alert), PATIENCE)
    finally:
        lab.tried("delete", "pod", f"{lab.cluster}-controller-0", "--grace-period=0", "--force")
    lab.until("Slurm answers again", lambda: watched.value("min(slurm_up)") == 1, PATIENCE)
