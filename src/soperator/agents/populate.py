"""Complete the jail: check what copy.sh copied, add what every jail needs, and record that it is whole.

Between an empty claim and a sealed jail there are four states, told apart by what exists: nothing or a piece (`root.partial` without a
`manifest`), a whole copy (`manifest` and `root.partial`), a jail in its place (`root`, and no `root.partial`), a record
(`populated.json`). Each step leads from one state to the next by one rename, so a Job killed anywhere goes on where it was. What the
node's mount plan needs is made here, once, for a node never writes to the shared root (docs/explain/pods.md).

    python3 -m soperator.agents.populate seal --claim /mnt/jail
"""

import argparse
import ctypes
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from soperator import __version__
from soperator.agents.loader import link_driver

BUNDLE = "/opt/soperator"
COMMANDS = (
    "sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol scrontab sdiag sinfo sprio squeue sreport srun sshare"
    " sstat strigger"
)
#: Folders that mounts of a node cover, with their modes.
FOLDERS = {
    "dev": 0o755,
    "proc": 0o555,
    "sys": 0o555,
    "run": 0o755,
    "tmp": 0o1777,
    "mnt": 0o755,
    "home": 0o755,
    "opt/soperator": 0o755,
    "var/spool/slurmd": 0o755,
    "var/tmp": 0o1777,
    "usr/local/bin": 0o755,
    "usr/local/sbin": 0o755,
}
#: Files that mounts of a node cover; what they hold here is seen by nobody.
PLACEHOLDERS = ("etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/pam.d/soperator-sshd")
#: Accounts that Slurm and sshd look up inside the jail, by the numbers of the images.
ACCOUNTS = {"slurm": 64030, "sshd": 64033}
#: Files that `complete` adds to, so that a seal killed after it finds them changed.
TOUCHED = frozenset({"etc/passwd", "etc/group"})
TERMINATION_LOG = Path("/dev/termination-log")


#: By this file ssh in the jail knows the cluster's nodes; each pod brings the list that it names.
SSH_CONFIG = Path("etc/ssh/ssh_config.d/soperator.conf")
SSH_LINES = """\
# By soperator: the nodes of the cluster are known to each other.
Host *
    GlobalKnownHostsFile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2 /run/soperator/known_hosts
"""


class Refusal(Exception):  # noqa: N818
    """What stands in the way, as one sentence for a person."""


@dataclass(frozen=True)
class Record:
    """What `populated.json` says: a sealed jail's origin and size."""

    image: str
    version: str
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Entry:
    """A file that copy.sh set out to copy."""

    path: str
    size: int


def manifest(records: Path) -> list[Entry]:
    """Read what copy.sh set out to copy: `size path`, each ended by a zero byte."""
    lines = os.fsdecode((records / "manifest").read_bytes()).split("\0")[:-1]
    return [Entry(path, int(size)) for size, _, path in (line.partition(" ") for line in lines)]


def differences(root: Path, entries: list[Entry], sums: str) -> Iterator[str]:
    """Yield in which way the copy is not what was to be copied; nothing where it is the same."""
    for entry in entries:
        if entry.path in TOUCHED:
            continue
        try:
            size = (root / entry.path).lstat().st_size
        except FileNotFoundError:
            yield f"{entry.path} is missing"
            continue
        if size != entry.size:
            yield f"{entry.path} has {size} bytes instead of {entry.size}"
    for line in sums.splitlines():
        expected, _, path = line.partition("  ")
        if path in TOUCHED or expected.startswith("\\"):  # an odd name, escaped by sha256sum; its size was compared
            continue
        with suppress(FileNotFoundError), (root / path).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                yield f"{path} has another content"


def complete(root: Path) -> None:
    """Make the mount points, the links to Slurm's commands and the accounts that every jail needs; twice is harmless."""
    root.chmod(0o755)
    for name, mode in FOLDERS.items():
        folder = root / name
        if not folder.is_symlink():  # an image's own link may be absolute, and would lead out of the jail here
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)
    for name in PLACEHOLDERS:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        path.touch()
    for command in COMMANDS.split():
        link = root / "usr/local/bin" / command
        with suppress(FileExistsError):
            link.symlink_to(f"{BUNDLE}/bin/{command}")
    link_driver(root)
    with suppress(FileExistsError):
        (root / "usr/local/sbin/createuser").symlink_to(f"{BUNDLE}/sbin/createuser")
    (root / SSH_CONFIG).parent.mkdir(parents=True, exist_ok=True)
    if not (root / SSH_CONFIG).is_symlink():
        (root / SSH_CONFIG).write_text(SSH_LINES)
    for name, number in ACCOUNTS.items():
        _add_line(root / "etc/group", name, f"{name}:x:{number}:")
        _add_line(root / "etc/passwd", name, f"{name}:x:{number}:{number}:soperator:/nonexistent:/usr/sbin/nologin")


def _add_line(path: Path, name: str, line: str) -> None:
    text = path.read_text(errors="surrogateescape") if path.exists() else ""
    if not any(each.startswith(f"{name}:") for each in text.splitlines()):
        ending = "" if not text or text.endswith("\n") else "\n"
        path.write_text(f"{text}{ending}{line}\n", errors="surrogateescape")


def seal(claim: Path, image: str) -> str:
    """Bring the claim to its end from whatever state it is in, and say in a sentence what was done."""
    started = time.monotonic()
    partial, root, records = claim / "root.partial", claim / "root", claim / ".soperator"
    if (records / "populated.json").exists():
        return f"{root} is complete already."
    if not (records / "manifest").exists():
        raise Refusal(f"{claim} holds no whole copy: copy.sh has to run before seal.")
    entries = manifest(records)
    if partial.exists():
        _check(partial, entries, records)
        complete(partial)
        flush(claim)
        _rename(partial, root)
    elif not root.exists():
        raise Refusal(
            f"{claim} has a manifest but neither root nor root.partial; remove {records} and run the Job again."
        )
    files, size = len(entries), sum(entry.size for entry in entries)
    _write_record(records, Record(image, __version__, files, size, round(_age(records, started), 1)))
    return f"{root} is complete: {files} files, {size / 1e6:.0f} MB."


def _check(partial: Path, entries: list[Entry], records: Path) -> None:
    """Refuse a copy that is not what was to be copied, and let the next run copy anew."""
    wrong = list(differences(partial, entries, (records / "sums").read_text(errors="surrogateescape")))
    if wrong or not entries:
        (records / "manifest").unlink()
        first = " and ".join([*wrong[:1], *([f"{len(wrong) - 1} more"] if len(wrong) > 1 else [])]) or "it is empty"
        raise Refusal(f"The copy in {partial} is not the image: {first}; the next run copies again.")


def _rename(partial: Path, root: Path) -> None:
    try:
        partial.rename(root)
    except OSError as error:
        raise Refusal(f"{root} exists and is not empty; it was not touched ({error.strerror}).") from error


def flush(claim: Path) -> None:
    """Bring everything on the claim's file system to its storage."""
    descriptor = os.open(claim, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise Refusal(f"{claim} could not be written to its storage: {os.strerror(ctypes.get_errno())}.")
    finally:
        os.close(descriptor)


def _age(records: Path, started: float) -> float:
    """Return the seconds since copy.sh began, or since the seal where the clock tells nothing."""
    with suppress(FileNotFoundError):
        began = (records / "began").stat().st_mtime
        return max(time.time() - began, 0.0)
    return time.monotonic() - started


def _write_record(records: Path, record: Record) -> None:
    new = records / "populated.json.new"
    with new.open("w") as file:
        json.dump(asdict(record), file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(records / "populated.json")
    flush(records)
    for name in ("manifest", "sums", "began"):
        (records / name).unlink(missing_ok=True)


def main() -> None:
    """Run the command line; an error is one sentence, also where Kubernetes shows it."""
    parser = argparse.ArgumentParser(prog="python3 -m soperator.agents.populate", description=__doc__)
    parser.add_argument("verb", choices=["seal"])
    parser.add_argument("--claim", type=Path, default=Path("/mnt/jail"))
    parser.add_argument("--image", default=os.environ.get("SOPERATOR_JAIL_IMAGE", ""))
    chosen = parser.parse_args()
    try:
        print(seal(chosen.claim, chosen.image))
    except (Refusal, OSError) as error:
        sentence = f"soperator: {error}"
        if TERMINATION_LOG.exists():
            with suppress(OSError):
                TERMINATION_LOG.write_text(sentence)
        sys.exit(sentence)


if __name__ == "__main__":
    main()
