"""A folder with a daemon's socket in the jail: all users can connect to the daemon, and none can replace it.

The folder is an emptyDir, which the kubelet creates with mode 0777 and without the sticky bit; only the options of the plan's line protect
it.
"""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Jail, Pod

#: What src/soperator/render/jail/mount_plan.py says of /run/munge; tests/unit/render/test_munge.py holds the two together.
OPTIONS = "ro,nosuid,nodev,noexec"
USER = 4711

ATTEMPTS = f"""
import os, socket, subprocess, sys
def attempt(name, do):
    try:
        do()
        print("DONE", name)
    except OSError as error:
        print("held:", name, error.strerror)
def serve():
    with socket.socket(socket.AF_UNIX) as mine:
        mine.bind("/run/munge/mine")
if len(sys.argv) > 1:
    os.setgroups([])
    os.setresgid({USER}, {USER}, {USER})
    os.setresuid({USER}, {USER}, {USER})
attempt("rename", lambda: os.rename("/run/munge/socket", "/run/munge/taken"))
attempt("remove", lambda: os.remove("/run/munge/taken" if os.path.exists("/run/munge/taken") else "/run/munge/socket"))
attempt("create", lambda: open("/run/munge/new", "w").close())
attempt("listen", serve)
attempt("mode", lambda: os.chmod("/run/munge", 0o700))
if subprocess.run(["mount", "-o", "remount,rw,bind", "/run/munge"], capture_output=True).returncode == 0:
    print("DONE remount")
"""
TALK = """
import socket
with socket.socket(socket.AF_UNIX) as mine:
    mine.connect("/run/munge/socket")
    print(mine.recv(9))
"""


def _answer(server: socket.socket) -> None:
    while True:
        try:
            client = server.accept()[0]
        except OSError:
            return
        with client:
            client.send(b"munged")


@pytest.fixture
def listening(tmp_path: Path, jail: Jail) -> Iterator[Path]:
    """Create a folder as the kubelet does, with a socket on which a server answers."""
    folder = tmp_path / "munge"
    folder.mkdir()
    folder.chmod(0o777)
    (jail.root / "run/munge").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        server.listen()
        answering = threading.Thread(target=_answer, args=(server,), daemon=True)
        answering.start()
        yield folder
        server.shutdown(socket.SHUT_RDWR)
        answering.join()


def planned(jail: Jail, folder: Path, options: str) -> None:
    """Return the plan of the jail with the folder at /run/munge."""
    jail.write_plan(("bind", str(folder), "/run/munge", options, "munged's socket"))


@pytest.mark.parametrize("who", ["root", "user"])
def test_nobody_in_the_jail_takes_the_place_of_a_daemon(jail: Jail, pod: Pod, listening: Path, who: str) -> None:
    """Neither a user nor root of the jail can rename, remove or create a file beside the socket, and both can still connect to the daemon."""
    planned(jail, listening, OPTIONS)
    more = ["user"] if who == "user" else []
    tried = jail.run(pod, "/usr/bin/python3", "-I", "-c", ATTEMPTS, *more)
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.count("held:") == 5, tried.stdout
    assert "DONE" not in tried.stdout
    assert [each.name for each in listening.iterdir()] == ["socket"]
    assert "munged" in jail.python(pod, TALK).stdout


def test_without_the_options_any_user_takes_its_place(jail: Jail, pod: Pod, listening: Path) -> None:
    """The control: in a folder that is bind-mounted without options, an ordinary user replaces the daemon's socket with another one."""
    planned(jail, listening, "-")
    tried = jail.run(pod, "/usr/bin/python3", "-I", "-c", ATTEMPTS, "user")
    assert {"DONE rename", "DONE listen"} <= set(tried.stdout.splitlines()), tried.stdout + tried.stderr
