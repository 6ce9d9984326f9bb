"""Which value of a request is new."""

from soperator.policy.backup.schedule import BackupSnapshot, decide
from soperator.policy.completed_requests import MOST, is_repeated, with_completed


def test_a_former_value_is_not_new_and_the_last_one_is_only_unchanged():
    """So a rollback of the spec is reported, and a spec that stays is not."""
    assert is_repeated("a", ["a", "b"])
    assert not is_repeated("b", ["a", "b"])
    assert not is_repeated("c", ["a", "b"])
    assert not is_repeated("", ["a", "b"])


def test_a_completed_value_is_remembered_once_and_the_list_is_bounded():
    """An empty value is no request; the oldest of too many is forgotten."""
    assert with_completed(["a"], "b") == ["a", "b"]
    assert with_completed(["a", "b"], "a") == ["a", "b"]
    assert with_completed(["a"], "") == ["a"]
    many = [str(each) for each in range(MOST)]
    assert with_completed(many, "new") == [*many[1:], "new"]


def test_a_former_request_makes_no_backup():
    """But a new one does."""
    assert not decide(BackupSnapshot(0.0, request="a", carried_out="b", completed=("a", "b"))).begin
    assert decide(BackupSnapshot(0.0, request="c", carried_out="b", completed=("a", "b"))).begin
