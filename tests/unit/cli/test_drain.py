"""`soperator drain` and `resume` act as a person does, and undo nobody's decision unasked."""

import pytest

from soperator.cli.cluster.drain import change, check_reason, read_record, refused
from soperator.cli.support.errors import CliError
from soperator.cli.support.find_cluster import find_cluster
from soperator.kube import kinds
from soperator.render.parts import labels
from tests.unit.cli.slurm_stub import SlurmStub
from tests.unit.cli.test_status import seed
from tests.unit.fake_api import FakeApi

IDLE = "NodeName=worker-1 Arch=x86_64 State=IDLE+DYNAMIC_NORM ThreadsPerCore=1"


def drained(reason, by="root"):
    """A node out of service, as scontrol shows it."""
    return f"NodeName=worker-1 State=IDLE+DRAIN+DYNAMIC_NORM ThreadsPerCore=1 Reason={reason} [{by}@2026-11-25T16:00:00] Comment=x"


def seeded(*pods):
    """A cluster with these login pods, ready or not."""
    fake = FakeApi()
    seed(fake, kinds.SLURMCLUSTER, "demo", {}, {})
    for number, is_ready in enumerate(pods):
        status = {"conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]}
        meta = {"name": f"demo-login-{number}", "namespace": "slurm", "labels": labels.role("demo", "login")}
        fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": status})
    return fake


async def act(slurm, fake, nodes, reason="", force=False):
    api = fake.api()
    await change(api, await find_cluster(api, "slurm", "demo"), nodes, (reason, force), slurm.run)


async def test_a_drain_is_a_persons(tmp_path):
    """It runs as root on a login node that is ready, where Slurm signs it as root, not as slurm, whom the operator signs as."""
    fake, slurm = seeded(False, True), SlurmStub(tmp_path)
    slurm.answers("scontrol", [{"": IDLE}])
    await act(slurm, fake, "worker-1", "fan is broken")
    assert {str(each) for each in slurm.targets} == {"slurm/demo-login-1[sshd]"}
    assert slurm.calls.splitlines() == [
        "['-o', 'show', 'node', 'worker-1']",
        "['update', 'NodeName=worker-1', 'State=DRAIN', 'Reason=fan is broken']",
    ]
    slurm.answers("scontrol", [{"": drained("fan is broken")}])
    await act(slurm, fake, "worker-1")
    assert slurm.calls.splitlines()[-1] == "['update', 'NodeName=worker-1', 'State=RESUME']"


@pytest.mark.parametrize("reason", ["soperator: check gpu", " Soperator: x", "soperator:", "", " \n", 'a"b', "x" * 201])
def test_a_reason_that_the_operator_would_take_for_its_own_is_refused(reason):
    """It would lift that drain by itself; so are an empty reason and one that scontrol would cut."""
    with pytest.raises(CliError, match="--reason"):
        check_reason(reason)


def test_a_reason_is_one_line():
    """Line breaks become spaces, because a reason is a column of sinfo."""
    assert check_reason(" fan is\nbroken ") == "fan is broken"


@pytest.mark.parametrize(
    ("line", "reason", "refusal"),
    [
        (IDLE, "fan", ""),
        (IDLE, "", "worker-1 is IDLE+DYNAMIC_NORM: it is in service already"),
        (drained("ticket 7"), "fan", "already: ticket 7 [root@2026-11-25T16:00:00]: give --force to replace the reason"),
        (drained("ticket 7"), "", ""),
        (drained("soperator: check gpu: Xid 79", "slurm"), "", "drained by the operator: soperator: check gpu: Xid 79"),
        (drained("soperator: a person wrote this"), "", ""),
        ("NodeName=worker-1 State=IDLE+POWERED_DOWN Reason=old", "fan", ""),
        ("NodeName=worker-1 State=DOWN*+DYNAMIC_NORM Reason=Not responding", "", ""),
    ],
)  # fmt: skip
def test_what_another_decided_stays_without_force(line, reason, refusal):
    """A former reason is replaced, and a drain of the operator's ended, only by who says so."""
    found = refused([read_record(line)], reason)
    assert refusal in found
    assert bool(refusal) is bool(found)


async def test_force_says_so(tmp_path):
    """Then the drain of another is replaced."""
    slurm = SlurmStub(tmp_path)
    slurm.answers("scontrol", [{"": drained("ticket 7")}])
    with pytest.raises(CliError, match="ticket 7"):
        await act(slurm, seeded(True), "worker-1", "fan")
    assert "update" not in slurm.calls
    await act(slurm, seeded(True), "worker-1", "fan", force=True)
    assert "'Reason=fan'" in slurm.calls


async def test_what_cannot_be_done_has_a_remedy(tmp_path):
    """No login node, no such node, no name of nodes."""
    slurm = SlurmStub(tmp_path)
    with pytest.raises(CliError, match="no login pod is ready, and the command runs in one: see soperator why demo"):
        await act(slurm, seeded(False), "worker-1", "fan")
    slurm.answers("scontrol", [{"": "Node worker-9 not found"}], code=1)
    with pytest.raises(CliError, match="worker-9: Node worker-9 not found; soperator top lists the nodes"):
        await act(slurm, seeded(True), "worker-9", "fan")
    for name in ("$(reboot)", "-a", "a b", "ALL;x"):
        with pytest.raises(CliError, match="not a node name"):
            await act(slurm, seeded(True), name, "fan")
