"""The operator's process: reads its options from the environment, and connects its parts."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from soperator import __version__
from soperator.kube import exec as remote
from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.objects import Secret
from soperator.kube.views import Custom
from soperator.reconcile.associations import setup
from soperator.reconcile.backup import setup as backup_setup
from soperator.reconcile.backup.reconciler import BackupControl
from soperator.reconcile.cache.informers import Stores, make_reflectors, make_stores
from soperator.reconcile.cache.slurm_poller import Connect, SlurmWatch
from soperator.reconcile.cluster.reconciler import ClusterControl
from soperator.reconcile.context import Operator
from soperator.reconcile.healthcheck.reconciler import HealthCheckControl
from soperator.reconcile.io.jail_watch_client import (
    QueryJail,
    ReadReport,
    query_jail,
    read_jail_report,
)
from soperator.reconcile.io.metrics import observed
from soperator.reconcile.io.pod_events import PodEvents
from soperator.reconcile.io.slurm_exec import PodExec, Run
from soperator.reconcile.io.start_events import StartEvents
from soperator.reconcile.io.status_throttle import StatusThrottle
from soperator.reconcile.io.volume_capacity import VolumeCapacity
from soperator.reconcile.nodeset.reconciler import NodeSetControl
from soperator.render import version
from soperator.render.cluster.slurmrestd import url
from soperator.render.parts import names
from soperator.render.parts.model import Defaults
from soperator.runtime import log
from soperator.runtime.apply import Applier
from soperator.runtime.cache.store import Key
from soperator.runtime.controller import Controller
from soperator.runtime.events import Recorder
from soperator.runtime.lease import Elector
from soperator.runtime.manager import Manager, run
from soperator.runtime.metrics import OperatorMetrics
from soperator.runtime.status import StatusWriter
from soperator.runtime.workqueue import Queue
from soperator.slurmrest.client import SlurmRest

#: The most passes of one kind at once, and of those in one namespace, so that a slow Slurm does not delay other namespaces (docs/decisions/0113).
_PLACES, _OF_ONE = 8, 4


@dataclass(frozen=True)
class AppOptions:
    """The operator's options."""

    defaults: Defaults
    namespace: str | None
    lease: tuple[str, str] | None
    port: int
    renderer: str = ""


def options(env: Mapping[str, str], use_lease: bool = True) -> AppOptions:
    """Read the options from environment variables, whose names the chart `soperator` sets."""

    def image(role: str) -> str:
        return env.get(f"SOPERATOR_IMAGE_{role.upper()}", f"localhost/soperator/{role}:{__version__}")

    defaults = Defaults(
        slurm=image("slurm"),
        login=image("login"),
        munge=image("munge"),
        agents=image("agents"),
        jail=image("jail"),
        sssd=image("sssd"),
        mariadb=image("mariadb"),
        proxy=image("proxy"),
        backup=image("backup"),
        cluster_domain=env.get("SOPERATOR_CLUSTER_DOMAIN") or cluster_domain(Path("/etc/resolv.conf").read_text()),
        operator_namespace=env.get("POD_NAMESPACE", ""),
    )
    lease = (env.get("POD_NAMESPACE", "default"), "soperator") if use_lease else None
    return AppOptions(
        defaults,
        env.get("SOPERATOR_NAMESPACE") or None,
        lease,
        int(env.get("SOPERATOR_PORT", "8080")),
        str(version.VERSION),
    )


def cluster_domain(resolv_conf: str) -> str:
    """Return the DNS domain of the Kubernetes cluster, from the pod's search list; cluster.local if the list names none."""
    for line in resolv_conf.splitlines():
        for word in line.split()[1:] if line.startswith("search") else []:
            if word.startswith("svc."):
                return word.removeprefix("svc.")
    return "cluster.local"


async def main(said: AppOptions) -> int:
    """Run the operator until it receives a signal to stop; return the exit code."""
    log.configure()
    api = Api.connect(user_agent=f"soperator/{__version__}")
    manager, slurm = assemble(api, said, lambda key: _connect(api, key))
    structlog.get_logger().info("started", version=__version__, namespace=said.namespace or "all")
    try:
        return await run(manager)
    finally:
        slurm.close()


def assemble(
    api: Api,
    said: AppOptions,
    connect: Connect,
    ask: QueryJail = query_jail,
    hear: ReadReport = read_jail_report,
    execute: Run = remote.exec,
    wall: Callable[[], float] = time.time,
) -> tuple[Manager, SlurmWatch]:
    """Connect the operator's parts.

    `connect` creates the client of a cluster's slurmrestd, `ask` and `hear` query a worker about its jail, `execute` runs a command in a container;
    `wall` returns the time of day.
    """
    clusters, nodesets, healthchecks, accounts, qos, backups = (Queue(most=_OF_ONE) for _ in range(6))
    stores = make_stores()
    slurm = SlurmWatch(connect, lambda key: _wake(key, stores, clusters, nodesets, healthchecks))
    recorder, pace = Recorder(api, clock=_now), StatusThrottle(clock=_now)
    operator = Operator(
        api,
        stores,
        Applier(api, stores.applied()),
        StatusWriter(api),
        recorder,
        slurm,
        said.defaults,
        pace,
        VolumeCapacity(_now, hear),
        PodEvents(_now),
        StartEvents(_now),
        PodExec(api, execute),
        wall=wall,
        query_jail=ask,
        renderer=said.renderer,
    )
    metrics = OperatorMetrics()
    metrics.export(lambda: observed(stores, slurm, operator.capacity))
    cluster, nodeset, check = ClusterControl(operator), NodeSetControl(operator), HealthCheckControl(operator)
    account, quality = setup.make_controls(operator)
    reflectors = [
        *make_reflectors(api, stores, said.namespace, clusters, nodesets, healthchecks),
        *setup.make_reflectors(api, stores, said.namespace, accounts, qos),
    ]
    reflectors += backup_setup.make_reflectors(api, stores, said.namespace, backups, reflectors)
    backup = BackupControl(operator)
    for each in reflectors:
        if each.source.view is Custom:
            each.listen(operator.forget_object)
    manager = Manager(
        api=api,
        reflectors=reflectors,
        controllers=[
            Controller(
                "slurmcluster", cluster.reconcile, clusters, _PLACES, metrics=metrics, tell=cluster.report_error
            ),
            Controller("nodeset", nodeset.reconcile, nodesets, _PLACES, metrics=metrics, tell=nodeset.report_error),
            Controller("healthcheck", check.reconcile, healthchecks, _PLACES, metrics=metrics, tell=check.report_error),
            Controller(
                "slurmaccount", account.reconcile, accounts, _PLACES, metrics=metrics, tell=account.report_error
            ),
            Controller("slurmqos", quality.reconcile, qos, _PLACES, metrics=metrics, tell=quality.report_error),
            Controller("slurmbackup", backup.reconcile, backups, _PLACES, metrics=metrics, tell=backup.report_error),
        ],
        elector=Elector(api, said.lease, _identity()) if said.lease else None,
        recorder=recorder,
        metrics=metrics,
        port=said.port or None,
    )
    return manager, slurm


async def _connect(api: Api, key: Key) -> SlurmRest:
    namespace, cluster = key
    secret = await api.get(kinds.SECRET, Secret, namespace, names.jwt_key(cluster))
    return SlurmRest(url(namespace, cluster), secret.data["jwt_hs256.key"])


def _wake(key: Key, stores: Stores, clusters: Queue, nodesets: Queue, healthchecks: Queue) -> None:
    clusters.add(key)
    for check in stores.healthchecks_of(key):
        healthchecks.add((check.metadata.namespace, check.metadata.name))
    for each in stores.nodesets_of(key):
        nodesets.add((each.metadata.namespace, each.metadata.name))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _identity() -> str:
    """Return the identity for leader election.

    The uid is needed because two pods with hostNetwork on one Node have the same host name and may have the same pid.
    """
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
