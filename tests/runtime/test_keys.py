"""A Secret with keys is put back against a real API server: who owns which field decides whether what a person wrote goes."""

from types import SimpleNamespace
from typing import cast

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube.api import Api
from soperator.kube.kinds import SECRET
from soperator.kube.objects import Secret
from soperator.reconcile.cache.informers import make_stores
from soperator.reconcile.context import Operator
from soperator.reconcile.keys import key_files
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster
from soperator.slurm.keys import KeyContent
from tests.runtime.server import ControlPlane

NAME = "demo-auth-key"


async def test_an_edited_secret_is_as_it_was_when_it_is_put_back(plane: ControlPlane, namespace: str) -> None:
    """Other bytes, another file, a note and labels that a person wrote are gone; a file of theirs that no daemon reads stays."""
    async with plane.api() as api:
        operator = cast(Operator, SimpleNamespace(api=api, stores=make_stores()))
        cluster = Cluster(namespace, "demo", "00000000-0000-0000-0000-000000000001", SlurmClusterSpec())
        right = KeyContent({"slurm.key": b"right"})
        await key_files.write(operator, cluster, NAME, right, None, None)
        edit = {
            "metadata": {"labels": None, "ownerReferences": None, "annotations": {labels.STAGE: "Known"}},
            "data": {"slurm.key": "d3Jvbmc=", "slurm.jwks": "e30=", "mine.txt": "aGk="},
        }
        for name in (NAME, f"{NAME}-kept"):
            before = await _read(api, namespace, name)
            response = await api.transport.client.patch(
                SECRET.path(namespace, name),
                json=edit,
                params={"fieldManager": "kubectl-edit"},
                headers={"Content-Type": "application/merge-patch+json"},
            )
            assert response.is_success, response.text
            live, kept = await _read(api, namespace, NAME), await _read(api, namespace, f"{NAME}-kept")
            await key_files.write(operator, cluster, NAME, right, live, kept)
            after = await _read(api, namespace, name)
            assert after.data == {"slurm.key": b"right", "mine.txt": b"hi"}
            assert after.metadata.labels == before.metadata.labels
            assert after.metadata.owner_references == before.metadata.owner_references
            assert after.metadata.annotations == before.metadata.annotations


async def _read(api: Api, namespace: str, name: str) -> Secret:
    return await api.get(SECRET, Secret, namespace, name)
