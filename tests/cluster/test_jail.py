"""The shared root: what is done on one node is there on all."""

import subprocess
from pathlib import Path

import pytest

from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster


def test_a_user_made_on_login_can_run_jobs_on_all_nodes_at_once(lab: Lab) -> None:
    """Right after useradd every node knows the new user, and within a second slurmctld takes the user's jobs."""
    script = """
        begin=$(date +%s%N); useradd --create-home --shell /bin/bash carol && cd /home/carol || exit 1
        srun -N2 sh -c 'id -un carol; stat -c %U /home/carol'
        until runuser -u carol -- srun -N2 id -un 2>/dev/null; do sleep 0.05; done
        echo $(( ($(date +%s%N) - begin) / 1000000 ))"""
    *names, milliseconds = lab.ssh("root", script).split()
    lab.ssh("root", "userdel -rf carol 2>/dev/null")
    assert names == ["carol"] * 6
    assert int(milliseconds) < 1500
    lab.timings.note("useradd → the new user's job has run on two nodes", int(milliseconds) / 1000)


def test_a_file_of_one_node_is_seen_by_the_others(lab: Lab, alice: str) -> None:
    """What a job writes on worker-0 is read at once by a job on worker-1 and on login."""
    lab.ssh(alice, "srun -w worker-0 sh -c 'echo from $(hostname) > ~/shared'")
    assert lab.ssh(alice, "srun -w worker-1 cat shared; cat shared") == "from worker-0\nfrom worker-0\n"


def test_what_root_installs_in_a_job_is_a_command_everywhere(lab: Lab, alice: str) -> None:
    """A program that root puts into /usr/local/bin on one worker runs for an ordinary user on all."""
    program = (
        r"printf '#!/bin/sh\necho hello from $(hostname)\n' > /usr/local/bin/hello; chmod 755 /usr/local/bin/hello"
    )
    lab.ssh("root", "srun -w worker-0 sh", stdin=program.encode())
    output = lab.ssh(alice, "hello; srun -N2 hello")
    assert sorted(output.splitlines()) == ["hello from demo-login-0", "hello from worker-0", "hello from worker-1"]
    lab.ssh("root", "rm /usr/local/bin/hello")


def test_files_travel_by_scp_and_sftp(lab: Lab, alice: str, tmp_path: Path) -> None:
    """A file that scp brings is the file that sftp fetches."""
    (tmp_path / "sent").write_bytes(bytes(range(256)) * 400)
    *scp, host = lab.words("scp", alice)
    subprocess.run([*scp, str(tmp_path / "sent"), f"{host}brought"], check=True, capture_output=True)
    *sftp, host = lab.words("sftp", alice)
    batch = f"get brought {tmp_path / 'fetched'}\n".encode()
    subprocess.run([*sftp, "-b", "-", host.rstrip(":")], input=batch, check=True, capture_output=True)
    assert (tmp_path / "fetched").read_bytes() == (tmp_path / "sent").read_bytes()


def test_work_goes_on_after_the_session_has_ended(lab: Lab, alice: str) -> None:
    """What nohup and tmux started outlives the SSH session that started it."""
    lab.ssh(alice, "rm -f go later.*")
    lab.ssh(
        alice, "nohup sh -c 'until [ -e go ]; do sleep 0.1; done; echo a > later.nohup' >/dev/null 2>&1 </dev/null &"
    )
    lab.ssh(alice, "tmux new-session -d 'until [ -e go ]; do sleep 0.1; done; echo b > later.tmux'")
    lab.ssh(alice, "touch go")
    lab.until("both have written", lambda: lab.ssh(alice, "cat later.* 2>/dev/null || true") == "a\nb\n", 10)
