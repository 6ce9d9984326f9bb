"""Which jobs are turned away before they begin, with a scontrol that knows one job and writes down what it is told."""

import json
import os
import subprocess
import sys

import pytest

from soperator.agents.checks.requeue import new_failures
from soperator.checks.check import Check, table
from soperator.checks.check_state import CheckState

JOB = {"JobId": "7", "BatchFlag": "1", "Requeue": "1", "Restarts": "0", "BatchHost": "w-1", "Comment": "a b=c"}
SMOKES = "w-1 failed check bad before the job started there: it smokes"


class Prolog:
    """A node on which job 7 is about to begin."""

    def __init__(self, folder):
        self.folder, self.reported, self.job = folder, folder / "told", dict(JOB)
        self.scontrol = folder / "scontrol"
        show = f"case $* in *'show job'*) cat {folder}/job;; requeue*) [ ! -e {folder}/no ] || {{ echo no >&2; exit 1; }};; esac"
        self.scontrol.write_text(f'#!/bin/sh\necho "$*" >>{self.reported}\n{show}\n')
        self.scontrol.chmod(0o755)

    def begin(self, *checks, context="prolog", requeues_jobs=True):
        """Run the checks, and return what was said of the job."""
        (self.folder / "job").write_text(" ".join(f"{key}={value}" for key, value in self.job.items()) + "\n")
        plan = {"checks": {each.name: table(each) for each in checks}, "turnsAway": requeues_jobs}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        where = [f"--{key}={self.folder}/{key}.json" for key in ("plan", "memory")]
        words = [sys.executable, "-m", "soperator.agents.checks", context, *where, f"--scontrol={self.scontrol}"]
        slurmd = {"SLURMD_NODENAME": "w-1", "SLURM_JOB_ID": "7", "SLURM_SCRIPT_CONTEXT": f"{context}_slurmd"}
        environment = {**os.environ, "PYTHONPATH": "src", **slurmd}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        said = [line.removeprefix(f"{context}: [7] ") for line in done.stderr.splitlines(keepends=True)]
        return "".join(line for line in said if line.startswith("job 7"))

    @property
    def asked(self):
        """What slurmctld was told of the job."""
        return [line for line in self.reported.read_text().splitlines() if not line.startswith("update nodename=")]


@pytest.fixture
def node(tmp_path):
    return Prolog(tmp_path)


def bad(**said):
    run = {"run": ("/bin/sh", "-c", "echo it smokes; exit 1")}
    return Check("bad", "about", "command", run, **({"confirm": 1, "at": ("prolog", "epilog")} | said))


def test_a_batch_job_goes_back_into_the_queue_when_its_node_has_just_failed(node):
    """With the reason in its comment, after the report; the next job begins, for by then the operator has decided about the node."""
    assert node.begin(bad()) == f"job 7 was requeued: {SMOKES}\n"
    assert node.asked == ["--oneliner show job 7", f"update jobid=7 admincomment=soperator: {SMOKES}", "requeue 7"]
    assert node.reported.read_text().startswith("update nodename=w-1 extra=")
    assert node.begin(bad()) == ""
    assert len(node.asked) == 3


@pytest.mark.parametrize(
    "said",
    [{"BatchFlag": "0"}, {"Requeue": "0"}, {"Restarts": "1"}, {"BatchHost": "w-0"}, {"JobId": "8"}],
    ids=["no batch job", "not to be requeued", "requeued before", "runs already elsewhere", "another job"],
)
def test_no_other_job_is_touched(node, said):
    """Of each of them something would be lost, or Slurm would refuse; slurmd's log says that it begins."""
    node.job |= said
    assert (
        node.begin(bad()) == f"job 7 starts in spite of this, because it cannot be requeued, or already was: {SMOKES}\n"
    )
    assert node.asked == ["--oneliner show job 7"]


@pytest.mark.parametrize(
    ("check", "how"),
    [
        (bad(on_failure="report"), {}),
        (bad(confirm=2), {}),
        (bad(), {"context": "epilog"}),
        (bad(), {"requeues_jobs": False}),
        (bad(at=("interval",)), {}),
    ],
    ids=["only told", "a suspicion", "after the job", "not wished", "not a check for this moment"],
)
def test_no_other_failure_turns_a_job_away(node, check, how):
    """Slurm is not asked about the job."""
    assert node.begin(check, **how) == ""
    assert not node.reported.exists() or node.asked == []


def test_what_slurm_refuses_is_told(node):
    """The job then begins."""
    (node.folder / "no").touch()
    assert node.begin(bad()) == f"job 7 starts in spite of this, because Slurm refuses to requeue it (no): {SMOKES}\n"


def test_a_failure_that_comes_back_while_it_recovers_is_none_that_nobody_knew():
    """Nor is one that the operator has left in service."""
    one = CheckState("bad", "failing", 1.0, "it smokes")
    again = {"bad": CheckState("bad", "recovering", 1.0, "it smokes", passes=1)}
    assert new_failures({}, {"bad": one}) == [one]
    assert new_failures(again, {"bad": one}) == new_failures({"bad": one}, {"bad": one}) == []
