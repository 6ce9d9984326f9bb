"""What root finds in the jail: run by its python3, on login and inside jobs; prints JSON. It uses nothing but the standard library."""

import contextlib
import ctypes
import hashlib
import json
import os
import stat
import sys
from pathlib import Path

NAMES = {"slurm.key", "munge.key", "jwt_hs256.key"}
SKIPPED = {"/proc", "/sys"}


def files(hashes):
    """Files that are named like a key or hold one, and folders that only pods have."""
    found = []
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if str(Path(folder, name)) not in SKIPPED]
        found += [str(Path(folder, name)) for name in names if name in NAMES or is_key(Path(folder, name), hashes)]
    kept = [
        path
        for path in ("/etc/soperator", "/run/soperator/keys", "/run/secrets", "/var/run/secrets")
        if Path(path).exists()
    ]
    below = Path("/mnt/jail")
    return found + kept + ([str(each) for each in below.iterdir()] if below.exists() else [])


def is_key(path, hashes):
    """Whether a file's content is that of a key."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_size <= 4096:
            return hashlib.sha256(path.read_bytes()).hexdigest() in hashes
    return False


def processes():
    """Of each visible process its name, where its root is (`jail`, `closed` or a path), and the names of its environment."""
    here, found = Path("/").stat(), []
    for pid in sorted(int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()):
        try:
            root = Path(f"/proc/{pid}/root/").stat()
            where = (
                "jail"
                if (root.st_dev, root.st_ino) == (here.st_dev, here.st_ino)
                else str([*Path(f"/proc/{pid}/root/").iterdir()])
            )
        except OSError:
            where = "closed"
        environment = []
        with contextlib.suppress(OSError):
            environment = [
                each.split("=")[0]
                for each in Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
                if each
            ]
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
            found.append({"pid": pid, "line": line, "root": where, "environment": environment})
    return found


def attempts():
    """Acts that must fail, each with the error's name or `done`."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source, target, kind, flags):
        if libc.mount(source, target, kind, flags, None):
            raise OSError(ctypes.get_errno(), "mount")

    acts = {
        "mount": lambda: mount(b"none", b"/mnt", b"tmpfs", 0),
        "remount": lambda: mount(b"none", b"/opt/soperator", None, 32 | 4096),
        "umount": lambda: refused(libc.umount2(b"/opt/soperator", 2)),
        "unshare": lambda: refused(libc.unshare(0x00020000)),
        "mknod": lambda: os.mknod("/root/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)),
        "write a program of the bundle": lambda: Path("/opt/soperator/bin/evil").touch(),
        "write sysctl": lambda: Path("/proc/sys/kernel/core_pattern").write_text("|/x"),
        "write Slurm's configuration": lambda: Path("/run/slurm/conf/plugstack.conf").open("a").close(),
        "put up another configuration": lambda: Path("/run/slurm/conf").rename("/run/slurm/conf.former"),
        "take down Slurm's socket": lambda: Path("/run/slurm/sack.socket").rename("/run/slurm/former"),
    }
    if Path("/var/spool/slurmd/conf-cache").exists():
        acts["write slurmd's configuration"] = lambda: Path("/var/spool/slurmd/conf-cache/x").touch()
        acts["move slurmd's configuration"] = lambda: Path("/var/spool/slurmd/conf-cache").rename("/var/spool/slurmd/c")

    def refused(code):
        if code:
            raise OSError(ctypes.get_errno(), "refused")

    return {name: ended(act) for name, act in acts.items()}


def ended(act):
    """How an act ended."""
    try:
        act()
    except OSError as error:
        return os.strerror(error.errno)
    return "done"


def climbed():
    """What the classical way out of a chroot leads to: the names at its top."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        Path("/root/deeper").mkdir(exist_ok=True)
        os.chroot("/root/deeper")
        for _ in range(64):
            os.chdir("..")
        os.chroot(".")
        os.write(writer, json.dumps(top()).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(reader, 65536)) == top()


def top():
    """The names at the top of what this process sees."""
    return sorted(each.name for each in Path("/").iterdir())


def main():
    """Print everything."""
    hashes = set(json.loads(sys.argv[1]))
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    Path("/root/owned").touch()
    print(
        json.dumps(
            {
                "host": os.uname().nodename,
                "files": files(hashes),
                "mounts": Path("/proc/self/mountinfo").read_text(),
                "processes": processes(),
                "attempts": attempts(),
                "climbing": climbed(),
                "uid_map": Path("/proc/self/uid_map").read_text().split(),
                "bounding": int(status["CapBnd"], 16),
                "effective": int(status["CapEff"], 16),
                "devices": [str(each) for each in Path("/dev").iterdir() if each.is_block_device()],
            }
        )
    )


main()
