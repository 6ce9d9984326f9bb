"""What the operator says of itself, as Prometheus metrics in a registry of its own.

Counts that some object keeps anyway (queue depth, store sizes, requests by verb) are read from it when scraped, so that
no second copy of them can be wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client import Counter as Count
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


@dataclass(frozen=True)
class Sources:
    """Where the counts come from that are read when scraped; all are callables, so that they are read then."""

    requests: Callable[[], Counter[tuple[str, str, int]]] = Counter
    stores: Callable[[], Mapping[str, int]] = dict
    relists: Callable[[], Mapping[str, int]] = dict
    queues: Callable[[], Mapping[str, tuple[int, int]]] = dict
    is_leader: Callable[[], bool] = bool


@dataclass(frozen=True)
class Metrics:
    """The registry, and the metrics that passes write to."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    passes: Count = field(init=False)
    seconds: Histogram = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "passes",
            Count(
                "soperator_passes_total", "Passes by result: ok, failed or terminal.", ["controller", "result"],
                registry=self.registry,
            ),
        )  # fmt: skip
        object.__setattr__(
            self,
            "seconds",
            Histogram(
                "soperator_pass_seconds", "How long passes took.", ["controller"],
                buckets=SECONDS, registry=self.registry,
            ),
        )  # fmt: skip

    def read_from(self, sources: Sources) -> None:
        """Export the counts of `sources` too."""
        self.registry.register(_Scraped(sources))


class _Scraped(Collector):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "soperator_api_requests",
            "Requests to the API server; code 0 had no answer.",
            labels=["verb", "kind", "code"],
        )
        for (verb, kind, code), count in sorted(self._sources.requests().items()):
            requests.add_metric([verb, kind, str(code)], count)
        yield requests
        stores = GaugeMetricFamily("soperator_store_objects", "Objects in each cache.", labels=["kind"])
        for kind, size in self._sources.stores().items():
            stores.add_metric([kind], size)
        yield stores
        relists = CounterMetricFamily("soperator_relists", "Whole lists read, by cache.", labels=["kind"])
        for kind, count in self._sources.relists().items():
            relists.add_metric([kind], count)
        yield relists
        depth = GaugeMetricFamily("soperator_queue_depth", "Keys that wait for a worker.", labels=["controller"])
        active = GaugeMetricFamily("soperator_queue_active", "Keys being worked on.", labels=["controller"])
        for name, (ready, busy) in self._sources.queues().items():
            depth.add_metric([name], ready)
            active.add_metric([name], busy)
        yield depth
        yield active
        leader = GaugeMetricFamily("soperator_leader", "1 in the replica that leads.")
        leader.add_metric([], float(self._sources.is_leader()))
        yield leader
