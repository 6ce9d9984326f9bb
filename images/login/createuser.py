#!/usr/bin/python3
"""Make a user of the cluster, or complete one: account, home, a key pair for SSH between the nodes, keys to log in with.

What useradd leaves to do on a cluster is done here, and may be done again: what is there already stays. The home's own files are written as
the user, never as root, so that a home on a server that trusts no root works, and no link that a user placed leads root elsewhere.
Runs in the jail, with its python3 (3.9 or newer), useradd and ssh-keygen.
"""

import argparse
import base64
import binascii
import fcntl
import grp
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

LOCK = Path("/etc/.createuser.lock")
SUDOERS = Path("/etc/sudoers.d")
PATIENCE = 30.0
LOWEST, NOBODY = 1000, 65534
SKEL = Path("/etc/skel")
NOT_MAPPED = "is outside the ids of this pod's user namespace: see spec.security.idCount of the SlurmCluster."
TYPES = "ssh-ed25519 ssh-rsa ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 ecdsa-sha2-nistp521"
HARDWARE = "sk-ssh-ed25519@openssh.com sk-ecdsa-sha2-nistp256@openssh.com"


class Refusal(Exception):  # noqa: N818
    """An obstacle, as one sentence."""


def main() -> int:
    """Run the command line."""
    asked = arguments().parse_args()
    try:
        check(asked)
        keys = keys_of(asked.key)
        with locked(LOCK, PATIENCE):
            made = make_account(asked)
            join_groups(asked)
            if asked.sudo:
                may_sudo(asked.name)
            user = pwd.getpwnam(asked.name)
            count = as_user(user, keys, asked.node_key)
    except Refusal as refusal:
        print(f"createuser: {refusal}", file=sys.stderr)
        return 1
    can = (
        f"logs in with {count} key{'' if count == 1 else 's'}"
        if count
        else "cannot log in yet: no public key was given"
    )
    print(f"{user.pw_name} ({user.pw_uid}:{user.pw_gid}) {'made' if made else 'was there'}, home {user.pw_dir}, {can}.")
    return 0


def arguments() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(prog="createuser", description="Make a user of the cluster, or complete one.")
    parser.add_argument("name", help="the user's name")
    parser.add_argument(
        "key", nargs="*", help="public keys to log in with: the key itself in quotes, a file, or - for standard input"
    )
    parser.add_argument("--uid", type=int, help="the user's number; by default the next free one")
    parser.add_argument("--group", help="primary group, which must exist; by default one of the user's own")
    parser.add_argument("--gid", type=int, help="number of the user's own group")
    parser.add_argument("--groups", default="", help="further groups, with commas between; they must exist")
    parser.add_argument("--home", help="home folder; by default below /home")
    parser.add_argument("--shell", default="/bin/bash", help="login shell (%(default)s)")
    parser.add_argument("--comment", default="", help="full name or another comment")
    parser.add_argument("--sudo", action="store_true", help="may become root of the jail, who is a Slurm administrator")
    parser.add_argument(
        "--no-node-key", dest="node_key", action="store_false", help="no key pair for SSH between nodes"
    )
    return parser


def check(asked: argparse.Namespace) -> None:
    """Exit with an error for invalid arguments before any change."""
    if os.geteuid() != 0:
        raise Refusal("only root of the jail creates users: log in as root, or use sudo.")
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,30}", asked.name):
        raise Refusal(f"{asked.name!r} is no user name: small letters, digits, - and _, at most 31, a letter first.")
    for option, number in (("--uid", asked.uid), ("--gid", asked.gid)):
        if number is not None and (number < LOWEST or number == NOBODY):
            raise Refusal(f"{option} {number} is not for a user: take one from {LOWEST}.")
        if number is not None and not is_mapped(number, Path("/proc/self/uid_map").read_text()):
            raise Refusal(f"{option} {number} {NOT_MAPPED}")
    if asked.group and asked.gid is not None:
        raise Refusal("--group names a group that exists, --gid numbers a new one: give one of the two.")
    check_groups([asked.group, *asked.groups.split(",")])
    if not os.access(asked.shell, os.X_OK):
        raise Refusal(f"{asked.shell} is no program of the jail: name another --shell.")
    if ":" in asked.comment or "\n" in asked.comment:
        raise Refusal("--comment contains a colon or a line break: remove it.")
    if asked.home and not re.fullmatch(r"(/[^/:\s]+)+", asked.home):
        raise Refusal(f"--home {asked.home} is no absolute path.")
    for program in ("useradd", "ssh-keygen"):
        if shutil.which(program) is None:
            raise Refusal(f"{program} is not installed in the jail.")


def check_groups(names: "list[str | None]") -> None:
    """Exit with an error for groups that do not exist."""
    for group in filter(None, names):
        try:
            grp.getgrnam(group)
        except KeyError:
            raise Refusal(f"there is no group {group}: make it with groupadd {group}.") from None


def is_mapped(number: int, uid_map: str) -> bool:
    """Return whether a user namespace has this id."""
    ranges = [tuple(map(int, line.split())) for line in uid_map.splitlines()]
    return any(first <= number < first + count for first, _, count in ranges)


def keys_of(words: "list[str]") -> "list[str]":
    """Return the public keys of the arguments: the key itself, a file, or - for standard input."""
    keys: list[str] = []
    for word in words:
        if word == "-":
            text, origin = sys.stdin.read(), "standard input"
        elif is_key(word):
            text, origin = word, "the key"
        else:
            try:
                text, origin = Path(word).read_text(), word
            except (OSError, UnicodeDecodeError):
                raise Refusal(f"{word[:40]!r} is neither a public key nor a file with some.") from None
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        for line in lines:
            if "PRIVATE KEY" in line:
                raise Refusal(f"{origin} is a private key: give the public one, whose file ends in .pub.")
            if not is_key(line):
                raise Refusal(f"{origin} has a line that is no public key, or one that is cut: {line[:30]!r}.")
        if not lines:
            raise Refusal(f"{origin} holds no public key.")
        keys += lines
    return keys


def is_key(line: str) -> bool:
    """Return whether a line is a complete public key, with or without options before it."""
    words = line.split()
    for kind, blob in zip(words, words[1:]):  # noqa: B905, RUF007 (Python 3.9)
        if kind in TYPES.split() + HARDWARE.split():
            try:
                content = base64.b64decode(blob, validate=True)
            except (binascii.Error, ValueError):
                return False
            return content[4 : 4 + len(kind)] == kind.encode() and len(content) > 4 + len(kind) + 16
    return False


class locked:  # noqa: N801
    """Hold a lock on the shared root, so that two calls on any nodes run one after the other."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience = path, patience

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        end = time.monotonic() + self._patience
        while True:
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise Refusal(f"another createuser has held {self._path} for {self._patience:.0f} s.") from None
                time.sleep(0.05)
            except OSError:  # a storage without locks: useradd's own lock remains
                return None

    def __exit__(self, *_: object) -> None:
        self._file.close()


def make_account(asked: argparse.Namespace) -> bool:
    """Create the account unless it exists; an existing account must match the arguments. Return whether it was created."""
    try:
        there = pwd.getpwnam(asked.name)
    except KeyError:
        useradd(asked)
        return True
    group = grp.getgrnam(asked.group).gr_gid if asked.group else asked.gid
    for what, have, want in (
        ("uid", there.pw_uid, asked.uid),
        ("primary group", there.pw_gid, group),
        ("home", there.pw_dir, asked.home),
    ):
        if want is not None and want != have:
            raise Refusal(
                f"{asked.name} exists with {what} {have}, not {want}: change it with usermod, or leave it out."
            )
    if there.pw_uid < LOWEST:
        raise Refusal(f"{asked.name} is an account of the system (uid {there.pw_uid}).")
    make_home(there)
    return False


def make_home(user: pwd.struct_passwd) -> None:
    """Create the home of an existing user without one, such as a user of a directory service."""
    home = Path(user.pw_dir)
    if home.exists():
        return
    if not is_mapped(user.pw_uid, Path("/proc/self/uid_map").read_text()):
        raise Refusal(f"uid {user.pw_uid} of {user.pw_name} {NOT_MAPPED}")
    home.parent.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700)
    give(home, user)


def give(home: Path, user: pwd.struct_passwd) -> None:
    """Change the owner of a new home to its user; a link in its place is refused, because it may lead to a file of root."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchown(folder, user.pw_uid, user.pw_gid)
    finally:
        os.close(folder)


def useradd(asked: argparse.Namespace) -> None:
    """Run useradd."""
    home = asked.home or f"/home/{asked.name}"
    if Path(home).exists() and asked.uid is not None and Path(home).stat().st_uid != asked.uid:
        raise Refusal(f"{home} exists and belongs to uid {Path(home).stat().st_uid}: move it away, or give that --uid.")
    words = ["useradd", "--create-home", "--home-dir", home, "--shell", asked.shell, "--comment", asked.comment]
    if asked.uid is None and Path(home).exists():
        words += ["--uid", str(owner_to_be(home))]
    elif asked.uid is not None:
        words += ["--uid", str(asked.uid)]
    if asked.gid is not None:
        run(["groupadd", "--gid", str(asked.gid), asked.name])
    own = asked.name if asked.gid is not None else None
    words += ["--gid", asked.group or own] if asked.group or own else ["--user-group"]
    run([*words, asked.name])


def owner_to_be(home: str) -> int:
    """Return the uid that owns a home which an earlier account of this name left; no other account may use it."""
    owner = Path(home).stat().st_uid
    taken = [each.pw_name for each in pwd.getpwall() if each.pw_uid == owner]
    if owner < LOWEST or taken:
        raise Refusal(
            f"{home} exists and belongs to {taken[0] if taken else owner}: move it away, or name another --home."
        )
    return owner


def join_groups(asked: argparse.Namespace) -> None:
    """Add the user to additional groups."""
    if asked.groups:
        run(["usermod", "--append", "--groups", asked.groups, asked.name])


def may_sudo(name: str) -> None:
    """Allow the user to become root without a password, because no user has a password here."""
    if shutil.which("visudo") is None:
        raise Refusal("sudo is not installed in the jail.")
    SUDOERS.mkdir(mode=0o750, exist_ok=True)
    new = SUDOERS / f".createuser.{name}"  # sudo passes over names with a dot
    new.write_text(f"{name} ALL=(ALL:ALL) NOPASSWD: ALL\n")
    new.chmod(0o440)
    run(["visudo", "-cqf", str(new)])
    new.rename(SUDOERS / f"createuser-{name}")


def run(words: "list[str]") -> None:
    """Run a command; retry for a while if the user database is locked."""
    end = time.monotonic() + PATIENCE / 3
    while True:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        errors = done.stderr.strip()
        if done.returncode == 0:
            return
        if "cannot lock" not in errors or time.monotonic() > end:
            last = errors.splitlines()[-1] if errors else f"ended with {done.returncode}"
            raise Refusal(last if last.startswith(words[0]) else f"{words[0]}: {last}")
        time.sleep(0.1)


def as_user(user: pwd.struct_passwd, keys: "list[str]", node_key: bool) -> int:
    """Write the files in the home, in a child process with the user's identity; return how many keys can log in."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(receive)
            os.initgroups(user.pw_name, user.pw_gid)
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            answer = str(write_keys(Path(user.pw_dir), user.pw_name, keys, node_key))
            code = 0
        except Refusal as refusal:
            answer = str(refusal)
        except OSError as error:
            answer = f"{error.filename or user.pw_dir}: {error.strerror}; the account exists, run the command again."
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(send, answer.encode())
        os._exit(code)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answer = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        raise Refusal(answer or "the child that writes the keys was killed.")
    return int(answer)


def write_keys(home: Path, name: str, keys: "list[str]", node_key: bool) -> int:
    """Create the folder, the key pair and the missing keys, with the user's identity; return how many keys of others exist then."""
    os.umask(0o077)
    if not any(home.iterdir()) and SKEL.is_dir():
        shutil.copytree(SKEL, home, symlinks=True, dirs_exist_ok=True)
    folder = home / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    pair, allowed = folder / "id_ed25519", folder / "authorized_keys"
    own: list[str] = []
    if node_key:
        if not pair.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name} between nodes", "-f", str(pair)])
        public = pair.with_suffix(".pub")
        if not public.exists():
            raise Refusal(f"{pair} has no {public.name} beside it: write it with ssh-keygen -y.")
        own = [public.read_text().strip()]
    text = allowed.read_text() if allowed.exists() else ""
    known = {blob(line) for line in text.splitlines()}
    missing = [key for key in dict.fromkeys(own + keys) if blob(key) not in known]
    if missing:
        ending = "" if not text or text.endswith("\n") else "\n"
        new = folder / ".authorized_keys.new"
        new.write_text(text + ending + "".join(f"{key}\n" for key in missing))
        new.replace(allowed)
    if allowed.exists():
        allowed.chmod(0o600)
    others = {blob(line) for line in allowed.read_text().splitlines()} if allowed.exists() else set()
    return len(others - {blob(key) for key in own} - {""})


def blob(line: str) -> str:
    """Return the part of a key that identifies it; empty if there is none."""
    return next((word for word in line.split() if word.startswith("AAAA")), "")


if __name__ == "__main__":
    sys.exit(main())
