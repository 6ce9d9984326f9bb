"""`soperator restore`: restores a cluster from a backup of a SlurmBackup, in a namespace in which it no longer exists.

First a pod reads and verifies the whole snapshot. Then the command writes the Secrets with keys, the database and the state on their
claims, and last the objects, from which the operator creates the cluster. So no daemon runs before all data is restored. The command may be
interrupted at any time and run again, because the SlurmCluster is the last object.
"""

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from soperator.cli.backup.repository import repository_of
from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.api.backup import Repository
    from soperator.kube.api import Api
    from soperator.kube.kinds import Kind
    from soperator.kube.objects import Secret
    from soperator.kube.views import Meta, ObjectMeta
    from soperator.render.backup.restore import Restoration, Verb

V = TypeVar("V", "Meta", "Secret")

_PERIOD = 1.0
#: Seconds after which a pod that has not begun is given up.
_BEGINS = 300.0
#: Seconds in which the status of a pod shows that its container has ended.
_SETTLES = 5.0
#: Seconds for which the end of a pod is waited for.
_ENDS = 60.0


@dataclass(frozen=True)
class RestoreOptions:
    """Which snapshot is restored and how: verified only, with which gap of job ids, by which image, and with rights on Nodes or without."""

    snapshot: str = "latest"
    verify: bool = False
    job_id_gap: int = 10000
    image: str = ""
    allow_node_access: bool = False


def restore(
    name: Annotated[str, typer.Argument(help="Name of the SlurmCluster that was backed up.")],
    password: Annotated[str, typer.Option("--password-secret", help="Secret with the password of the repository.")],
    claim: Annotated[
        str, typer.Option("--claim", help="PersistentVolumeClaim with the repository, unless it is in a store.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the cluster; default: that of the kubeconfig.")
    ] = "",
    key: Annotated[str, typer.Option("--password-key", help="Entry of that Secret.")] = "password",
    path: Annotated[
        str, typer.Option("--path", help="Folder of the repository in the claim, or in the bucket below the prefix.")
    ] = "restic",
    s3_endpoint: Annotated[str, typer.Option(help="URL of the store with the API of S3 that has the repository.")] = "",
    s3_bucket: Annotated[str, typer.Option(help="Its bucket.")] = "",
    s3_prefix: Annotated[str, typer.Option(help="Folders in the bucket above the repository.")] = "",
    s3_region: Annotated[str, typer.Option(help="Region of the bucket.")] = "",
    s3_credentials: Annotated[
        str, typer.Option("--s3-credentials-secret", help="Secret with the keys of the store.")
    ] = "",
    s3_ca: Annotated[
        str, typer.Option("--s3-ca-secret", help="Secret with the authorities of the store's certificate.")
    ] = "",
    s3_ca_key: Annotated[str, typer.Option(help="Entry of that Secret.")] = "ca.crt",
    snapshot: Annotated[str, typer.Option(help="Id of a snapshot; default: the newest of this cluster.")] = "latest",
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the whole snapshot, print its content, and change nothing.")
    ] = False,
    job_id_gap: Annotated[
        int, typer.Option("--job-id-gap", min=0, help="Job ids to leave out, for jobs submitted after the backup.")
    ] = 10000,
    image: Annotated[str, typer.Option(help="Image for backups; default: that of the operator.")] = "",
    allow_node_access: Annotated[
        bool,
        typer.Option(
            "--allow-node-access", help="Also restore fields that give pods rights on the Nodes, such as hostPath."
        ),
    ] = False,
) -> None:
    """Make a cluster again from a backup: its keys, accounting, queue and objects."""
    options = {
        "--claim": claim,
        "--path": path,
        "--password-secret": password,
        "--password-key": key,
        "--s3-endpoint": s3_endpoint,
        "--s3-bucket": s3_bucket,
        "--s3-prefix": s3_prefix,
        "--s3-region": s3_region,
        "--s3-credentials-secret": s3_credentials,
        "--s3-ca-secret": s3_ca,
        "--s3-ca-key": s3_ca_key,
    }
    with report_errors(name):
        how = RestoreOptions(snapshot, verify, job_id_gap, image, allow_node_access)
        asyncio.run(_restore(name, namespace, repository_of(options), how))


async def _restore(name: str, namespace: str, repository: "Repository", how: RestoreOptions) -> None:
    from soperator.kube.api import Api
    from soperator.render.backup.restore import Restoration

    async with Api.connect("soperator-cli", field_manager="soperator-restore") as api:
        where = namespace or api.namespace
        said = Restoration(where, name, how.image or await find_image(api), repository, how.snapshot)
        if not how.verify:
            await check_absent(api, said)
        found = await read(api, said)
        check_content(said, found)
        say(summary(found))
        if not how.verify:
            check_node_access(found, is_allowed=how.allow_node_access)
            await carry_out(api, replace(said, snapshot=str(found["snapshot"])), found, how.job_id_gap)


async def find_image(api: "Api") -> str:
    """Return the image for backups with which the operator was installed; raises CliError without one, or with several.

    Whoever may create a Deployment somewhere could have one that looks like the operator's, and the image gets keys.
    """
    import msgspec

    from soperator.kube.kinds import DEPLOYMENT
    from soperator.kube.views import Custom

    images: dict[str, str] = {}
    for each in (await api.list(DEPLOYMENT, Custom, labels="app.kubernetes.io/name=soperator")).items:
        spec = msgspec.json.decode(each.spec, type=dict[str, Any])
        for container in spec["template"]["spec"]["containers"]:
            for variable in container.get("env", ()):
                if variable["name"] == "SOPERATOR_IMAGE_BACKUP" and variable.get("value"):
                    images[str(variable["value"])] = f"{each.metadata.namespace}/{each.metadata.name}"
    if len(images) > 1:
        found = ", ".join(f"{image} of {where}" for image, where in sorted(images.items()))
        raise CliError(
            f"several Deployments look like the operator's and name different images for backups: {found}: give --image"
        )
    if images:
        return next(iter(images))
    raise CliError(
        "no Deployment of the operator names an image for backups: install the chart soperator, or give --image"
    )


async def check_absent(api: "Api", said: "Restoration") -> None:
    """Raise CliError if the cluster, or a pod of it, exists: two slurmctlds on one state, or a worker with former jobs, would lose more data."""
    from soperator.kube.errors import NotFound
    from soperator.kube.kinds import POD, SLURMCLUSTER
    from soperator.kube.views import Custom, Pod
    from soperator.render.parts import labels

    try:
        await api.get(SLURMCLUSTER, Custom, said.namespace, said.cluster)
    except NotFound:
        pass
    else:
        raise CliError(
            f"SlurmCluster {said.cluster} exists in namespace {said.namespace}: delete it first, or give --verify to change nothing"
        )
    pods = (await api.list(POD, Pod, said.namespace, labels=f"{labels.CLUSTER}={said.cluster}")).items
    alive = sorted(each.metadata.name for each in pods if each.status.phase not in ("Succeeded", "Failed"))
    if alive:
        raise CliError(
            f"pods of the former SlurmCluster {said.cluster} still run and may have its jobs: wait until they are gone, or delete them: "
            + ", ".join(alive[:10])
        )


async def read(api: "Api", said: "Restoration") -> dict[str, Any]:
    """Return the content of the snapshot, after a pod has read and verified all of it."""
    from soperator.kube.errors import KubeError
    from soperator.kube.exec import Target
    from soperator.kube.exec import exec as run
    from soperator.render.backup.repository import place
    from soperator.render.backup.restore import FOUND, ROLE

    say(f"reading snapshot {said.snapshot} of {said.namespace}/{said.cluster} in {place(said.repository)}")
    await _create(api, said, "read")
    try:
        await _reach(api, said, "read", "Running")
        while True:
            await _reach(api, said, "read", "Running")
            try:
                done = await run(api, Target(said.namespace, said.pod("read"), ROLE), ["cat", FOUND])
            except KubeError:  # the pod may have ended just now, and then its last message is the cause
                await asyncio.sleep(_SETTLES)
                await _reach(api, said, "read", "Running")
                raise
            if done.code == 0:
                return dict(json.loads(done.stdout))
            await asyncio.sleep(_PERIOD)
    finally:
        await _delete(api, said, "read")


def check_content(said: "Restoration", found: dict[str, Any]) -> None:
    """Raise CliError if the snapshot has what no backup of this cluster has: its objects are created with the rights of who restores."""
    from soperator.render.backup.restored import fault

    if why := fault(found["objects"], found["secrets"], said.cluster):
        raise CliError(
            f"snapshot {found['snapshot']} is no backup that the operator made of {said.cluster}: {why}: "
            "choose another --snapshot, and find out who wrote it"
        )


def check_node_access(found: dict[str, Any], *, is_allowed: bool) -> None:
    """Raise CliError if an object gives pods rights on the Nodes, unless that is allowed: who wrote the snapshot could have planted it."""
    from soperator.render.backup.node_access import node_access

    fields = node_access(found["objects"])
    if fields and not is_allowed:
        raise CliError(
            f"snapshot {found['snapshot']} has fields that give pods rights on the Nodes: {'; '.join(fields[:10])}: "
            "find out whether they are yours, and if they are, give --allow-node-access"
        )


async def carry_out(api: "Api", said: "Restoration", found: dict[str, Any], gap: int) -> None:
    """Restore keys, database and state, then the objects. `said` has the snapshot that was read, because `latest` may be a newer snapshot by then."""
    from soperator.kube.kinds import kind_of
    from soperator.kube.views import Meta
    from soperator.render.backup.restored import first_job_id, restored_objects

    await check_absent(api, said)  # reading takes a while
    for each in found["objects"]:
        await _lasting(api, kind_of(each), Meta, said, each["metadata"]["name"])
    first = first_job_id(int(found["manifest"]["nextJobId"]), gap)
    objects = restored_objects(found["objects"], said.namespace, first)
    state, database = await make_claims(api, said, objects, has_database="database" in found["manifest"])
    await make_secrets(api, said, found["secrets"])
    say(f"{len(found['secrets'])} Secrets with keys are restored; writing state{' and database' if database else ''}")
    await _create(api, said, "write", state, database)
    try:
        await _reach(api, said, "write", "Succeeded")
    finally:
        await _delete(api, said, "write")
    await check_absent(api, said)
    await make_objects(api, objects)
    say(
        f"SlurmCluster {said.cluster} and {len(objects) - 1} other objects are restored; the next job id is at least {first}"
    )
    if any(each["kind"] == "SlurmBackup" for each in objects):
        say("its SlurmBackups are suspended: set suspend: false when you have checked the cluster")


async def make_claims(
    api: "Api", said: "Restoration", objects: list[dict[str, Any]], has_database: bool
) -> tuple[str, str]:
    """Return the claims of the state and of the database (empty: none), and create those that the spec does not name; raises CliError if one is
    missing.
    """
    from pydantic import ValidationError

    from soperator.api.slurmcluster import SlurmClusterSpec
    from soperator.render.cluster.database import database_claim
    from soperator.render.cluster.slurmctld import state_claim
    from soperator.render.jail.claims import claim, render_state_claim
    from soperator.render.parts import names
    from soperator.render.parts.model import Cluster

    try:
        spec = SlurmClusterSpec.model_validate(objects[-1]["spec"])
    except ValidationError as error:
        raise CliError(f"the SlurmCluster of the backup cannot be read by this version: {error}") from None
    cluster = Cluster(said.namespace, said.cluster, "", spec)
    wanted = {state_claim(cluster): next(iter(render_state_claim(cluster)), None)}
    if has_database:
        own = spec.accounting_or_default.managed_database.claim
        name = names.database(cluster.name)
        wanted[database_claim(cluster)] = None if own.name else claim(cluster, name, own, "ReadWriteOnce", owned=False)
    for name, body in wanted.items():
        await _make_claim(api, said, name, body)
    return state_claim(cluster), database_claim(cluster) if has_database else ""


async def _make_claim(api: "Api", said: "Restoration", name: str, body: dict[str, Any] | None) -> None:
    from soperator.kube.kinds import PVC
    from soperator.kube.views import Meta

    if await _lasting(api, PVC, Meta, said, name) is not None:
        return
    if body is None:
        raise CliError(
            f"the SlurmCluster names the PersistentVolumeClaim {name}, which does not exist: create it first"
        )
    body["metadata"].pop("ownerReferences", None)
    await api.create(PVC, body)


async def _lasting(api: "Api", kind: "Kind", view: "type[V]", said: "Restoration", name: str) -> "V | None":
    """Return an object, or None; one that goes with the former cluster is waited for, because what is written to it would go too. Raises CliError."""
    from soperator.kube.errors import NotFound

    until = asyncio.get_running_loop().time() + _ENDS
    while True:
        try:
            found = await api.get(kind, view, said.namespace, name)
        except NotFound:
            return None
        if not _goes(found.metadata, said.cluster):
            return found
        if asyncio.get_running_loop().time() > until:
            raise CliError(
                f"{kind} {name} is being deleted with the former SlurmCluster {said.cluster}: "
                "wait until it is gone; a pod may still hold it, also one that has ended"
            )
        await asyncio.sleep(_PERIOD)


def _goes(meta: "ObjectMeta", cluster: str) -> bool:
    """Return whether an object is being deleted, or will be, because it belongs to a SlurmCluster, none of which exists."""
    from soperator.kube.kinds import SLURMCLUSTER

    owners = ((each.kind, each.name) for each in meta.owner_references)
    return meta.deletion_timestamp is not None or (SLURMCLUSTER.kind, cluster) in owners


async def make_secrets(api: "Api", said: "Restoration", secrets: dict[str, dict[str, str]]) -> None:
    """Create the Secrets with keys; if one exists with other content, raises CliError before it creates any."""
    import base64

    from soperator.kube.kinds import SECRET
    from soperator.kube.objects import Secret
    from soperator.render.parts import labels

    missing = []
    for name, data in secrets.items():
        there = await _lasting(api, SECRET, Secret, said, name)
        if there is None:
            missing.append(name)
        elif {key: base64.b64decode(text) for key, text in data.items()} != dict(there.data):
            raise CliError(
                f"Secret {name} exists in namespace {said.namespace} with other keys than the backup has: delete it, or rename it"
            )
    for name in missing:
        # The operator takes keys that it has not made only where they say for which cluster they are.
        meta = {"name": name, "namespace": said.namespace, "annotations": {labels.BROUGHT_FOR: said.cluster}}
        await api.create(
            SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": secrets[name]}
        )


async def make_objects(api: "Api", objects: list[dict[str, Any]]) -> None:
    """Create the objects, or set their fields if they exist."""
    from soperator.kube.kinds import kind_of

    for each in objects:
        await api.apply(kind_of(each), each)


def summary(found: dict[str, Any]) -> str:
    """Return a summary of the snapshot, for people."""
    from soperator.render.backup.node_access import node_access

    manifest = found["manifest"]
    kinds = sorted(each["kind"] for each in found["objects"])
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    database = manifest.get("database")
    jobs = f"{database['jobs']} jobs in the database at {manifest['databaseTime']}" if database else "no database"
    return "\n".join(
        [
            f"snapshot {found['snapshot']} is whole",
            f"  state of {manifest['stateTime']}, Slurm {manifest['slurm'] or 'of unknown version'}; the next job id was {manifest['nextJobId']}",
            f"  {jobs}",
            f"  {counted}; {len(found['secrets'])} Secrets with keys",
            *(f"  gives pods rights on the Nodes: {each}" for each in node_access(found["objects"])),
        ]
    )


async def _create(api: "Api", said: "Restoration", verb: "Verb", state: str = "", database: str = "") -> None:
    from soperator.kube.errors import AlreadyExists
    from soperator.kube.kinds import POD
    from soperator.render.backup.restore import render_pod

    try:
        await api.create(POD, render_pod(said, verb, state, database))
    except AlreadyExists:
        raise CliError(
            f"another restoration of {said.cluster} is in progress: wait for it, or if it was abandoned, delete pod {said.pod(verb)}"
        ) from None


async def _reach(api: "Api", said: "Restoration", verb: "Verb", phase: str) -> None:
    """Return when the pod has this phase; raises CliError if it fails, or does not start."""
    from soperator.kube.kinds import POD
    from soperator.kube.views import Pod
    from soperator.reconcile import pod_status
    from soperator.runtime.cache.store import Store

    clock = asyncio.get_running_loop().time
    until = clock() + _BEGINS
    while True:
        pod = await api.get(POD, Pod, said.namespace, said.pod(verb))
        if pod.status.phase == phase:
            return
        if pod.status.phase in ("Failed", "Succeeded"):
            raise CliError(pod_status.last_words(pod).removeprefix("soperator: ") or f"pod {said.pod(verb)} has ended")
        if pod.status.phase != "Running" and clock() > until:
            raise CliError(f"pod {said.pod(verb)} does not start: {pod_status.trouble(pod, Store())}")
        await asyncio.sleep(_PERIOD)


async def _delete(api: "Api", said: "Restoration", verb: "Verb") -> None:
    """Delete a pod, and return when it no longer exists: the next pod has the same name, and two pods must not write to one claim."""
    from soperator.kube.errors import NotFound
    from soperator.kube.kinds import POD
    from soperator.kube.views import Meta

    await api.delete(POD, said.namespace, said.pod(verb))
    until = asyncio.get_running_loop().time() + _ENDS
    while asyncio.get_running_loop().time() < until:
        try:
            await api.get(POD, Meta, said.namespace, said.pod(verb))
        except NotFound:
            return
        await asyncio.sleep(_PERIOD)
