"""`soperator drain` and `soperator resume`: take a Slurm node out of service as an administrator does, and put it back.

The command runs as root on a login node. So Slurm records root as the author of the reason, not its own user, and the operator does not
undo the drain: it undoes only its own.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.output import NamespaceOption
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.kube.views import Custom
    from soperator.reconcile.io.slurm_exec import Run

_NODES = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,\[\]-]*")
_LONGEST = 200
_SHOW = 'exec timeout 10 /opt/soperator/bin/scontrol -o show node "$1"'
_UPDATE = 'exec timeout 10 /opt/soperator/bin/scontrol update "NodeName=$1" "State=$2" ${3:+"Reason=$3"}'
_FIELD = re.compile(r"(NodeName|State|Reason)=(.*?)(?= \w+=|$)")

ClusterOption = Annotated[str, typer.Option("--cluster", "-c", help="Name of the SlurmCluster; default: the only one.")]


@dataclass(frozen=True)
class ServiceState:
    """A node as scontrol shows it: its name, its state, and the reason with its author, which scontrol still shows after a resume."""

    name: str
    state: str
    reason: str

    @property
    def is_out(self) -> bool:
        """Whether the node is drained, draining or down."""
        return bool({"DRAIN", "DOWN", "FAIL"} & {word.rstrip("*$#~%@^!-") for word in self.state.split("+")})


def drain(
    node: Annotated[str, typer.Argument(help="Slurm node, or several, such as worker-[0-3].")],
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, for those who see the node in sinfo.")],
    cluster: ClusterOption = "",
    namespace: NamespaceOption = "",
    force: Annotated[
        bool, typer.Option("--force", help="Replace the reason of a node that is out of service already.")
    ] = False,
) -> None:
    """Let no new job start on a node; running jobs continue. The operator keeps a person's drain until a person resumes the node.

    For example: soperator drain worker-1 --reason 'fan is broken, ticket 4711'
    """
    with report_errors(cluster):
        checked = check_reason(reason)
        asyncio.run(_with_cluster(cluster, namespace, node, checked, force))
    say(f"{node} gets no new jobs: {checked}. To resume: soperator resume {node}")


def resume(
    node: Annotated[str, typer.Argument(help="Slurm node, or several, such as worker-[0-3].")],
    cluster: ClusterOption = "",
    namespace: NamespaceOption = "",
    force: Annotated[bool, typer.Option("--force", help="Resume a node that the operator drained, too.")] = False,
) -> None:
    """Put a node back into service.

    For example: soperator resume worker-1
    """
    with report_errors(cluster):
        asyncio.run(_with_cluster(cluster, namespace, node, "", force))
    say(f"{node} gets jobs again.")


def check_reason(text: str) -> str:
    """Return the reason on one line; raises CliError if it is empty, too long, or like the operator's own."""
    from soperator.slurm.node import REASON_PREFIX

    reason = " ".join(text.split())
    if not reason:
        raise CliError("--reason: it is empty: give the cause in a few words")
    if reason.lower().startswith(REASON_PREFIX.strip()):
        raise CliError(
            f"--reason: {reason}: it begins like the operator's own reasons, which the operator removes: use another text"
        )
    if len(reason) > _LONGEST or '"' in reason:
        raise CliError(f"--reason: use at most {_LONGEST} characters, and no double quotes")
    return reason


async def _with_cluster(name: str, namespace: str, node: str, reason: str, force: bool) -> None:
    from soperator.cli.support.find_cluster import connected, find_cluster

    async with connected(namespace) as (api, where):
        await change(api, await find_cluster(api, where, name), node, (reason, force))


async def change(api: "Api", cluster: "Custom", nodes: str, how: tuple[str, bool], run: "Run | None" = None) -> None:
    """Drain the nodes with a reason, or resume them without one.

    The second part of `how` permits to replace another author's reason. Raises CliError.
    """
    from soperator.cli.support.find_pods import as_administrator

    reason, force = how
    if not _NODES.fullmatch(nodes):
        raise CliError(f"{nodes}: it is not a node name: write for example worker-1, or worker-[0-3]")
    shown = await as_administrator(api, cluster, _SHOW, (nodes,), run)
    if shown.code:
        raise CliError(f"{nodes}: {_first(shown.stderr or shown.stdout)}; soperator top lists the nodes")
    records = [read_record(each) for each in shown.stdout.splitlines() if each.strip()]
    if refusal := refused(records, reason) if not force else "":
        raise CliError(refusal)
    done = await as_administrator(api, cluster, _UPDATE, (nodes, "DRAIN" if reason else "RESUME", reason), run)
    if done.code:
        raise CliError(f"{nodes}: Slurm refused it: {_first(done.stderr or done.stdout)}")


def read_record(line: str) -> ServiceState:
    """Return the node of one line of `scontrol -o show node`."""
    found = dict(_FIELD.findall(line))
    return ServiceState(found.get("NodeName", ""), found.get("State", ""), found.get("Reason", ""))


def refused(records: list[ServiceState], reason: str) -> str:
    """Return why a drain, or without a reason a resume, would undo another author's decision; empty if it does not."""
    from soperator.slurm.node import REASON_PREFIX

    for each in records:
        if reason and each.is_out and each.reason:
            return f"{each.name} is {each.state} already: {each.reason}: give --force to replace the reason"
        if not reason and not each.is_out:
            return f"{each.name} is {each.state}: it is in service already"
        if not reason and each.reason.startswith(REASON_PREFIX) and "[slurm@" in each.reason:
            return (
                f"{each.name} was drained by the operator: {each.reason}: it resumes the node itself when the cause is over; "
                "give --force to resume it now"
            )
    return ""


def _first(text: str) -> str:
    return text.strip().partition("\n")[0] or "scontrol printed nothing"
