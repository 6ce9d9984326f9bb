"""Prometheus' text format, written without objects for each series, because a cluster has tens of thousands of samples.

Label values come from users (accounts, reasons, reservations), so any text in them is escaped and stays on one line. Source: Prometheus' page on
exposition formats, version 0.0.4.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from soperator.observe.metric import Family, Metric, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The most characters of a label value; a longer one is cut.
LONGEST = 120
_PIECE = 1000
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def text(families: Iterable[Family], cluster: str) -> bytes:
    """Return the families in the text format, each series with the label `slurm_cluster`; families without a sample are left out."""
    return "".join(_lines(families, _label("slurm_cluster", cluster))).encode("utf-8", "replace")


def pieces(families: Iterable[Family], cluster: str) -> Iterator[bytes]:
    """Yield the same text in pieces of at most a thousand series, so that the event loop can run between two pieces."""
    for piece in _lines(families, _label("slurm_cluster", cluster)):
        yield piece.encode("utf-8", "replace")


def _lines(families: Iterable[Family], first: str) -> Iterator[str]:
    for metric, samples in families:
        series = iter(samples)
        help_text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
        head = f"# HELP {metric.name} {help_text}\n# TYPE {metric.name} {metric.kind}\n"
        while lines := [_line(metric, sample, first) for sample in islice(series, _PIECE)]:
            yield head + "".join(lines)
            head = ""


def _line(metric: Metric, sample: Sample, first: str) -> str:
    names = (*metric.labels, "le") if sample.end == "_bucket" else metric.labels
    labels = ",".join([first, *map(_label, names, sample.labels)])
    return f"{metric.name}{sample.end}{{{labels}}} {_number(sample.value)}\n"


def _label(name: str, value: str) -> str:
    if not value.isalnum() or len(value) > LONGEST:
        value = value[:LONGEST].translate(_ESCAPES)
    return f'{name}="{value}"'


def _number(value: float) -> str:
    if abs(value) < 1e15 and value == int(value):
        return str(int(value))
    return "+Inf" if value == float("inf") else repr(float(value))
