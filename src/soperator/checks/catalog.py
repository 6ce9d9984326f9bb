"""The shipped checks, and the plan of the checks that apply to a node.

Each file of `shipped/` is a check, and its name is the check's; `machines.toml` holds the limits by machine type, each number with its source. A
worker receives the plan as JSON with all choices made, because it has neither the spec nor the catalog.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from soperator.checks.check import Check, CheckError, Value, is_number, read_check, table

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Limit:
    """One threshold of a machine type, with the source of the number."""

    value: Value
    source: str


@cache
def shipped() -> tuple[Check, ...]:
    """Return the shipped checks, by name."""
    return tuple(_read(path) for path in sorted((FOLDER / "shipped").glob("*.toml")))


@cache
def machines() -> Mapping[str, Mapping[str, Limit]]:
    """Return the thresholds by machine type, which is a part of the device's model name."""
    return read_machines((FOLDER / "machines.toml").read_text(encoding="utf-8"))


def read_machines(text: str) -> dict[str, dict[str, Limit]]:
    """Return the thresholds in a TOML text; raises CheckError if a value is not a number or has no source."""
    found: dict[str, dict[str, Limit]] = {}
    for machine, limits in _toml("machines.toml", text).items():
        for name, said in limits.items():
            if not isinstance(said, dict) or not is_number(said.get("value")) or not said.get("source"):
                raise CheckError(f"machines.toml: {machine}: {name}: set a number as `value`, and its `source`")
            found.setdefault(machine, {})[name] = Limit(said["value"], said["source"])
    return found


def applicable(checks: Iterable[Check], facts: Mapping[str, Any]) -> list[Check]:
    """Return the checks whose requirements are among the facts. In `given`, a text `@name` is replaced with the fact of that name."""
    return [
        replace(each, given={key: _filled(value, facts) for key, value in each.given.items()})
        for each in checks
        if all(facts.get(need) for need in each.needs)
    ]


def plan(
    checks: Iterable[Check], renew: float, more: Mapping[str, Mapping[str, Value]], requeues_jobs: bool = False
) -> str:
    """Return the plan as JSON for the runner: the checks, the seconds until a report is renewed, and the thresholds by machine type, `more` before
    the shipped ones.

    `requeues_jobs` says whether a failure in the prolog requeues the job.
    """
    ours = {machine: {name: each.value for name, each in found.items()} for machine, found in machines().items()}
    limits = ours | {machine: {**ours.get(machine, {}), **said} for machine, said in more.items()}
    said = {"checks": {each.name: table(each) for each in checks}, "machines": limits, "renew": renew}
    said |= {"turnsAway": True} if requeues_jobs else {}
    return json.dumps(said, indent=1)


def _filled(value: Any, facts: Mapping[str, Any]) -> Any:
    return facts.get(value[1:]) if isinstance(value, str) and value.startswith("@") else value


def _read(path: Path) -> Check:
    return read_check(path.stem, _toml(path.name, path.read_text(encoding="utf-8")))


def _toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CheckError(f"{name}: it is no TOML: {error}") from error
