"""Computes the steps by which a generation of Slurm's configuration reaches every daemon, and by which the former one is restored if slurmctld
refuses it.

A trial slurmctld reads a generation before it is written. It is activated when slurmctld's pod has the new files, and good when slurmctld reports
that it runs with it. slurmctld in the foreground answers *success* to a reconfigure and then executes itself again, so after a refusal
slurmctld does not start again: then the last good generation is written again. Invariants, tested by interrupting at every step:
- A generation that replaces a good one, or an unknown one under a slurmctld that has run, has passed its trial.
- The last good generation is kept until slurmctld has reported that it runs with another.
- A generation that was rolled back is written again only after a person requests it.
- No generation is rolled back without a sign that it is the cause: a slurmctld that ended, or one that reports another generation.
- Only `ConfigState` is remembered, which is written together with the files.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal

from soperator.slurm.settings.state import ConfigState

#: Seconds within which slurmctld has to run with a generation, or the former one is restored; the same after it has ended and was started again.
PATIENCE = 30.0
FALLEN = 10.0
#: Seconds until daemons that have not read a generation are asked again, and how often.
AGAIN = 30.0
TRIES = 3
#: Seconds until a slurmctld that answers, but runs with another generation, is reconfigured again.
_ASKED = 5.0
#: Least and most seconds between two queries of a daemon that does not answer, or does not report what it has read.
_OFTEN, _SELDOM = 1.0, 300.0
#: Slurm and Kubernetes tell times by the second.
_SLACK = 1.0


@dataclass(frozen=True)
class Trial:
    """The state of a trial slurmctld for the desired generation or for an image; after success it has the version, if slurmctld reported one."""

    end: Literal["", "passed", "refused", "lost"] = ""
    said: str = ""
    version: str = ""


@dataclass(frozen=True)
class ConfigProgress:
    """The generation in the files of slurmctld's pods, and the generation that slurmctld reports; empty if it reports none."""

    mounted: str = ""
    running: str = ""


@dataclass(frozen=True)
class LoginGeneration:
    """The generation that a login pod's sackd last reported (empty if it reported none), and the time of that query."""

    generation: str = ""
    at: float = 0.0

    def is_due(self, state: ConfigState, now: float) -> bool:
        """Return whether to query the daemon: not if it has slurmctld's generation, and less often the longer it lags."""
        return self.generation != state.generation and now - self.at >= pause(state, self.at)


@dataclass(frozen=True)
class Unanswered:
    """Queries of slurmctld's pods that had no result, in seconds by the operator's monotonic clock: when the first was, and when the last.

    `asked` is what they were about: the containers, the desired and the used generation. For another value the next query is due at once.
    """

    asked: object
    since: float
    at: float

    def wait(self, now: float) -> float:
        """Return the seconds until the next query: the interval doubles from `_OFTEN` to `_SELDOM`, because each query holds a pass up."""
        return max(0.0, self.at + min(max(self.at - self.since, _OFTEN), _SELDOM) - now)


@dataclass(frozen=True)
class ConfigSnapshot:
    """The observed state.

    `wanted` is empty for a spec that is refused; `fallen` is the last log line of a slurmctld that ended and has not started again. `behind` are
    daemons that have not read the generation of slurmctld, `silent` those whose generation is unknown. `has_run` says whether slurmctld has run with
    any files, as far as Kubernetes shows.
    """

    wanted: str
    state: ConfigState
    now: float
    fixed: str = ""
    trial: Trial | None = None
    heard: ConfigProgress | None = None
    fallen: str = ""
    is_fallen_new: bool = True
    behind: Collection[str] = ()
    silent: Collection[str] = ()
    has_run: bool = False


Act = Literal["rest", "write", "try", "drop", "nudge", "ask", "note", "restore", "revive"]


@dataclass(frozen=True)
class ConfigStep:
    """The action, the state that it writes (if any), and in case of a fault the reason and a message."""

    act: Act = "rest"
    state: ConfigState = field(default_factory=ConfigState)
    reason: str = ""
    why: str = ""


def decide(seen: ConfigSnapshot) -> ConfigStep:
    """Return the next step towards the desired generation."""
    state = seen.state
    is_unknown = not state.generation and seen.has_run  # its files were deleted, and it may still run with them
    runs = is_unknown or bool(seen.heard and seen.heard.running)
    if seen.wanted not in ("", state.generation) and not state.good and not runs:  # nothing that it could harm
        begun = ConfigState(seen.wanted, since=seen.now, asked=seen.wanted, asked_at=seen.now, fixed=seen.fixed)
        return ConfigStep("write", begun, "Starting", "slurmctld is to start")
    if not state.generation:
        return _try(seen) if seen.wanted else ConfigStep()  # slurmctld runs with files of which nothing else is known
    if not state.is_settled:
        step = _hand_out(seen)
        is_back = state.refused and state.generation == state.good
        return replace(step, reason="RolledBack", why=f"{step.why}; {taken_back(state)}") if is_back else step
    if seen.wanted in ("", state.generation):
        return _follow(seen)
    if seen.wanted == state.refused:
        return ConfigStep(reason="RolledBack", why=taken_back(state))
    return _try(seen)


def _try(seen: ConfigSnapshot) -> ConfigStep:
    """Return the step while another generation is desired: the daemons get it only after a trial slurmctld has read it."""
    what, trial = _name(seen.wanted), seen.trial
    if trial is None:
        return ConfigStep("try", reason="Trying", why=f"{what} is to be tried")
    if trial.end == "lost":
        return ConfigStep("drop", reason="Trying", why=f"{what} will be tried again: {trial.said}")
    if trial.end == "refused":
        return ConfigStep(reason="Refused", why=f"{what} is not applied, because slurmctld refuses it: {trial.said}")
    if trial.end == "passed":
        state = replace(seen.state, generation=seen.wanted, since=seen.now, asked="", tries=0, fixed=seen.fixed)
        return ConfigStep("write", state, "HandingOut", f"{what} has passed its trial")
    return ConfigStep(reason="Trying", why=f"{what} is tried" + (f": {trial.said}" if trial.said else ""))


def _hand_out(seen: ConfigSnapshot) -> ConfigStep:
    """Return the step after the files are written: slurmctld must get them, read them, and report their generation."""
    state, heard = seen.state, seen.heard or ConfigProgress()
    what, is_former = _name(state.generation), state.generation == state.good
    is_read = heard.running == state.generation
    if is_read and state.asked == state.generation:
        return ConfigStep("note", replace(state, good=state.generation), "HandingOut", f"slurmctld runs with {what}")
    if blame := "" if is_former or not state.good else _blame(seen, heard):
        former = replace(state, generation=state.good, since=seen.now, asked="", tries=0)
        return ConfigStep("restore", replace(former, refused=state.generation, refusal=blame), "RolledBack", blame)
    if seen.fallen:
        why = f"slurmctld does not start with {what}: {seen.fallen}"
        return ConfigStep("revive" if is_former and not seen.is_fallen_new else "rest", reason="NotRead", why=why)
    if heard.mounted != state.generation and (seen.heard or state.good):
        return ConfigStep("nudge", reason="HandingOut", why=f"{what} has not reached slurmctld's pod yet")
    if heard.running and (state.asked != state.generation or abs(seen.now - state.asked_at) > _ASKED):
        return ConfigStep("ask", _asked(seen), "HandingOut", f"slurmctld has not loaded {what} yet")
    return ConfigStep(reason="HandingOut", why=f"slurmctld is reading {what}")


def _blame(seen: ConfigSnapshot, heard: ConfigProgress) -> str:
    """Return why slurmctld does not run with the written files, if its time is over and there is a sign of a failure; empty otherwise."""
    state = seen.state
    age = seen.now - max(state.since, state.asked_at)
    if (
        age < -_SLACK
    ):  # a clock that was ahead wrote that: how long it was is not known, but that slurmctld has ended is
        return seen.fallen
    if age < (FALLEN if seen.fallen else PATIENCE):
        return ""
    if seen.fallen:
        return seen.fallen
    if state.asked == state.generation and seen.heard:
        ran = f"ran with {_name(heard.running)}" if heard.running else "did not answer"
        return f"slurmctld was requested to read it, and {ran} {PATIENCE:.0f} s later"
    return ""


def _follow(seen: ConfigSnapshot) -> ConfigStep:
    """Return the step after slurmctld runs with the desired generation: every other daemon must follow."""
    state = seen.state
    if not seen.behind:
        why = f"it is unknown whether {_named(seen.silent)} has read {_name(state.generation)}"
        return ConfigStep(reason="Behind", why=why) if seen.silent else ConfigStep()
    why = f"{_name(state.generation)} has not been read yet by {_named(seen.behind)}"
    if abs(seen.now - state.asked_at) < AGAIN:
        return ConfigStep(reason="HandingOut", why=why)
    if state.tries < TRIES:
        return ConfigStep("ask", _asked(seen), "Behind", why)
    return ConfigStep(
        reason="Behind", why=f"{why}, although they were requested {TRIES} times: check slurmd or sackd there"
    )


def has_read(started: float, state: ConfigState) -> bool:
    """Return whether a daemon that started at this time has read the generation that slurmctld last loaded; True for a daemon whose time is
    unknown.
    """
    return not started or started >= int(state.asked_at) - _SLACK


def pause(state: ConfigState, now: float) -> float:
    """Return the seconds until the next query of a daemon that has not reported the active generation."""
    return min(max(now - state.asked_at, _OFTEN), _SELDOM)


def taken_back(state: ConfigState) -> str:
    """Return the message about a generation that was rolled back because slurmctld exited with it."""
    return f"{_name(state.refused)} was taken back: {state.refusal}"


def _asked(seen: ConfigSnapshot) -> ConfigState:
    state = seen.state
    since = min(state.since, seen.now)
    return replace(state, since=since, asked=state.generation, asked_at=seen.now, tries=state.tries + 1)


def _named(daemons: Collection[str]) -> str:
    return ", ".join(sorted(daemons)[:3]) + (f" and {len(daemons) - 3} more" if len(daemons) > 3 else "")


def _name(generation: str) -> str:
    return f"configuration {generation[:8]}"
