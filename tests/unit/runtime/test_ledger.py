"""The ledger: every reason to write, and every reason not to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from soperator.kube.views import ChildMeta, ManagedField, Meta
from soperator.runtime.apply_ledger import (
    APPLIED,
    Written,
    digest_of,
    is_current,
)
from soperator.runtime.cache.store import Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OURS = ManagedField(manager="soperator", operation="Apply", time=NOON)
META = ChildMeta(
    name="a", namespace="ns", uid="u", resource_version="7", annotations={APPLIED: "d"}, managed_fields=(OURS,)
)
LAST = Written(digest="d", replaced="5", meta=META, epoch=1)


def store(epoch: int = 1) -> Store[Any]:
    """Return an empty store that was filled so often."""
    made: Store[Any] = Store()
    for _ in range(epoch):
        made.replace([])
    return made


def other(seconds: int, subresource: str = "") -> ManagedField:
    """Return somebody else's write, so many seconds after ours."""
    time = NOON + timedelta(seconds=seconds)
    return ManagedField(manager="kubectl", operation="Update", time=time, subresource=subresource)


def at(version: str, **fields: Any) -> ChildMeta:
    """Return the object at another version."""
    return msgspec.structs.replace(META, resource_version=version, **fields)


@pytest.mark.parametrize(
    ("live", "last", "epoch", "expected"),
    [
        pytest.param(None, None, 1, False, id="nothing is there"),
        pytest.param(META, LAST, 1, True, id="the cache has what we wrote"),
        pytest.param(META, replace(LAST, digest="e"), 1, False, id="something else is wanted"),
        pytest.param(at("5", managed_fields=(other(-9),)), LAST, 1, True, id="the cache still has what we replaced"),
        pytest.param(at("6", managed_fields=(other(-9),)), LAST, 1, False, id="the cache has neither"),
        pytest.param(None, LAST, 1, True, id="the cache does not have it yet"),
        pytest.param(None, LAST, 2, False, id="a relist since then did not find it"),
        pytest.param(at("9", managed_fields=(OURS, other(9, "status"))), LAST, 1, True, id="its status moved"),
        pytest.param(at("9", managed_fields=(OURS, other(9))), LAST, 1, False, id="somebody wrote to it"),
        pytest.param(at("9", managed_fields=(OURS, other(9, "scale"))), LAST, 1, False, id="somebody scaled it"),
        pytest.param(at("9", generation=2), LAST, 1, False, id="its spec moved"),
        pytest.param(at("9", uid="v"), LAST, 1, False, id="it is another object"),
        pytest.param(META, None, 1, True, id="after a restart: untouched"),
        pytest.param(at("9", managed_fields=(other(-9), OURS)), None, 1, True, id="after a restart: touched before us"),
        pytest.param(at("9", managed_fields=(OURS, other(9))), None, 1, False, id="after a restart: touched after us"),
        pytest.param(
            at("9", managed_fields=(OURS, other(0))), None, 1, False, id="after a restart: in the same second"
        ),
        pytest.param(at("9", managed_fields=(other(-9),)), None, 1, False, id="after a restart: not ours"),
        pytest.param(at("9", annotations={}), None, 1, False, id="after a restart: without the digest"),
    ],
)
def test_a_child_is_current(live: ChildMeta | None, last: Written | None, epoch: int, expected: bool) -> None:
    """A child needs no write when its digest is ours and nobody wrote to it since."""
    assert is_current("d", "soperator", store(epoch), live, last) is expected


def test_a_deletion_that_was_seen_is_not_a_cache_that_trails() -> None:
    """An object that came and went is written again."""
    cache = store()
    cache.put(Meta(metadata=META))
    cache.drop(("ns", "a"))
    assert not is_current("d", "soperator", cache, None, LAST)


def test_the_digest_is_of_the_content() -> None:
    """The order of keys does not matter, everything else does."""
    assert digest_of({"a": 1, "b": {"c": [1, 2], "d": 2}}) == digest_of({"b": {"d": 2, "c": [1, 2]}, "a": 1})
    assert digest_of({"a": [1, 2]}) != digest_of({"a": [2, 1]})
