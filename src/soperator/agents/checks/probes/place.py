"""Where a probe looks. Tests give it folders of their own; on a worker these are the machine's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soperator.checks.check import Reading


class ProbeError(Exception):
    """What was asked gave no answer that can be judged; the message says what it did say."""


@dataclass(frozen=True)
class ProbePaths:
    """Where to look; `tools` are the folders in which programs of a GPU driver are looked for."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    sdiag: Path = Path("/opt/soperator/bin/sdiag")
    tools: Sequence[Path] = (Path("/run/driver/bin"), Path("/opt/rocm/bin"), Path("/usr/bin"), Path("/usr/local/bin"))


Given = Mapping[str, Any]
Probe = Callable[[Given, ProbePaths], list[Reading]]
