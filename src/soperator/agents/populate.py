"""Completes the jail: verifies the copy of copy.sh, adds the files that every jail needs, and records that it is complete.

Between an empty claim and a sealed jail there are four states, distinguished by the files that exist: nothing or a partial copy (`root.partial`
without a `manifest`), a complete copy (`manifest` and `root.partial`), a jail in its place (`root`, and no `root.partial`), a record
(`populated.json`). Each step leads from one state to the next by one rename, so a Job that was killed continues at the same step.

The paths that the node's mount plan needs are created here, once, because a node never writes to the shared root (docs/explain/pods.md). A sealed
jail is changed only by a request that its record does not contain yet; `policy/cluster/jail_refill` describes how.

python3 -m soperator.agents.populate seal --claim /mnt/jail
"""

import argparse
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from soperator import __version__
from soperator.agents.errors import Refusal, exit_with_error, write_termination_message
from soperator.agents.jail_volume import alone, flush
from soperator.agents.loader import link_driver
from soperator.agents.refill import Journal, overwrite, present, put_back, read_journal, write_journal

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
#: Files that a node's mounts cover; their content here is never visible.
PLACEHOLDERS = ("etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/pam.d/soperator-sshd")
#: Accounts that Slurm and sshd look up inside the jail, by the numbers of the images.
ACCOUNTS = {"slurm": 64030, "sshd": 64033}
#: Files that `complete` changes, so that a seal that was killed afterwards finds them changed.
TOUCHED = frozenset({"etc/passwd", "etc/group"})
#: The exit code for a refusal that no later run can solve; the Job then fails at once.
FINAL = 65
#: With this file ssh in the jail knows the cluster's nodes; each pod mounts the list to which it refers.
SSH_CONFIG = Path("etc/ssh/ssh_config.d/soperator.conf")
SSH_LINES = """\
# By soperator: the nodes of the cluster are known to each other.
Host *
    GlobalKnownHostsFile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2 /run/soperator/known_hosts
"""


@dataclass(frozen=True)
class SealRecord:
    """The content of `populated.json`: a sealed jail's origin and size, and the last request that was carried out on it.

    `former` has the earlier requests as `{"request": …, "mode": …}`, because claim.sh searches for this text.
    """

    image: str
    version: str
    files: int
    bytes: int
    seconds: float
    request: str = ""
    mode: str = ""
    former: tuple[dict[str, str], ...] = ()

    @property
    def carried_out(self) -> tuple[dict[str, str], ...]:
        """All requests that were carried out, the last one at the end."""
        return (*self.former, *([{"request": self.request, "mode": self.mode}] if self.request else []))


@dataclass(frozen=True)
class PopulateRequest:
    """The request of the Job. Without a request the Job fills an empty claim, and leaves a sealed jail unchanged."""

    image: str = ""
    request: str = ""
    mode: str = ""
    keep: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A file in copy.sh's list."""

    path: str
    size: int


def manifest(records: Path) -> list[Entry]:
    """Read the list of files that copy.sh copies: `size path`, each ended by a zero byte."""
    lines = os.fsdecode((records / "manifest").read_bytes()).split("\0")[:-1]
    return [Entry(path, int(size)) for size, _, path in (line.partition(" ") for line in lines)]


def differences(root: Path, entries: list[Entry], sums: str) -> Iterator[str]:
    """Yield the differences between the copy and its source."""
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
    """Create the mount points, the links to Slurm's commands and the accounts that every jail needs. Safe to repeat."""
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


def seal(claim: Path, wanted: PopulateRequest) -> str:
    """Complete the claim from any state, and return a message about the action."""
    started = time.monotonic()
    partial, root, records = claim / "root.partial", claim / "root", claim / ".soperator"
    record, journal = read_record(records), read_journal(records)
    done = record.carried_out if record else ()
    if record and not journal and wanted.request in ("", *(each["request"] for each in done)):
        _tidy(claim)
        return f"{root} is complete already."
    if not journal and not (records / "manifest").exists():
        raise Refusal(f"{claim} has no complete copy: copy.sh has to run before seal.")
    if journal or partial.exists():
        origin, message = journal or wanted, _place(claim, wanted, journal)
    elif root.exists() and not record:
        origin, message = _intent(records) or wanted, ""
    else:
        raise Refusal(f"{claim} has a manifest but no root.partial; remove {records}/manifest and run the Job again.")
    entries = manifest(records)
    files, size = len(entries), sum(entry.size for entry in entries)
    image = record.image if record and origin.mode == "Missing" else origin.image
    seconds, former = (
        round(_age(records, started), 1),
        tuple(each for each in done if each["request"] != origin.request),
    )
    made = SealRecord(image, __version__, files, size, seconds, origin.request, origin.mode, former)
    _write_record(records, made)
    _tidy(claim)
    if wanted.request not in ("", origin.request):
        raise Refusal(
            f"The work of an interrupted Job on {root} is finished; the next run carries out {wanted.request}."
        )
    return message or f"{root} is complete: {files} files, {size / 1e6:.0f} MB."


def _intent(records: Path) -> PopulateRequest | None:
    """Return the request of the Job that made the copy."""
    with suppress(FileNotFoundError, ValueError):
        image, request, mode = (records / "intent").read_text().removesuffix("\n").split(" ")
        return PopulateRequest(image, request, mode)
    return None


def _place(claim: Path, wanted: PopulateRequest, journal: Journal | None) -> str:
    """Move a copy, or the rest of an interrupted one, to its place; return a message about the result."""
    partial, root, records = claim / "root.partial", claim / "root", claim / ".soperator"
    if not journal:
        _check(partial, manifest(records), records)
        complete(partial)
        flush(claim)
        if not root.exists() or not any(root.iterdir()):
            partial.rename(root)
            return ""
        if not wanted.request:
            raise Refusal(f"{root} exists and is not empty; it stays unchanged.", final=True)
        keep = present(root, wanted.keep) if wanted.mode == "Overwrite" else ()
        journal = Journal(wanted.request, wanted.mode, wanted.image, keep)
        write_journal(records, journal)
    if journal.mode == "Overwrite":
        overwrite(claim, journal)
        complete(root)
        kept = ", ".join(journal.keep) or "nothing"
        return f"{root} was replaced and kept {kept}; the previous root is {claim}/root.previous."
    filled = put_back(partial, root) if partial.exists() else 0
    return f"{filled} missing paths of {root} were restored."


def read_record(records: Path) -> SealRecord | None:
    """Return the record of a sealed jail; None if it is not sealed."""
    with suppress(FileNotFoundError):
        said = json.loads((records / "populated.json").read_text())
        return SealRecord(**{name: value for name, value in said.items() if name in SealRecord.__dataclass_fields__})
    return None


def _check(partial: Path, entries: list[Entry], records: Path) -> None:
    """Refuse a copy that differs from its source, and make the next run copy again."""
    wrong = list(differences(partial, entries, (records / "sums").read_text(errors="surrogateescape")))
    if wrong or not entries:
        (records / "manifest").unlink()
        first = " and ".join([*wrong[:1], *([f"{len(wrong) - 1} more"] if len(wrong) > 1 else [])]) or "it is empty"
        raise Refusal(f"The copy in {partial} differs from the image: {first}; the next run copies again.")


def _age(records: Path, started: float) -> float:
    """Return the seconds since copy.sh started, or since the start of seal if the clock was changed."""
    with suppress(FileNotFoundError):
        began = (records / "began").stat().st_mtime
        return max(time.time() - began, 0.0)
    return time.monotonic() - started


def _write_record(records: Path, record: SealRecord) -> None:
    new = records / "populated.json.new"
    with new.open("w") as file:
        json.dump(asdict(record), file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(records / "populated.json")
    flush(records)


def _tidy(claim: Path) -> None:
    """Remove the working files; the journal first, because while it exists the copy may contain files of users."""
    records = claim / ".soperator"
    for name in ("moving", "manifest", "sums", "began", "intent"):
        (records / name).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        shutil.rmtree(claim / "root.partial")


def main() -> None:
    """Run the command line; an error is one message on standard error and in the termination message, and a success prints the record."""
    parser = argparse.ArgumentParser(prog="python3 -m soperator.agents.populate", description=__doc__)
    parser.add_argument("verb", choices=["seal"])
    parser.add_argument("--claim", type=Path, default=Path("/mnt/jail"))
    parser.add_argument("--image", default=os.environ.get("SOPERATOR_JAIL_IMAGE", ""))
    parser.add_argument("--request", default=os.environ.get("SOPERATOR_REQUEST", ""))
    parser.add_argument("--mode", default=os.environ.get("SOPERATOR_MODE", ""))
    parser.add_argument("--keep", action="append", default=[])
    chosen = parser.parse_args()
    records = chosen.claim / ".soperator"
    try:
        with alone(records):
            print(
                seal(chosen.claim, PopulateRequest(chosen.image, chosen.request, chosen.mode, tuple(chosen.keep))),
                flush=True,
            )
        write_termination_message((records / "populated.json").read_text())
    except (Refusal, OSError) as error:
        exit_with_error(error, FINAL if isinstance(error, Refusal) and error.final else 1)


if __name__ == "__main__":
    main()
