"""Measures the whole local cluster as a user sees it: from `kubectl apply` to a job, from a lost worker to an idle node, and the operator's load.

`make demo` must have run. The bench deletes the demo's objects and applies them again from the manifests that helm stored for the releases,
so helm still recognizes them.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from local.bench import audit, record
from local.bench.watch import Watch, milestones
from local.demo import CLUSTER, NAMESPACE, Target, local_target, ssh
from local.paths import DEFAULT_STATE as STATE
from local.paths import REPOSITORY, State
from local.progress import Failure, say

IDLE = 180.0
PATIENCE = 180.0
QUIET = 6.0
LOG = State(STATE).audit_log
ASIDE = STATE / "bench-aside"
COLD = REPOSITORY / "docs" / "reports" / "cold-demo.md"


def target() -> Target:
    """Return the local cluster; raises Failure if it is not running."""
    if not (STATE / "kubeconfig").exists():
        raise Failure("no cluster is running: run make demo")
    return local_target()


def measure_warm(runs: int) -> None:
    """Measure `make demo` after `make down`."""
    for number in range(runs):
        set_aside()
        _make("down")
        scene = record.current_scene()
        seconds = _make("demo")
        say(f"make demo, run {number + 1}: {seconds:.1f} s")
        record.append(record.Run("warm", seconds, **scene.__dict__))


def measure_cold(_: int) -> None:
    """Measure `make demo` after `make clean`, and write the report that is committed, because a bench does not empty the caches each time."""
    _make("clean")
    scene = record.current_scene()
    seconds = _make("demo")
    record.append(record.Run("cold", seconds, **scene.__dict__))
    COLD.parent.mkdir(parents=True, exist_ok=True)
    COLD.write_text(
        f"# `make clean && make demo`\n\nMeasured by `python -m local.bench cold`; docs/performance.md takes the figure from here.\n\n"
        f"seconds: {seconds:.0f}\ncommit: {scene.commit}\nwhen: {scene.when}\nload before: {scene.load}\n"
    )


def measure_start(runs: int) -> None:
    """Delete the Slurm cluster and its storage, apply them again, and wait for a first job on both workers."""
    kube = target()
    for number in range(runs):
        manifest = _fresh(kube)
        offset = LOG.stat().st_size
        scene = record.current_scene()
        began = time.time()
        with Watch() as watch:
            kube.run("kubectl", "apply", "--server-side", "--field-manager=helm", "-f", "-", stdin=manifest)
            parts = milestones(watch, began, PATIENCE)
        value = parts["first srun -N2"]
        say(f"start, run {number + 1}: " + ", ".join(f"{name} {at:.1f} s" for name, at in parts.items()))
        record.append(record.Run("start", value, parts=parts, **scene.__dict__))
        time.sleep(QUIET)
        _count(offset, began, scene)


def _count(offset: int, began: float, scene: record.Scene) -> None:
    found = audit.requests(audit.tail(LOG, offset), audit.OPERATOR, began)
    writes, children = sum(each.is_write for each in found), sum(each.is_creation for each in found)
    verbs = {verb: float(count) for verb, count in sorted(audit.by_verb(found).items())}
    note = f"{writes} writes for {children} children; " + ", ".join(f"{verb} {n:.0f}" for verb, n in verbs.items())
    say(note)
    record.append(record.Run("writes", writes, limit=children + 10, note=note, parts=verbs, **scene.__dict__))


def measure_idle(_: int) -> None:
    """Count the requests that an idle operator sends to the API server in three minutes."""
    target()
    time.sleep(QUIET)
    offset, scene, began = LOG.stat().st_size, record.current_scene(), time.time()
    say(f"idle for {IDLE:.0f} s")
    time.sleep(IDLE)
    found = [
        each
        for each in audit.requests(audit.tail(LOG, offset), audit.OPERATOR, began)
        if each.began < began + IDLE  # a watch that ended meanwhile had begun before
    ]
    counted = audit.by_verb(found)
    totals = ", ".join(f"{verb} {count}" for verb, count in sorted(counted.items()))
    busy = sum(count for verb, count in counted.items() if verb not in ("lease", "watch"))
    say(f"idle: {totals}")
    record.append(record.Run("idle", busy, note=f"{totals} in {IDLE:.0f} s", **scene.__dict__))
    record.append(record.Run("lease", counted["lease"] * 60 / IDLE, **scene.__dict__))


def measure_memory(_: int) -> None:
    """Return the resident memory of the operator's process, which is visible on this machine although it runs in a pod."""
    scene = record.current_scene()
    pids = [pid for pid in _processes() if _argv(pid)[1:3] == ["/usr/local/bin/soperator", "operator"]]
    if len(pids) != 1:
        raise Failure(f"{len(pids)} operators run in the local cluster, not one: run make demo")
    lines = Path(f"/proc/{pids[0]}/status").read_text().splitlines()
    sizes = {words[0]: float(words[1]) / 1024 for words in map(str.split, lines) if words[0][:3] in ("VmR", "VmH")}
    peak, anonymous = sizes["VmHWM:"], _field(lines, "RssAnon:")
    note = f"peak {peak:.1f} MiB, {anonymous:.1f} MiB of it are anonymous memory"
    say(f"operator: {sizes['VmRSS:']:.1f} MiB, {note}")
    record.append(record.Run("memory", sizes["VmRSS:"], note=note, **scene.__dict__))


def measure_worker(runs: int) -> None:
    """Delete a worker's pod, and wait until Slurm reports the node of the new slurmd as idle."""
    kube = target()
    address = str(_status(kube)["address"])
    for number in range(runs):
        node = f"worker-{number % 2}"
        scene, began = record.current_scene(), time.time()
        kube.run("kubectl", "-n", NAMESPACE, "delete", "pod", f"{CLUSTER}-{node}", "--wait=false")
        _wait_idle(address, node, began)
        seconds = time.time() - began
        say(f"{node} idle again, run {number + 1}: {seconds:.1f} s")
        record.append(record.Run("worker", seconds, **scene.__dict__))
        time.sleep(QUIET)


def _wait_idle(address: str, node: str, began: float) -> None:
    """Read the states of a node that a loop on the login node prints, until one has the wanted state."""
    loop = f"while sleep 0.1; do scontrol --oneliner show node {node}; done"
    with subprocess.Popen([*ssh(address, "root"), loop], stdout=subprocess.PIPE, text=True) as looks:
        assert looks.stdout is not None
        try:
            for line in looks.stdout:
                fields = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
                if fields.get("State") == "IDLE+DYNAMIC_NORM" and _at(fields["SlurmdStartTime"]) >= int(began):
                    return
                if time.time() - began > PATIENCE:
                    raise Failure(f"{node} is not idle after {PATIENCE:.0f} s: {fields.get('State')}")
        finally:
            looks.terminate()
    raise Failure(f"the session at {address} ended while {node} was waited for")


def _at(text: str) -> float:
    return 0.0 if text in ("None", "Unknown") else datetime.fromisoformat(f"{text}+00:00").timestamp()


def _fresh(kube: Target) -> str:
    """Delete the Slurm cluster and its storage, and create empty storage; return the cluster's manifest."""
    cluster, storage = (kube.run("helm", "-n", NAMESPACE, "get", "manifest", name) for name in (CLUSTER, "storage"))
    kube.run("kubectl", "delete", "--ignore-not-found", "-f", "-", stdin=cluster)
    _until(lambda: not _left(kube), "the old cluster's objects go")
    kube.run("kubectl", "delete", "--ignore-not-found", "-f", "-", stdin=storage)
    set_aside()
    kube.run("kubectl", "apply", "--server-side", "--field-manager=helm", "-f", "-", stdin=storage)
    for role in ("jail", "state"):
        claim = f"pvc/{CLUSTER}-{role}"
        kube.run("kubectl", "-n", NAMESPACE, "wait", claim, "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
    time.sleep(QUIET)
    return cluster


def set_aside() -> None:
    """Move the old jail away; it is removed after the measurement.

    On ext4 without a journal, as on virtual machines, the creation of a file skips every inode that was freed in the last minutes: a jail
    that is copied just after the removal of another one takes 15 s instead of 3.
    """
    storage, aside = STATE / "storage", ASIDE / str(time.time_ns())
    if storage.exists():
        aside.parent.mkdir(exist_ok=True)
        storage.rename(aside)


def _left(kube: Target) -> str:
    """Return the names of the operator's objects that still exist; claims are not among them."""
    kinds = "pods,jobs,secrets,statefulsets,deployments"
    ours = "app.kubernetes.io/managed-by=soperator"
    return kube.run("kubectl", "-n", NAMESPACE, "get", kinds, "-o", "name", "-l", ours).strip()


def _until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise Failure(f"waited {PATIENCE:.0f} s, but it is not true that {what}")
        time.sleep(0.5)


def _status(kube: Target) -> dict[str, object]:
    status = kube.read_object("slurmcluster", CLUSTER).get("status")
    if not isinstance(status, dict) or status.get("why"):
        raise Failure(f"the cluster is not available: {status}")
    return status


def _make(goal: str) -> float:
    """Run a target of the Makefile with its output on the terminal's error stream; return its duration in seconds."""
    began = time.monotonic()
    if subprocess.run(["make", goal], cwd=REPOSITORY, stdout=sys.stderr, check=False).returncode:
        raise Failure(f"make {goal} failed; its output is above")
    return time.monotonic() - began


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _argv(pid: int) -> Sequence[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return ()


def _field(lines: Sequence[str], name: str) -> float:
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0.0)
