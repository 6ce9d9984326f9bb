import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from soperator.agents.checks import memory, runner
from soperator.agents.checks.__main__ import is_due, read_plan
from soperator.agents.checks.memory import Memory
from soperator.agents.checks.probes.place import ProbePaths
from soperator.agents.checks.supervise import TaskEnd
from soperator.checks import report
from soperator.checks.check import Check, CheckError, FailRule, table

FULL = FailRule({"used": {"above": -1}}, "{of} is {used:.0f} % full")
ROOT = {"paths": {"/": "/"}}


def probing(name="disk", **said):
    return Check(name, "about", **({"probe": "filesystem", "given": ROOT, "rules": (FULL,), "confirm": 1} | said))


def command(name, *words, **said):
    return Check(name, "about", "command", {"run": words}, **({"confirm": 1} | said))


def verdicts(*checks, known=None, now=100.0):
    return runner.run(checks, {}, known or Memory(), ProbePaths(), now)


def test_a_round_measures_judges_and_remembers():
    """A check that fails stands so, with the sentence and the number."""
    done = verdicts(probing())
    assert done.verdicts["disk"].outcome == "fail"
    assert done.memory.check_states["disk"].state == "failing"
    assert done.memory.check_states["disk"].message.startswith("/ is ")


def test_checks_that_ask_the_same_share_one_measurement():
    """nvidia-smi is asked once, however many checks judge its answer."""
    done = verdicts(probing("a"), probing("b", rules=(FailRule({"inodes": {"above": 101}}, "{of}"),)))
    assert len(done.took) == 1
    assert {name: each.outcome for name, each in done.verdicts.items()} == {"a": "fail", "b": "pass"}


@pytest.mark.parametrize(
    ("words", "outcome", "said"),
    [
        (("/bin/sh", "-c", "exit 0"), "pass", ""),
        (("/bin/sh", "-c", "echo the disk hums; exit 1"), "fail", "the disk hums"),
        (("/bin/sh", "-c", "exit 1"), "broken", "without a message"),
        ((sys.executable, "-c", "import nowhere"), "broken", "No module named 'nowhere'"),
        (("/bin/sh", "-c", "echo oh; exit 2"), "broken", "exit code 2: oh"),
        (("/bin/sh", "-c", "kill -9 $$"), "broken", "SIGKILL"),
        (("/bin/sleep", "60"), "broken", "was killed"),
        (("/bin/dd", "if=/dev/zero", "bs=1M"), "broken", "KiB"),
        (("/no/such/check",), "broken", "No such file or directory: /no/such/check"),
        ((), "broken", "cannot be started"),
    ],
)
def test_a_command_of_ones_own_fails_only_by_exit_code_1_and_a_sentence(words, outcome, said):
    """Whatever else it does says that the command is broken: neither a pass nor a drain."""
    verdict = verdicts(command("mine", *words, limit=0.8)).verdicts["mine"]
    assert verdict.outcome == outcome
    assert said in verdict.message


@pytest.mark.parametrize(
    "check",
    [
        probing(probe="nothing"),
        probing(given={}),
        probing(given={"paths": {"/": 5}}),
        probing(probe="nvidia", given={}),
    ],
)
def test_a_probe_that_gives_no_answer_is_no_pass(check):
    """An unknown probe, one that is asked wrongly, one whose program is missing: each is broken, and says why."""
    done = runner.run([check], {}, Memory(), ProbePaths(tools=(Path("/nonexistent"),)), 1.0)
    assert done.verdicts["disk"].outcome == "broken"
    assert done.verdicts["disk"].message


def test_what_hangs_in_the_kernel_is_not_started_again_and_again():
    """As long as the process of the last round is there, the check is broken, and no other one is made."""
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        began = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
        key = runner._key(probing())
        known = Memory(stuck={key: (child.pid, began)})
        done = verdicts(probing(), known=known)
        assert "hangs in the kernel" in done.verdicts["disk"].message
        assert done.memory.stuck == known.stuck
    finally:
        child.kill()
        child.wait()
    assert verdicts(probing(), known=known).verdicts["disk"].outcome == "fail"


def test_a_check_that_is_not_due_keeps_how_it_stands():
    """An expensive check that passed a minute ago waits for its time; one that did not pass does not."""
    rare = probing(every=600, rules=(FailRule({"used": {"above": 101}}, "{of}"),))
    first = verdicts(rare)
    assert verdicts(rare, known=first.memory, now=200.0).verdicts == {}
    assert "disk" in verdicts(rare, known=first.memory, now=700.0).verdicts
    assert "disk" in verdicts(rare, known=first.memory, now=50.0).verdicts
    failing = verdicts(probing(every=600))
    assert "disk" in verdicts(probing(every=600), known=failing.memory, now=101.0).verdicts


def test_the_memory_is_whole_or_nothing(tmp_path):
    """A torn file, or one of another version, begins anew; a whole one is as it was."""
    path = tmp_path / "a" / "memory.json"
    assert memory.load(path) == Memory()
    known = replace(verdicts(probing()).memory, stuck={"x": (1, "2")}, reported=("a", "b"))
    memory.save(known, path)
    assert memory.load(path) == known
    for torn in ("", "{", "[]", "{}", path.read_text()[:-20], '{"standings": {"x": {}}}'):
        path.write_text(torn)
        assert memory.load(path) == Memory()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"checks": 5}', '{"checks": {"x": {"about": "a"}}}'])
def test_a_plan_that_is_none_is_refused_in_a_sentence(tmp_path, text):
    """The message names the file or the check."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(CheckError, match=r"plan.json|check x"):
        read_plan(path)


class Node:
    """A worker's folder, with a scontrol that writes down what it is told."""

    def __init__(self, folder):
        self.folder, self.plan, self.reported = folder, folder / "plan.json", folder / "told"
        self.scontrol = folder / "scontrol"
        self.scontrol.write_text(
            f'#!/bin/sh\n[ ! -e {folder}/away ] || {{ echo no slurmctld >&2; exit 1; }}\nprintf "%s\\n" "$3" "$2" >> {self.reported}\n'
        )
        self.scontrol.chmod(0o755)

    def run(self, *checks, raw=None, renew=0):
        plan = {"checks": {each.name: table(each) for each in checks}, "renew": renew}
        self.plan.write_text(raw or json.dumps(plan))
        where = ["--plan", self.plan, "--memory", self.folder / "memory.json", "--scontrol", self.scontrol]
        environment = {**os.environ, "PYTHONPATH": "src", "SLURMD_NODENAME": "gpu-7"}
        words = [sys.executable, "-m", "soperator.agents.checks", "interval", *where]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    @property
    def reports(self):
        lines = self.reported.read_text().splitlines() if self.reported.exists() else []
        return [report.read(line.removeprefix("extra=")) for line in lines[::2]]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


WELL = command("well", "/bin/true")
BAD = command("bad", "/bin/sh", "-c", "echo it smokes; exit 1", passes=1)


def test_a_report_is_told_when_it_changes_and_only_then(node):
    """The first round is told, equal ones are not, a failure is, and its end."""
    for checks in ((WELL,), (WELL,), (WELL, BAD), (WELL, BAD), (WELL,), (WELL,)):
        assert node.run(*checks).returncode == 0
    assert [[each.message for each in heard.checks] for heard in node.reports] == [[], ["it smokes"], []]
    assert "nodename=gpu-7" in node.reported.read_text()


def test_a_report_is_told_again_when_it_is_due(node):
    """With the moment at which it last changed, and the one at which it was renewed, both by the tenth of a second."""
    for _ in range(3):
        node.run(WELL, renew=0.001)
    first, second, third = node.reports
    assert (first.renewed, second.at, third.at) == (0.0, first.at, first.at)
    assert 0 < first.at <= second.renewed <= third.renewed == third.reported_at


def test_reports_of_nodes_that_began_together_are_due_at_different_moments():
    """Once each in the time, whatever the phase."""
    due = [[now for now in range(600, 1200) if is_due(f"gpu-{n}", 600.0, now - 1, now)] for n in range(50)]
    assert {len(each) for each in due} == {1}
    assert len({each[0] for each in due}) > 40
    assert not is_due("gpu-0", 0, 0, 1e9)


def test_a_report_that_slurm_did_not_take_is_told_the_next_time(node):
    """slurmctld was away: it is said on stderr, and made up for."""
    (node.folder / "away").touch()
    done = node.run(BAD)
    assert (done.returncode, "no slurmctld" in done.stderr) == (0, True)
    (node.folder / "away").unlink()
    node.run(BAD)
    assert [heard.checks[0].state for heard in node.reports] == ["failing"]


def test_a_plan_that_cannot_be_read_is_reported_as_broken(node):
    """A node whose checks cannot run does not look like one that passes."""
    done = node.run(raw="{")
    assert done.returncode == 1
    assert "no plan" in done.stderr
    assert [(each.check, each.state) for each in node.reports[0].checks] == [("plan", "broken")]


def test_a_round_that_finds_another_one_going_on_does_nothing(node):
    """slurmd may be impatient; two rounds at once would count a failure twice."""
    slow = command("slow", "/bin/sh", "-c", f"echo x >> {node.folder}/ran; sleep 2", limit=5)
    node.plan.write_text(json.dumps({"checks": {"slow": table(slow)}}))
    where = ["--plan", node.plan, "--memory", node.folder / "memory.json", "--scontrol", node.scontrol]
    words = [sys.executable, "-m", "soperator.agents.checks", "interval", *where]
    rounds = [subprocess.Popen(words, env={**os.environ, "PYTHONPATH": "src"}) for _ in range(2)]
    assert [each.wait() for each in rounds] == [0, 0]
    assert (node.folder / "ran").read_text() == "x\n"


def test_how_a_command_ended_is_told_in_words():
    """A trouble has a sentence whatever kind it is."""
    for how in ("late", "loud", "signal", "missing", "stuck"):
        assert runner.of_command(TaskEnd(how, 9)).outcome == "broken"
        assert runner.of_command(TaskEnd(how, 9)).message


def test_a_failure_that_ended_is_evidence_in_the_report(node):
    """What it was and how long it lasted is told after the node is well again, and stays so."""
    for checks in ((BAD,), (command("bad", "/bin/true", passes=1),), (WELL,)):
        node.run(*checks)
    last = node.reports[-1].last
    assert (node.reports[-1].checks, last.check, last.message) == ((), "bad", "it smokes")
    assert last.since <= last.until
