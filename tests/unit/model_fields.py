"""The fields of our kinds by their paths, for tests that hold texts to them."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel


def has(model: type[BaseModel], names: list[str]) -> bool:
    """Whether a model has a field of this path; what is handed through to Kubernetes has every field."""
    found = next((each for each in model.model_fields.values() if each.alias == names[0]), None)
    if found is None or len(names) == 1:
        return found is not None
    inner = list(_models(found.annotation))
    return any(has(each, names[1:]) for each in inner) if inner else True


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in getattr(annotation, "__args__", ()) or ():
        yield from _models(each)
