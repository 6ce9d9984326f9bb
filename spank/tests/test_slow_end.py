"""The end of a job whose processes end slowly: the epilog waits as long as their number falls, and fails if it does not."""

import ctypes
import os
import re
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import POD_PYTHON, PODS, Jail, Pod
from test_jobs import shell

libc = ctypes.CDLL(None, use_errno=True)
BOUND = {"STEPD_ARGUMENTS": "unkillable=1"}

#: Sixteen processes of many mappings each, whose end is work for the kernel, on one processor.
HEAVY = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for _ in range(15):
    if os.fork() == 0:
        break
half = 32000
start = libc.mmap(None, 2 * half * 4096, 3, 0x22, -1, 0)
for page in range(half):
    libc.mprotect(ctypes.c_void_p(start + 2 * page * 4096), 4096, 1)
os.sched_setaffinity(0, {0})
open("/tmp/ready", "a").write("x")
time.sleep(1000)
"""
#: What <linux/fuse.h> wants to be answered before a file system can be mounted: FUSE_INIT of version 7.31, FUSE_GETATTR (of a folder), FUSE_STATFS.
ANSWERS = {
    26: struct.pack("=IIIIHHI36x", 7, 31, 4096, 0, 12, 12, 4096),
    3: struct.pack("=QII6Q3I7I", 3600, 0, 0, 1, *[0] * 5, *[0] * 3, 0o40755, 2, *[0] * 5),
    17: bytes(80),
}


@pytest.fixture
def any_pod() -> Pod:
    """Return the harder kind of pod, for tests that do not depend on the kind."""
    return PODS["userns-move"]


def serve_little(server: int) -> None:
    """Answer the requests of a mount, and ignore all others: a process that waits for it cannot be killed."""
    try:
        while request := os.read(server, 1 << 20):
            _, operation, number = struct.unpack_from("=IIQ", request)
            if body := ANSWERS.get(operation):
                os.write(server, struct.pack("=IiQ", 16 + len(body), 0, number) + body)
    except OSError:
        return  # it was taken off


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Path]:
    """Mount a FUSE file system whose server never answers the request for a file."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("needs root and /dev/fuse")
    folder = tmp_path / "stuck"
    folder.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    assert libc.mount(b"x", str(folder).encode(), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
    thread = threading.Thread(target=serve_little, args=(server,))
    thread.start()
    end = threading.Timer(
        8, libc.umount2, (str(folder).encode(), 1)
    )  # by force: who waits gets an error, and the pod can end
    end.start()
    yield folder
    end.join()
    libc.umount2(str(folder).encode(), 1 | 2)
    thread.join()
    os.close(server)


def test_a_job_ends_as_long_as_its_processes_become_fewer(jail: Jail, any_pod: Pod) -> None:
    """Processes that need longer than the limit, because the CPU is busy, do not fail the epilog, which would drain the node."""
    jail.root.joinpath("heavy").write_text(HEAVY)
    script = f"""
step 7 0 1000 '{POD_PYTHON} -I /heavy & until [ $(wc -c </tmp/ready) = 16 ]; do sleep 0.1; done; touch /tmp/there; sleep 1000' >/dev/null 2>&1 &
until_true 'names jail-holder'
jail_tmp=/proc/$(pgrep -x jail-holder)/root/tmp
until_true '[ -e $jail_tmp/there ]'
for i in $(seq 2); do setsid taskset -c 0 sh -c 'while :; do :; done' & done
began=$(date +%s%N)
kill -9 $(pgrep -x stepd); epilog 7; echo released $?
echo $((($(date +%s%N) - began) / 1000000)) ms
"""
    done = shell(jail, any_pod, script, timeout=120, **BOUND)
    took = int(done.stdout.splitlines()[-1].split()[0])
    assert done.stdout.splitlines()[-2] == "released 0", done.stdout + done.stderr
    assert took > 1000, "the processes ended within the bound, so this test has shown nothing"


def test_a_job_whose_processes_do_not_end_fails_after_the_bound(jail: Jail, any_pod: Pod, stuck: Path) -> None:
    """A process that waits for lost storage never ends: the epilog's message has the number of such processes and the time."""
    jail.write_plan(("bind", str(stuck), "/data", "-", "-"))
    script = """
step 7 0 1000 '(setsid cat /data/file &) ; sleep 1000' >/dev/null 2>&1 &
until_true 'pgrep -x cat'; sleep 0.3
kill -9 $(pgrep -x stepd); epilog 7; echo released $?; epilog 7
"""
    began = time.monotonic()
    done = shell(jail, any_pod, script, **BOUND)
    assert time.monotonic() - began < 10
    assert "released 0" not in done.stdout
    sentence = r"processes of the job do not end: 1 left, such as process \d+, and nothing has moved for 1 s"
    assert len(re.findall(sentence, done.stderr)) == 2, done.stderr
