"""The kinds of pod in which the tests run, made by pod.py."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SPANK = HERE.parent
POD_PYTHON = "/usr/bin/python3"  # not one from a home folder: it also runs inside the jail


@dataclass(frozen=True)
class Pod:
    """A kind of pod: whether it has a user namespace, and whether pivot_root is allowed in it."""

    userns: bool
    pivot: bool
    node_limit: str = ""  # of namespaces, such as `mnt=60`

    def words(self) -> list[str]:
        """Return the command line that starts such a pod."""
        options = [*(["--userns"] if self.userns else []), *([] if self.pivot else ["--no-pivot"])]
        options += [f"--node-limit={self.node_limit}"] if self.node_limit else []
        return [POD_PYTHON, str(HERE / "pod.py"), *options]

    def run(self, *command: str, timeout: float = 30, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a new pod of this kind."""
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", **environment}
        return subprocess.run(
            [*self.words(), "--", *command],
            check=False,
            env=env,
            text=True,
            capture_output=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )


PODS = {
    "root-pivot": Pod(userns=False, pivot=True),
    "root-move": Pod(userns=False, pivot=False),
    "userns-pivot": Pod(userns=True, pivot=True),
    "userns-move": Pod(userns=True, pivot=False),
}
