"""A rule about a part of a spec, in Python and in CEL, and helpers to write CEL. Both forms stand together so that they cannot diverge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from soperator.api.base import camel_case


@dataclass(frozen=True)
class Rule:
    """One rule about a part of a spec; `message` is about `field`. A rule about changes has no `holds`."""

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""

    @property
    def camel(self) -> str:
        """The name of the field as people write it."""
        return camel_case(self.field)


def cel_list(words: tuple[str, ...]) -> str:
    """Return CEL for a list of texts."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def cel_text(field: str) -> str:
    """Return CEL for a text that may be absent."""
    return f"self.?{field}.orValue('')"


def cel_at_least(field: str, quantity: str) -> str:
    """Return CEL for a quantity that is at least as large as another."""
    return f"quantity(string(self.{field})).compareTo(quantity('{quantity}')) >= 0"


def cel_same(field: str, of: str = "") -> str:
    """Return CEL for a text in the object `of` that may be absent and must not change; `has` limits its cost, unlike `orValue`."""
    now, before = (f"{side}{of}.{field}" for side in ("self", "oldSelf"))
    gone, was_gone = (f"(!has({each}) || {each} == '')" for each in (now, before))
    return f"{gone} ? {was_gone} : (has({before}) && {now} == {before})"


def cel_grows(field: str, of: str = "") -> str:
    """Return CEL for a quantity in the object `of` that must not shrink."""
    now, before = (f"quantity(string({side}{of}.{field}))" for side in ("self", "oldSelf"))
    return f"{now}.compareTo({before}) >= 0"
