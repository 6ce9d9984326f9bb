"""What Prometheus gets from a worker."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from soperator.agents.usage.__main__ import page, write
from soperator.agents.usage.answers import answer, listener, serve
from soperator.agents.usage.tally import ProcessCpuTime, Snapshot, Totals
from soperator.observe import jobs


def looked(seconds, gpus=()):
    return Snapshot({(1, 1): ProcessCpuTime(seconds, None)}, 4096, 1, frozenset(gpus))


def test_each_job_has_its_series_and_its_gpus():
    """In Prometheus' text format, with the cluster and the node."""
    said = page({42: looked(1.5, ["nvidia1", "nvidia0"])}, Totals(), "demo", "worker-0").decode()
    lines = [line for line in said.splitlines() if not line.startswith("#")]
    assert lines[:-1] == [
        'slurm_job_cpu_seconds_total{slurm_cluster="demo",node="worker-0",job_id="42"} 1.5',
        'slurm_job_memory_bytes{slurm_cluster="demo",node="worker-0",job_id="42"} 4096',
        'slurm_job_processes{slurm_cluster="demo",node="worker-0",job_id="42"} 1',
        'slurm_job_gpu{slurm_cluster="demo",node="worker-0",job_id="42",device="nvidia0"} 1',
        'slurm_job_gpu{slurm_cluster="demo",node="worker-0",job_id="42",device="nvidia1"} 1',
    ]


def test_a_node_has_no_more_series_than_the_reference_says():
    """The jobs that began last are counted together."""
    found = {number: looked(1, [f"nvidia{number}"]) for number in range(1000)}
    lines = [line for line in page(found, Totals(), "demo", "n").decode().splitlines() if not line.startswith("#")]
    assert len(lines) == sum(each.most for each in jobs.METRICS)
    assert f'slurm_job_cpu_seconds_total{{slurm_cluster="demo",node="n",job_id="other"}} {1000 - jobs.JOBS}' in lines


def test_a_client_that_says_nothing_does_not_keep_others_waiting_for_long(tmp_path: Path) -> None:
    """Whatever is asked, the file is the answer."""
    file = tmp_path / "jobs"
    file.write_text("slurm_job_processes 1\n")
    with listener(0) as listening:
        threading.Thread(target=served, args=(listening, file), daemon=True).start()
        port = listening.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.1", port)),
            urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as got,
        ):
            assert got.read() == b"slurm_job_processes 1\n"
            assert got.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        file.unlink()
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"http://127.0.0.1:{port}/", timeout=20)


def test_a_request_that_comes_in_pieces_is_read_before_it_is_answered(tmp_path: Path) -> None:
    """Otherwise the rest of it, unread, would reset the connection, and the client lose the answer."""
    file = tmp_path / "jobs"
    file.write_text("slurm_job_processes 1\n")
    with listener(0) as listening:
        threading.Thread(target=served, args=(listening, file, 20.0), daemon=True).start()
        with socket.create_connection(("127.0.0.1", listening.getsockname()[1])) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
            client.settimeout(0.05)
            with pytest.raises(TimeoutError):
                client.recv(1)
            client.settimeout(20)
            client.sendall(b"Host: here\r\n\r\n")
            said = b""
            while piece := client.recv(4096):
                said += piece
    assert said.endswith(b"slurm_job_processes 1\n")


@pytest.mark.parametrize("made", ["file", "link"])
def test_what_others_put_into_the_folder_is_not_written_to(tmp_path: Path, made: str) -> None:
    """The kubelet makes the folder open to all: it is closed, and a link or an open file at the place of the new one gets nothing."""
    folder, other = tmp_path / "usage", tmp_path / "other"
    folder.mkdir()
    folder.chmod(0o777)
    other.write_text("theirs")
    if made == "link":
        (folder / "jobs.new").symlink_to(other)
    else:
        os.link(other, folder / "jobs.new")
    write(folder / "jobs", b"ours")
    assert (other.read_text(), (folder / "jobs").read_bytes()) == ("theirs", b"ours")
    assert folder.stat().st_mode & 0o777 == 0o755
    assert not (folder / "jobs").is_symlink()


def test_a_flood_of_idle_clients_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Two hundred that say nothing, and more all the time: each scrape has its answer at once, also one too large for a socket's buffer."""
    file = tmp_path / "jobs"
    file.write_text("x" * 3_000_000)
    held: list[socket.socket] = []
    with listener(0) as listening:
        threading.Thread(target=served, args=(listening, file, 2.0), daemon=True).start()
        port = listening.getsockname()[1]
        held += [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for _ in range(5):
            began = time.monotonic()
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as got:
                assert len(got.read()) == 3_000_000
            assert time.monotonic() - began < 1.5
            held += [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        first = held[0]
        first.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert first.recv(1) == b""
        for each in held:
            each.close()


def served(listening: socket.socket, file: Path, patience: float = 0.2) -> None:
    """Serve until the test closes the socket."""
    with contextlib.suppress(OSError):
        serve(listening, file, patience)


def test_old_figures_are_not_told_as_new_ones(tmp_path: Path) -> None:
    """Where nothing was measured for a minute, a scrape fails and says why."""
    file = tmp_path / "jobs"
    assert b" 503 " in answer(file)
    file.write_text("x")
    os.utime(file, (time.time() - 100, time.time() - 100))
    assert b"the last measurement is 100 s old" in answer(file)


def test_it_ends_when_it_is_told_to_though_it_is_the_first_process_of_its_container(tmp_path: Path) -> None:
    """Otherwise every worker's pod would take half a minute to end."""
    serving = [sys.executable, "-m", "soperator.agents.usage", "serve", "--file", str(tmp_path / "jobs"), "--port", "0"]
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", *serving]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": "src"}) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        while (
            not (first := children.read_text().split())
            or b"usage" not in Path(f"/proc/{first[0]}/cmdline").read_bytes()
        ):
            time.sleep(0.01)
        while not int(caught(first[0]), 16) >> (signal.SIGTERM - 1) & 1:
            time.sleep(0.01)
        os.kill(int(first[0]), signal.SIGTERM)
        assert running.wait(timeout=20) == 0


def caught(pid: str) -> str:
    """The signals for which a process has a handler."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
