"""How a check stands on a node: one failure is a suspicion, several in a row a failure, and several passes in a row end it.

The counting is done where the check runs, so that one lost message or a restarted operator changes nothing. A check that fails again soon
after it had recovered needs twice as many passes the next time, up to sixteen times: a node that flaps stays out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from soperator.checks.check import Check, Value
from soperator.checks.evaluate import Verdict

State = Literal["suspect", "failing", "recovering", "broken"]
#: Seconds after a recovery within which a failure is a relapse.
SOON = 3600.0
_MOST_RELAPSES = 4


@dataclass(frozen=True)
class CheckState:
    """The state of a check that is failing, broken or recovering.

    `says` and `values` are those of the moment at which it came into this state, so that what is reported changes only with the state.
    `says` of a failing check stays that of the failure while the check is broken or passes again; `broken` then says why nothing is known.
    """

    check: str
    state: State
    since: float
    says: str
    then: str = "drain"
    values: Mapping[str, Value] = field(default_factory=dict)
    broken: str = ""
    fails: int = 0
    passes: int = 0
    relapses: int = 0

    @property
    def is_bad(self) -> bool:
        """Whether the check has failed often enough, and has not passed often enough since."""
        return self.state in ("failing", "recovering")

    @property
    def takes_out(self) -> bool:
        """Whether a node that fails it takes no more jobs."""
        return self.then != "report"


@dataclass(frozen=True)
class Recovery:
    """When a check recovered, and how often it had relapsed by then."""

    at: float
    relapses: int


def needed(check: Check, standing: CheckState) -> int:
    """Return how many passes in a row end a failure."""
    return check.passes << min(standing.relapses, _MOST_RELAPSES)


def fold(
    check: Check, standing: CheckState | None, verdict: Verdict, now: float, recovery: Recovery | None = None
) -> CheckState | None:
    """Return how a check stands after one more verdict; None where it simply passes."""
    match verdict.outcome:
        case "fail":
            return _failed(check, standing, verdict, now, recovery)
        case "pass":
            return _passed(check, standing)
        case _:
            return _broken(check, standing, verdict, now)


def _failed(
    check: Check, standing: CheckState | None, verdict: Verdict, now: float, recovery: Recovery | None
) -> CheckState:
    if standing and standing.state == "failing":
        return replace(standing, broken="", passes=0)
    if standing and standing.state == "recovering":
        return replace(standing, state="failing", passes=0, relapses=standing.relapses + 1)
    fails = (standing.fails if standing and standing.state == "suspect" else 0) + 1
    relapses = recovery.relapses + 1 if recovery and now - recovery.at <= SOON else 0
    state: State = "failing" if fails >= check.confirm else "suspect"
    if standing and standing.state == state:
        return replace(standing, fails=fails)
    return CheckState(check.name, state, now, verdict.says, check.then, verdict.values, fails=fails, relapses=relapses)


def _passed(check: Check, standing: CheckState | None) -> CheckState | None:
    if standing is None or standing.state in ("suspect", "broken"):
        return None
    passes = standing.passes + 1
    if passes >= needed(check, standing):
        return None
    return replace(standing, state="recovering", broken="", passes=passes)


def _broken(check: Check, standing: CheckState | None, verdict: Verdict, now: float) -> CheckState:
    """Return a broken check is no pass: a failure stays one, and counts its passes anew."""
    if standing is None:
        return CheckState(check.name, "broken", now, verdict.says, check.then)
    if standing.state == "broken":
        return standing
    state: State = "suspect" if standing.state == "suspect" else "failing"
    return replace(standing, state=state, passes=0, broken=standing.broken or verdict.says)
