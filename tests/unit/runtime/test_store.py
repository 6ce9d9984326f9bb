"""The indexed store."""

from typing import Any

from soperator.kube.views import ObjectMeta, OwnerReference, Pod
from soperator.runtime.cache.store import (
    LONG,
    OWNER,
    TOMBSTONES,
    Changed,
    Store,
    by_label,
)


def pod(name: str, version: str = "1", uid: str = "", **fields: Any) -> Pod:
    """Return a Pod."""
    return Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=version, **fields))


def test_a_relist_says_what_vanished_what_changed_and_what_is_new() -> None:
    """Replacing the content yields exactly the differences."""
    store: Store[Pod] = Store()
    old = [pod("a"), pod("b"), pod("c")]
    assert store.replace(old) == [Changed(None, each) for each in old]
    changed, fresh = pod("b", "2"), pod("d")
    assert store.replace([old[2], changed, fresh]) == [
        Changed(old[0], None),
        Changed(old[1], changed),
        Changed(None, fresh),
    ]
    assert store.is_synced
    assert store.epoch == 2


def test_versions_are_compared_for_equality_only() -> None:
    """A smaller resourceVersion is as much of a change as a larger one."""
    store: Store[Pod] = Store()
    store.put(pod("a", "9"))
    assert store.put(pod("a", "10")) is not None
    assert store.put(pod("a", "9")) is not None
    assert store.put(pod("a", "9")) is None


def test_a_recreated_object_is_a_change_and_its_old_uid_is_gone() -> None:
    """A new object under an old name never passes for the old one."""
    store: Store[Pod] = Store()
    store.put(pod("a", uid="first"))
    assert store.put(pod("a", uid="second")) is not None
    assert store.is_gone("first")
    assert not store.is_gone("second")


def test_indexes_follow_changes() -> None:
    """An object is found under its present values only."""
    store: Store[Pod] = Store({"node": lambda each: [each.spec.node_name], "app": by_label("app")})
    owner = (OwnerReference(uid="u1"),)
    store.put(pod("b", labels={"app": "x"}, owner_references=owner))
    store.put(pod("a", labels={"app": "x"}, owner_references=owner))
    assert [each.metadata.name for each in store.by("app", ("ns", "x"))] == ["a", "b"]
    assert [each.metadata.name for each in store.by(OWNER, "u1")] == ["a", "b"]
    store.put(pod("a", "2", labels={"app": "y"}))
    assert [each.metadata.name for each in store.by("app", ("ns", "x"))] == ["b"]
    store.drop(("ns", "b"))
    assert store.by("app", ("ns", "x")) == ()
    assert store.by(OWNER, "u1") == ()


def test_tombstones_are_bounded() -> None:
    """Only so many deletions are remembered."""
    store: Store[Pod] = Store()
    for number in range(TOMBSTONES + 1):
        store.put(pod("a", uid=str(number)))
        store.drop(("ns", "a"))
    assert not store.is_gone("0")
    assert store.is_gone("1")
    assert store.is_gone(str(TOMBSTONES))


def test_what_a_write_made_is_there_before_the_watch_tells() -> None:
    """It is no change when the watch does, and never replaces or revives what the watch told."""
    store: Store[Pod] = Store()
    store.learn(pod("a", "1", uid="first"))
    assert store.get("ns", "a") is not None
    assert store.put(pod("a", "1", uid="first")) is None
    store.put(pod("a", "2", uid="first"))
    store.learn(pod("a", "1", uid="first"))
    assert store.put(pod("a", "2", uid="first")) is None
    store.drop(("ns", "a"))
    store.learn(pod("a", "1", uid="first"))
    assert store.get("ns", "a") is None


def test_the_version_moves_with_every_change_and_with_nothing_else() -> None:
    """Whoever saw the same version saw the same objects."""
    store: Store[Pod] = Store()
    seen = [store.version]
    for change in (lambda: store.put(pod("a")), lambda: store.put(pod("a", "2")), lambda: store.drop(("ns", "a"))):
        change()
        seen.append(store.version)
    assert len(set(seen)) == 4
    store.drop(("ns", "a"))
    store.replace([])
    assert store.version == seen[-1]


def test_a_long_result_is_the_same_object_until_one_of_its_objects_changes() -> None:
    """An update that moves nothing changes the result too, and what leaves is gone from it."""
    store: Store[Pod] = Store({"colour": by_label("colour")})
    red, blue = {"colour": "red"}, {"colour": "blue"}
    for number in range(LONG):
        store.put(pod(f"a{number:02}", labels=red))
    before = store.by("colour", ("ns", "red"))
    store.put(pod("other", labels=blue))
    assert store.by("colour", ("ns", "red")) is before
    store.put(pod("a07", "2", labels=red))
    after = store.by("colour", ("ns", "red"))
    assert [each.metadata.resource_version for each in after] == ["1"] * 7 + ["2"] + ["1"] * (LONG - 8)
    store.put(pod("a07", "3", labels=blue))
    assert len(store.by("colour", ("ns", "red"))) == LONG - 1
    store.put(pod("a07", "4", labels=red))
    assert len(store.by("colour", ("ns", "red"))) == LONG
    store.drop(("ns", "a08"))
    assert "a08" not in [each.metadata.name for each in store.by("colour", ("ns", "red"))]
    store.replace([])
    assert store.by("colour", ("ns", "red")) == ()
