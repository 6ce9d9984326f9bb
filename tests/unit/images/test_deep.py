"""The program of the deep checks, as a Slurm job starts it: tasks that know each other by Slurm's variables alone."""

import json
import re
import socket
import subprocess
import time
from math import sqrt
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "images/slurm/deep"


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, and its scripts where it looks for them."""
    place = tmp_path_factory.mktemp("deep")
    words = [f"DESTDIR={place}", "PREFIX=/", f"BUILD={place}/build", "CFLAGS=-O1", "install"]
    subprocess.run(["make", "-s", "-C", str(FOLDER), *words], check=True)
    return place / "libexec/deep"


def start(deep: Path, rank: int, tasks: int, *words: str, job: int = 7) -> "subprocess.Popen[str]":
    """One task of a step."""
    slurm = {"SLURM_PROCID": rank, "SLURM_NTASKS": tasks, "SLURM_JOB_ID": job, "SLURMD_NODENAME": f"w-{rank}"}
    env = {key: str(value) for key, value in slurm.items()} | {"SLURM_STEP_NODELIST": "localhost", "PATH": "/usr/bin"}
    return subprocess.Popen([str(deep), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def run(deep: Path, tasks: int, *words: str, job: int = 7) -> list[dict[str, object]]:
    """The readings of a step, of which only task 0 says anything."""
    started = [start(deep, rank, tasks, *words, job=job) for rank in reversed(range(tasks))]
    ended = [each.communicate(timeout=60) for each in started]
    assert [each.returncode for each in started] == [0] * tasks, ended
    assert [out for out, _ in ended[:-1]] == [""] * (tasks - 1)
    answer = json.loads(ended[-1][0].splitlines()[-1])
    assert answer["soperator"] == 1
    readings: list[dict[str, object]] = answer["readings"]
    return readings


def refused(deep: Path, *words: str, tasks: int = 1, rank: int = 0) -> str:
    """The sentence of a task that is broken."""
    task = start(deep, rank, tasks, *words)
    out, err = task.communicate(timeout=60)
    assert (task.returncode, out) == (2, "")
    return err


def test_the_known_result_of_the_core_test_is_that_of_ieee_arithmetic():
    """Python's floats are IEEE 754 doubles: the same steps give the bits that are in the program."""
    source = (FOLDER / "host.c").read_text()
    found = re.search(r"CHAIN = (\S+);", source)
    steps = re.search(r"STEPS = (\d+)", source)
    assert found
    assert steps
    x, y = 0.3, 1.0
    for _ in range(int(steps.group(1))):
        x = 3.9375 * x * (1 - x)
        y = sqrt(y / (1 + x) + x)
    assert float.fromhex(found.group(1)) == x / (1 + y)


def test_cores_compute_rightly_and_their_speed_is_told(deep: Path):
    """No core of a sound machine is wrong."""
    (reading,) = run(deep, 1, "cpu", "seconds=0.3")
    assert (reading["of"], reading["wrong"]) == ("w-0", 0)
    assert reading["gflops"] > 0.01
    assert 0 < reading["slowest"] <= 100


def test_memory_is_read_as_it_was_written(deep: Path):
    """The triad's rate, and no number that changed."""
    (reading,) = run(deep, 1, "memory", "seconds=0.1", "mib=12")
    assert (reading["of"], reading["wrong"]) == ("w-0", 0)
    assert reading["triad"] > 0.01


def test_a_file_system_is_measured_and_nothing_is_left_there(deep: Path, tmp_path: Path):
    """Rates, times of small writes and of files, and an empty folder."""
    (reading,) = run(deep, 1, "disk", f"path={tmp_path}", "mib=4", "files=5")
    assert (reading["mib"], reading["wrong"]) == (4, 0)
    assert all(reading[key] >= 0 for key in ("write", "read", "sync", "file"))
    assert list(tmp_path.iterdir()) == []


def test_two_nodes_measure_the_way_between_them(deep: Path):
    """Each direction counts, and the slower one is the pair's."""
    (reading,) = run(deep, 2, "network", "seconds=0.2", "streams=2")
    assert reading["of"] == "w-0 w-1"
    assert reading["gbps"] == min(reading["out"], reading["in"]) > 0
    assert reading["latency"] > 0


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_all_sums_of_an_all_reduce_are_right(deep: Path, tasks: int):
    """Whatever the number of nodes, also where it does not divide that of the numbers; each node has a reading of its own."""
    group, *each = run(deep, tasks, "allreduce", "seconds=0.1", "mib=0.01", job=tasks)
    assert group["of"] == " ".join(f"w-{rank}" for rank in range(tasks))
    assert (group["nodes"], group["wrong"]) == (tasks, 0)
    assert group["busbw"] > 0
    assert [(one["of"], one["wrong"]) for one in each] == [(f"w-{rank}", 0) for rank in range(tasks)]


def test_one_number_that_is_wrong_is_seen_by_every_node(deep: Path):
    """Task 1 adds one too much to one number: each node finds one wrong sum in each round."""
    group, *each = run(deep, 3, "allreduce", "seconds=0.1", "mib=0.01", "spoil=1", job=9)
    assert [one["wrong"] for one in each] == [group["rounds"]] * 3
    assert group["wrong"] == 3 * group["rounds"]


def test_a_stranger_who_comes_first_is_turned_away(deep: Path):
    """Whoever else connects is no task, and the step goes on."""
    port = 20480 + ((7 << 16) * 0x9E3779B97F4A7C15 % 2**64 >> 40) % (12288 - 8)
    tasks = [start(deep, 0, 2, "allreduce", "seconds=0.1", "mib=0.01")]
    stranger = reached(port)
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
    tasks.append(start(deep, 1, 2, "allreduce", "seconds=0.1", "mib=0.01"))
    answers = [each.communicate(timeout=60) for each in tasks]
    stranger.close()
    assert [each.returncode for each in tasks] == [0, 0], answers
    assert '"of": "w-0 w-1"' in answers[0][0]


def reached(port: int) -> socket.socket:
    """A connection to a port that somebody is about to listen at."""
    end = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("localhost", port))
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no-such"], "unknown measurement: use one of memory, cpu"),
        (["../cpu"], "invalid name of a measurement"),
        (["cpu", "seconds=soon"], "deep: cpu: seconds=soon is not a number from 0.1 to 1800"),
        (["disk", "path=/nonexistent"], "deep: disk: /nonexistent: No such file"),
        (["network"], "it measures two nodes, and this step has 1 task"),
        (["dcgm"], "deep: dcgm: needs dcgmi of DCGM in the jail"),
        (["nccl"], "deep: nccl: needs all_reduce_perf of nccl-tests in the jail"),
        (["burn", "minutes=1"], "deep: burn: minutes=1 is an unknown argument: use one of seconds, size"),
    ],
)
def test_what_cannot_be_measured_ends_with_exit_code_2_and_a_sentence(deep: Path, words: list[str], says: str):
    """Neither a pass nor a failure of a node."""
    assert says in refused(deep, *words)


def test_a_task_that_does_not_come_is_named(deep: Path):
    """The others do not wait for ever, and nothing is measured."""
    assert "1 of 2 tasks came to w-0, task 1 did not" in refused(deep, "allreduce", "patience=0.2", tasks=2)
    assert "task 0 on localhost does not answer" in refused(deep, "network", "patience=0.2", tasks=2, rank=1)


def test_the_first_node_is_found_in_slurms_short_form(deep: Path):
    """Task 0 is on the first node of the list."""
    env = {
        "SLURM_PROCID": "1",
        "SLURM_NTASKS": "2",
        "SLURM_STEP_NODELIST": "nowhere-[007-9,12].invalid,other",
        "PATH": "",
    }
    words = [str(deep), "network", "patience=0.1"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert "task 0 on nowhere-007.invalid does not answer" in done.stderr
