"""A NodeSet whose nodes sleep, as tests and soaks on a real cluster use one."""

from dataclasses import dataclass

from tests.cluster.lab import OPERATOR, Lab

SIZE = {"requests": {"cpu": "50m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}


@dataclass(frozen=True)
class Sleepers:
    """So many nodes of a NodeSet, and a user whose jobs wake them; the jobs leave files in the user's home that begin with the NodeSet's name."""

    lab: Lab
    name: str
    many: int
    user: str

    def apply(self, idle: str = "10m", **more: object) -> None:
        """The NodeSet, with further fields."""
        power = {
            "maxNodes": self.many,
            "suspendTime": idle,
            "suspendTimeout": "3s",
            "resumeTimeout": "3m",
            "retryAfter": "1h",
        }
        spec = {"clusterRef": {"name": self.lab.cluster}, "powerSaving": power, "resources": SIZE, **more}
        done = self.lab.apply("NodeSet", self.name, spec)
        assert done.returncode == 0, done.stderr

    def states(self) -> dict[str, str]:
        """The nodes and their states in Slurm's short words: `idle~` sleeps. A node in two partitions stands there twice."""
        found = [line.split() for line in self.lab.ssh("root", "sinfo -h -N -o '%N %t'").splitlines()]
        return {name: state for name, state in found if name.startswith(f"{self.name}-")}

    def pods(self) -> list[str]:
        """The pods that there are of them."""
        return sorted(name for name in self.lab.pods("worker") if f"-{self.name}-" in name)

    def sleep(self) -> bool:
        """Whether all sleep, and nothing is left of what was awake."""
        asleep = self.lab.status("nodeset", self.name).get("asleep") == self.many
        return asleep and not self.pods() and list(self.states().values()) == ["idle~"] * self.many

    def submit(self, words: str, script: str) -> float:
        """Submit a batch job that runs on these nodes; the moment just before, in seconds since 1970."""
        command = f"date +%s.%N; sbatch -C {self.name} -o /dev/null {words} --wrap '{script}'"
        return float(self.lab.ssh(self.user, command).split()[0])

    def read(self, file: str) -> str:
        """What a file in the user's home says; nothing where there is none."""
        return self.lab.ssh(self.user, f"cat {file} 2>/dev/null || true").strip()

    def ran(self) -> int:
        """How many tasks have written their file."""
        return int(self.lab.ssh(self.user, f"ls | grep -c '^{self.name}-[0-9]' || true"))

    def check(self, tasks: int) -> None:
        """So many tasks have written their file, each once, on these nodes."""
        lines = self.lab.ssh(self.user, f"cat {self.name}-[0-9]*").split()
        assert len(lines) == self.ran() == tasks
        assert set(lines) <= {f"{self.name}-{number}" for number in range(self.many)}


def kill_operator(lab: Lab) -> None:
    """Every replica goes at once."""
    chosen = ["-n", OPERATOR, "-l", "app.kubernetes.io/name=soperator"]
    lab.kubectl("delete", "pods", *chosen, "--grace-period=0", "--force", "--wait=false")
