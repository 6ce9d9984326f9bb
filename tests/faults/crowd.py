"""The jobs that run while something breaks: a long MPI job over two nodes, arrays of short ones, and an interactive shell on a terminal."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from local import demo
from tests.cluster.lab import Lab
from tests.faults.judge import Unit
from tests.faults.ledger import Ledger

#: Nodes with room for all of them, and with the same memory per CPU as those of the demo: slurm.conf stays as it is.
ROOM = {"requests": {"cpu": "50m", "memory": "4Gi"}, "limits": {"cpu": "4"}}
NODESET = "fault"
NODES = 3
TASKS = 16
#: A number goes round the ranks until a file appears; rank 0 counts the rounds.
RING = """
import os, sys, time
from mpi4py import MPI
world, go, rounds = MPI.COMM_WORLD, sys.argv[1], sys.argv[2]
number, over = 0, False
while not over:
    number = world.sendrecv(number + 1, dest=(world.rank + 1) % world.size, source=(world.rank - 1) % world.size)
    if world.rank == 0:
        with open(rounds, "w") as file:
            file.write(str(number))
    over = world.bcast(os.path.exists(go) if world.rank == 0 else None)
    time.sleep(0.2)
"""


@dataclass
class Crowd:
    """The jobs of the ledger on the nodes of a NodeSet; what ended is begun anew by `gather`."""

    ledger: Ledger
    ring: str = ""
    shell: "Shell | None" = None
    _rounds: str = ""

    @property
    def lab(self) -> Lab:
        """The cluster."""
        return self.ledger.lab

    def gather(self) -> None:
        """Let the MPI job and the shell run, whatever became of them before."""
        ledger = self.ledger
        if not self.ring or self.ring not in ledger.queued():
            ledger.run(f"rm -f {ledger.folder}/go; cat > {ledger.folder}/ring.py", RING)
            self._rounds = ledger.key("rounds")
            self.ring = ledger.submit("mpi", f"srun --mpi=pmix python3 ring.py go {self._rounds}", *self._pinned())
            assert self.ring, "the MPI job was refused"
        if self.shell is None or not self.shell.is_alive():
            self.shell = Shell(ledger)
            self.shell.open(f"-w {NODESET}-0")
        self.lab.until("the MPI job goes round", lambda: self.rounds() > 0, 90)

    def _pinned(self) -> list[str]:
        return [f"-w {NODESET}-0,{NODESET}-1", "-N2", "-n2", "-t 120"]

    def array(self, tasks: int = TASKS) -> str:
        """Submit an array of short jobs; return its key."""
        key = self.ledger.submit("array", "sleep 1.5", f"-C {NODESET}", "-t 10", tasks=tasks)
        assert key, "the array was refused"
        return key

    def rounds(self) -> int:
        """How many rounds the MPI job has made in its present run."""
        done = self.ledger.run(f"cat {self.ledger.folder}/{self._rounds}", seconds=10)
        return int(done.stdout) if done.stdout.strip().isdecimal() else 0

    def goes_round(self) -> bool:
        """Whether the MPI job makes rounds; one that Slurm runs again would wait for two minutes, which is not for us to do."""
        before = self.rounds()
        self.ledger.run(
            f"squeue -h --me -t PD -n {self.ring} -o %A | xargs -r -I% scontrol update jobid=% starttime=now"
        )
        return self.lab.until("the MPI job goes on", lambda: self.rounds() not in (0, before), 180)

    def hasten(self) -> None:
        """Let jobs that Slurm runs again begin at once: by itself it waits for two minutes (job_mgr.c, `job_requeue`)."""
        waiting = "squeue -h -r --me -t PD -o '%A %r' | sed -n 's/ BeginTime$//p'"
        self.ledger.run(f"{waiting} | xargs -r -I% scontrol update jobid=% starttime=now")

    def runs(self) -> int:
        """How often Slurm has begun the MPI job anew."""
        return max((mark.run for mark in self.ledger.marks() if mark.key == self.ring), default=0)

    def leave_shell(self) -> None:
        """End the shell in order, before something that may not spare it: no rule of Slurm's runs it again."""
        if self.shell is not None:
            self.shell.close()
            self.shell = None

    def finish(self) -> None:
        """Let both end by themselves, and wait until they have."""
        self.leave_shell()
        self.ledger.run(f"touch {self.ledger.folder}/go")
        self.ledger.wait([self.ring], 60)


@dataclass
class Shell:
    """`ssh -t` to a login node, and there `srun --pty`: what a person at a terminal has."""

    ledger: Ledger
    key: str = ""
    _process: "subprocess.Popen[bytes] | None" = None
    _seen: bytearray = field(default_factory=bytearray)
    _asked: int = 0

    def open(self, where: str) -> None:
        """Log in and get a shell in a job; it leaves its mark as any job does."""
        ledger = self.ledger
        self.key = ledger.key("shell")
        first, *rest = demo.ssh(ledger.lab.address, ledger.user)
        command = f"srun -J {self.key} -n1 -t 120 {where} --pty sh"
        argv = [first, "-tt", *rest, command]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        threading.Thread(target=self._read, daemon=True).start()
        self._say(f'mark() {{ echo "$(date +%s.%N) $(hostname)" >> {ledger.folder}/{self.key}.0.0.$1; }}; mark began')
        ledger.lab.until(f"{self.key} answers", self.is_alive, 60)
        ledger.units.append(Unit(self.key, 0, time.time()))

    def is_alive(self, seconds: float = 20) -> bool:
        """Whether a question is answered in time; the terminal's echo of the question is no answer."""
        if self._process is None or self._process.poll() is not None:
            return False
        self._asked += 1
        self._say(f"echo answer-$(({self._asked}+0))-")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if f"answer-{self._asked}-".encode() in self._seen:
                return True
            time.sleep(0.05)
        return False

    def close(self) -> None:
        """Leave the mark of the end and log out."""
        if self._process is not None:
            self._say("mark ended; exit")
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            return

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while chunk := self._process.stdout.read1(4096):  # type: ignore[attr-defined]
            self._seen += chunk


@contextmanager
def crowd_of(lab: Lab, user: str, folder: str) -> Iterator[Crowd]:
    """A NodeSet of its own, and the crowd on it; at the end the jobs end by themselves, and the NodeSet goes."""
    spec = {"clusterRef": {"name": lab.cluster}, "replicas": NODES, "resources": ROOM}
    done = lab.apply("NodeSet", NODESET, spec)
    assert done.returncode == 0, done.stderr
    lab.wait_available()
    crowd = Crowd(Ledger(lab, user, folder))
    crowd.ledger.open()
    try:
        yield crowd
    finally:
        lab.ssh("root", f"scancel -u {user}")
        lab.kubectl("delete", "nodeset", NODESET, "--ignore-not-found", "--timeout=90s")
        lab.wait_available()
