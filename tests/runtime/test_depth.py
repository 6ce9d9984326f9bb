"""Objects that are nested as deep as a real kube-apiserver takes them, with our CRDs: what they do without the chart's policy, and with it."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soperator.kube.kinds import NODESET
from soperator.kube.views import Custom
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Store
from tests.runtime.server import GUEST, ControlPlane, client, find_binaries
from tests.unit.charts.test_charts import helm as helm
from tests.unit.charts.test_charts import template

NODESETS = "/apis/slurm.soperator.io/v1alpha1/namespaces/{}/nodesets"
TENANT = NODESETS.format("default")
#: What a person may want to say, and as deep as anything of Kubernetes: the affinity of a claim's template, in a pod's.
DEEP = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [DEEP]}}}
CLAIM = {
    "ephemeral": {"volumeClaimTemplate": {"spec": {"selector": DEEP, "resources": {"requests": {"storage": "1Gi"}}}}}
}
HONEST: dict[str, Any] = {
    "clusterRef": {"name": "demo"},
    "scheduling": {"affinity": AFFINITY, "tolerations": [{"operator": "Exists"}]},
    "podTemplate": {
        "spec": {"volumes": [{"name": "a", **CLAIM}], "containers": [{"name": "a", "env": [{"name": "b"}]}]}
    },
}
#: As large as anybody writes them: a policy has so many steps.
LARGE = {
    "clusterRef": {"name": "demo"},
    "features": [f"f{number}" for number in range(64)],
    "podTemplate": {
        "spec": {
            "containers": [
                {"name": f"c{each}", "env": [{"name": f"e{number}", "value": "x"} for number in range(50)]}
                for each in range(20)
            ]
        }
    },
}
LARGE_CLUSTER = {
    "partitions": [
        {
            "name": f"p{each}",
            "nodeSets": [f"n{number}" for number in range(100)],
            "options": {f"o{number}": "x" for number in range(30)},
        }
        for each in range(200)
    ],
    "login": {"rootAuthorizedKeys": [f"ssh-ed25519 {number}" for number in range(250)]},
    "health": {
        "customChecks": [
            {
                "name": f"h{each}",
                "probe": "memory",
                "failWhen": [{"when": {"a": {"above": number}}, "message": "x"} for number in range(20)],
            }
            for each in range(32)
        ]
    },
}


@pytest.fixture
def own_plane(tmp_path: Path, helm: str) -> Iterator[ControlPlane]:
    """A control plane of the test's own with our CRDs, for nobody can repair it."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no kube-apiserver and etcd in the cache: run `make cluster` once to build them")
    plane = ControlPlane(binaries, tmp_path)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


async def install(plane: ControlPlane, objects: list[dict[str, Any]]) -> None:
    """Make CRDs, or policies."""
    paths = {"CustomResourceDefinition": "apiextensions.k8s.io/v1/customresourcedefinitions"}
    for each in objects:
        path = paths.get(
            each["kind"], f"admissionregistration.k8s.io/v1/{each['kind'].lower().replace('policy', 'policies')}"
        )
        path = path.replace("policiesbinding", "policybindings")
        async with client(plane.url) as admin:
            answer = await admin.post(f"/apis/{path}", json=each, timeout=30)
            assert answer.status_code == 201, answer.text


async def create(plane: ControlPlane, name: str, depth: int) -> tuple[int, str]:
    """What a tenant gets who makes a NodeSet so deep."""
    inner = '{"a":' * depth + "1" + "}" * depth
    head = f'{{"apiVersion":"slurm.soperator.io/v1alpha1","kind":"NodeSet","metadata":{{"name":"{name}"}}'
    body = f'{head},"spec":{{"clusterRef":{{"name":"demo"}},"scheduling":{{"affinity":{{"a":{inner}}}}}}}}}'
    async with client(plane.url, GUEST) as guest:
        answer = await guest.post(TENANT, content=body, headers={"Content-Type": "application/json"}, timeout=60)
    return answer.status_code, answer.text


async def is_listed_after_a_start(plane: ControlPlane, seconds: float) -> bool:
    """Whether NodeSets can be listed so soon after the API server's next start; at first it says that it is not ready."""
    plane.stop_apiserver()
    plane.start_apiserver()
    deadline = time.monotonic() + seconds
    async with client(plane.url) as admin:
        while (await admin.get(TENANT, timeout=30)).status_code != 200:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.5)
    return True


async def test_without_the_policy_one_object_ends_a_kind(own_plane: ControlPlane, helm: str) -> None:
    """The control: what the operator can read it reads, and what the API server stores but cannot read nobody can list or delete any more."""
    await install(own_plane, template(helm, "soperator-crds"))
    await asyncio.sleep(3)
    assert (await create(own_plane, "deep", 5000))[0] == 201
    store: Store[Custom] = Store()
    async with own_plane.api() as api:
        task = asyncio.ensure_future(Informer(api, InformerSource(NODESET, Custom), store).run())
        await asyncio.wait({task}, timeout=5)
        assert not task.done(), task.exception()
        task.cancel()
    assert [each.metadata.name for each in store.all()] == ["deep"]
    assert (await create(own_plane, "end", 9994))[0] == 500
    assert not await is_listed_after_a_start(own_plane, 15)
    async with client(own_plane.url) as admin:
        assert (await admin.delete(f"{TENANT}/end", timeout=30)).status_code == 500


async def test_the_policy_refuses_what_is_too_deep_and_nothing_else(own_plane: ControlPlane, helm: str) -> None:
    """Also at the depth that the API server could not read again."""
    await install(own_plane, template(helm, "soperator-crds"))
    policy = [each for each in template(helm, "soperator") if each["metadata"]["name"].endswith("-depth")]
    await install(own_plane, policy)
    await asyncio.sleep(3)
    deadline = time.monotonic() + 30
    while (await create(own_plane, f"deep-{time.monotonic_ns()}", 50))[0] != 422:
        assert time.monotonic() < deadline, "the policy never came into force"
        await asyncio.sleep(0.5)
    for depth in (100, 5000, 9990, 9994):
        status, said = await create(own_plane, "deep", depth)
        assert status == 422, said[:300]
        assert "nested more than 20 levels" in said
    for kind, spec in (("NodeSet", HONEST), ("NodeSet", LARGE), ("SlurmCluster", LARGE_CLUSTER)):
        made = {
            "apiVersion": "slurm.soperator.io/v1alpha1",
            "kind": kind,
            "metadata": {"generateName": "honest-"},
            "spec": spec,
        }
        async with client(own_plane.url, GUEST) as guest:
            answer = await guest.post(TENANT.replace("nodesets", f"{kind.lower()}s"), json=made, timeout=30)
        assert answer.status_code == 201, answer.text
    async with client(own_plane.url) as admin:
        status = (
            await admin.get("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", timeout=30)
        ).json()
        assert [
            each.get("status", {}).get("typeChecking", {}).get("expressionWarnings", []) for each in status["items"]
        ] == [[]]
    assert await is_listed_after_a_start(own_plane, 30)
