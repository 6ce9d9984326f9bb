"""Reads a spec as strictly as the API server does, and reports every fault with the file's own field names.

The pass reads tolerantly, so that a rollback survives a newer field. A person who writes a file needs the opposite, because an unknown field is
usually misspelt, and `"2"` is not a number.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from soperator.api.base import Model, Problem
from soperator.api.validation.walk import shown

M = TypeVar("M", bound=Model)


def read(model: type[M], data: object, path: str = "spec") -> tuple[M | None, list[Problem]]:
    """Return the spec and no problems, or None and every problem of its shape."""
    try:
        return model.model_validate(_pruned(data), strict=True, extra="forbid", by_alias=True, by_name=False), []
    except ValidationError as error:
        return None, [_problem(model, fault, path) for fault in error.errors(include_url=False)]


def _pruned(data: object) -> object:
    """Return the data without nulls, which the API server drops before it validates."""
    match data:
        case dict():
            return {key: _pruned(value) for key, value in data.items() if value is not None}
        case list():
            return [_pruned(item) for item in data]
        case _:
            return data


def _problem(model: type[Model], fault: ErrorDetails, root: str) -> Problem:
    steps = list(fault["loc"])
    where = root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    context: dict[str, Any] = fault.get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            return Problem(where, shown(fault["input"]), _unknown(model, steps))
        case "missing":
            return Problem(where, "missing", "this field is required: add it")
        case "literal_error":
            return Problem(where, shown(fault["input"]), f"choose one of {context['expected']}")
        case "string_pattern_mismatch":
            return Problem(where, shown(fault["input"]), f"the value must match {context['pattern']}: correct it")
        case _:
            return Problem(where, shown(fault["input"]), fault["msg"].replace("Input should", "it should"))


def _unknown(model: type[Model], steps: Sequence[int | str]) -> str:
    fields = _fields(model, steps[:-1])
    close = get_close_matches(str(steps[-1]), fields, n=1)
    if close:
        return f"unknown field: did you mean {close[0]}?"
    return f"unknown field: remove it, or use one of {', '.join(fields)}" if fields else "unknown field: remove it"


def _fields(model: type[Model] | None, steps: Sequence[int | str]) -> list[str]:
    """Return the names of the fields, as people write them, of the part of the spec at a path."""
    for step in steps:
        if isinstance(step, str):
            model = inner_model(model, step) if model else None
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def inner_model(model: type[Model], alias: str) -> type[Model] | None:
    """Return the model of a field, of its items or of its optional value; None if it has no model."""
    annotation = next(
        (field.annotation for name, field in model.model_fields.items() if (field.alias or name) == alias), None
    )
    return _model_in(annotation)


def _model_in(annotation: object) -> type[Model] | None:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
