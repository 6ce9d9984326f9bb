"""authorized-keys: the keys of a user that it prints, and those that it skips."""

import os
import subprocess

import pytest
from conftest import Jail, Pod

UID = 4711
KEYS = "ssh-ed25519 AAAA ann\n"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def home(jail: Jail):
    """Create Ann's home in the jail with valid keys, and the program in the jail."""
    (jail.root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\nann:x:{UID}:{UID}::/home/ann:/bin/sh\n")
    (jail.root / "etc/group").write_text(f"root:x:0:\nann:x:{UID}:\n")
    (jail.root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\n")
    (jail.root / "program").touch()
    jail.write_plan(("bind", str(jail.build.folder / "authorized-keys"), "/program", "ro", "the program"))
    home = jail.root / "home/ann"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/authorized_keys").write_text(KEYS)
    for path, mode in ((home, 0o755), (home / ".ssh", 0o700), (home / ".ssh/authorized_keys", 0o600)):
        path.chmod(mode)
        os.chown(path, UID, UID)
    return home


def printed(jail: Jail, user: str = "ann") -> "subprocess.CompletedProcess[str]":
    """Return the output, in a pod with a user namespace."""
    return jail.run(Pod(userns=True, pivot=False), "/program", user)


def test_a_users_keys_are_printed(jail: Jail, home):
    """The program reads the file as the user, because other users may not."""
    done = printed(jail)
    assert (done.returncode, done.stdout, done.stderr) == (0, KEYS, "")


@pytest.mark.parametrize("missing", [".ssh/authorized_keys", ".ssh", ""])
def test_a_user_without_the_file_has_no_keys(jail: Jail, home, missing):
    """A missing file is not an error."""
    (home / missing).rename(jail.root / "elsewhere")
    done = printed(jail)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", [".ssh/authorized_keys", ".ssh", ""])
@pytest.mark.parametrize("how", ["mode", "owner"])
def test_what_others_may_write_is_passed_over(jail: Jail, home, path, how):
    """A file or folder that another user owns, or that the group may write, is reported in a message, as by sshd's StrictModes."""
    if how == "mode":
        (home / path).chmod((home / path).stat().st_mode | 0o020)
    else:
        (home / path).chmod(0o755)
        os.chown(home / path, UID + 1, UID + 1)
    done = printed(jail)
    assert (done.returncode, done.stdout) == (1, "")
    assert "may be written by others" in done.stderr


def test_a_link_leads_nowhere_that_the_user_could_not_go(jail: Jail, home):
    """The program follows a link to a file of root as the user, who cannot read it."""
    (jail.root / "secret").write_text("ssh-ed25519 AAAA root\n")
    (jail.root / "secret").chmod(0o600)
    (home / ".ssh/authorized_keys").unlink()
    (home / ".ssh/authorized_keys").symlink_to("/secret")
    done = printed(jail)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Permission denied" in done.stderr


def test_what_is_no_file_is_refused_at_once(jail: Jail, home):
    """A pipe does not block the program."""
    (home / ".ssh/authorized_keys").unlink()
    os.mkfifo(home / ".ssh/authorized_keys", 0o600)
    os.chown(home / ".ssh/authorized_keys", UID, UID)
    done = printed(jail)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has the wrong file type" in done.stderr


def test_nobody_of_that_name_is_told(jail: Jail, home):
    """A name of no user ends the program with a message."""
    done = printed(jail, "bob")
    assert (done.returncode, done.stderr) == (1, "authorized-keys: no user bob in the jail\n")
