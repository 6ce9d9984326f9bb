"""`soperator why`: reports why a cluster is not available, in sentences; for one node or one job see `why_slurm`."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.shell.completion import cluster_names
from soperator.cli.support.errors import no_answer
from soperator.cli.support.output import NamespaceOption, OutputFormat, OutputOption, emit
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.kube.views import Custom


def why(
    name: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="Name of the SlurmCluster.", autocompletion=cluster_names)
    ],
    of: Annotated[str, typer.Argument(help="Slurm node or job number to explain instead.")] = "",
    namespace: NamespaceOption = "",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Explain why a cluster and its NodeSets are not ready (exit code 1 if anything is not), or the state of one node or job.

    For example: soperator why demo -n slurm, soperator why demo worker-1, soperator why demo 42
    """
    from soperator.kube.errors import KubeError, NotFound
    from soperator.slurmrest.client import SlurmError

    try:
        said, is_well = asyncio.run(_why_slurm(name, namespace, of) if of else _why(name, namespace))
    except SlurmError as error:
        say(f"Slurm did not answer: {error}", err=True)
        raise typer.Exit(1) from None
    except NotFound:
        say(
            f"SlurmCluster {name}: not found in namespace {namespace or 'of the kubeconfig'}",
            err=True,
        )
        raise typer.Exit(1) from None
    except KubeError as error:
        say(no_answer(error), err=True)
        raise typer.Exit(1) from None
    emit(output, {"cluster": name, "about": of or name, "isWell": is_well, "sentences": said}, said)
    raise typer.Exit(0 if is_well else 1)


async def _why(name: str, namespace: str) -> tuple[list[str], bool]:
    from soperator.kube.api import Api
    from soperator.kube.kinds import NODESET, SLURMCLUSTER
    from soperator.kube.views import Custom

    async with Api.connect("soperator-cli") as api:
        where = namespace or api.namespace
        cluster = await api.get(SLURMCLUSTER, Custom, where, name)
        members = [each for each in (await api.list(NODESET, Custom, where)).items if _cluster_of(each) == name]
    lines = reasons("SlurmCluster", cluster) + [said for each in members for said in reasons("NodeSet", each)]
    said = lines or [f"SlurmCluster {name} is available, and so are its NodeSets."]
    return [*said, *notes("SlurmCluster", cluster)], not lines


async def _why_slurm(name: str, namespace: str, of: str) -> tuple[list[str], bool]:
    from soperator.cli.support.why_slurm import why as why_slurm
    from soperator.kube.api import Api
    from soperator.kube.kinds import SLURMCLUSTER
    from soperator.kube.views import Custom
    from soperator.reconcile.cache.decode import read_cluster
    from soperator.render.parts.model import Cluster

    async with Api.connect("soperator-cli") as api:
        cluster = read_cluster(await api.get(SLURMCLUSTER, Custom, namespace or api.namespace, name))
        if not isinstance(cluster, Cluster):
            return [str(each) for each in cluster], False
        return await why_slurm(api, cluster, of), True


def reasons(kind: str, custom: "Custom") -> list[str]:
    """Return one sentence for each unmet condition, or for a missing or outdated status."""
    subject, status = f"{kind} {custom.metadata.name}", custom.status
    if not status.get("conditions"):
        return [
            f"{subject}: the operator has not observed it yet: check that the operator runs and watches this namespace"
        ]
    derived = {"Reconciling", "Stalled"}
    if any(each.get("type") == "Available" for each in status["conditions"]):
        derived.add("Ready")
    own = [each for each in status["conditions"] if each.get("type") not in derived]
    lines = [f"{subject}: {_sentence(each)}" for each in own if _is_bad(each)]
    if status.get("observedGeneration", 0) < custom.metadata.generation:
        lines.append(f"{subject}: the operator has not observed the last change yet")
    return lines


def notes(kind: str, custom: "Custom") -> list[str]:
    """Return one note for each condition that is not True because of the user's choice. Nothing is wrong, but the user may want to know."""
    chosen = (each for each in custom.status.get("conditions", ()) if _is_chosen(each))
    return [f"Note: {kind} {custom.metadata.name}: {_sentence(each)}" for each in chosen]


def _is_bad(condition: dict[str, Any]) -> bool:
    """Return whether a condition shows a fault. All conditions except the derived ones are good when True."""
    return condition.get("status") != "True" and not _is_chosen(condition)


def _is_chosen(condition: dict[str, Any]) -> bool:
    from soperator.api.status import CHOSEN

    return condition.get("status") != "True" and (condition.get("type"), condition.get("reason")) in CHOSEN


def _sentence(condition: dict[str, Any]) -> str:
    said = condition.get("message") or condition.get("reason", "")
    return f"{condition.get('type', '')} is {condition.get('status', '')}: {said}"


def _cluster_of(custom: "Custom") -> str:
    import msgspec

    spec: dict[str, Any] = msgspec.json.decode(custom.spec)
    return str(spec.get("clusterRef", {}).get("name", ""))
