#!/usr/bin/env python3
"""Runs a command in namespaces like those of a Kubernetes pod: `pod.py [OPTION...] -- COMMAND...`.

With --userns it is a pod with `hostUsers: false`: a user namespace of 65,536 ids that owns all the others, with the capabilities of a
worker's container. Without --userns the command runs as the machine's own root. With --no-pivot a seccomp filter denies pivot_root, as the
default profile of container runtimes does. With --node-limit KIND=NUMBER the pod's Node has that limit of namespaces of a kind
(user.max_KIND_namespaces), set in an outer user namespace. The command is pid 2 of a new pid namespace with its own mounts and /proc, and
everything ends with this process.

util-linux' unshare cannot write a map of many ids without newuidmap, so this program does; it uses the standard library only.
"""

import argparse
import ctypes
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_SECCOMP = 1, 24, 22
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
IDS = 65536
ADDRESS = "10.99.0.1"

# chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service sys_chroot sys_ptrace sys_admin audit_write setfcap:
# what the operator gives (src/soperator/render/parts/capabilities.py).
POD_CAPS = {0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 19, 21, 29, 31}

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of libc; raises OSError with the function's name if it fails."""
    if getattr(libc, name)(*arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def enter_user_namespace() -> None:
    """Move this process into a new user namespace in which the first 65,536 ids map to themselves."""
    parent = os.getpid()
    made_read, made_write = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(made_write)
        os.read(made_read, 1)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{parent}/{name}").write_text(f"0 0 {IDS}\n")
        os._exit(0)
    call("unshare", CLONE_NEWUSER)
    os.write(made_write, b"x")
    if os.waitpid(helper, 0)[1] != 0:
        raise OSError("cannot write the id maps")
    os.close(made_read)
    os.close(made_write)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def bound_capabilities() -> None:
    """Drop all capabilities except those of a worker's container; takes effect with the next execve."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for number in range(last + 1):
        if number not in POD_CAPS:
            call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)


def forbid_pivot_root() -> None:
    """Deny pivot_root with EPERM from now on: load the call's number, compare, return."""
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, SYS_PIVOT_ROOT), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    call("prctl", PR_SET_SECCOMP, 2, program, 0, 0)


def fork_and_wait(new_session: bool) -> None:
    """Fork; the child returns, the parent waits for it and exits with its code."""
    child = os.fork()
    if child == 0:
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if new_session:
            os.setsid()
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) % 256)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--userns", action="store_true")
    parser.add_argument("--net", action="store_true")
    parser.add_argument("--no-pivot", action="store_true")
    parser.add_argument("--node-limit", default="")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if arguments.node_limit:
        kind, number = arguments.node_limit.split("=")
        enter_user_namespace()
        Path(f"/proc/sys/user/max_{kind}_namespaces").write_text(number)
    if arguments.userns:
        enter_user_namespace()
    call("unshare", CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | (CLONE_NEWNET if arguments.net else 0))
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"tmpfs", b"/run", b"tmpfs", 0, b"mode=755")
    if arguments.net:
        # getaddrinfo ignores a machine that has only 127.0.0.1
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
    call("unshare", CLONE_NEWPID)
    fork_and_wait(new_session=False)
    call("mount", b"proc", b"/proc", b"proc", 0, None)
    if arguments.no_pivot:
        forbid_pivot_root()
    if arguments.userns:
        bound_capabilities()
    fork_and_wait(new_session=True)
    os.execvp(arguments.command[0], arguments.command)


if __name__ == "__main__":
    sys.exit(main())
