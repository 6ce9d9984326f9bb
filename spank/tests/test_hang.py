"""A file system that hangs: a step fails with a message within the deadline, and no process waits for ever."""

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PODS, Jail, Pod
from test_jobs import shell

libc = ctypes.CDLL(None, use_errno=True)
DEADLINE = {"STEPD_ARGUMENTS": "deadline=1"}


@pytest.fixture
def any_pod() -> Pod:
    """Return the harder kind of pod, for tests that do not depend on the kind."""
    return PODS["userns-move"]


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    """Mount a FUSE file system whose server never answers."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("needs root and /dev/fuse")
    folder = tmp_path / "hung"
    folder.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    assert libc.mount(b"x", str(folder).encode(), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
    yield folder
    libc.umount2(str(folder).encode(), 2)
    os.close(server)


def test_a_hanging_mount_is_named(jail: Jail, any_pod: Pod, hung: Path) -> None:
    """If a mount behind the root hangs, srun names it to the user within the deadline, and no task runs."""
    jail.write_plan(("bind", str(hung), "/data", "-", "-"))
    begin = time.monotonic()
    done = shell(jail, any_pod, "step 7 0 1000 'echo ran'; epilog 7; echo released $?; ls /run/jail/jobs", **DEADLINE)
    assert time.monotonic() - begin < 5
    assert done.stderr == f"jail: {hung} does not answer within 1 s (plan line 7)\n" * 2
    assert done.stdout.splitlines()[-3:] == ["exit 0", "children 0", "released 0"], done.stdout
    assert "task0 127" in done.stdout


def test_a_hanging_root_is_named(jail: Jail, any_pod: Pod, hung: Path) -> None:
    """If the root hangs, srun reports it; a batch step, whose output would be there, ends at once."""
    jail.lines[0] = ("root", str(hung), "/", "-", "-")
    jail.write_plan()
    done = shell(jail, any_pod, "step 7 0 1000 'echo ran'; step 7 0xfffffffb 1000 'echo ran'; echo code $?", **DEADLINE)
    assert done.stderr == f"jail: {hung} does not answer within 1 s (plan line 1)\n" * 3
    assert done.stdout.splitlines()[-2:] == ["init failed", "code 95"]
    assert "ran" not in done.stdout.split()


def test_a_root_that_hangs_later_is_noticed(jail: Jail, any_pod: Pod, hung: Path, tmp_path: Path) -> None:
    """If the server of the root stops answering while a job runs, the job's next step fails with a message, within the deadline."""
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    jail.lines = [("root", str(tmp_path / "served"), "/", "-", "-"), ("proc", "-", "/proc", "unmasked", "-")]
    jail.write_plan()
    script = f"""
mkdir -p {tmp_path}/served; python3 {server} {tmp_path}/served & server=$!
until_true 'grep -q {tmp_path}/served /proc/self/mountinfo'
step 7 0 0 true
kill -STOP $server; echo stopped; step 7 1 0 true; kill -CONT $server; kill $server; wait $server; umount -l {tmp_path}/served"""
    begin = time.monotonic()
    done = shell(jail, PODS["root-pivot"], script, **DEADLINE)
    assert time.monotonic() - begin < 8
    assert done.stderr.count("jail: the root of the jail does not answer within 1 s\n") == 2, done.stdout + done.stderr
    assert "stopped\ninside 0\ntask0 127\n" in done.stdout


# The least of a FUSE server: one folder with an empty folder `proc` in it (linux/fuse.h, protocol 7.31).
SERVER = r"""
import ctypes, errno, os, stat, struct, sys
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
assert libc.mount(b"x", sys.argv[1].encode(), b"fuse", 0, options) == 0
attr = lambda node: struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, stat.S_IFDIR | 0o755, 2, 0, 0, 0, 4096, 0)
while True:
    data = os.read(fd, 1 << 17)
    length, code, unique, node = struct.unpack_from("<IIQQ", data)
    body, error = b"", 0
    if code == 26:
        body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 1, 0, 0)
    elif code == 1:
        known = data[40:].rstrip(b"\0") == b"proc"
        body, error = (struct.pack("<QQQQII", 2, 0, 1, 1, 0, 0) + attr(2), 0) if known else (b"", errno.ENOENT)
    elif code == 3:
        body = struct.pack("<QII", 1, 0, 0) + attr(node)
    elif code == 17:
        body = struct.pack("<QQQQQIIII24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
    elif code in (27, 14):
        body = struct.pack("<QII", 1, 0, 0)
    elif code in (2, 42):
        continue
    elif code not in (29, 18, 25):
        error = errno.ENOSYS
    os.write(fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
"""
