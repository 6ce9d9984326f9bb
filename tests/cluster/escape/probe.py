"""What a user tries in order to get out of the jail: every attempt in one program, run by the python3 of the jail, standard library only.

`python3 - '<JSON>'` prints JSON: of each attempt `held` or `through`, and what was seen. Each runs in a child of its own with a deadline, so
that one which gets somewhere spoils no other. An attempt is made so that it harms nobody where it does get through: it asks for what the
kernel would then refuse for another reason, or takes back what it did.

An attempt names its `control`: the place where the same attempt gets through, because there the protection is missing. `caps` is the jail with
the capabilities of the pod kept, `pod` is slurmd's container outside the jail, `node` is root of the Node. Without such a proof an
attempt that fails says nothing.
"""

import ctypes
import errno
import hashlib
import json
import os
import platform
import signal
import socket
import ssl
import stat
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIVEN: dict[str, Any] = {}
SECONDS = 20
DAEMONS = {"slurmd", "slurmstepd", "slurmctld", "sackd", "munged", "slurmrestd", "jail-holder"}
NEWNS, NEWUTS, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x10000000, 0x20000000, 0x40000000
NS_GET_PARENT, NS_GET_OWNER_UID = 0xB702, 0xB704
BIND, REMOUNT, RDONLY, REC, PRIVATE, DETACH = 4096, 32, 1, 16384, 0x40000, 2
#: By x86_64, aarch64.
CALLS = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "unshare": (272, 97), "setns": (308, 268),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "open_tree": (428, 428), "move_mount": (429, 429),
    "mount_setattr": (442, 442), "ptrace": (101, 117), "process_vm_readv": (310, 270), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "reboot": (169, 142), "bpf": (321, 280),
    "perf_event_open": (298, 241), "keyctl": (250, 219), "userfaultfd": (323, 282), "adjtimex": (159, 171),
    "sethostname": (170, 161), "swapon": (167, 224), "acct": (163, 89), "syslog": (103, 116), "fanotify_init": (300, 262),
    "quotactl": (179, 60), "capset": (126, 91),
}  # fmt: skip

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Attempt:
    """One attempt: what it does, what holds it, and where it is seen to get through."""

    run: Callable[[], str]
    held_by: str
    control: str


ATTEMPTS: dict[str, Attempt] = {}


def attempt(held_by: str, control: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Enter a function in the list. It returns what it reached, or nothing; an OSError is a refusal."""

    def enter(function: Callable[[], str]) -> Callable[[], str]:
        ATTEMPTS[function.__name__] = Attempt(function, held_by, control)
        return function

    return enter


def call(name: str, *arguments: object) -> int:
    """A system call; raises OSError."""
    got: int = libc.syscall(CALLS[name][platform.machine() == "aarch64"], *arguments)
    if got < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return got


def asked(name: str, *arguments: object) -> str:
    """A system call that cannot succeed: what matters is whether the kernel refuses the caller or the arguments."""
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return f"{name} was allowed, and failed only for {os.strerror(error.errno or 0)}"
    return f"{name} was allowed"


def others() -> list[int]:
    """The processes that are seen and are not this program's."""
    own = set()
    pid = os.getpid()
    while pid > 1:
        own.add(pid)
        with suppress(OSError, IndexError):
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            continue
        break
    return sorted(int(each) for each in os.listdir("/proc") if each.isdigit() and int(each) not in own)


def name_of(pid: int) -> str:
    """What a process is called; empty where it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def daemons() -> list[int]:
    """Processes that run Slurm or hold the jail: the first one, and those with a daemon's name."""
    return [pid for pid in others() if name_of(pid) in DAEMONS or pid == 1]


def owner_of(namespace: int) -> int:
    """The user who made a user namespace, by the numbers of this program's own."""
    import fcntl

    owner = bytearray(4)
    fcntl.ioctl(namespace, NS_GET_OWNER_UID, owner)
    return int(struct.unpack("I", owner)[0])


def is_own(pid: int) -> bool:
    """Whether a process is in a user namespace that this user made, below this program's, or around it where that is in a container.

    What such a process has is no more than every user can give himself; the place `under` makes all attempts with it.
    """
    import fcntl

    mine = os.stat("/proc/self/ns/user").st_ino
    try:
        namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        is_mine = owner_of(namespace) == os.getuid()
        if os.fstat(namespace).st_ino == mine:
            return is_mine and GIVEN.get("place") in ("container", "under")
        while os.fstat(namespace).st_ino != mine:
            namespace = fcntl.ioctl(namespace, NS_GET_PARENT)
    except OSError:
        return False
    return is_mine


def is_top_of_jail(folder: int) -> bool:
    """Whether climbing from a folder ends at this program's own root; closes it."""
    while True:
        above = os.open("..", os.O_PATH, dir_fd=folder)
        here, there = os.fstat(folder), os.fstat(above)
        os.close(folder)
        folder = above
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
            break
    mine, top = os.stat("/"), os.fstat(folder)
    os.close(folder)
    return (mine.st_dev, mine.st_ino) == (top.st_dev, top.st_ino)


def files() -> Iterator[Path]:
    """Every file that a walk from the root finds."""
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if str(Path(folder, name)) not in ("/proc", "/sys")]
        yield from (Path(folder, name) for name in names)


# -- secrets ------------------------------------------------------------------------------------------------------------


@attempt("mount namespace: the keys' volume is not in it", "pod")
def find_a_key() -> str:
    """A file with the name or the content of one of the cluster's keys."""
    found = []
    for path in files():
        with suppress(OSError):
            about = path.lstat()
            if path.name in ("slurm.key", "munge.key", "jwt_hs256.key"):
                found.append(str(path))
            elif stat.S_ISREG(about.st_mode) and about.st_size in GIVEN["sizes"]:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found += [str(path)] if digest in GIVEN["hashes"] else []
    return " ".join(found)


@attempt("mount namespace", "pod")
def find_folders_of_the_pod() -> str:
    """What only a pod or a Node has."""
    paths = "/etc/soperator/keys /etc/soperator/jail /run/soperator/keys /mnt/jail/root /mnt/jail/.soperator /usr/sbin/slurmd".split()
    nodes = "/var/lib/kubelet /run/containerd /etc/kubernetes /run/secrets /var/run/secrets".split()
    return " ".join(path for path in paths + nodes if Path(path).exists())


@attempt("mount namespace", "pod")
def find_mounts_of_the_pod() -> str:
    """A volume of the pod in the list of mounts."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    telling = ("/mnt/jail", "/etc/soperator", "/run/soperator/keys", "/run/jail", "secrets", "termination-log")
    return " ".join(point for point in points if any(each in point for each in telling))


@attempt("pid namespace", "pod")
def read_environments() -> str:
    """Variables of daemons."""
    found = []
    for pid in others():
        with suppress(OSError):
            names = [
                each.split("=")[0] for each in Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
            ]
            found += [
                each for each in names if each.startswith(("SOPERATOR_", "KUBERNETES_", "SLURM_SACK", "SLURM_JWT"))
            ]
    return " ".join(sorted(set(found)))


@attempt("pid namespace", "pod")
def see_daemons() -> str:
    """A process of Slurm's in the list of processes."""
    return " ".join(f"{pid}:{name_of(pid)}" for pid in others() if name_of(pid) in DAEMONS - {"jail-holder"})


@attempt("pid namespace, and roots of its own init are not readable", "pod")
def enter_the_root_of_a_process() -> str:
    """Another root behind /proc/<pid>/root."""
    return _elsewhere("root")


@attempt("pid namespace, and folders of its own init are not readable", "pod")
def enter_the_folder_of_a_process() -> str:
    """A working directory that lies outside."""
    return _elsewhere("cwd")


def _elsewhere(link: str) -> str:
    found = []
    for pid in others():
        with suppress(OSError):
            if not is_top_of_jail(os.open(f"/proc/{pid}/{link}", os.O_PATH | os.O_DIRECTORY)) and not is_own(pid):
                found.append(f"{pid}:{name_of(pid)}")
    return " ".join(found)


@attempt("pid namespace, and no descriptor is left open by slurmstepd", "node")
def open_descriptors() -> str:
    """A descriptor, one's own or another's, of a folder outside, or of a file that has no such name here."""
    found = []
    for pid in [*(pid for pid in others() if not is_own(pid)), os.getpid()]:
        with suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{number}"
                with suppress(OSError):
                    if is_descriptor_of_outside(path):
                        found.append(f"{path} -> {os.readlink(path)}")
    return " ".join(found)


def is_descriptor_of_outside(path: str) -> bool:
    """Whether an open file or folder is none of the jail's."""
    about, name = os.stat(path), os.readlink(path)
    if stat.S_ISDIR(about.st_mode):
        return not is_top_of_jail(os.open(path, os.O_PATH | os.O_DIRECTORY))
    if not stat.S_ISREG(about.st_mode) or not name.startswith("/") or name.endswith(" (deleted)"):
        return False
    try:
        same = os.stat(name)
    except OSError:
        return not name.startswith("/memfd:")
    return (same.st_dev, same.st_ino) != (about.st_dev, about.st_ino)


@attempt("pid namespace; the init has more capabilities than a user's program", "pod")
def read_memory() -> str:
    """The memory of a daemon through /proc."""
    return _reached(lambda pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))


@attempt("pid namespace; the init has more capabilities than a user's program", "pod")
def read_memory_by_call() -> str:
    """The memory of a daemon by process_vm_readv; an address that is not there shows that reading was allowed."""

    def read(pid: int) -> None:
        vector = ctypes.create_string_buffer(struct.pack("PL", 4096, 8))
        try:
            call("process_vm_readv", pid, vector, 1, vector, 1, 0)
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise

    return _reached(read)


@attempt("pid namespace; the init has more capabilities than a user's program", "pod")
def trace() -> str:
    """A daemon under ptrace: seized and let go."""

    def seize(pid: int) -> None:
        call("ptrace", 0x4206, pid, 0, 0)

    return _reached(seize)


@attempt("seccomp; pid namespace; the init has more capabilities than a user's program", "node")
def steal_descriptors() -> str:
    """A descriptor of a daemon by pidfd_getfd."""
    return _reached(lambda pid: os.close(call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0)))


def _reached(act: Callable[[int], object]) -> str:
    found = []
    for pid in daemons():
        with suppress(OSError):
            act(pid)
            found.append(f"{pid}:{name_of(pid)}")
    return " ".join(found)


@attempt("pid namespace", "pod")
def signal_the_outside() -> str:
    """A process that can be signalled and is Slurm's, or is not in the list of processes."""
    seen, found = set(others()), []
    for pid in range(1, 40000):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 0)
            is_thread = Path(f"/proc/{pid}").exists()
            if (pid not in seen and not is_thread) or (name_of(pid) in DAEMONS - {"jail-holder"}):
                found.append(f"{pid}:{name_of(pid)}")
    return " ".join(found)


# -- other jobs ---------------------------------------------------------------------------------------------------------


@attempt("a pid namespace for each job", "pod")
def see_another_job() -> str:
    """The process of the other job, by its arguments or its environment."""
    found = []
    for pid in others():
        for file in ("cmdline", "environ"):
            with suppress(OSError):
                if GIVEN["backwards"][::-1] in Path(f"/proc/{pid}/{file}").read_text(errors="replace"):
                    found.append(f"/proc/{pid}/{file}")
    return " ".join(found)


@attempt("a /tmp and a /dev/shm for each job", "pod")
def find_files_of_another_job() -> str:
    """A file that the other job made in /tmp or /dev/shm."""
    return " ".join(str(path) for path in files() if GIVEN["backwards"][::-1] in path.name)


# -- mounts -------------------------------------------------------------------------------------------------------------


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    call("mount", source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None)


@attempt("no CAP_SYS_ADMIN", "caps")
def mount_a_tmpfs() -> str:
    """A file system of one's own."""
    mount("none", "/mnt", "tmpfs")
    return "/mnt"


@attempt("no CAP_SYS_ADMIN", "caps")
def mount_a_proc() -> str:
    """A /proc without masks."""
    mount("none", "/mnt", "proc")
    return "/mnt"


@attempt("no CAP_SYS_ADMIN", "caps")
def bind_a_folder() -> str:
    """The root at another place, without what is mounted on it."""
    mount("/", "/mnt", flags=BIND)
    return "/mnt"


@attempt("no CAP_SYS_ADMIN", "caps")
def mount_an_overlay() -> str:
    """An overlay over the root."""
    mount("none", "/mnt", "overlay", data="lowerdir=/usr:/etc")
    return "/mnt"


@attempt("no CAP_SYS_ADMIN", "caps")
def mount_by_the_new_calls() -> str:
    """fsopen, fsmount and move_mount."""
    context = call("fsopen", b"tmpfs", 0)
    call("fsconfig", context, 6, None, None, 0)
    call("move_mount", call("fsmount", context, 0, 0), b"", -100, b"/mnt", 4)
    return "/mnt"


@attempt("no CAP_SYS_ADMIN", "caps")
def clone_the_tree() -> str:
    """open_tree with a copy of all mounts."""
    return f"descriptor {call('open_tree', -100, b'/', 1 | 0x8000)}"


@attempt("no CAP_SYS_ADMIN", "caps")
def take_a_mask_off() -> str:
    """The kernel's files under a mask of /proc."""
    call("umount2", b"/proc/keys", DETACH)
    return "/proc/keys"


@attempt("no CAP_SYS_ADMIN", "caps")
def take_the_bundle_off() -> str:
    """Whatever lies under the programs of Slurm."""
    call("umount2", b"/opt/soperator", DETACH)
    return "/opt/soperator"


@attempt("no CAP_SYS_ADMIN", "caps")
def take_the_root_off() -> str:
    """Whatever lies under the jail."""
    call("umount2", b"/", DETACH)
    return "/"


@attempt("no CAP_SYS_ADMIN", "caps")
def make_the_bundle_writable() -> str:
    """A remount of the programs that everybody runs."""
    mount("none", "/opt/soperator", flags=REMOUNT | BIND)
    return "/opt/soperator"


@attempt("no CAP_SYS_ADMIN", "caps")
def make_the_bundle_writable_by_attributes() -> str:
    """The same by mount_setattr."""
    call("mount_setattr", -100, b"/opt/soperator", 0, ctypes.create_string_buffer(struct.pack("4Q", 0, 1, 0, 0)), 32)
    return "/opt/soperator"


@attempt("no CAP_SYS_ADMIN, and seccomp", "node")
def change_the_root() -> str:
    """pivot_root: a folder that is no mount point is refused by another word than a caller without rights."""
    return asked("pivot_root", b"/proc/self", b"/proc/self")


@attempt("no CAP_SYS_ADMIN", "caps")
def make_a_mount_namespace() -> str:
    """unshare without a user namespace."""
    call("unshare", NEWNS)
    return "a mount namespace"


@attempt("no CAP_SYS_ADMIN", "pod")
def join_the_mounts_of_a_process() -> str:
    """setns with the namespaces of every process that is seen."""
    found = []
    mine = os.stat("/proc/self/ns/mnt").st_ino
    for pid in others():
        with suppress(OSError):
            if (os.stat(f"/proc/{pid}/ns/mnt").st_ino != mine or pid == 1) and not is_own(pid):
                call("setns", call("pidfd_open", pid, 0), NEWNS)
                found.append(f"{pid}:{name_of(pid)}")
    return " ".join(found)


@attempt("the jail is the root of its mount namespace, or nothing is mounted under it", "pod")
def climb_out_of_a_chroot() -> str:
    """chroot into a folder, and climb from outside of it."""
    os.makedirs("/tmp/deeper", exist_ok=True)
    os.chroot("/tmp/deeper")
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return " ".join(
        path for path in ("/mnt/jail/root", "/etc/soperator/jail", "/usr/sbin/slurmd") if Path(path).exists()
    )


@attempt("the jail is the root of its mount namespace, or nothing is mounted under it", "pod")
def climb_by_a_descriptor() -> str:
    """chroot, and come back to a folder that was opened before."""
    folder = os.open("/", os.O_RDONLY)
    os.makedirs("/tmp/deeper", exist_ok=True)
    os.chroot("/tmp/deeper")
    os.fchdir(folder)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return " ".join(
        path for path in ("/mnt/jail/root", "/etc/soperator/jail", "/usr/sbin/slurmd") if Path(path).exists()
    )


@attempt("no CAP_DAC_READ_SEARCH", "node")
def open_by_a_handle() -> str:
    """A file of the same file system outside, by its handle: the way that left early containers."""
    handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + struct.pack("Q", 2), 136)
    return asked("open_by_handle_at", os.open("/", os.O_RDONLY), handle, os.O_RDONLY)


# -- a user namespace of one's own --------------------------------------------------------------------------------------


def become_root_of_a_user_namespace(kinds: int = NEWNS) -> None:
    """A new user namespace in which this user is root with all capabilities."""
    user, group = os.getuid(), os.getgid()
    call("unshare", NEWUSER | kinds)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


@attempt("mounts of the jail are locked in a user namespace below", "caps")
def take_masks_off_in_a_user_namespace() -> str:
    """Root of a new user namespace tries its hand at the jail's mounts."""
    if not GIVEN.get("keeps_capabilities"):
        become_root_of_a_user_namespace()
    found = []
    for target in ("/proc/keys", "/proc/sys", "/opt/soperator", "/dev/null", "/"):
        with suppress(OSError):
            call("umount2", target.encode(), DETACH)
            found.append(target)
    return " ".join(found)


@attempt("what is read-only in the jail is locked in a user namespace below", "caps")
def make_the_bundle_writable_in_a_user_namespace() -> str:
    """Root of a new user namespace remounts."""
    if not GIVEN.get("keeps_capabilities"):
        become_root_of_a_user_namespace()
    found = []
    for target in ("/opt/soperator", "/proc/sys", "/run/slurm", "/sys"):
        with suppress(OSError):
            mount("none", target, flags=REMOUNT | BIND)
            found.append(target)
    return " ".join(found)


@attempt("the masks of /proc: no new one may show more; files of the kernel belong to the Node's root", "node")
def write_to_the_kernel_through_a_new_proc() -> str:
    """A new /proc in new namespaces, and core_pattern in it, by which the kernel starts programs on the Node."""
    if GIVEN.get("is_node"):
        os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
        return "core_pattern"
    become_root_of_a_user_namespace(NEWNS | NEWPID)
    child = os.fork()
    if child == 0:
        try:
            mount("none", "/mnt", "proc")
            os.close(os.open("/mnt/sys/kernel/core_pattern", os.O_WRONLY))
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))
    return "core_pattern can be written"


@attempt("the user namespace does not own the network namespace", "node")
def mount_sys_in_a_user_namespace() -> str:
    """A new writable /sys or cgroup tree."""
    if not GIVEN.get("is_node"):
        become_root_of_a_user_namespace()
    found = []
    for kind in ("sysfs", "cgroup2", "cgroup"):
        with suppress(OSError):
            mount("none", "/mnt", kind, data="memory" if kind == "cgroup" else "")
            if os.access("/mnt/release_agent", os.W_OK) or os.access("/mnt/kernel/uevent_helper", os.W_OK):
                found.append(kind)
            if GIVEN.get("is_node"):
                found.append(kind)
            call("umount2", b"/mnt", DETACH)
    return " ".join(found)


# -- devices ------------------------------------------------------------------------------------------------------------


def _made(mode: int, major: int, minor: int) -> str:
    path = f"/tmp/node-{os.getpid()}"
    os.mknod(path, mode | 0o600, os.makedev(major, minor))
    os.unlink(path)
    return path


@attempt("no CAP_MKNOD", "node")
def make_a_disk() -> str:
    """A block device of the Node's disk."""
    return _made(stat.S_IFBLK, 254, 0)


@attempt("no CAP_MKNOD", "node")
def make_the_memory() -> str:
    """/dev/mem."""
    return _made(stat.S_IFCHR, 1, 1)


@attempt("a /dev with a short list", "node")
def find_devices() -> str:
    """A block device, or a device of the machine, in /dev."""
    names = ("mem", "kmsg", "port", "kvm", "fuse", "loop-control", "net/tun", "vhost-net", "uinput", "mapper/control")
    found = [str(each) for each in Path("/dev").rglob("*") if each.is_block_device()]
    return " ".join(found + [f"/dev/{name}" for name in names if Path("/dev", name).is_char_device()])


# -- the kernel ---------------------------------------------------------------------------------------------------------


@attempt("/proc/sys is read-only", "node")
def write_sysctls() -> str:
    """Any setting of the kernel that can be opened for writing."""
    return _writable("/proc/sys")


@attempt("/sys is read-only", "node")
def write_sys() -> str:
    """Any file of /sys that can be opened for writing."""
    return _writable("/sys")


def _writable(top: str) -> str:
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            with suppress(OSError):
                os.close(os.open(Path(folder, name), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
                found.append(str(Path(folder, name)))
        if len(found) > 4:
            break
    return " ".join(found)


@attempt("/proc/sysrq-trigger is read-only", "none: the kernel of this machine has no sysrq")
def press_sysrq() -> str:
    """sysrq-trigger, opened and not written."""
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    return "/proc/sysrq-trigger"


@attempt("/proc/kcore is masked", "node")
def read_the_kernel() -> str:
    """The memory of the kernel, or its keys."""
    found = []
    for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/kallsyms"):
        with suppress(OSError):
            content = os.read(os.open(path, os.O_RDONLY), 64)
            if content and not content.startswith(b"0" * 16):
                found.append(path)
    return " ".join(found)


@attempt("no CAP_SYS_MODULE, and seccomp", "none: the kernel of this machine has no modules")
def load_a_module() -> str:
    """init_module with rubbish."""
    return asked("init_module", b"x" * 64, 64, b"")


@attempt("no CAP_SYS_MODULE, and seccomp", "none: the kernel of this machine has no modules")
def load_a_module_from_a_file() -> str:
    """finit_module with no file."""
    return asked("finit_module", -1, b"", 0)


@attempt("no CAP_SYS_MODULE, and seccomp", "none: the kernel of this machine has no modules")
def unload_a_module() -> str:
    """delete_module of one that is not there."""
    return asked("delete_module", b"not-there", 0)


@attempt("no CAP_SYS_BOOT, and seccomp", "none: the kernel of this machine has no kexec")
def boot_another_kernel() -> str:
    """kexec_load with wrong flags."""
    return asked("kexec_load", 0, 99, None, 0xFF)


@attempt("no CAP_SYS_BOOT", "node")
def reboot() -> str:
    """reboot with wrong numbers."""
    return asked("reboot", 0, 0, 0, 0)


@attempt("no CAP_BPF", "node")
def load_a_bpf_program() -> str:
    """bpf: a map of kernel memory, by wrong arguments."""
    return asked("bpf", 5, ctypes.create_string_buffer(struct.pack("II", 1, 99), 120), 120)


@attempt("no CAP_PERFMON, and seccomp", "node")
def watch_all_processes() -> str:
    """perf_event_open for a whole CPU."""
    attributes = struct.pack("IIQQQQQ", 1, 112, 0, 0, 0, 0, 1)
    return asked("perf_event_open", ctypes.create_string_buffer(attributes, 112), -1, 0, -1, 0)


@attempt("seccomp", "node")
def look_into_keyrings() -> str:
    """keyctl: keyrings know no namespace of mounts or processes."""
    return f"keyring {call('keyctl', 0, -3, 0)}"


@attempt("seccomp, and a sysctl", "node")
def stop_the_kernel_at_a_page() -> str:
    """userfaultfd for faults of the kernel, the helper of many exploits."""
    return f"descriptor {call('userfaultfd', 0)}"


@attempt("no CAP_NET_RAW", "node")
def forge_packets() -> str:
    """Raw and packet sockets."""
    found = []
    for family, kind, number in (
        (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
        (socket.AF_PACKET, socket.SOCK_RAW, 0x300),
    ):
        with suppress(OSError):
            socket.socket(family, kind, number).close()
            found.append(family.name)
    return " ".join(found)


@attempt("no CAP_NET_ADMIN", "node")
def change_the_network() -> str:
    """The loopback interface: the same flags written back."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        answer = fcntl.ioctl(each, 0x8913, struct.pack("16sH14x", b"lo", 0))
        fcntl.ioctl(each, 0x8914, answer)
    return "lo"


@attempt("no CAP_SYS_TIME", "node")
def change_the_time() -> str:
    """adjtimex with a tick that no clock has."""
    return asked("adjtimex", ctypes.create_string_buffer(struct.pack("I", 0x4000), 208))


@attempt("no CAP_SYS_ADMIN", "caps")
def change_the_host_name() -> str:
    """The Slurm node under another name: the same name written back."""
    name = os.uname().nodename.encode()
    call("sethostname", name, len(name))
    return name.decode()


@attempt("no CAP_SYS_ADMIN in the Node's user namespace", "node")
def swap() -> str:
    """swapon of a file that is not there."""
    return asked("swapon", b"/not-there", 0)


@attempt("no CAP_SYS_PACCT", "node")
def account() -> str:
    """Accounting of processes into a file that is not there."""
    return asked("acct", b"/not-there/file")


@attempt("no CAP_SYSLOG", "node")
def read_the_log_of_the_kernel() -> str:
    """syslog: what the kernel said."""
    return asked("syslog", 3, ctypes.create_string_buffer(64), 64)


@attempt("no CAP_SYS_ADMIN in the Node's user namespace", "node")
def watch_all_files() -> str:
    """fanotify with permission events."""
    return asked("fanotify_init", 4, 0)


@attempt("no CAP_SYS_RAWIO", "none: the kernel of this machine has no iopl")
def ask_the_ports() -> str:
    """iopl: the machine's ports."""
    if platform.machine() != "aarch64" and libc.iopl(3):
        raise OSError(ctypes.get_errno(), "iopl")
    return "" if platform.machine() == "aarch64" else "iopl"


@attempt("no CAP_SYS_NICE", "node")
def push_others_aside() -> str:
    """A priority above all others'."""
    os.nice(-1)
    return "nice -1"


@attempt("no CAP_SYS_RESOURCE", "none: root of the machine itself lacks it here")
def escape_the_oom_killer() -> str:
    """A score that lets all others be killed first."""
    Path("/proc/self/oom_score_adj").write_text("-1000")
    return "oom_score_adj"


# -- more rights --------------------------------------------------------------------------------------------------------


@attempt("capabilities of a process only shrink", "caps")
def gain_capabilities() -> str:
    """capset of everything, or of SYS_ADMIN where it is there to keep."""
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    wanted = 1 << 21
    call("capset", header, ctypes.create_string_buffer(struct.pack("6I", wanted, wanted, 0, 0, 0, 0)))
    return "SYS_ADMIN"


@attempt("the bounding set; /tmp is nosuid", "caps")
def gain_capabilities_by_a_file() -> str:
    """A program with file capabilities of SYS_ADMIN, in /tmp and in the jail, that says what it got."""
    found = []
    for folder in ("/tmp", "/var/tmp", str(Path.home())):
        path = f"{folder}/status-{os.getpid()}"
        with suppress(OSError):
            Path(path).write_bytes(Path(os.path.realpath("/bin/cat")).read_bytes())
            os.chmod(path, 0o755)
            with suppress(OSError):
                os.setxattr(path, "security.capability", struct.pack("<5I", 0x2000001, 1 << 21, 0, 0, 0))
                said = subprocess.run([path, "/proc/self/status"], capture_output=True, text=True, check=False).stdout
                effective = [int(line.split()[1], 16) for line in said.splitlines() if line.startswith("CapEff")]
                found += [path] if any(each >> 21 & 1 for each in effective) else []
            os.unlink(path)
    return " ".join(found)


@attempt("user namespace; without one, the bounding set", "pod")
def hold_dangerous_capabilities() -> str:
    """What this process, or any program that it starts, may have."""
    names = {
        2: "DAC_READ_SEARCH", 12: "NET_ADMIN", 13: "NET_RAW", 16: "SYS_MODULE", 17: "SYS_RAWIO", 19: "SYS_PTRACE", 20: "SYS_PACCT",
        21: "SYS_ADMIN", 22: "SYS_BOOT", 23: "SYS_NICE", 24: "SYS_RESOURCE", 25: "SYS_TIME", 27: "MKNOD", 34: "SYSLOG", 38: "PERFMON",
        39: "BPF", 40: "CHECKPOINT_RESTORE",
    }  # fmt: skip
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    have = int(status["CapBnd"], 16) | int(status["CapEff"], 16) | int(status["CapPrm"], 16)
    return " ".join(name for number, name in names.items() if have >> number & 1)


# -- Slurm's own files --------------------------------------------------------------------------------------------------


@attempt("read-only binds", "pod")
def change_what_slurm_trusts() -> str:
    """Programs, plugins, configuration and sockets of Slurm: new files, renamed files."""
    found = []
    folders = [
        "/opt/soperator/bin",
        "/opt/soperator/lib/slurm",
        "/run/slurm",
        "/run/slurm/conf",
        "/var/spool/slurmd/conf-cache",
    ]
    for folder in folders:
        with suppress(OSError):
            Path(folder, "new").touch()
            Path(folder, "new").unlink()
            found.append(folder)
    for path in ("/run/slurm/sack.socket", "/run/slurm/conf", "/var/spool/slurmd/conf-cache"):
        with suppress(OSError):
            os.rename(path, f"{path}.former")
            os.rename(f"{path}.former", path)
            found.append(path)
    return " ".join(found)


@attempt("sockets of the Node are not mounted", "node")
def talk_to_the_runtime() -> str:
    """Sockets of containerd, the kubelet or another runtime, by path or abstract name."""
    told = ("containerd", "kubelet", "docker", "crio", "dockershim", "device-plugin", "systemd/private", "dbus/system")
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    names = [line.split()[7] for line in lines if len(line.split()) > 7]
    names += [str(each) for each in Path("/run").rglob("*.sock*")]
    return " ".join(sorted({name for name in names if any(each in name for each in told)})[:4])


# -- the network --------------------------------------------------------------------------------------------------------


def _fetch(url: str, tokens: dict[str, str]) -> str:
    request = urllib.request.Request(url, headers=tokens)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, timeout=3, context=context) as answer:
            return f"{url}: {answer.status}"
    except urllib.error.HTTPError as error:
        raise PermissionError(errno.EACCES, f"{url}: {error.code}") from error


@attempt("no token in any pod", "token")
def read_secrets_from_the_api_server() -> str:
    """All Secrets of the namespace."""
    token = {"Authorization": f"Bearer {GIVEN['token']}"} if GIVEN.get("token") else {}
    for path in Path("/").glob("var/run/secrets/kubernetes.io/serviceaccount/token"):
        token = {"Authorization": f"Bearer {path.read_text()}"}
    return _fetch(GIVEN["api"] + "/api/v1/namespaces/slurm/secrets", token)


@attempt("the kubelet demands a certificate", "none: the kubelet of the local cluster has no open mode to compare with")
def ask_the_kubelet() -> str:
    """The pods of the Node."""
    return _fetch(f"https://{GIVEN['node']}:10250/pods", {})


@attempt("slurmrestd demands a token", "jwt")
def ask_rest_without_a_token() -> str:
    """The nodes, or a job as another user."""
    name = {"X-SLURM-USER-NAME": "root"}
    token = {"X-SLURM-USER-TOKEN": GIVEN["jwt"]} if GIVEN.get("jwt") else {}
    return _fetch(GIVEN["rest"] + "/slurm/v0.0.42/nodes", name | token)


# -- running ------------------------------------------------------------------------------------------------------------


def prepare() -> None:
    """Go where the attempts are to be made from. Who may change mounts does so in a copy of them, for each attempt anew."""
    place = GIVEN.get("place")
    with suppress(OSError):
        os.makedirs("/mnt", exist_ok=True)  # which an image need not have
    if GIVEN.get("is_control"):
        call("unshare", NEWNS | NEWUTS)
        mount("none", "/", flags=REC | PRIVATE)
    elif place == "container":
        with suppress(OSError):  # only root of a container may, and need
            call("unshare", NEWNS)
            mount("none", "/", flags=REC | PRIVATE)
    elif place == "under":
        call("unshare", NEWNS)
        mount("none", "/", flags=REC | PRIVATE)
        own = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        call("umount2", b"/", DETACH)
        call("setns", own, NEWNS)  # the root of the namespace is now what lay under the container's


def ended(run: Callable[[], str]) -> dict[str, str]:
    """How an attempt ended, run in a child of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            prepare()
            seen = run()
            answer = {"end": "through" if seen else "held", "seen": seen[:500] or "nothing was reached"}
        except OSError as error:
            answer = {"end": "held", "seen": str(error)}
        except BaseException as error:  # the test shall show it
            answer = {"end": "broken", "seen": repr(error)}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    status = os.waitpid(child, 0)[1]
    found: dict[str, str] = json.loads(said) if said else {"end": "broken", "seen": f"ended with {status}"}
    return found


def main() -> None:
    """Make the attempts that are asked for, all by default."""
    GIVEN.update(json.loads(sys.argv[1]))
    wanted = GIVEN.get("only") or list(ATTEMPTS)
    ends = {name: ended(ATTEMPTS[name].run) for name in wanted}
    inside = Path("/proc/self/uid_map").read_text().split()
    prepare()
    root = os.stat("/")
    about = {"host": os.uname().nodename, "user": os.getuid(), "uid_map": inside, "root": [root.st_dev, root.st_ino]}
    print(json.dumps(about | {"ends": ends}))


if __name__ == "__main__":
    main()
