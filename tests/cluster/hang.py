"""Let storage hang for one container: what a dead file server does to whoever touches its files, without the server.

A FUSE file system that nobody serves is mounted over a path in the container's own mount namespace, from outside. Whoever goes there waits
until it is taken away again. Only root of the machine that the pods run on can do this, so it is for the local cluster.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

CLONE_NEWNS, MNT_DETACH = 0x00020000, 2
libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def hanging(path: str, *pids: int) -> Iterator[None]:
    """Let a path hang for the containers of these processes."""
    with ExitStack() as stack:
        for pid in pids:
            stack.enter_context(_hanging(path, pid))
        yield


@contextmanager
def _hanging(path: str, pid: int) -> Iterator[None]:
    command = [sys.executable, __file__, str(pid), path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        said = holder.stdout.readline()
        assert said == "hangs\n", said
        try:
            yield
        finally:
            holder.send_signal(signal.SIGTERM)
            assert holder.wait(10) == 0


def main(pid: int, path: str) -> None:
    """Mount, and wait to be told to take it away."""
    over = False

    def stop(*_: object) -> None:
        nonlocal over
        over = True

    signal.signal(signal.SIGTERM, stop)
    device, namespace = os.open("/dev/fuse", os.O_RDWR), os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    _call("setns", namespace, CLONE_NEWNS)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    _call("mount", b"hung", path.encode(), b"fuse", 0, options)
    print("hangs", flush=True)
    while not over:
        time.sleep(0.1)
    _call("umount2", path.encode(), MNT_DETACH)


def _call(name: str, *arguments: object) -> None:
    if getattr(libc, name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
