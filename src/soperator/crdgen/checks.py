"""The reference page of the shipped quick checks, computed from their files so that it has their real thresholds; `make crds` writes it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from soperator.checks import catalog
from soperator.checks.check import Check, FailRule

NAME = "checks.md"
_NEEDS = {"nvidia": "NVIDIA GPUs", "amd": "AMD GPUs", "infiniband": "InfiniBand", "kernelLog": "the kernel's log"}
_FOLLOWS = {"drain": "the node is drained", "report": "it is reported"}
_SAID = {
    "above": ">",
    "below": "<",
    "is": "is",
    "is_not": "is not",
    "among": "is one of",
    "grows": "has grown by more than",
}


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Quick checks"
    yield ""
    yield "<!-- Generated from src/soperator/checks by `make crds`. -->"
    yield ""
    yield (
        "The checks that run on workers, one section for each file of `src/soperator/checks/shipped`. "
        "[Health](../explain/health.md) explains how they"
    )
    yield "run, how they are evaluated, and their consequences."
    yield ""
    yield "| check | applies to nodes with | fails after | recovers after | consequence |"
    yield "|---|---|---|---|---|"
    for each in catalog.shipped():
        times = f"{each.confirm} in a row" if each.confirm > 1 else "1"
        yield f"| [{each.name}](#{each.name}) | {needed(each.needs)} | {times} | {each.passes} in a row | {_FOLLOWS[each.on_failure]} |"
    for each in catalog.shipped():
        yield from _section(each)
    yield from _machines()


def _section(check: Check) -> Iterator[str]:
    yield f"\n## {check.name}\n"
    yield check.about
    yield ""
    yield f"Measured by `{check.probe}`{_given(check.given)}, within {check.limit:g} s{_often(check)}{_around(check)}."
    yield ""
    yield "| fails where | says |"
    yield "|---|---|"
    for rule in check.rules:
        yield f"| {when(rule)} | {rule.message} |"


def _given(given: Mapping[str, Any]) -> str:
    said = given.get("paths")
    if said:
        return " of " + ", ".join(f"{name} (`{path}`)" if name != path else f"`{path}`" for name, path in said.items())
    return "".join(f", {key} `{value}`" for key, value in given.items() if not str(value).startswith("@"))


def _often(check: Check) -> str:
    return f", at most every {check.every:g} s" if check.every else ""


def _around(check: Check) -> str:
    words = [word for context, word in (("prolog", "before"), ("epilog", "after")) if context in check.at]
    return f"; also {' and '.join(words)} each job, with `health.prologEpilog`" if words else ""


def needed(needs: Iterable[str]) -> str:
    """Return the requirements of a check on a node, as text."""
    return ", ".join(_NEEDS[need] for need in needs) or "anything"


def when(rule: FailRule) -> str:
    """Return the rules that fail a reading, as text."""
    return " and ".join(
        f"`{value}` {_SAID[operator]} {_limit(limit)}"
        for value, said in rule.when.items()
        for operator, limit in said.items()
    )


def _limit(limit: Any) -> str:
    if isinstance(limit, str) and limit.startswith("@"):
        return f"the machine's `{limit[1:]}`"
    if isinstance(limit, list):
        return ", ".join(map(str, limit))
    return "empty" if limit == "" else str(limit).lower() if isinstance(limit, bool) else str(limit)


def _machines() -> Iterator[str]:
    yield "\n## Limits by machine type\n"
    yield "A type is a part of the device's model name; the longest match counts. If a type has no such number, that"
    yield "rule is not judged."
    yield ""
    yield "| device | limit | value | source |"
    yield "|---|---|---|---|"
    for machine, limits in catalog.machines().items():
        for name, limit in limits.items():
            yield f"| {machine} | `{name}` | {limit.value} | {limit.source} |"
