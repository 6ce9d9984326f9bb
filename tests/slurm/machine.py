"""A machine with a real slurmctld and slurmds, without Kubernetes. Needs root, and the Debian root of
`local/slurm_root.py`.
"""

import os
import subprocess
from dataclasses import dataclass

import pytest

from local import slurm_root
from soperator.slurm import topology
from tests.late import until

TRIXIE = slurm_root.ROOT
NAMESPACES = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
#: slurmctld that runs, and not one that has just ended; once it has read its files anew it bears the name of its file, slurmctld-wlm.
RUNNING = "-r R,S,D '^slurmctld'"

NEEDS = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(
        not (TRIXIE / "usr/include/slurm/spank.h").exists(),
        reason=f"no Slurm in {TRIXIE}; python3 -m local.slurm_root makes it",
    ),
]


@dataclass(frozen=True)
class Slurm:
    """A machine with Slurm."""

    pid: str

    def sh(self, script: str, stdin: str = "") -> str:
        """What a script prints there, with its errors."""
        words = ["nsenter", "-t", self.pid, "-m", "-n", "-p", "-u", "-i", "sh", "-c", f"cd /; {script}"]
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    def until(self, script: str, wanted: str) -> None:
        """Wait until a script prints this."""
        said = [""]

        def ask() -> bool:
            said[0] = self.sh(script).strip()
            return said[0] == wanted

        until(
            f"{wanted} of {script}", ask, 60, lambda: f"{said[0]}\n{self.sh('tail -n 40 /var/log/slurm/ctld.log')}", 0.3
        )

    def starts(self, *nodes: str, more: str = "", cpus: int = 1, is_saved: bool = True) -> None:
        """Start slurmd on nodes, and wait until they can take a job, and slurmctld has written them down where that is said."""
        for node in nodes:
            conf_ = f"CPUs={cpus} RealMemory=100 Port={7000 + int(node[2:])} {more}"
            self.sh(f"unshare --uts sh -c 'hostname {node}; slurmd -N {node} -Z --conf \"{conf_}\"'")
        for node in nodes:
            self.until(f"sinfo -h -p all -n {node} -o %T", "idle")
        for node in nodes if is_saved else ():
            self.sh(f"scontrol update nodename={node} comment=new")  # so that it is written down: docs/decisions/0042
            self.until(f"grep -ao '{node}' /var/spool/slurmctld/node_state | head -n 1", node)

    def reads(self, kind: str, text: str, more: str = "") -> None:
        """Let slurmctld read a topology, and wait until every node is back."""
        self.sh("cat > /etc/slurm/topology.conf", text)
        self.sh("cat > /etc/slurm/more.conf", f"TopologyPlugin=topology/{kind}\n{more}")
        if self.sh(f"pgrep {RUNNING}").strip():
            count = self.sh("sinfo -hN | wc -l").strip()
            began = "grep -c 'Running as primary' /var/log/slurm/ctld.log"
            before = int(self.sh(began))
            self.sh("scontrol reconfigure")
            self.until(began, str(before + 1))
            self.until("sinfo -hN -r -t idle | wc -l", count)

    def begins(self, variables: str = "", signal: str = "TERM") -> None:
        """Start slurmctld with these variables, as in VAR=value, after the one before has ended by a signal."""
        self.sh(f"pkill -{signal} '^slurmctld'; while pgrep {RUNNING}; do sleep 0.1; done; {variables} slurmctld")
        self.until("scontrol ping | grep -o UP", "UP")

    def found(self) -> list[str] | None:
        """Which nodes slurmctld found when it read a tree."""
        return topology.found(self.sh("scontrol show topology"))

    def is_2411(self) -> bool:
        """Whether it is 24.11, and not a later release."""
        return " 24.11." in self.sh("slurmctld -V")

    def runs(self, words: str, what: str = "hostname") -> list[str]:
        """On which nodes a job runs that begins at once, or what it says otherwise; or what is said instead."""
        said = self.sh(f"timeout 20 srun -Q --immediate=15 {words} {what} | sort").split("\n")
        return [line for line in said if line]
