"""The reference page of the shipped deep checks, computed from their files so that it has their real thresholds; `make crds` writes it."""

from collections.abc import Iterator

from soperator.checks.deep_check import (
    DeepCheck,
    DeepRule,
    command,
    shipped_deep,
)
from soperator.crdgen.checks import needed, when

NAME = "deep-checks.md"
_PER = {"node": "each node", "pair": "two nodes", "group": "many nodes"}


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Deep checks"
    yield ""
    yield "<!-- Generated from src/soperator/checks by `make crds`. -->"
    yield ""
    yield "The checks that run as Slurm jobs, one section for each file of `src/soperator/checks/deep`."
    yield "[Health](../explain/health.md#deep-checks) explains how they measure and evaluate."
    yield "*Peers* are the nodes (for GPUs their GPUs, for pairs other pairs) of the same NodeSet; a value is an outlier if"
    yield "it differs from their median by the given percentage, and by four times the usual distance."
    yield ""
    yield "| check | a job measures | applies to nodes with | time limit in seconds |"
    yield "|---|---|---|---|"
    for each in shipped_deep():
        yield f"| [{each.name}](#{each.name}) | {_PER[each.per]} | {needed(each.needs)} | {each.time} |"
    for each in shipped_deep():
        yield from _section(each)


def _section(check: DeepCheck) -> Iterator[str]:
    yield f"\n## {check.name}\n"
    yield check.about
    yield ""
    yield f"Measured by `{' '.join(command(check))}`."
    yield ""
    yield "| fails where | says |"
    yield "|---|---|"
    for rule in check.rules:
        yield f"| {_when(rule)} | {rule.plain.message} |"


def _when(rule: DeepRule) -> str:
    parts = [when(rule.plain)] if rule.plain.when else []
    if each := rule.deviates:
        parts.append(f"`{each.value}` is {each.percent:g} % {each.side} the median of its peers")
    return " and ".join(parts)
