"""What was asked of Slurm, and the marks that the jobs left in the jail."""

import itertools
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from local import demo
from tests.cluster.lab import Lab
from tests.faults.judge import Mark, Unit, Verdict, judge, read_marks

#: A job that leaves its marks around its work. What it is to do is `{work}`.
SCRIPT = """#!/bin/sh
cd {folder}
mark() {{ echo "$(date +%s.%N) $(hostname)" >> {key}.${{SLURM_ARRAY_TASK_ID:-0}}.${{SLURM_RESTART_COUNT:-0}}.$1; }}
mark began
{work} && mark ended
"""


@dataclass
class Ledger:
    """The jobs of one user in one folder of his home."""

    lab: Lab
    user: str
    folder: str
    units: list[Unit] = field(default_factory=list)
    crashes: list[float] = field(default_factory=list)
    refused: int = 0
    _count: "itertools.count[int]" = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        """Make the folder, empty."""
        self.lab.ssh(self.user, f"rm -rf {self.folder}; mkdir -p {self.folder}")

    def key(self, kind: str) -> str:
        """A new key."""
        with self._lock:
            return f"{kind}-{next(self._count)}"

    def submit(self, kind: str, work: str, *options: str, tasks: int = 1) -> str:
        """Submit a job and note it once sbatch has answered; return its key, or an empty text where sbatch refused.

        It is tried once: an answer that did not arrive is no promise, and its key is used by no other job.
        """
        key = self.key(kind)
        array = [f"--array=0-{tasks - 1}"] if tasks > 1 else []
        script = SCRIPT.format(folder=self.folder, key=key, work=work)
        words = ["sbatch", "--parsable", f"-J {key}", f"-o {self.folder}/{key}.%a.out", "--open-mode=append"]
        if self.run(" ".join([*words, *array, *options]), script).returncode:
            self.refused += 1
            return ""
        with self._lock:
            self.units += [Unit(key, task, time.time()) for task in range(tasks)]
        return key

    def run(self, command: str, stdin: str = "", seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        """A command on the login node, tried once; one that does not end in time has failed."""
        argv = [*demo.ssh(self.lab.address, self.user), command]
        try:
            return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, timeout=seconds)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 255, "", f"no end within {seconds:.0f} s")

    def crashed(self) -> None:
        """Note that slurmctld has just been killed."""
        self.crashes.append(time.time())

    def marks(self) -> list[Mark]:
        """All marks there are."""
        look = f"cd {self.folder} && find . -name '*.began' -o -name '*.ended' | sed 's,^./,,' | xargs -r grep -H ''"
        return read_marks(self.lab.ssh(self.user, look))

    def queued(self) -> set[str]:
        """The keys of jobs that Slurm still knows as waiting or running; also while slurmctld is away for a moment."""
        look = "timeout 60 squeue -h -r --me -o %j"
        done = self.lab.until("squeue answers", lambda: [one for one in [self.run(look)] if not one.returncode], 90)
        return set(done[0].stdout.split())

    def wait(self, keys: Sequence[str], seconds: float) -> None:
        """Wait until Slurm has nothing left to do of these jobs."""
        self.lab.until(f"{', '.join(keys[:5])} have left the queue", lambda: not self.queued() & set(keys), seconds)

    def verdict(self, keys: Sequence[str] = ()) -> Verdict:
        """The verdict over these jobs, or over all; none of them is in the queue any more."""
        units = [unit for unit in self.units if not keys or unit.key in keys]
        return judge(units, self.marks(), self.crashes)
