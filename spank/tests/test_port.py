"""slurmd's port, which process 1 of a worker keeps open (images/slurm/listen and keep), in a real Slurm."""

from pathlib import Path

from pods import SPANK
from trixie import JAIL, NEEDS, Slurm, wait_idle

pytestmark = NEEDS
IMAGE = SPANK.parent / "images/slurm"

#: A user's program that waits for the port, as often as it can ask.
GRAB = """
import socket, time
print("began", flush=True)
while True:
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        taken.bind(("", 6818))
        taken.listen()
        print("GOT", flush=True)
        time.sleep(600)
    except OSError:
        taken.close()
        time.sleep(0.002)
"""

#: Ends the slurmd that runs, and has one kept by what holds the port, as the role of a worker does.
KEPT = """
old=$(cat /run/slurmd.pid); kill -9 $old; until_true '! ps -o stat= -p $old | grep -qv Z'
setsid bash -c '. /usr/lib/soperator/keep; keep_with_port 6818 /usr/sbin/slurmd -D' >/var/log/slurm/kept.out 2>&1 &
echo $! >/run/kept.pid
until_true 'scontrol show slurmd >/dev/null 2>&1'
"""

#: Kills slurmd, and waits until another one answers. `keep` starts only one anew that has run for 3 s.
KILL = """
sleep 3; old=$(cat /run/slurmd.pid); kill -9 $old
until_true '[ "$(cat /run/slurmd.pid)" != $old ] && scontrol show slurmd >/dev/null 2>&1'
"""

#: As Kubernetes ends a container: process 1 ends slurmd, and lets the port go; what is left after the time of grace is killed.
END = "kill $(cat /run/kept.pid); until_true '! pgrep -x slurmd >/dev/null' || kill -9 $(cat /run/kept.pid) $(pgrep -x slurmd)"


def test_nobody_gets_the_port_of_a_slurmd_that_was_killed(slurm: Slurm) -> None:
    """A user's program that waits for the port never gets it, and the next slurmd does; without process 1 the program gets it."""
    root = Path(f"/proc/{slurm.pid}/root")
    (root / "usr/lib/soperator").mkdir(exist_ok=True)
    for name in ("listen", "keep"):
        (root / "usr/lib/soperator" / name).write_text((IMAGE / name).read_text())
        (root / "usr/lib/soperator" / name).chmod(0o755)
    (root / JAIL[1:] / "srv/grab.py").write_text(GRAB)
    said = f"{JAIL}/home/alice/said"
    try:
        started = slurm.sh(KEPT, timeout=60)
        assert started.returncode == 0, started.stderr + slurm.sh("cat /var/log/slurm/kept.out").stdout
        slurm.sh("cd; sbatch -Q -o said --wrap 'exec python3 /srv/grab.py'", user="alice")
        slurm.until(f"grep -q began {said}")
        for script in (KILL, "scontrol reconfigure; sleep 2", KILL):
            done = slurm.sh(script, timeout=60)
            assert done.returncode == 0, done.stderr + slurm.sh("cat /var/log/slurm/kept.out").stdout
            assert slurm.sh("srun -Q --oversubscribe hostname").stdout == "one\n"
        assert slurm.sh(f"cat {said}").stdout == "began\n"
        seen = slurm.sh("srun -Q sh -c 'ls -l /proc/self/fd; env'").stdout
        assert "socket:" not in seen  # the step has neither the socket nor its name
        assert "RECONF" not in seen
        slurm.sh(END, timeout=60)  # the control: from here on nobody holds it
        slurm.until(f"grep -q GOT {said}")
    finally:
        slurm.sh(f"{END}; kill -9 $(pgrep -u alice -x python3); setsid slurmd", timeout=60)
        slurm.until("scontrol show slurmd >/dev/null 2>&1")
        slurm.sh(f"scancel -u alice; rm -f {said} {JAIL}/srv/grab.py")
    # slurmstepd found no slurmd, and tries again after 15 s
    slurm.sh("n=0; while squeue -h | grep -q . && [ $n -lt 40 ]; do sleep 1; n=$((n+1)); done", timeout=90)
    assert wait_idle(slurm) == "idle none"
