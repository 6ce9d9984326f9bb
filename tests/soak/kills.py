"""Kill what runs jobs at a random moment of theirs, then look how the jobs ended and what was left behind.

One round on a node: jobs of two users begin, with steps, files in /tmp and /dev/shm, and processes that try to outlive them; after a random
time something is killed. slurmd alone: it is started again, and the jobs go on until they are cancelled. The pod: Slurm ends the jobs of the
node, and the pod comes back. Then nothing of the round may be left: no process, mount, namespace, descriptor or folder more than a node has
on which no job ever ran.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.cluster.lab import Lab, is_ready

USERS = ("alice", "bob")
LATEST = 2.0
#: slurmctld asks again after about 110 s whether a job has ended on a node that was replaced when it was first asked.
PATIENCE = 180.0
TICK = 0.5

#: Two steps beside each other, files, and a process that leaves its session.
JOB = """
touch /tmp/left-behind /dev/shm/left-behind
setsid sleep 1000 >/dev/null 2>&1 &
srun -n1 --overlap sleep 1000 & srun -n1 --overlap sh -c 'sleep 1001 & sleep 1000' &
wait
"""
#: What a node has that must not grow: run by sh in the container of slurmd. Processes are all but the container's own and this script's.
LOOK = r"""
slurmd=$(cat /tmp/slurmd.pid)
echo "mounts $(wc -l < /proc/1/mountinfo)"
echo "descriptors $(ls /proc/$slurmd/fd | wc -l)"
echo "namespaces $(ls -l /proc/[0-9]*/ns/mnt /proc/[0-9]*/ns/pid 2>/dev/null | sed 's/.*-> //' | sort -u | wc -l)"
echo "folders $(FOLDERS | wc -l)"
processes=0
for each in /proc/[0-9]*; do
    read -r name < $each/comm 2>/dev/null || continue
    case $name in slurmstepd|jail*|sleep|srun|slurm_script) processes=$((processes + 1));; esac
    case $(sed 's/.*) //' $each/stat 2>/dev/null) in Z*) processes=$((processes + 1));; esac
done
echo "processes $processes"
"""
FOLDERS = "ls -d /run/jail/jobs/[0-9]* /mnt/tmp/job-* /var/spool/slurmd/job* /var/spool/slurmd/*_[0-9]* 2>/dev/null"
Counts = dict[str, int]


@dataclass
class Tally:
    """What came of many rounds of one kind."""

    what: str
    kills: int = 0
    moments: list[float] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    recovered: list[float] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Take another one's rounds in."""
        self.kills += other.kills
        self.moments += other.moments
        self.ends.update(other.ends)
        self.recovered += other.recovered
        self.leaks += other.leaks
        self.wrong += other.wrong


def look(lab: Lab, node: str) -> Counts:
    """What a node has."""
    said = inside(lab, node, LOOK.replace("FOLDERS", FOLDERS))
    return {name: int(count) for name, count in (line.split() for line in said.splitlines())}


def inside(lab: Lab, node: str, script: str) -> str:
    """What a script of sh printed beside a node's slurmd."""
    return lab.kubectl("exec", pod_of(lab, node), "-c", "slurmd", "--", "sh", "-c", script)


def pod_of(lab: Lab, node: str) -> str:
    """The pod of a Slurm node."""
    return f"{lab.cluster}-{node}"


def kill_slurmd(lab: Lab, node: str) -> Callable[[], bool]:
    """Kill slurmd alone; the question is whether another one runs and Slurm hears of it."""
    old = inside(lab, node, "old=$(cat /tmp/slurmd.pid); kill -9 $old && echo $old").strip()
    new = f"new=$(cat /tmp/slurmd.pid); [ $new != {old} ] && kill -0 $new && echo yes"

    def is_back() -> bool:
        done = lab.tried("exec", pod_of(lab, node), "-c", "slurmd", "--", "sh", "-c", new)
        return done.stdout.strip() == "yes" and is_up(lab, node)

    return is_back


def kill_pod(lab: Lab, node: str) -> Callable[[], bool]:
    """Kill the pod; the question is whether another one is ready and Slurm's node with it."""
    before = lab.look("pod", pod_of(lab, node))["metadata"]["uid"]
    lab.kubectl("delete", "pod", pod_of(lab, node), "--grace-period=1", "--wait=false")

    def is_back() -> bool:
        found = lab.look("pod", pod_of(lab, node))
        return bool(found) and found["metadata"]["uid"] != before and is_ready(found) and is_up(lab, node)

    return is_back


def is_up(lab: Lab, node: str) -> bool:
    """Whether Slurm can use the node: neither down nor drained nor silent."""
    state = lab.ssh("alice", f"sinfo -h -N -n {node} -o %T").split()
    return bool(state) and state[0] in ("idle", "mixed", "allocated", "completing")


KILLS: dict[str, Callable[[Lab, str], Callable[[], bool]]] = {"slurmd": kill_slurmd, "worker pod": kill_pod}


def run(lab: Lab, what: str, nodes: Sequence[str], rounds: int, seed: int, minutes: float = 60) -> Tally:
    """Kill again and again, on all nodes beside each other, as often as asked for, or until the time is over."""
    until = time.monotonic() + 60 * minutes
    chance = random.Random(seed)
    bare = {node: look(lab, node) for node in nodes}
    shares = [rounds // len(nodes) + (number < rounds % len(nodes)) for number in range(len(nodes))]
    delays = [[chance.uniform(0, LATEST) for _ in range(share)] for share in shares]
    tally = Tally(what)

    def work(node: str, mine: Sequence[float]) -> Tally:
        own = Tally(what)
        for delay in mine:
            if time.monotonic() < until:
                own.add(one(lab, what, node, delay, bare[node]))
        return own

    with ThreadPoolExecutor(len(nodes)) as pool:
        for each in pool.map(work, nodes, delays):
            tally.add(each)
    return tally


def one(lab: Lab, what: str, node: str, delay: float, bare: Counts) -> Tally:
    """One round."""
    jobs = [submit(lab, node, user) for user in USERS]
    time.sleep(delay)
    began = time.monotonic()
    is_back = KILLS[what](lab, node)
    wait(lab, f"{node} is back after a kill of {what}", is_back)
    tally = Tally(what, kills=1, moments=[delay], recovered=[time.monotonic() - began])
    if what == "slurmd":
        for job in jobs:
            if state(lab, job) not in ("RUNNING", "PENDING"):
                tally.wrong.append(f"job {job} on {node} did not outlive slurmd: {state(lab, job)}")
        lab.ssh("root", f"scancel {' '.join(jobs)}")
    else:
        # A job that had not begun when the pod went may begin on the new one: it was asked for.
        lab.ssh("root", f"scancel -t PENDING {' '.join(jobs)}; sleep 1; scancel {' '.join(jobs)}")
    wait(lab, f"the jobs {jobs} have ended", lambda: not live(lab, jobs))
    tally.ends.update(state(lab, job) for job in jobs)
    tally.leaks += leaks(lab, node, bare)
    return tally


def submit(lab: Lab, node: str, user: str) -> str:
    """Begin a job; its number. It is not requeued, so that its end can be read."""
    return lab.ssh(
        user, f"sbatch --parsable --no-requeue -n1 -w {node} -o /dev/null", f"#!/bin/sh\n{JOB}".encode()
    ).strip()


def state(lab: Lab, job: str) -> str:
    """The state of a job in Slurm's word."""
    return lab.ssh("alice", f"scontrol show job -o {job}").split("JobState=")[1].split()[0]


def live(lab: Lab, jobs: Sequence[str]) -> str:
    """Those of the jobs that have not ended."""
    return lab.ssh("alice", f"squeue -h -t PD,R,CG,CF,S -j {','.join(jobs)} 2>/dev/null || true").strip()


def leaks(lab: Lab, node: str, bare: Counts) -> list[str]:
    """What a node has more than before, once it has had 10 s to put it away."""
    began = time.monotonic()
    while True:
        now = look(lab, node)
        more = [f"{name} on {node}: {now[name]} instead of {bare[name]}" for name in bare if now[name] > bare[name]]
        if not more:
            return []
        if time.monotonic() - began > 10:
            return [*more, f"folders on {node}: {' '.join(inside(lab, node, f'{FOLDERS} || true').split())}"]
        time.sleep(TICK)


def wait(lab: Lab, what: str, ask: Callable[[], bool]) -> None:
    """Ask until it is so."""
    began = time.monotonic()
    while not ask():
        if time.monotonic() - began > PATIENCE:
            raise AssertionError(f"not within {PATIENCE:.0f} s: {what}\n{lab.seen()}")
        time.sleep(TICK)
