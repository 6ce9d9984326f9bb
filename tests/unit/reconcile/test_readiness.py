"""Ready, Reconciling and Stalled follow from the other conditions, as kstatus reads them."""

import pytest

from soperator.crdgen.columns import ALL
from soperator.crdgen.conditions import CONDITIONS
from soperator.crdgen.generate import definition_of
from soperator.reconcile.readiness import ADVISORY, NEEDS_A_PERSON, readiness_event, with_readiness
from soperator.runtime.status import ReportedCondition
from tests.kstatus import kstatus

WELL = ReportedCondition("Available", "True", "AllReady")
APPLIED = ReportedCondition("ConfigApplied", "True", "Applied")


def verdict(*conditions, has_own=False):
    """What kstatus says, and the reason of Ready."""
    found = with_readiness(conditions, has_own=has_own)
    status = {"conditions": [{"type": each.type, "status": each.status} for each in found], "observedGeneration": 3}
    ready = next(each for each in found if each.type == "Ready")
    return kstatus({"metadata": {"generation": 3}, "status": status}), ready.reason


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([WELL, APPLIED], ("Current", "AllReady")),
        ([ReportedCondition("Available", "False", "JailNotReady", "x")], ("InProgress", "JailNotReady")),
        ([ReportedCondition("Available", "True", "LoginNotReady", "x")], ("InProgress", "LoginNotReady")),
        ([WELL, ReportedCondition("ConfigApplied", "False", "HandingOut")], ("InProgress", "HandingOut")),
        ([WELL, ReportedCondition("ConfigApplied", "False", "Refused", "line 2")], ("Failed", "Refused")),
        ([WELL, ReportedCondition("JailReady", "Unknown", "InvalidSpec")], ("Failed", "InvalidSpec")),
        ([WELL, ReportedCondition("Settled", "False", "Changing", "x")], ("InProgress", "Changing")),
        ([WELL, ReportedCondition("UpToDate", "False", "Held")], ("Current", "AllReady")),
        ([WELL, ReportedCondition("JailHasRoom", "False", "AlmostFull")], ("Current", "AllReady")),
        ([WELL, ReportedCondition("LimitsEnforced", "False", "Sampled")], ("Current", "AllReady")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "-".join(each.reason for each in value),
)
def test_what_a_tool_that_waits_sees(conditions, expected):
    """In progress for what comes by itself, failed for what waits for a person, and current for what is only advice."""
    assert verdict(*conditions) == expected


def test_what_waits_for_a_person_is_said_before_what_is_under_way():
    """Both at once are never said: a tool would go on to wait for what does not come."""
    found = with_readiness(
        [
            ReportedCondition("Available", "False", "ControllerNotReady", "slurmctld 0/1 ready"),
            ReportedCondition("KeysSettled", "False", "KeyLost", "put the key back"),
        ],
        has_own=False,
    )
    assert [(each.type, each.status, each.message) for each in found] == [
        ("Available", "False", "slurmctld 0/1 ready"),
        ("Ready", "False", "put the key back"),
        ("Stalled", "True", "put the key back"),
        ("KeysSettled", "False", "put the key back"),
    ]


def test_what_was_derived_before_is_derived_anew():
    """Conditions that were read back from a status bring their former Ready along."""
    before = with_readiness([ReportedCondition("Available", "False", "JailNotReady")], has_own=False)
    assert with_readiness([WELL, *before[1:]], has_own=False) == [WELL, ReportedCondition("Ready", "True", "AllReady")]


def test_a_kind_that_reports_ready_itself():
    """A HealthCheck that is suspended is as its owner wants it, an account with a fault waits for a person."""
    assert verdict(ReportedCondition("Ready", "True", "Suspended"), has_own=True) == ("Current", "Suspended")
    assert verdict(ReportedCondition("Ready", "False", "Taken"), has_own=True) == ("Failed", "Taken")
    assert verdict(ReportedCondition("Ready", "False", "Waiting"), has_own=True) == ("InProgress", "Waiting")


def event(former, *conditions):
    """The type, reason and text of the Event, where there is one."""
    before = None
    if former is not None:
        ready = next(each for each in with_readiness([former], has_own=False) if each.type == "Ready")
        before = {"type": "Ready", "status": ready.status, "reason": ready.reason, "message": ready.message}
    note = readiness_event(before, with_readiness(conditions, has_own=False))
    return note and (note.type, note.reason, note.text)


def test_the_first_cause_of_not_being_ready_is_an_event_when_it_changes():
    """Not when only its words change, and not for an object that has just been made."""
    starts = ReportedCondition("Available", "False", "ControllerNotReady", "slurmctld 0/1 ready")
    login = ReportedCondition("Available", "True", "LoginNotReady", "login 1/2 ready")
    refused = ReportedCondition("ConfigApplied", "False", "Refused", "line 2")
    assert event(None, starts) is None
    assert event(None, WELL) is None
    assert event(None, refused) == ("Warning", "Refused", "line 2")
    assert event(starts, ReportedCondition("Available", "False", "ControllerNotReady", "slurmctld 0/2 ready")) is None
    assert event(starts, login) == ("Normal", "LoginNotReady", "login 1/2 ready")
    assert event(login, WELL) == ("Normal", "AllReady", "everything that the spec requests is ready")
    assert event(WELL, WELL, refused) == ("Warning", "Refused", "line 2")
    assert event(WELL, WELL) is None


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_an_object_that_the_operator_has_not_seen_is_in_progress(kind):
    """The API server gives it the status of the schema's default."""
    schema = definition_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    status = schema["properties"]["status"]
    assert kstatus({"metadata": {"generation": 1}, "status": status["default"]}) == "InProgress"
    assert status["properties"]["observedGeneration"]["minimum"] == -1


def test_every_word_of_the_table_is_on_the_page_and_asks_for_something():
    """A reason that needs a person says what to do."""
    page = {(each.type, reason): remedy for each in CONDITIONS for reason, (_, remedy) in each.reasons.items()}
    assert {each: page.get(each) for each in NEEDS_A_PERSON if page.get(each, "nothing").startswith("nothing")} == {}
    assert {each.type for each in CONDITIONS} >= ADVISORY
