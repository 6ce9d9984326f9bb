"""Root in the jail tries to escape. Each attempt has a control: the same attempt without the protection succeeds.

An attempt is a Python program that prints what it reached. It runs as root with the kept capabilities, in both kinds of pod and with both
methods to change the root; `SECRET` is a file in the pod outside the jail, like a key.
"""

import os
from pathlib import Path

import pytest
from conftest import PODS, Jail, Pod

COMMON = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
SECRET = {secret!r}
ROOT = {root!r}
def call(number, *arguments):
    got = libc.syscall(number, *arguments)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
def found(*places):
    for place in places:
        for path in (place + SECRET, place + "/in-the-pod"):
            try:
                if "secret of the pod" in open(path).read():
                    print("ESCAPED", path)
            except OSError as error:
                print("held:", path, error.strerror)
try:
{attempt}
except OSError as error:
    print("held:", error)
"""

ATTEMPTS = {
    "plain path": 'found("", "/..", "/../../..")',
    "chroot and climb": """
os.mkdir("/tmp/a")
os.chroot("/tmp/a")
found(*("../" * n + "." for n in range(1, 9)))
for n in range(8):
    os.chdir("..")
os.chroot(".")
found("")
""",
    "chroot and fchdir": """
folder = os.open("/", os.O_RDONLY)
os.mkdir("/tmp/a")
os.chroot("/tmp/a")
os.fchdir(folder)
for n in range(8):
    os.chdir("..")
os.chroot(".")
found("")
""",
    "root of the init": 'found("/proc/1/root", "/proc/1/cwd", "/proc/1/root/..")',
    "root of any process": """
for pid in range(1, 400):
    try:
        os.listdir(f"/proc/{pid}/root/")
    except OSError:
        continue
    found(f"/proc/{pid}/root")
""",
    "files of the init": 'print(os.readlink("/proc/1/fd/0"), "ESCAPED")',
    "memory of the init": 'open("/proc/1/mem", "r+b"); print("ESCAPED")',
    "trace the init": 'call(101, 16, 1, 0, 0); print("ESCAPED")',
    "setns to the init's mounts": 'call(308, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0); print("ESCAPED")',
    "setns to the init by pidfd": 'call(308, call(434, 1, 0), 0x20000); print("ESCAPED")',
    "setns to the own mounts": 'call(308, os.open("/proc/self/ns/mnt", os.O_RDONLY), 0x20000); print("ESCAPED")',
    "take the top mount off": 'call(166, b"/", 2); found("", "/.."); print("ESCAPED")',
    "take a mount off": 'call(166, b"/tmp", 2); print("ESCAPED")',
    "mount anything": 'call(165, b"tmpfs", b"/home", b"tmpfs", 0, 0); print("ESCAPED")',
    "pivot_root": 'os.mkdir("/tmp/old"); call(155, b"/tmp", b"/tmp/old"); print("ESCAPED")',
    "write to read-only": 'open("/usr/written-by-test", "w"); print("ESCAPED")',
    "remount read-only to writable": 'call(165, 0, b"/usr", 0, 32 | 4096, 0); print("ESCAPED")',
    "file handle": """
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
handle = Handle(128, 0)
mount = ctypes.c_int()
call(303, -100, b"/marker-of-the-jail", ctypes.byref(handle), ctypes.byref(mount), 0)
folder = os.open("/", os.O_RDONLY)
call(304, folder, ctypes.byref(handle), 0)
print("ESCAPED")
""",
    "make the disk": 'os.mknod("/tmp/disk", 0o60600, os.makedev(254, 0)); print("ESCAPED")',
    "make memory": 'os.mknod("/tmp/mem", 0o20600, os.makedev(1, 1)); print("ESCAPED")',
    "core_pattern": 'open("/proc/sys/kernel/core_pattern", "w"); print("ESCAPED")',
    "sysrq": 'open("/proc/sysrq-trigger", "w"); print("ESCAPED")',
    "kcore": 'print("ESCAPED") if open("/proc/kcore", "rb").read(4) else print("held: empty")',
    "cgroup release agent": """
import glob
for path in glob.glob("/sys/fs/cgroup/*/release_agent") + glob.glob("/sys/fs/cgroup/*/cgroup.procs"):
    try:
        open(path, "w"); print("ESCAPED", path)
    except OSError:
        pass
""",
    "load a module": 'call(175, b"x" * 64, 64, b""); print("ESCAPED")',
    "reboot": 'call(169, 0xfee1dead, 672274793, 0, 0); print("ESCAPED")',
    "gain a capability": """
import struct
header = struct.pack("Ii", 0x20080522, 0)
call(126, header, struct.pack("6I", *(0xffffffff,) * 6))
print("ESCAPED")
""",
    "host name": 'call(170, b"mine", 4); print("ESCAPED")',
    "kill the outside": """
import signal
for pid in range(2, 500):
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGCONT); print("ESCAPED", pid)
        except ProcessLookupError:
            pass
""",
    "own user namespace": """
if os.fork() == 0:
    try:
        call(272, 0x10000000 | 0x20000)
        open("/proc/self/setgroups", "w").write("deny")
    except OSError as error:
        print("held:", error)
    for name in (b"/", b"/proc", b"/tmp", b"/dev/null"):
        try:
            call(166, name, 2); print("ESCAPED", name)
        except OSError as error:
            print("held:", name, error)
    try:
        call(165, 0, b"/usr", 0, 32 | 4096, 0); open("/usr/written-by-test", "w"); print("ESCAPED remount")
    except OSError as error:
        print("held:", error)
    for n in range(8):
        os.chdir("..")
    found("", ".", "/proc/1/root")
    os._exit(0)
os.wait()
""",
}

# What the attempts with SYS_ADMIN and friends reach when the capabilities are not bounded: without it the test proves nothing.
CONTROLS = [
    "take a mount off",
    "mount anything",
    "remount read-only to writable",
    "setns to the own mounts",
    "host name",
]
CONTROLS_AS_ROOT = ["pivot_root", "file handle", "make the disk", "make memory"]


@pytest.fixture(params=["root-pivot", "userns-move"])
def pod(request: pytest.FixtureRequest) -> Pod:
    """Return the Node's own root with pivot_root, and a user namespace without it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    return PODS[request.param]


@pytest.fixture
def secret(jail: Jail) -> Path:
    """Create a file in the pod outside the jail."""
    path = jail.root.parent.parent / "key"
    path.write_text("secret of the pod")
    path.chmod(0o644)
    return path


def program(jail: Jail, secret: Path, attempt: str) -> str:
    lines = "\n".join("    " + line for line in attempt.strip("\n").splitlines())
    return COMMON.format(secret=str(secret), root=str(jail.root), attempt=lines)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_root_in_the_jail_stays_there(jail: Jail, pod: Pod, secret: Path, name: str) -> None:
    """The attempt fails."""
    done = jail.python(pod, program(jail, secret, ATTEMPTS[name]))
    assert "ESCAPED" not in done.stdout, done.stdout
    assert "Error" not in done.stderr or "PermissionError" in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CONTROLS)
def test_the_capabilities_are_what_holds(jail: Jail, pod: Pod, secret: Path, name: str) -> None:
    """With all capabilities kept, the same attempt succeeds: so the missing capabilities are the protection."""
    done = jail.python(pod, program(jail, secret, ATTEMPTS[name]), keep_caps=True)
    assert "ESCAPED" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", CONTROLS_AS_ROOT)
def test_the_capabilities_hold_root_of_the_machine(jail: Jail, secret: Path, name: str) -> None:
    """Without a user namespace, and with all capabilities kept, the attempt succeeds."""
    done = jail.python(Pod(userns=False, pivot=True), program(jail, secret, ATTEMPTS[name]), keep_caps=True)
    assert "ESCAPED" in done.stdout, done.stdout + done.stderr


def test_the_masks_hold_root_of_the_machine(jail: Jail, secret: Path) -> None:
    """Without a user namespace and without masks, core_pattern can be opened for writing."""
    jail.lines[3] = ("proc", "-", "/proc", "unmasked", "-")
    jail.write_plan()
    done = jail.python(Pod(userns=False, pivot=True), program(jail, secret, ATTEMPTS["core_pattern"]))
    assert "ESCAPED" in done.stdout, done.stdout + done.stderr


def test_the_old_mounts_are_gone_where_the_root_was_moved(jail: Jail) -> None:
    """A volume of the pod, such as one with keys, is not a mount of the jail's namespace, even after the top mount is removed."""
    volume = jail.root.parent.parent / "volume"
    volume.mkdir()
    attempt = f"""
own = os.open("/proc/self/ns/mnt", os.O_RDONLY)
call(166, b"/", 2)
call(308, own, 0x20000)
print("OLD ROOT" if os.path.exists({str(jail.plan)!r}) else "nothing")
print("KEY" if os.path.exists({str(volume)!r} + "/key") else "no key")
"""
    text = program(jail, jail.plan, attempt)
    for pod in (Pod(userns=False, pivot=False), Pod(userns=True, pivot=False)):
        mounted = f'mount -t tmpfs tmpfs {volume} && touch {volume}/key && exec "$@"'
        command = [
            jail.build.jail,
            "run",
            "--plan",
            str(jail.plan),
            "--keep-caps",
            "--",
            "/usr/bin/python3",
            "-I",
            "-c",
            text,
        ]
        done = pod.run("sh", "-c", mounted, "sh", *command)
        assert done.stdout.split("\n")[:2] == ["OLD ROOT", "no key"], done.stdout + done.stderr
