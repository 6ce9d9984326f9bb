"""The operator's metrics about itself, in a separate Prometheus registry; observe/operator.py has their names.

Counts that another object already has (queue depth, store sizes, requests by verb) are read from it at each scrape, so that there is no second copy.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client import Counter as Count
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from soperator.observe import operator as names
from soperator.observe.metric import Metric as Name

#: Samples of one metric: the values of its labels, and its value.
Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class QueueState:
    """The numbers of a queue's keys that are ready, active or waiting, and of those whose last pass failed."""

    ready: int = 0
    active: int = 0
    waiting: int = 0
    failing: int = 0


@dataclass(frozen=True)
class Sources:
    """The sources of the counts; all are callables that are called at each scrape."""

    requests: Callable[[], Counter[tuple[str, str, int]]] = Counter
    stores: Callable[[], Mapping[str, int]] = dict
    synced: Callable[[], Mapping[str, bool]] = dict
    relists: Callable[[], Mapping[str, int]] = dict
    ages: Callable[[], Mapping[str, float]] = dict
    queues: Callable[[], Mapping[str, QueueState]] = dict
    is_leader: Callable[[], bool] = bool


@dataclass(frozen=True)
class OperatorMetrics:
    """The registry, and the metrics that passes write to."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    passes: Count = field(init=False)
    seconds: Histogram = field(init=False)

    def __post_init__(self) -> None:
        made, many, long = self.registry, names.PASSES, names.PASS_SECONDS
        object.__setattr__(self, "passes", Count(many.name, many.help, many.labels, registry=made))
        seconds = Histogram(long.name, long.help, long.labels, buckets=long.buckets, registry=made)
        object.__setattr__(self, "seconds", seconds)
        ProcessCollector(registry=made)

    def read_from(self, sources: Sources) -> None:
        """Export the counts of `sources` too."""
        self.export(lambda: _samples(sources))

    def export(self, read: Callable[[], Iterable[tuple[Name, Samples]]]) -> None:
        """Export the values that `read` returns, at each scrape."""
        self.registry.register(_Scraped(read))


class _Scraped(Collector):
    def __init__(self, read: Callable[[], Iterable[tuple[Name, Samples]]]) -> None:
        self._read = read

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        for name, samples in self._read():
            of = CounterMetricFamily if name.kind == "counter" else GaugeMetricFamily
            family = of(name.name, name.help, labels=name.labels)
            for labels, value in samples:
                family.add_metric(labels, value)
            yield family


def _samples(sources: Sources) -> Iterator[tuple[Name, Samples]]:
    requests = sorted(sources.requests().items())
    yield names.REQUESTS, [((verb, kind, str(code)), count) for (verb, kind, code), count in requests]
    yield names.STORED, _by_name(sources.stores())
    yield names.SYNCED, _by_name(sources.synced())
    yield names.RELISTS, _by_name(sources.relists())
    yield names.AGE, _by_name(sources.ages())
    queues = sources.queues()
    yield names.DEPTH, _by_name({name: each.ready for name, each in queues.items()})
    yield names.ACTIVE, _by_name({name: each.active for name, each in queues.items()})
    yield names.WAITING, _by_name({name: each.waiting for name, each in queues.items()})
    yield names.FAILING, _by_name({name: each.failing for name, each in queues.items()})
    yield names.LEADER, [((), float(sources.is_leader()))]


def _by_name(counts: Mapping[str, float]) -> Samples:
    return [((name,), float(count)) for name, count in counts.items()]
