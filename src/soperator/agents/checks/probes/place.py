"""The paths that a probe reads. On a worker they are the machine's; tests use their own folders."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soperator.checks.check import Reading


class ProbeError(Exception):
    """A program's answer cannot be judged; the message has its output."""


@dataclass(frozen=True)
class ProbePaths:
    """The paths of a node; `tools` are the folders in which programs of a GPU driver are searched."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    sdiag: Path = Path("/opt/soperator/bin/sdiag")
    tools: Sequence[Path] = (Path("/run/driver/bin"), Path("/opt/rocm/bin"), Path("/usr/bin"), Path("/usr/local/bin"))


Given = Mapping[str, Any]
Probe = Callable[[Given, ProbePaths], list[Reading]]
