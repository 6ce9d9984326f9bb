"""Derives Ready, Reconciling and Stalled from the other conditions, by the rules of kstatus, Flux, Argo CD and `helm --wait`.

Ready is True when everything that the spec requests exists. What is missing is either in progress (Reconciling) or needs a person (Stalled). Each of
these two conditions exists only while it is True, and never both. Advisory conditions, such as a volume that is almost full, do not count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from soperator.api.status import CHOSEN
from soperator.runtime.events import EventNote
from soperator.runtime.status import ReportedCondition

#: Conditions that advise, and do not say whether what the spec asks for is there.
ADVISORY = frozenset(
    {
        "Confined",
        "LimitsEnforced",
        "Healthy",
        "Passing",
        "JailHasRoom",
        "StateHasRoom",
        "DatabaseHasRoom",
        "TopologyKnown",
    }
)
#: Conditions and reasons that do not pass by themselves.
NEEDS_A_PERSON = frozenset(
    {
        *(("Available", reason) for reason in ("InvalidSpec", "ClusterRefused", "Refused", "SlurmRefused")),
        *(("Ready", reason) for reason in ("InvalidSpec", "Refused", "SlurmRefused", "Taken", "BackupFailed")),
        *(
            ("Ready", reason)
            for reason in ("RepositoryChanged", "RepositoryDamaged", "RepositoryLocked", "RepositoryMissing")
        ),
        *(("Ready", reason) for reason in ("StoreDenied", "StoreUnreachable", "WrongPassword")),
        ("SpecAccepted", "InvalidSpec"),
        *(("ConfigApplied", reason) for reason in ("Refused", "RolledBack", "NotRead", "Changed", "NodeSetUnreadable")),
        *(("JailReady", reason) for reason in ("Failed", "Stuck", "NotAnswering", "InvalidSpec")),
        *(("KeysSettled", reason) for reason in ("OtherKey", "KeyLost", "KeyIncomplete", "KeyForeign")),
        *(("ClaimsKept", reason) for reason in ("BeingDeleted", "Gone")),
        *(("UpToDate", reason) for reason in ("Refused", "Downgrade")),
        *(("AccountingReady", reason) for reason in ("DatabaseFull", "NoDatabase", "NoRights", "NoTls")),
        *(("AccountingReady", reason) for reason in ("WrongPassword", "UnknownCluster")),
        *(("RestServed", reason) for reason in ("Certificate", "TokensNotKept")),
    }
)
_DERIVED = ("Reconciling", "Stalled")


def with_readiness(reported: Sequence[ReportedCondition], *, has_own: bool) -> list[ReportedCondition]:
    """Return the conditions of an object, with the derived ones. `has_own` is for a kind that reports Ready itself, so that Ready is not derived."""
    own = [each for each in reported if each.type not in _DERIVED and (has_own or each.type != "Ready")]
    lacking = [each for each in own if _is_lacking(each)]
    cause = next((each for each in lacking if (each.type, each.reason) in NEEDS_A_PERSON), None)
    is_stalled = cause is not None
    cause = cause or next(iter(lacking), None)
    derived = [] if has_own else [_ready(cause)]
    if cause is not None:
        derived.append(ReportedCondition(_DERIVED[is_stalled], "True", cause.reason, cause.message))
    return [*own[:1], *derived, *own[1:]]


def readiness_event(former: Mapping[str, Any] | None, conditions: Sequence[ReportedCondition]) -> EventNote | None:
    """Return the Event of an object that became ready, or whose first cause of not being ready changed; otherwise None.

    `former` is the condition Ready of the previous status, as the API server has it. A new object that makes progress has no Event.
    """
    ready = next(each for each in conditions if each.type == "Ready")
    is_stalled = any(each.type == "Stalled" for each in conditions)
    if former is None and not is_stalled:
        return None
    if former is not None and (former.get("status"), former.get("reason")) == (ready.status, ready.reason):
        return None
    text = ready.message or ("everything that the spec requests is ready" if ready.status == "True" else ready.reason)
    return EventNote("Warning" if is_stalled else "Normal", ready.reason, text, "Report")


def _ready(cause: ReportedCondition | None) -> ReportedCondition:
    if cause is None:
        return ReportedCondition("Ready", "True", "AllReady")
    return ReportedCondition("Ready", "False", cause.reason, cause.message)


def _is_lacking(condition: ReportedCondition) -> bool:
    """Return whether, according to this condition, something that the spec requests is missing."""
    is_whole = condition.status == "True" and (condition.type != "Available" or condition.reason == "AllReady")
    return not is_whole and condition.type not in ADVISORY and (condition.type, condition.reason) not in CHOSEN
