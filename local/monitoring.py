"""A Prometheus beside the local cluster, which discovers the exporters and the operator as on any cluster, and evaluates our alerts.

Prometheus and its service discovery (`local/discovery.py`) are programs of the cluster like etcd: `python3 -m local status` shows them and
`down` stops them. `down` also deletes their data.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from typing import Any

import yaml

from local import cgroups, cluster, components, prometheus
from local.components import Fleet
from local.paths import REPOSITORY, State, locked
from local.process import identify, spawn, tail
from local.progress import Failure, say

NAME, ADDRESS, URL = "prometheus", "127.0.0.1:9090", "http://127.0.0.1:9090"
DISCOVERY, DISCOVERY_PORT = "discovery", 9089
FILES = REPOSITORY / "charts/soperator/files"
#: Seconds between two scrapes and two looks at the alerts, so that a person or a test sees soon what happens.
INTERVAL = 5
_PATIENCE = 60.0


def configuration() -> dict[str, Any]:
    """Return the chart's configuration of Prometheus, with HTTP service discovery by `local/discovery.py` and short intervals."""
    scrape_config: dict[str, Any] = yaml.safe_load((FILES / "prometheus.yaml").read_text(encoding="utf-8"))
    for job in scrape_config["scrape_configs"]:
        del job["kubernetes_sd_configs"]
        job["http_sd_configs"] = [{"url": f"http://127.0.0.1:{DISCOVERY_PORT}/", "refresh_interval": f"{INTERVAL}s"}]
    often = {"scrape_interval": f"{INTERVAL}s", "evaluation_interval": f"{INTERVAL}s"}
    return scrape_config | {"global": often, "rule_files": [str(FILES / each) for each in scrape_config["rule_files"]]}


def start(state: State) -> bool:
    """Start Prometheus unless it runs, and wait until it answers; return whether it was started. Raises Failure."""
    fleet = cluster.fleet_of(state)
    prometheus.fetch()
    program = prometheus.find("prometheus")
    if program is None:
        raise Failure("Prometheus is missing: run apt-get install prometheus, and try again")
    if components.is_running(fleet, NAME) and components.is_running(fleet, DISCOVERY):
        return False
    for name in (NAME, DISCOVERY):
        components.halt(fleet, name)
    file = state.config / "prometheus.json"
    file.write_text(json.dumps(configuration(), indent=1))
    _spawn(fleet, DISCOVERY, [sys.executable, "-m", "local.discovery", str(state.root), str(DISCOVERY_PORT)])
    argv = [str(program), f"--config.file={file}", f"--storage.tsdb.path={state.config}/prometheus"]
    argv += [f"--web.listen-address={ADDRESS}", "--log.level=warn"]
    _spawn(fleet, NAME, prometheus.with_pages(argv))
    _wait(fleet)
    return True


def _spawn(fleet: Fleet, name: str, argv: list[str]) -> None:
    log = fleet.state.log(name)
    environment = {"PATH": "/usr/bin:/bin", "GOMAXPROCS": "1", "PYTHONPATH": str(REPOSITORY)}
    fleet.records.write(identify(name, spawn(cgroups.entering(argv), log, environment), log))


def _wait(fleet: Fleet) -> None:
    until, log = time.monotonic() + _PATIENCE, fleet.state.log(NAME)
    while not is_ready():
        if time.monotonic() > until or not components.is_running(fleet, NAME):
            for name in (NAME, DISCOVERY):
                components.halt(fleet, name)
            raise Failure(f"Prometheus does not answer at {URL}; the end of {log}:\n{tail(log)}")
        time.sleep(0.2)


def stop(state: State) -> None:
    """Stop both programs; the clusters' specs do not change."""
    fleet = cluster.fleet_of(state)
    for name in (NAME, DISCOVERY):
        components.halt(fleet, name)


def is_ready() -> bool:
    """Return whether Prometheus answers queries."""
    try:
        with urllib.request.urlopen(f"{URL}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def export(state: State) -> list[str]:
    """Enable the metrics of every SlurmCluster, and return the clusters as namespace/name."""
    fleet = cluster.fleet_of(state)
    kubectl, env = str(fleet.binaries / "kubectl"), os.environ | {"KUBECONFIG": str(state.kubeconfig)}

    def run(*words: str) -> str:
        done = subprocess.run([kubectl, *words], capture_output=True, text=True, env=env, check=False)
        if done.returncode:
            raise Failure(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    found = [each["metadata"] for each in json.loads(run("get", "slurmclusters", "-A", "-o", "json"))["items"]]
    for each in found:
        on = json.dumps({"spec": {"metrics": {"exporter": {}}}})
        run("patch", "slurmcluster", each["name"], "-n", each["namespace"], "--type=merge", "-p", on)
    return [f"{each['namespace']}/{each['name']}" for each in found]


def main() -> int:
    """Enable metrics and start Prometheus; with `--stop` stop it."""
    state = cluster.state_of()
    try:
        with locked(state.lock):
            if "--stop" in sys.argv[1:]:
                stop(state)
                return 0
            found, started = export(state), start(state)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    for each in found:
        say(f"SlurmCluster {each}: metrics are on")
    pages = f"{URL}/classic/targets, {URL}/classic/alerts"
    say(f"Prometheus {'started' if started else 'runs already'}: {pages}; `make down` stops it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
