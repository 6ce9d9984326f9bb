"""A real Slurm in a pod: slurmctld and slurmd in namespaces like a pod's, with the jail beside them (slurm/up).

The tests need the Debian root that `python3 -m local.slurm_root` creates, and are skipped without it. SLURM_RELEASE selects another release
than that of the images.
"""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pods import HERE, PODS, SPANK

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def root_of(release: str) -> Path:
    """Return the path of the root that `local/slurm_root.py` creates for a release; by default that of the images."""
    default = re.search(r'^DEFAULT = "(.*)"', (SPANK.parent / "local/slurm_release.py").read_text(), re.MULTILINE)
    assert default
    named = release or default[1]
    return CACHE / ("soperator/trixie-slurm" if named == "24.11" else f"soperator/trixie-slurm-{named}")


TRIXIE = Path(os.environ.get("SPANK_TRIXIE") or root_of(os.environ.get("SLURM_RELEASE", "")))
#: Whether this Slurm was built with PMIx: Debian's packages of 26.05 were not.
HAS_PMIX = (TRIXIE / "usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix.so").exists()
NEEDS_PMIX = pytest.mark.skipif(not HAS_PMIX, reason=f"the Slurm in {TRIXIE} has no PMIx")
#: What Slurm calls the plugins of which ours is one, and how the names of their functions begin: otherwise since 25.11.
KIND, HOOK = (
    ("namespace", "namespace")
    if (TRIXIE / "usr/lib/x86_64-linux-gnu/slurm-wlm/namespace_tmpfs.so").exists()
    else ("job_container", "container")
)
JAIL = "/mnt/jail/root"
PLAN = "/etc/soperator/jail/plan"

#: Waits up to 20 s until a condition holds.
UNTIL = """until_true() { n=0; until eval "$1"; do n=$((n+1)); [ $n -lt 400 ] || { echo "never: $1" >&2; return 1; }; sleep 0.05; done; }
"""

NEEDS = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not (TRIXIE / "usr/include/slurm/spank.h").exists(), reason=f"no Slurm in {TRIXIE}"),
]


@dataclass(frozen=True)
class Slurm:
    """A running pod with Slurm in it."""

    pid: int
    userns: bool

    def sh(self, script: str, user: str = "root", timeout: float = 30) -> subprocess.CompletedProcess[str]:
        """Run a shell script in the pod; the script can call `until_true CONDITION`."""
        user_namespace = ["-U", "--preserve-credentials"] if self.userns else []
        enter = ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", *user_namespace]
        words = ["sh", "-c", f"cd /; {UNTIL}{script}"]
        command = words if user == "root" else ["su", user, "-c", f"cd; {UNTIL}{script}"]
        return subprocess.run(
            [*enter, *command],
            check=False,
            text=True,
            errors="replace",  # what a job leaves may be anything, a core file too
            capture_output=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    def until(self, condition: str) -> None:
        """Wait until a condition of the shell is true for root."""
        done = self.sh(f"until_true {shlex.quote(condition)}")
        assert done.returncode == 0, done.stderr

    def is_2411(self) -> bool:
        """Return whether the release is 24.11, and not a later one."""
        return " 24.11." in self.sh("slurmctld -V").stdout

    def read(self, path: str) -> str:
        """Return a file of the jail."""
        return self.sh(f"cat {JAIL}{path}").stdout

    def tell(self) -> str:
        """Return the data for a diagnosis: processes, queue, nodes, and the ends of Slurm's logs; works without slurmctld too."""
        asked = "timeout 5 squeue; timeout 5 sinfo -N -o '%N %T %E'"
        look = f"{asked}; ps -eo pid,ppid,stat,etimes,wchan:20,args --forest"
        return self.sh(f"{look}; tail -n 40 /var/log/slurm/ctld.log; tail -n 120 /var/log/slurm/d.log").stdout

    @contextmanager
    def contain(self) -> Iterator[None]:
        """Set PrologFlags=Contain in the block, the default of releases after 24.11: each job has an extern step."""
        if self.sh("grep -q ^PrologFlags=Contain /etc/slurm/slurm.conf").returncode == 0:
            yield
            return
        try:
            self.sh("echo PrologFlags=Contain >>/etc/slurm/slurm.conf; scontrol reconfigure")
            self.until("scontrol show config | grep -q '^PrologFlags .*Contain'")
            yield
        finally:
            self.sh("sed -i /^PrologFlags=/d /etc/slurm/slurm.conf; scontrol reconfigure")
            self.until("! scontrol show config | grep -q '^PrologFlags .*Contain'")


def build_plugin(folder: Path) -> Path:
    """Build the plugin and the helper in the trixie root against Slurm's own header, and create fake GPUs; return the folder."""
    script = 'mount --bind "$1" "$3/mnt" && mount --bind "$2" "$3/srv" && chroot "$3" make -s -C /mnt BUILD=/srv'
    subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(SPANK), str(folder), str(TRIXIE)], check=True)
    (folder / "devices").mkdir()
    for number in range(4):
        os.mknod(folder / f"devices/fakegpu{number}", 0o20666, os.makedev(1, 3))  # works like /dev/null
    return folder


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of build_plugin."""
    return build_plugin(tmp_path_factory.mktemp("plugin"))


# `make test` takes the harder kind and Slurm's own authentication; `make test-all` both of both, where a test has a Slurm of its own.
KINDS = ["userns-move", "root-pivot"] if os.environ.get("SPANK_TEST_ALL") else ["userns-move"]
AUTHS = ["slurm", "munge"] if os.environ.get("SPANK_TEST_ALL") else ["slurm"]


@pytest.fixture(scope="session", params=KINDS)
def slurm(plugin: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Start Slurm as the machine's root, and in a user namespace with a pod's capabilities."""
    kind = PODS[request.param]
    work = tmp_path_factory.mktemp("slurm")
    up = [str(HERE / "slurm/up"), str(TRIXIE), str(work), str(plugin)]
    with (work / "up.log").open("w") as log:
        pod = subprocess.Popen([*kind.words(), "--net", "--", *up], stdout=log, stderr=log)
    try:
        yield wait_until_ready(pod, kind.userns, work / "up.log")
    finally:
        pod.kill()
        pod.wait()


def wait_until_ready(pod: subprocess.Popen[bytes], userns: bool, log: Path) -> Slurm:
    """Wait for slurmd; the pod's own shell is the only child's only child, and its children are the daemons."""
    for _ in range(300):
        assert pod.poll() is None, log.read_text()
        time.sleep(0.1)
        try:
            init = int(Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()[0])
            shell = int(Path(f"/proc/{init}/task/{init}/children").read_text().split()[0])
            slurm = Slurm(shell, userns)
            if slurm.sh("test -e /run/ready").returncode == 0:
                return slurm
        except (IndexError, FileNotFoundError):
            continue
    raise AssertionError(log.read_text())


def processes(slurm: Slurm) -> list[str]:
    return [line for line in slurm.sh("ps -eo args").stdout.splitlines() if line.startswith(("sleep ", "jail-holder"))]


def wait_idle(slurm: Slurm) -> str:
    """Return the node's state once no job is left; a plan of backfill for a job that has ended (``planned``) counts as idle."""
    for _ in range(100):
        state = slurm.sh("squeue -h; sinfo -h -N -o '%T %E'").stdout.strip().replace("planned", "idle")
        if state == "idle none":
            break
        time.sleep(0.1)
    return state


def settled(slurm: Slurm, count: str, wanted: str) -> str:
    """Return a script's count, and retry for 10 s until it has the wanted value: a process that has ended may be visible a moment longer."""
    end = time.monotonic() + 10
    while (now := slurm.sh(count).stdout) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return now
