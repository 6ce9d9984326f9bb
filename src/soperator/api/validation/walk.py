"""Walks every part of a spec with the path that its author would write, so that one loop applies all rules."""

from collections.abc import Iterator
from functools import cache

from soperator.api.base import Model, camel_case


def pieces(spec: Model, path: str = "spec") -> Iterator[tuple[str, Model]]:
    """Yield the model itself and every model inside it, outer before inner, each with its path."""
    yield path, spec
    for name, camel in _fields(type(spec)):
        value = getattr(spec, name)
        if isinstance(value, Model):
            yield from pieces(value, f"{path}.{camel}")
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, Model):
                    yield from pieces(item, f"{path}.{camel}[{number}]")


@cache
def _fields(model: type[Model]) -> tuple[tuple[str, str], ...]:
    return tuple((name, camel_case(name)) for name in model.model_fields)


def shown(value: object) -> str:
    """Return a value as short text for a message: a model as what its author wrote, a long text cut."""
    match value:
        case Model():
            text = str(value.model_dump(by_alias=True, exclude_defaults=True))
        case list():
            text = "[" + ", ".join(shown(item) for item in value) + "]"
        case bool():
            text = str(value).lower()
        case _:
            text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
