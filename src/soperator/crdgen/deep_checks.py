"""The reference page of the shipped deep checks, computed from their files; `make crds` writes it."""

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
    yield "What a Slurm job can measure, one section for each file of `src/soperator/checks/deep`."
    yield "[Health](../explain/health.md#deep-checks) says how it is measured and judged."
    yield "*Peers* are the nodes (for GPUs their GPUs, for pairs other pairs) of the same NodeSet; a value stands out when"
    yield "it is so much away from their median, and four times as far as they usually are."
    yield ""
    yield "| check | a job measures | applies to nodes with | seconds at most |"
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
        yield f"| {_when(rule)} | {rule.plain.says} |"


def _when(rule: DeepRule) -> str:
    parts = [when(rule.plain)] if rule.plain.when else []
    if each := rule.deviates:
        parts.append(f"`{each.value}` is {each.percent:g} % {each.side} the median of its peers")
    return " and ".join(parts)
