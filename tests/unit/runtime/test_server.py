"""The operator's HTTP port."""

from collections import Counter

import httpx2

from soperator.observe import operator as names
from soperator.runtime.metrics import Metrics, QueueState, Sources
from soperator.runtime.server import build_app

#: Those of them that tell of volumes.
VOLUMES = (names.VOLUME_SIZE, names.VOLUME_AVAILABLE, names.VOLUME_FILES, names.VOLUME_LOOK)


async def ask(path: str, metrics: Metrics, **checks: bool) -> httpx2.Response:
    """Ask the application, in process."""
    app = build_app(metrics.registry, lambda: checks)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://operator") as client:
        return await client.get(path)


async def test_readiness_names_what_is_missing() -> None:
    """/readyz is 503 until every cache is whole, and says which is not."""
    waiting = await ask("/readyz", Metrics(), pods=True, nodes=False)
    assert (waiting.status_code, waiting.text) == (503, "waiting for nodes\n")
    assert (await ask("/readyz", Metrics(), pods=True, nodes=True)).status_code == 200


async def test_liveness_needs_no_cache() -> None:
    """/healthz answers as long as the loop runs."""
    assert (await ask("/healthz", Metrics(), pods=False)).status_code == 200


async def test_metrics_show_counts_as_they_are_when_scraped() -> None:
    """Requests, stores, queues and leadership are read from where they are kept."""
    requests: Counter[tuple[str, str, int]] = Counter({("patch", "Pod", 200): 3})
    metrics = Metrics()
    metrics.read_from(
        Sources(
            requests=lambda: requests,
            stores=lambda: {"pods": 7},
            relists=lambda: {"pods": 1},
            synced=lambda: {"pods": True},
            queues=lambda: {"cluster": QueueState(2, 1, 5, 3)},
            is_leader=lambda: True,
        )
    )
    text = (await ask("/metrics", metrics)).text
    for line in (
        'soperator_api_requests_total{code="200",kind="Pod",verb="patch"} 3.0',
        'soperator_store_objects{kind="pods"} 7.0',
        'soperator_relists_total{kind="pods"} 1.0',
        'soperator_queue_depth{controller="cluster"} 2.0',
        'soperator_queue_active{controller="cluster"} 1.0',
        'soperator_queue_waiting{controller="cluster"} 5.0',
        'soperator_queue_failing{controller="cluster"} 3.0',
        'soperator_store_synced{kind="pods"} 1.0',
        "soperator_leader 1.0",
    ):
        assert line in text.splitlines()
    requests["patch", "Pod", 200] += 1
    assert 'verb="patch"} 4.0' in (await ask("/metrics", metrics)).text


async def test_every_metric_of_the_registry_is_exported() -> None:
    """What alerts and documents name is there; those that the clusters' caches give come with `export`."""
    metrics = Metrics()
    metrics.read_from(Sources())
    metrics.export(lambda: [(each, []) for each in (names.INFO, names.CONDITION, names.ANSWERING, *VOLUMES)])
    text = (await ask("/metrics", metrics)).text
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {each.name for each in names.METRICS} <= told
    assert {name for name in told if name.startswith("soperator_")} <= {each.name for each in names.METRICS} | {
        "soperator_pass_seconds_created"
    }
