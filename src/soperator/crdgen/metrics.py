"""The reference page of the metrics, computed from their registries."""

from collections.abc import Iterable, Iterator

from soperator.observe import cluster, jobs, operator
from soperator.observe.metric import Metric

NAME = "metrics.md"


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "<!-- Generated from src/soperator/observe by `make crds`. -->"
    yield ""
    yield "## Of a cluster"
    yield ""
    yield "The exporter serves them (`spec.metrics`), each series with the label `slurm_cluster` too."
    nodes = sum(each.most for each in cluster.METRICS if each.per == "node")
    whole = sum(each.most for each in cluster.METRICS if each.per == "cluster")
    yield f"A cluster has at most {whole} series, and {nodes} more for each Slurm node, none with `metrics.nodes: false`. No job has any here."
    yield "What there is no series left for is counted under the name `other`."
    yield from _table(cluster.METRICS)
    yield ""
    yield "## Of jobs"
    yield ""
    most = sum(each.most for each in jobs.METRICS)
    yield "Each worker serves them of its own jobs (`spec.metrics.jobs`), on port 6823, each series with the label `slurm_cluster` too."
    yield f"That is three series for each job on a node, one for each GPU that a job has, and {most} for a node at most."
    yield from _table(jobs.METRICS)
    yield ""
    yield "## Of the operator"
    yield ""
    yield "The operator serves them on its own port, 8080."
    yield from _table(operator.METRICS)


def _table(metrics: Iterable[Metric]) -> Iterator[str]:
    yield ""
    yield "| name | kind | labels | series at most | meaning |"
    yield "|---|---|---|---|---|"
    for each in metrics:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        most = f"{each.most} per node" if each.per == "node" else str(each.most or "")
        yield f"| `{each.name}` | {each.kind} | {labels} | {most} | {each.help} |"
