"""Runs the scripts that the command line sends into slurmctld's pod here, with squeue, sinfo and scontrol that print what a test says."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from soperator.kube.api import Api
from soperator.kube.errors import ApiError
from soperator.kube.exec import Result, Target

_PROGRAM = """#!{python} -SI
import sys
open({log!r}, "a").write(repr(sys.argv[1:]) + "\\n")
form = next((each.split("=", 1)[1] for each in sys.argv if each.startswith("--format=")), "")
for row in {rows!r}:
    out = form or row.get("", "")
    for key, value in row.items():
        out = out.replace(key, value) if key else out
    print(out)
sys.exit({code})
"""


class SlurmStub:
    """The programs in a folder, and what was run in which container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.targets: list[Target] = []
        for name in ("squeue", "sinfo", "scontrol"):
            self.answers(name, [])

    def answers(self, name: str, rows: Sequence[Mapping[str, str]], code: int = 0) -> None:
        """Make a program print a line for each row: its format with the fields of the row, or the row's text of no name."""
        path = self.folder / name
        words = {"python": sys.executable, "log": str(self.folder / "log"), "rows": list(rows), "code": code}
        path.write_text(_PROGRAM.format(**words))
        path.chmod(0o755)

    @property
    def calls(self) -> str:
        """What the programs were called with, a line for each."""
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""

    async def run(self, api: Api, target: Target, command: Sequence[str]) -> Result:
        """Execute a command as the kubelet would."""
        self.targets.append(target)
        words = [each.replace("/opt/soperator/bin", str(self.folder)) for each in command]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
        out, err = await process.communicate()
        return Result(process.returncode or 0, out.decode(), err.decode())


async def forbidden(api: Api, target: Target, command: Sequence[str]) -> Result:
    """Refuse, as Kubernetes does to a person without the right to execute commands in pods."""
    raise ApiError(403, "Forbidden", 'pods "demo-controller-0" is forbidden: cannot create resource "pods/exec"')
