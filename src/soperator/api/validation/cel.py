"""A condition on a piece of a spec, in its two forms, and helpers to write the API server's one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from soperator.api.base import camel_case


@dataclass(frozen=True)
class Rule:
    """One condition on a piece of a spec; `message` blames `field`. A rule about changes has no `holds`."""

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""

    @property
    def camel(self) -> str:
        """The blamed field as people write it."""
        return camel_case(self.field)


def cel_list(words: tuple[str, ...]) -> str:
    """CEL for a list of texts."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def cel_text(field: str) -> str:
    """CEL for a text that may be absent."""
    return f"self.?{field}.orValue('')"


def cel_at_least(field: str, quantity: str) -> str:
    """CEL for a quantity that is at least as large as another."""
    return f"quantity(string(self.{field})).compareTo(quantity('{quantity}')) >= 0"


def cel_same(field: str, of: str = "") -> str:
    """CEL for a text, in the object `of` below, that may be absent and must not change; `has` bounds its cost where `orValue` would not."""
    now, before = (f"{side}{of}.{field}" for side in ("self", "oldSelf"))
    gone, was_gone = (f"(!has({each}) || {each} == '')" for each in (now, before))
    return f"{gone} ? {was_gone} : (has({before}) && {now} == {before})"


def cel_grows(field: str, of: str = "") -> str:
    """CEL for a quantity, in the object `of` below, that is at least what it was."""
    now, before = (f"quantity(string({side}{of}.{field}))" for side in ("self", "oldSelf"))
    return f"{now}.compareTo({before}) >= 0"
