"""The reference page of the metrics, computed from their registries so that no metric is missing; `make crds` writes it."""

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
    yield "The exporter serves them (`spec.metrics`). Each series also has the label `slurm_cluster`."
    nodes = sum(each.most for each in cluster.METRICS if each.per == "node")
    whole = sum(each.most for each in cluster.METRICS if each.per == "cluster")
    yield (
        f"A cluster has at most {whole} series, and {nodes} more for each Slurm node (none with `metrics.exporter.nodes: "
        "false`). No job has its own series here."
    )
    yield "Values beyond the limit count under the name `other`."
    yield from _table(cluster.METRICS)
    yield ""
    yield "## Of jobs"
    yield ""
    most = sum(each.most for each in jobs.METRICS)
    yield "Each worker serves them for its own jobs (`spec.metrics.jobs`) on port 6823. Each series also has the label `slurm_cluster`."
    yield f"Each job on a node has three series and one more for each of its GPUs; a node has at most {most}."
    yield from _table(jobs.METRICS)
    yield ""
    yield "## Of the operator"
    yield ""
    yield "The operator serves them on port 8080."
    yield from _table(operator.METRICS)


def _table(metrics: Iterable[Metric]) -> Iterator[str]:
    yield ""
    yield "| name | kind | labels | maximum series | meaning |"
    yield "|---|---|---|---|---|"
    for each in metrics:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        most = f"{each.most} per node" if each.per == "node" else str(each.most or "")
        yield f"| `{each.name}` | {each.kind} | {labels} | {most} | {each.help} |"
