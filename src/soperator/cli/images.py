"""`soperator images`: lists the images of a cluster's pods, and the versions of their packages, read from one running container per image."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.shell.completion import cluster_names
from soperator.cli.support.errors import report_errors
from soperator.cli.support.output import NamespaceOption, OutputFormat, OutputOption, emit

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.kube.exec import Target
    from soperator.kube.views import Custom


def images(
    name: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="Name of the SlurmCluster.", autocompletion=cluster_names)
    ],
    namespace: NamespaceOption = "",
    everything: Annotated[bool, typer.Option("--all", help="List every package, not only the exposed ones.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """List the images of a cluster's pods, with the versions of their packages that a security update would change."""
    with report_errors(name):
        data = asyncio.run(_images(name, namespace, everything))
        emit(output, data, _lines(data))


async def _images(name: str, namespace: str, everything: bool) -> dict[str, Any]:
    from soperator.kube.api import Api
    from soperator.kube.kinds import POD, SLURMCLUSTER
    from soperator.kube.views import Custom
    from soperator.render.parts import labels

    async with Api.connect("soperator-cli") as api:
        where = namespace or api.namespace
        cluster = await api.get(SLURMCLUSTER, Custom, where, name)
        pods = (await api.list(POD, Custom, where, labels=f"{labels.CLUSTER}={name}")).items
        found = [
            {
                "image": image,
                "roles": sorted({role for role, _ in used}),
                "packages": await _inside(api, used, everything),
            }
            for image, used in sorted(by_image(pods).items())
        ]
    return {"cluster": name, "slurm": cluster.status.get("slurm", ""), "images": found}


def _lines(data: dict[str, Any]) -> Iterator[str]:
    yield f"SlurmCluster {data['cluster']}: Slurm {data['slurm'] or 'has not answered yet'}"
    for each in data["images"]:
        yield ""
        yield f"{each['image']} ({', '.join(each['roles'])})"
        yield from (f"  {package}" for package in each["packages"])


def by_image(pods: Sequence["Custom"]) -> dict[str, list[tuple[str, "Target | None"]]]:
    """Return the uses of each image: the pod's role, and the container if it runs."""
    import msgspec

    from soperator.kube.exec import Target
    from soperator.render.parts import labels

    found: dict[str, list[tuple[str, Target | None]]] = {}
    for pod in pods:
        meta, spec = pod.metadata, msgspec.json.decode(pod.spec, type=dict[str, Any])
        states = [*(pod.status.get("containerStatuses") or ()), *(pod.status.get("initContainerStatuses") or ())]
        running = {each["name"] for each in states if "running" in each.get("state", {})}
        role = meta.labels.get(labels.ROLE, meta.name)
        for each in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            target = Target(meta.namespace, meta.name, each["name"]) if each["name"] in running else None
            found.setdefault(each["image"], []).append((role, target))
    return found


async def _inside(api: "Api", used: list[tuple[str, "Target | None"]], everything: bool) -> list[str]:
    from soperator.cli.support.packages import LIST, chosen, read
    from soperator.kube.errors import KubeError
    from soperator.kube.exec import exec as run

    target = next((target for _, target in used if target), None)
    if target is None:
        return ["no container of this image runs, so its packages are unknown"]
    try:
        done = await run(api, target, LIST)
    except KubeError as error:
        return [f"its packages are unknown: {error}"]
    if done.code:
        return [f"{target} has no database of Debian packages"]
    return chosen(read(done.stdout), everything)
