"""`soperator logs`: the log of a role, of a Slurm node, or of what Slurm's daemons wrote about one job, without the names of pods and containers."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.find_pods import CONTAINERS, pod_of_node, pods_of_role
from soperator.cli.support.output import ClusterArgument, NamespaceOption
from soperator.cli.support.say import line as one_line
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.kube.exec import Target
    from soperator.kube.views import Custom
    from soperator.reconcile.io.slurm_exec import Run

_SPAN = re.compile(r"(\d+)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_OPERATOR = "app.kubernetes.io/name=soperator,app.kubernetes.io/component=operator"
_MOST_NODES = 16
_JOB_NODES = r"""exec timeout 10 /opt/soperator/bin/scontrol -o show job "$1"
"""


@dataclass(frozen=True)
class LogRequest:
    """The selected part of a log: the last lines (0: all), seconds back (0: all), whether to follow, whether to read the container before a restart,
    and the job.
    """

    tail: int = 0
    since: int = 0
    follow: bool = False
    previous: bool = False
    job: str = ""

    def parameters(self, container: str) -> dict[str, str]:
        """Return the parameters of Kubernetes' request."""
        wanted = {
            "container": container,
            "tailLines": str(self.tail) if self.tail and not self.job else "",
            "sinceSeconds": str(self.since) if self.since else "",
            "follow": "true" if self.follow else "",
            "previous": "true" if self.previous else "",
        }
        return {key: value for key, value in wanted.items() if value}


def role_names(incomplete: str) -> list[str]:
    """Return the roles for shell completion."""
    return [each for each in sorted({*CONTAINERS, "operator"} - {"worker"}) if each.startswith(incomplete)]


def logs(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ROLE|NODE|JOB",
            autocompletion=role_names,
            help="controller, login, rest, accounting, database, operator …; a Slurm node; a job.",
        ),
    ],
    name: ClusterArgument = "",
    container: Annotated[
        str, typer.Option("--container", help="Another container of the pod, such as munged or sackd.")
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new lines until interrupted.")] = False,
    since: Annotated[str, typer.Option("--since", help="Only the last period, such as 10m or 2h.")] = "",
    tail: Annotated[int, typer.Option("--tail", min=0, help="Only the last lines of each log; 0: all.")] = 1000,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="Print the log of the container before its last restart.")
    ] = False,
    namespace: NamespaceOption = "",
) -> None:
    """Print the log of a role, of a Slurm node, or the lines of slurmctld and the nodes about one job.

    For example: soperator logs controller -f, soperator logs worker-0 --previous, soperator logs 42 demo
    """
    with report_errors(name):
        request = LogRequest(tail, seconds_of(since), follow, previous, what if what.isdecimal() else "")
        try:
            asyncio.run(_logs(what, name, (namespace, container), request))
        except KeyboardInterrupt:
            raise typer.Exit(0) from None


def seconds_of(span: str) -> int:
    """Return the seconds of a duration such as 10m; raises CliError."""
    if not span:
        return 0
    if not (found := _SPAN.fullmatch(span)) or not int(found[1]):
        raise CliError(f"--since: {span}: write a number and s, m, h or d, such as 10m")
    return int(found[1]) * _SECONDS[found[2]]


async def _logs(what: str, name: str, where: tuple[str, str], request: LogRequest) -> None:
    from soperator.cli.support.find_cluster import connected

    async with connected(where[0]) as (api, namespace):
        targets = await find_logs(api, namespace, name, what)
        if where[1]:
            targets = [replace(each, container=where[1]) for each in targets]
        printers = [_print(api, each, request, len(targets) > 1) for each in targets]
        if request.follow:
            await asyncio.gather(*printers)
        else:
            for each in printers:
                await each


async def find_logs(api: "Api", namespace: str, name: str, what: str, run: "Run | None" = None) -> "list[Target]":
    """Return the containers of the argument; raises CliError if there are none."""
    from soperator.cli.support.find_cluster import find_cluster
    from soperator.kube.exec import Target

    if what == "operator":
        return await _operator(api)
    cluster = await find_cluster(api, namespace, name)
    if what.isdecimal():
        nodes = await _nodes_of(api, cluster, what, run)
        return [
            *await _of_role(api, cluster, "controller"),
            *(Target(namespace, pod_of_node(cluster, each), CONTAINERS["worker"]) for each in nodes),
        ]
    if what == "worker":
        raise CliError("worker: give one Slurm node, such as worker-0: soperator top lists them")
    if what in CONTAINERS:
        return await _of_role(api, cluster, what)
    return [await _of_node(api, cluster, what)]


async def _of_role(api: "Api", cluster: "Custom", role: str) -> "list[Target]":
    from soperator.kube.exec import Target

    found = await pods_of_role(api, cluster, role)
    if not found:
        raise CliError(f"SlurmCluster {cluster.metadata.name}: it has no pod of role {role}, so there is no log")
    return [Target(each.metadata.namespace, each.metadata.name, CONTAINERS[role]) for each in found]


async def _of_node(api: "Api", cluster: "Custom", node: str) -> "Target":
    from soperator.kube.errors import NotFound
    from soperator.kube.exec import Target
    from soperator.kube.kinds import POD
    from soperator.kube.views import Meta
    from soperator.render.parts import labels

    for name in dict.fromkeys((pod_of_node(cluster, node), node)):
        try:
            pod = await api.get(POD, Meta, cluster.metadata.namespace, name)
        except NotFound:
            continue
        role = pod.metadata.labels.get(labels.ROLE, "worker")
        return Target(cluster.metadata.namespace, name, CONTAINERS.get(role, CONTAINERS["worker"]))
    roles = ", ".join(role_names(""))
    raise CliError(
        f"{node}: SlurmCluster {cluster.metadata.name} has no pod of this node; roles with a log are {roles}"
    )


async def _operator(api: "Api") -> "list[Target]":
    from soperator.kube.exec import Target
    from soperator.kube.kinds import POD
    from soperator.kube.views import Meta

    found = (await api.list(POD, Meta, None, labels=_OPERATOR)).items
    if not found:
        raise CliError("no pod of the operator was found in any namespace: install the chart soperator")
    return [Target(each.metadata.namespace, each.metadata.name, "operator") for each in found]


async def _nodes_of(api: "Api", cluster: "Custom", job: str, run: "Run | None") -> list[str]:
    from soperator.cli.support.find_cluster import as_cluster
    from soperator.kube.exec import exec as run_in_pod
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.slurm.hostlist import expand
    from soperator.slurmrest.client import SlurmError

    try:
        text = await PodExec(api, run or run_in_pod).beside_slurmctld(
            as_cluster(cluster), f"scontrol show job {job}", _JOB_NODES, (job,)
        )
    except SlurmError as error:
        raise CliError(f"job {job}: {error}; see its output file, or sacct") from None
    lists = (each for each in re.findall(r" NodeList=(\S+)", text) if each != "(null)")
    return list(dict.fromkeys(name for each in lists for name in expand(each)))[:_MOST_NODES]


async def _print(api: "Api", target: "Target", request: LogRequest, is_one_of_several: bool) -> None:
    prefix = f"[{target.pod}] " if is_one_of_several else ""
    async for text in read_log(api, target, request):
        say(f"{prefix}{one_line(text)}")


async def read_log(api: "Api", target: "Target", request: LogRequest) -> AsyncIterator[str]:
    """Yield the lines of a log; raises CliError if Kubernetes has no log, or Unreachable."""
    import httpx2

    from soperator.kube.errors import ApiError, Unreachable
    from soperator.kube.kinds import POD
    from soperator.kube.transport import Call

    path = POD.path(target.namespace, target.pod, "log")
    try:
        response = await api.transport.send(
            Call("get", POD, "GET", path, request.parameters(target.container)), idle=3600.0 if request.follow else 30.0
        )
    except ApiError as error:
        raise CliError(f"{target}: {error.message}") from None
    try:
        async for text in response.aiter_lines():
            if is_about(text, request.job):
                yield text
    except httpx2.TransportError as error:
        raise Unreachable(f"{target}: {error}") from error
    finally:
        await response.aclose()


def is_about(text: str, job: str) -> bool:
    """Return whether a line is about the job, in one of the forms that Slurm's daemons write; without a job every line matches."""
    return not job or any(re.search(form, text) for form in _forms(job))


def _forms(job: str) -> Iterator[str]:
    for form in (r"\[{}[.\]]", r"(?i)\bJobId ?=? ?{}\b", r"StepId={}\b", r"(?i)\bjob {}\b", r"for UID \d+ JobId={}\b"):
        yield form.format(job)
