"""The image's su: what it gives to the helper, with a stub in the helper's place. spank/tests/test_user_env.py has it under a real slurmd."""

import subprocess
import time
from pathlib import Path

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.jail.mount_plan import text, worker_plan
from soperator.render.parts.model import Cluster, NodeSet

ROOT = Path(__file__).parents[3]
STUB = '#!/bin/sh\ncat "$3" >{folder}/plan\nprintf "%s\\n" "$@" >{folder}/words\n{then}\n'


def run(folder: Path, plan: str, then: str, limit: int = 110) -> "subprocess.CompletedProcess[str]":
    """The script on a node with this plan; the stub keeps what it was given, and then does something."""
    helper, given = folder / "jail", folder / "given"
    helper.write_text(STUB.format(folder=folder, then=then))
    helper.chmod(0o755)
    given.write_text(plan)
    content = (ROOT / "images/slurm/su").read_text()
    for path, stand_in in (("/opt/soperator/libexec/jail", helper), ("/etc/soperator/jail/plan", given)):
        assert content.count(path) == 1
        content = content.replace(path, str(stand_in))
    assert "limit=110\n" in content
    script = folder / "su"
    script.write_text(content.replace("limit=110\n", f"limit={limit}\n"))
    words = ["sh", str(script), "-", "alice", "-c", "/bin/echo; env"]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)


def of_workers() -> str:
    """A worker's plan with a scratch line of the pod's own, /tmp, and one on storage of others."""
    cluster = SlurmClusterSpec.model_validate({})
    local = {"path": "/scratch", "hostPath": {"path": "/mnt/nvme x"}, "perJob": True}
    nodeset = NodeSetSpec.model_validate(
        {"clusterRef": {"name": "demo"}, "submounts": [local], "gpu": {"vendor": "nvidia", "count": 8}}
    )
    return text(worker_plan(Cluster("slurm", "demo", "u", cluster), NodeSet("slurm", "worker", "u", nodeset)))


def test_the_jail_is_that_of_jobs(tmp_path: Path) -> None:
    """The words go on as they are, with the node's plan, in which `jail run` leaves the folders of jobs out (spank/tests/test_jobs.py)."""
    assert run(tmp_path, of_workers(), "exit 0").returncode == 0
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["run", "--plan", str(tmp_path / "given"), "--", "su", "-", "alice", "-c", "/bin/echo; env"]
    assert (tmp_path / "plan").read_text() == of_workers()


def test_its_result_is_that_of_su(tmp_path: Path) -> None:
    """What su prints comes out, and its failure is the script's, which is how slurmd learns of it."""
    done = run(tmp_path, "root\t/r\t/\t-\twhy\n", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_it_ends_in_time(tmp_path: Path) -> None:
    """A login that hangs is killed, and that is a failure."""
    start = time.monotonic()
    done = run(tmp_path, "root\t/r\t/\t-\twhy\n", 'trap "" TERM; exec sleep 25', limit=1)
    assert done.returncode == 137
    assert time.monotonic() - start < 20


def test_a_pod_without_helper_and_plan_has_no_su() -> None:
    """It fails, as in the pods of slurmctld; no su of the image's own is there to fall back on."""
    content = (ROOT / "images/slurm/su").read_text().replace("/etc/soperator/jail/plan", "/nonexistent/plan")
    content = content.replace("/opt/soperator/libexec/jail", "/nonexistent/jail")
    done = subprocess.run(
        ["sh", "-c", content, "su", "-", "alice"], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 127
