"""Real faults on real nodes: each is found and drained with its evidence, no job is touched, and what is mended comes back by itself."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from local.demo import ROOT
from tests.cluster.checked import HEALTH, INTERVAL, NODES, Checked, cluster, kernel_says, skew, two
from tests.cluster.conftest import make_user
from tests.cluster.lab import Held, Lab, condition
from tests.unit.agents.checks.smi import SENTENCES, gpu

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(480)]

SMALL = [f"small-{n}" for n in range(7)]


@pytest.fixture(scope="module")
def checked(lab: Lab) -> Iterator[Checked]:
    """The cluster, once all its nodes have reported that all checks pass."""
    if not lab.target.is_local:
        pytest.skip("the devices and the clocks of the Nodes are this machine's")
    make_user(lab, "alice")
    with cluster(lab) as made:
        made.well(*SMALL, "skewed-0", "heard-0")
        yield made


@pytest.mark.skipif(not os.environ.get("SOPERATOR_LONG"), reason="make soak plays it")
def test_each_fault_drains_its_node_beside_its_jobs_and_ends_by_itself(checked: Checked) -> None:
    """A full /tmp, lost and broken GPUs, memory and a process that no job owns, a read-only disk, a wrong clock, an XID."""
    lab = checked.lab
    stray = _leave_a_process(checked, "small-5")
    whole = lab.ssh(
        "alice",
        "rm -f go filled; sbatch --parsable -N4 -w small-[1-3,6] -o whole.out "
        "--wrap 'srun sh -c \"while [ ! -e go ]; do sleep 0.5; done\"; echo whole'",
    ).strip()
    fill = "dd if=/dev/zero of=/tmp/full bs=1M 2>/dev/null; touch filled; while [ ! -e go ]; do sleep 0.5; done; rm -f /tmp/full; echo whole"
    full = lab.ssh("alice", f"sbatch --parsable -w small-0 -o full.out --wrap '{fill}'").strip()
    lab.until("the jobs run", lambda: set(lab.ssh("alice", "squeue -h -t R -o %i").split()) == {whole, full}, 60)
    lab.until("/tmp is full", lambda: lab.ssh("alice", "ls filled 2>/dev/null || true").strip() == "filled", 60)
    former = _machine(lab, "checked-heard-0")
    _break(checked)
    began = time.monotonic()
    lab.until(
        "an XID drains heard-0",
        lambda: "check gpu-xid: GPU 0000:3b:00: XID 79: pid=1337" in checked.state("heard-0"),
        60,
    )
    _is_left(checked, former)
    found = {
        "small-0": ("disk-full", "/tmp is "),
        "small-1": ("gpu-count", "2 of 2 GPUs do not answer"),
        "small-2": ("gpu-memory", "GPU 00000000:1A:00.0 has had 3 uncorrectable memory errors"),
        "small-3": ("gpu-count", "1 of 2 GPUs do not answer"),
        "small-6": ("disk-readonly", "/tmp cannot be written"),
        "skewed-0": ("clock-now", "the clock is "),
        "small-4": ("memory-held", ""),
        "small-5": ("job-leftovers", "1 processes of jobs that are over still run: sleep"),
    }
    for node, (check, says) in found.items():
        lab.until(
            f"{check} drains {node}",
            lambda node=node, check=check, says=says: f"soperator: check {check}: {says}" in checked.state(node),
            180,
        )
        if check not in ("memory-held", "job-leftovers"):
            lab.timings.note(
                f"all faults made → {check} told, and its node drained, one look every {INTERVAL} s",
                time.monotonic() - began,
            )
    assert "is lost" in checked.report("small-1")["checks"]["gpu-lost"]["says"]
    assert checked.report("small-2")["checks"]["gpu-memory"]["values"] == {
        "of": "GPU 00000000:1A:00.0",
        "uncorrected": 3,
    }
    assert checked.report("small-4")["checks"]["gpu-slow"]["then"] == "report"
    told = lab.soperator("why", "checked", "small-2", "-n", lab.namespace)
    assert "The operator drained it for its check gpu-memory, since" in told
    assert "Measured: of GPU 00000000:1A:00.0, uncorrected 3" in told
    assert f"Job {whole} of alice is RUNNING" in lab.soperator("why", "checked", whole, "-n", lab.namespace)
    lab.until("the NodeSet tells it", lambda: "checks have drained 7 of 7 nodes" in checked.healthy()["message"], 30)
    for job in (whole, full):
        assert "JobState=RUNNING" in lab.ssh("alice", f"scontrol show job -o {job}")
    _mend(checked, stray)
    lab.ssh("alice", "touch go")
    began = time.monotonic()
    checked.well(*SMALL, "skewed-0", "heard-0")
    lab.timings.note("all mended → in service again", time.monotonic() - began)
    for job, name in ((whole, "whole.out"), (full, "full.out")):
        assert "JobState=COMPLETED" in lab.ssh("alice", f"scontrol show job -o {job}")
        assert lab.ssh("alice", f"cat {name}") == "whole\n"
    assert checked.report("small-1")["last"]["check"] in ("gpu-count", "gpu-lost")
    lab.until("the NodeSet is healthy again", lambda: checked.healthy()["status"] == "True", 120)


def _machine(lab: Lab, pod: str) -> str:
    return str(lab.look("pod", pod).get("spec", {}).get("nodeName", ""))


def _is_left(checked: Checked, former: str) -> None:
    """The worker with the XID is on another machine, and its former one is cordoned, with the evidence on it."""
    lab = checked.lab
    lab.until("the worker is on another machine", lambda: _machine(lab, "checked-heard-0") not in ("", former), 60)
    kernel_says("")
    try:
        node = lab.look("node", former)
        evidence = json.loads(node["metadata"]["annotations"]["slurm.soperator.io/unhealthy"])
        assert (evidence["check"], evidence["node"]) == ("gpu-xid", "heard-0")
        assert node["spec"]["unschedulable"]
        assert "gpu-xid: GPU 0000:3b:00: XID 79" in condition(node["status"], "example.com/Bad")["message"]
    finally:
        lab.kubectl("uncordon", former)
        lab.kubectl("annotate", "node", former, "slurm.soperator.io/unhealthy-")
        healed = json.dumps({"status": {"conditions": [{"type": "example.com/Bad", "status": "False"}]}})
        lab.kubectl("patch", "node", former, "--subresource=status", "-p", healed)


def _leave_a_process(checked: Checked, node: str) -> str:
    """A process with the environment of a job that has ended; its pid."""
    job = checked.lab.ssh("alice", f"srun -w {node} printenv SLURM_JOB_ID").strip()
    return checked.inside(node, f"SLURM_JOB_ID={job} setsid sleep 900 >/dev/null 2>&1 & echo $!").strip()


def _break(checked: Checked) -> None:
    slow = gpu(1, **{"clocks/sm_clock": "345 MHz", "utilization/gpu_util": "97 %"})
    bad = gpu(1, **{"ecc_errors/volatile/dram_uncorrectable": 3})
    checked.inside("small-1", "cat > /run/smi", SENTENCES[2] + "\n")
    checked.inside("small-2", "cat > /run/smi", two(gpu(0), bad))
    checked.inside("small-3", "cat > /run/smi", two(gpu(0)))
    checked.inside("small-4", "cat > /run/smi", two(gpu(0), slow))
    checked.inside(
        "small-4",
        "setsid python3 -c 'x = bytearray(b\"x\" * (400 << 20)); import time; time.sleep(900)' >/dev/null 2>&1 & echo $! > /run/eater",
    )
    checked.inside("small-6", "mount -o remount,ro,bind /mnt/tmp")
    skew(20)
    kernel_says("NVRM: Xid (PCI:0000:3b:00): 79, pid=1337, name=python, GPU has fallen off the bus.")


def _mend(checked: Checked, stray: str) -> None:
    for node in SMALL[1:5]:
        checked.inside(node, "rm -f /run/smi")
    checked.inside("small-4", "kill -9 $(cat /run/eater)")
    checked.inside("small-5", f"kill -9 {stray}")
    checked.inside("small-6", "mount -o remount,rw,bind /mnt/tmp")
    skew(0)
    kernel_says("")


def test_the_page_on_writing_a_check_does_as_it_says_and_a_budget_bounds_it(checked: Checked) -> None:
    """Its check fails everywhere: one node goes, the alarm is raised, a person's word stands, what is broken drains nobody."""
    lab, page = checked.lab, (ROOT / "docs/howto/write-a-check.md").read_text()
    said = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])["spec"]["health"]
    tried, shown = re.findall(r"^(kubectl -n slurm exec .*?)(?:  +#.*)?$", page, re.MULTILINE)
    assert _follow(lab, tried).returncode == 0
    bad = [
        {"name": "hangs", "script": "sleep 600", "timeout": "1s"},
        {"name": "forks", "script": "for n in 1 2 3; do setsid sleep 600 & done; sleep 600", "timeout": "1s"},
        {"name": "loud", "script": "exec cat /dev/zero"},
        {"name": "gone", "run": ["/nonexistent/check"]},
    ]
    page_own, bad_own = (
        [{**each, "onFailure": "Drain", "nodeSets": ["small"]} for each in some] for some in (said["customChecks"], bad)
    )
    own = [*HEALTH["customChecks"], *page_own]
    lab.patch("slurmcluster", "checked", {"health": {**said, "customChecks": [*own, *bad_own], "maxUnhealthy": 1}})
    lab.until("small-6 runs it", lambda: "pass    scratch" in _follow(lab, shown).stdout, 150)
    lab.until("what is broken is told", lambda: {"hangs", "forks", "loud", "gone"} <= _broken(checked, "small-1"), 60)
    assert {each.split()[0] for each in checked.states().values()} == {"idle"}
    lab.patch("slurmcluster", "checked", {"health": {"customChecks": own}})  # while they are broken nobody comes back
    lab.ssh("root", "scontrol update nodename=small-3 state=drain reason='by hand'; touch /scratch-is-bad")
    lab.until("one is out", lambda: "checks have drained 1 of 7 nodes" in checked.healthy()["message"], 90)
    alarm = "more fail but stay in service, because health.maxUnhealthy is 1"
    lab.until("the alarm", lambda: alarm in checked.healthy()["message"], 90)
    [out] = _out(checked)
    assert lab.ssh("alice", f"srun -N5 -x small-3,skewed-0,heard-0,{out} hostname").count("small-") == 5
    _is_not_fought(checked, out)
    assert checked.state("small-3") == "drained by hand"
    lab.ssh("root", "rm /scratch-is-bad")
    checked.well(*(node for node in SMALL if node != "small-3"))
    for node in SMALL:
        assert "sleep" not in checked.inside(node, "cat /proc/[0-9]*/comm 2>/dev/null || true")
    assert checked.state("small-3") == "drained by hand"
    lab.ssh("root", "scontrol update nodename=small-3 state=resume")


def _out(checked: Checked) -> list[str]:
    """The nodes that the page's check has drained."""
    words = "soperator: check scratch: the scratch is bad"
    return [node for node, said in checked.states().items() if said.startswith("drain") and words in said]


def _is_not_fought(checked: Checked, node: str) -> None:
    """Who resumes a node has decided: it stays in service although its check fails, and another one takes its place in the budget."""
    lab, noted = checked.lab, "{.metadata.annotations.slurm\\.soperator\\.io/drained}"
    lab.until(
        "its pod says so",
        lambda: "scratch" in lab.kubectl("get", "pod", f"checked-{node}", "-o", f"jsonpath={noted}"),
        60,
    )
    lab.ssh("root", f"scontrol update nodename={node} state=resume")
    lab.until("another one is out", lambda: len(_out(checked)) == 1 and _out(checked) != [node], 60)
    time.sleep(2 * INTERVAL)
    assert checked.state(node).startswith("idle")


def _follow(lab: Lab, command: str) -> "subprocess.CompletedProcess[str]":
    """A command of the page, against this cluster's node."""
    words = command.replace("demo-worker-0", "checked-small-1")
    done: Any = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False, env=lab.target.env)
    return done


def _broken(checked: Checked, node: str) -> set[str]:
    checks: dict[str, Any] = checked.report(node).get("checks", {})
    return {name for name, said in checks.items() if said["state"] == "broken"}


def test_a_round_costs_little(checked: Checked) -> None:
    """The time of the CPUs that a round of all checks takes is kept for the summary."""
    clock = "python3 -c 'import os,subprocess as s; s.run([\"/usr/lib/soperator/checks\"]); t=os.times(); print(t.children_user+t.children_system)'"
    took = float(checked.inside("small-0", clock))
    checked.lab.timings.note("a round of checks, time of a core", took)
    assert took < 2.0


def test_a_job_that_would_begin_on_a_node_that_has_just_failed_goes_back_into_the_queue(checked: Checked) -> None:
    """Its comment says why, and so does that of one which runs there; the node is drained, and nobody else's job is touched."""
    lab = checked.lab
    around = {
        "mode": "Drain",
        "maxUnhealthy": NODES,
        "maxUnhealthyOfCluster": NODES,
        "prologEpilog": True,
        "interval": "30m",
    }
    lab.patch("slurmcluster", "checked", {"health": around})
    has_both = "scontrol show config | grep -cE 'HealthCheckInterval += 1800|Prolog.*checks-prolog.sh|Epilog.*checks-epilog.sh'"
    lab.until("Slurm has it", lambda: lab.ssh("root", f"{has_both} || true").strip() == "3", 120)
    plan = "grep -c turnsAway /etc/soperator/checks/plan.json || true"
    lab.until("so have the nodes", lambda: all(checked.inside(node, plan) == "1\n" for node in SMALL[:2]), 120)
    held = lab.hold("small-0")
    for node in SMALL[:2]:
        checked.inside(node, "mount -o remount,ro,bind /mnt/tmp")
    try:
        began = time.monotonic()
        words = "-w small-1 --exclusive -o turned.out --wrap hostname"
        job = Held(lab, lab.ssh("alice", f"sbatch --parsable {words}").strip(), "small-1", "alice")
        lab.until("it was turned away", lambda: (job.state(), job.show()["Restarts"]) == ("PENDING", "1"), 60)
        _drained(checked, "small-1")
        lab.timings.note(
            "a job meets a node that has just failed → it waits, the node is drained", time.monotonic() - began
        )
        comment = lab.ssh("alice", f"scontrol show job {job.number}")
        assert "small-1 failed check disk-readonly before the job started there: /tmp cannot be written" in comment
        assert "before the job started there" in lab.soperator("why", "checked", job.number, "-n", lab.namespace)
        checked.inside("small-0", "/usr/lib/soperator/checks interval")
        _drained(checked, "small-0")
        says = "small-0 failed check disk-readonly at "
        lab.until("its job says so", lambda: says in lab.ssh("alice", f"scontrol show job {held.number}"), 30)
        assert lab.ssh("alice", "srun -w small-2 hostname") == "small-2\n"
    finally:
        for node in SMALL[:2]:
            checked.inside(node, "mount -o remount,rw,bind /mnt/tmp")
    held.let_go()
    for node in SMALL[:2]:
        lab.until(f"{node} is back", lambda node=node: _is_well_after_a_round(checked, node), 240)
    lab.ssh("root", f"scontrol update jobid={job.number} starttime=now")
    lab.until("the other one has run", lambda: job.state() == "COMPLETED", 60)
    assert lab.ssh("alice", "cat turned.out") == "small-1\n"


def _is_well_after_a_round(checked: Checked, node: str) -> bool:
    """Slurmd runs none for half an hour, and one that falls together with that of a job, or finds a suspicion, does not bring a node back."""
    checked.inside(node, "/usr/lib/soperator/checks interval")
    return checked.is_well(node)


def _drained(checked: Checked, node: str) -> None:
    words = "soperator: check disk-readonly: /tmp cannot be written"
    checked.lab.until(f"{node} is drained", lambda: words in checked.state(node), 60)
