"""The state of a check on a node.

One failure makes it suspected, several in a row make it failing, and several passes in a row end the failure. The worker counts, so that a lost
message or a restarted operator changes nothing. A check that fails again soon after its recovery needs twice as many passes the next time, up to
sixteen times as many, so that a flapping node stays drained.
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

    `message` and `values` are of the run that entered this state, so that the report changes only with the state. A failing
    check keeps `message` of its failure while it is broken or passes again; `broken` then says why the result is unknown.
    """

    check: str
    state: State
    since: float
    message: str
    on_failure: str = "drain"
    values: Mapping[str, Value] = field(default_factory=dict)
    broken: str = ""
    fails: int = 0
    passes: int = 0
    relapses: int = 0

    @property
    def is_bad(self) -> bool:
        """Whether the check has failed `confirm` times in a row, and has not passed often enough since."""
        return self.state in ("failing", "recovering")

    @property
    def takes_out(self) -> bool:
        """Whether a node that fails the check is drained."""
        return self.on_failure != "report"


@dataclass(frozen=True)
class Recovery:
    """When a check recovered, in seconds since 1970, and its number of relapses by then."""

    at: float
    relapses: int


def needed(check: Check, standing: CheckState) -> int:
    """Return the number of passes in a row that end a failure."""
    return check.passes << min(standing.relapses, _MOST_RELAPSES)


def fold(
    check: Check, standing: CheckState | None, verdict: Verdict, now: float, recovery: Recovery | None = None
) -> CheckState | None:
    """Return the state of a check after one more verdict; None if the check passes."""
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
    return CheckState(
        check.name, state, now, verdict.message, check.on_failure, verdict.values, fails=fails, relapses=relapses
    )


def _passed(check: Check, standing: CheckState | None) -> CheckState | None:
    if standing is None or standing.state in ("suspect", "broken"):
        return None
    passes = standing.passes + 1
    if passes >= needed(check, standing):
        return None
    return replace(standing, state="recovering", broken="", passes=passes)


def _broken(check: Check, standing: CheckState | None, verdict: Verdict, now: float) -> CheckState:
    """Return the state after a broken run. It is not a pass: a failure remains, and its passes count from zero again."""
    if standing is None:
        return CheckState(check.name, "broken", now, verdict.message, check.on_failure)
    if standing.state == "broken":
        return standing
    state: State = "suspect" if standing.state == "suspect" else "failing"
    return replace(standing, state=state, passes=0, broken=standing.broken or verdict.message)
