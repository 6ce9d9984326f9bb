"""Keeps the runner's state from one round to the next, in one file on the node.

The file may be lost at any time. Without it every check starts again, so that a failure is only a suspicion at first.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from soperator.checks.check import Check
from soperator.checks.check_state import CheckState, Recovery
from soperator.checks.report import ResolvedCheck


@dataclass(frozen=True)
class Memory:
    """The state of each check, when each last ran, counters to compare with, hanging programs, and the last report with its receiver and time."""

    check_states: Mapping[str, CheckState] = field(default_factory=dict)
    recoveries: Mapping[str, Recovery] = field(default_factory=dict)
    ran: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stuck: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    reported: tuple[str, str] = ("", "")
    reported_at: float = 0.0
    changed_at: float = 0.0
    last: ResolvedCheck | None = None

    def is_due(self, check: Check, now: float) -> bool:
        """Return whether a check is due. A check that does not pass always is, and after the clock was set back all are."""
        ran = self.ran.get(check.name)
        return ran is None or check.name in self.check_states or not 0 <= now - ran < check.every - 1

    def only(self, names: set[str]) -> "Memory":
        """Return the state without checks that no longer run."""
        return replace(
            self,
            check_states={name: each for name, each in self.check_states.items() if name in names},
            recoveries={name: each for name, each in self.recoveries.items() if name in names},
            ran={name: each for name, each in self.ran.items() if name in names},
            counters={name: each for name, each in self.counters.items() if name in names},
        )


def load(path: Path) -> Memory:
    """Read the state; empty if the file is missing, incomplete or of another version."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return Memory(
            {name: CheckState(**each) for name, each in said["check_states"].items()},
            {name: Recovery(**each) for name, each in said["recoveries"].items()},
            said["ran"],
            said["counters"],
            {key: (int(pid), str(began)) for key, (pid, began) in said["stuck"].items()},
            (str(said["reported"][0]), str(said["reported"][1])),
            float(said["reported_at"]),
            float(said["changed_at"]),
            ResolvedCheck(**said["last"]) if said["last"] else None,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return Memory()


def save(memory: Memory, path: Path) -> None:
    """Write the state so that a reader finds either the old or the new file, complete; raises OSError if that fails."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(memory)), encoding="utf-8")
    new.replace(path)
