"""`soperator join`: makes a host outside Kubernetes a node or a login host of a cluster, by a script that the host runs (docs/decisions/0082)."""

import asyncio
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.support.errors import CliError, report_errors

if TYPE_CHECKING:
    from soperator.cli.support.join_script import Host, ReferencePod
    from soperator.kube.api import Api

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


def join(
    cluster: Annotated[str, typer.Argument(help="Name of the SlurmCluster.")],
    nodeset: Annotated[
        str, typer.Option("--nodeset", "-s", help="NodeSet whose settings apply to the host's Slurm node.")
    ] = "",
    node: Annotated[str, typer.Option("--node", help="Name of the Slurm node.")] = "",
    login: Annotated[bool, typer.Option("--login", help="Make the host a login host.")] = False,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Path on the host of the file system that the pods mount by this claim, such as the jail.",
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the cluster; default: that of the kubeconfig.")
    ] = "",
) -> None:
    """Print a script that makes a host outside Kubernetes a node or a login host. The script contains the cluster's key.

    For example: soperator join demo --nodeset worker --node bare-1 --claim demo-jail=/mnt/jail | ssh root@bare-1 sh
    """
    from soperator.cli.support.join_script import Host, script

    with report_errors(cluster):
        host = Host(cluster, _named(nodeset, node, login), _claims(claim or []))
        typer.echo(script(host, asyncio.run(_like(host, nodeset, namespace))), nl=False)


def _named(nodeset: str, node: str, login: bool) -> str:
    """Return the name of the node, empty for a login host.

    Raises CliError if the options are ambiguous, or if the name is reserved for the operator.
    """
    if login == bool(nodeset or node) or bool(nodeset) != bool(node):
        raise CliError("give --nodeset and --node for a Slurm node, or --login for a login host")
    if node and not _NAME.match(node):
        raise CliError(f"--node: {node}: use only lower-case letters, digits and dashes")
    return node


def _claims(said: list[str]) -> dict[str, str]:
    found = dict(each.partition("=")[::2] for each in said)
    if wrong := next((each for each in said if not re.match("[^=]+=/", each)), ""):
        raise CliError(f"--claim: {wrong}: write NAME=/PATH")
    return found


async def _like(host: "Host", nodeset: str, namespace: str) -> "ReferencePod":
    """Return the container and the volumes of the role's first pod; raises CliError, NotFound or KubeError."""
    import msgspec

    from soperator.cli.support.join_script import ReferencePod
    from soperator.kube.api import Api
    from soperator.kube.kinds import NODESET, POD, SLURMCLUSTER
    from soperator.kube.views import Custom
    from soperator.render.parts import labels

    async with Api.connect("soperator-cli") as api:
        where = namespace or api.namespace
        await api.get(SLURMCLUSTER, Custom, where, host.cluster)
        sets = {each.metadata.name for each in (await api.list(NODESET, Custom, where)).items}
        if re.search("-[0-9]+$", host.node) and (owner := host.node.rpartition("-")[0]) in sets:
            raise CliError(f"--node: {host.node} is reserved for the pods of NodeSet {owner}: give another name")
        chosen = labels.worker(host.cluster, nodeset) if nodeset else labels.role(host.cluster, "login")
        pods = await api.list(POD, Custom, where, labels=",".join(f"{key}={value}" for key, value in chosen.items()))
        if not pods.items:
            raise CliError(
                f"no pod of {f'NodeSet {nodeset}' if nodeset else 'login'} exists, and the host's settings are read from one: start one first"
            )
        spec = msgspec.json.decode(pods.items[0].spec)
        containers = [*spec.get("initContainers", ()), *spec["containers"]]
        container = next(each for each in containers if each["name"] == ("slurmd" if nodeset else "sackd"))
        mounted = {each["name"] for each in container.get("volumeMounts", ())}
        files = {
            each["name"]: found
            for each in spec["volumes"]
            if each["name"] in mounted and (found := await _held(api, where, each))
        }
        return ReferencePod(container, spec["volumes"], files, spec["dnsConfig"]["searches"][0])


async def _held(api: "Api", namespace: str, volume: Any) -> dict[str, bytes]:
    """Return the files in a volume with ConfigMaps and Secrets; empty for other volumes."""
    from soperator.cli.support.join_script import for_host
    from soperator.kube.kinds import CONFIGMAP, SECRET
    from soperator.kube.objects import ConfigMap, Secret

    found: dict[str, bytes] = {}
    sources = volume["projected"]["sources"] if "projected" in volume else [volume]
    for source in sources:
        if said := source.get("secret"):
            name = said.get("secretName") or said["name"]
            secret = await api.get(SECRET, Secret, namespace, name)
            held = for_host(secret.metadata.annotations, secret.data)
        elif said := source.get("configMap"):
            texts = (await api.get(CONFIGMAP, ConfigMap, namespace, said["name"])).data
            held = {key: text.encode() for key, text in texts.items()}
        else:
            continue
        items = {each["key"]: each["path"] for each in said.get("items", ())} or {key: key for key in held}
        found |= {path: held[key] for key, path in items.items()}
    return found
