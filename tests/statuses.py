"""What no status of ours may be: without a cause, with a broken sentence, or longer than a column."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from soperator.policy.column_text import LENGTH
from tests.kstatus import kstatus

#: A sentence that ends, or has a part that ends, where a cause should stand.
_BROKEN = re.compile(r": *(;|$)|^;|; *;|; *$|\(\)|  |(?<!['\w])None\b(?!')")


def faults(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The sentences about the faults of these objects' statuses, each once."""
    return sorted({f"{obj.get('kind', 'object')}: {said}" for obj in objects for said in _faults(obj)})


def _faults(obj: Mapping[str, Any]) -> Iterator[str]:
    status = obj["status"]
    why, conditions = status.get("why", ""), {each["type"]: each for each in status["conditions"]}
    for text in (why, *(each.get("message", "") for each in conditions.values())):
        if _BROKEN.search(text):
            yield f"a broken sentence: {text!r}"
    if len(why) > LENGTH or "\n" in why:
        yield f"no text for a column: {why!r}"
    ready = conditions["Ready"]
    if ready["status"] != "True" and not (why and ready["message"]):
        yield f"it is not ready, and does not say why: {ready['reason']}, {why!r}, {ready['message']!r}"
    health = kstatus({"metadata": {"generation": status["observedGeneration"]}, "status": status})
    if (health == "Current") != (ready["status"] == "True"):
        yield f"kstatus calls it {health}, and Ready is {ready['status']}"
