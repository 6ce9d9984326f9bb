"""jail-watch: its reports about a healthy jail, and about one that is incomplete, that hangs, and that recovers."""

import ctypes
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import Build, Jail, planned

DEADLINE = 1
libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def hung(path: Path) -> Iterator[None]:
    """Mount a FUSE file system whose server never answers, so that each process that accesses the path waits."""
    if not Path("/dev/fuse").exists():
        pytest.skip("no FUSE here")
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"hung", bytes(path), b"fuse", 0, options):
        pytest.skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(bytes(path), 2)  # MNT_DETACH
        os.close(device)


@contextmanager
def watching(jail: Jail, *more: str) -> Iterator["Watch"]:
    """Run jail-watch for a jail, with a short interval, as an ordinary user."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [jail.build.jail + "-watch", "--plan", str(jail.plan), "--port", str(port)]
    words += ["--period", "1", "--deadline", str(DEADLINE), *more]
    env = os.environ | {"ASAN_OPTIONS": "detect_leaks=1"}
    with subprocess.Popen(words, env=env, user=65532, group=65532, extra_groups=[]) as process:
        try:
            yield Watch(port)
        finally:
            process.terminate()
            assert process.wait(10) == 0


class Watch:
    """A running jail-watch."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self) -> tuple[int, str]:
        """Return the HTTP status and the text."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=2) as answer:
                return answer.status, answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode().strip()
        except OSError:
            return 0, ""

    def until(self, code: int, words: str = "", seconds: float = 8) -> None:
        """Wait until it gives this answer."""
        end = time.monotonic() + seconds
        got = self.ask()
        while got[0] != code or words not in got[1]:
            assert time.monotonic() < end, got
            time.sleep(0.05)
            got = self.ask()


@pytest.fixture
def jail(build: Build) -> Iterator[Jail]:
    """Return a jail, its plan and the program in a folder that every user may traverse; pytest removes that permission from its own folders at each
    start.
    """
    if os.geteuid() != 0:
        pytest.skip("mounts and another user need root")
    with tempfile.TemporaryDirectory(prefix="jail-watch-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = folder / "claim" / "root"
        for each in ("usr", "tmp", "proc", "dev", "sys", "home", "data"):
            (root / each).mkdir(parents=True)
        shutil.copy(build.jail + "-watch", folder / "jail-watch")
        yield planned(Jail(Build(folder), root, folder / "plan"))


def test_a_jail_with_all_its_mount_points_is_well(jail: Jail) -> None:
    """It reports ok even if a source belongs to another container, a mount point is in a folder of root, or a line is not a mount."""
    (jail.root / "data/secret/inner").mkdir(parents=True)
    (jail.root / "data/secret").chmod(0o700)
    jail.write_plan(
        ("bind", "/run/no-such-source", "/home", "-", "slurmd's own"),
        ("bind", "/usr", "/data/secret/inner", "-", "deep"),
        ("bind", "/run/no-such-source", "/no-such-target", "optional", "skipped"),
        ("gpus", "/dev/nvidia[0-9]*", "/dev", "-", "what a job is given"),
        ("path", "PATH", "/no-such-folder", "last", "a variable"),
    )
    with watching(jail) as watch:
        watch.until(200, "ok")


def test_a_claim_that_only_root_may_enter_is_well_while_it_answers(jail: Jail) -> None:
    """It ignores paths that it may not access."""
    jail.root.parent.chmod(0o700)
    with watching(jail) as watch:
        watch.until(200, "ok")


@contextmanager
def small(root: Path, options: str) -> Iterator[None]:
    """Mount a small file system as the root of a jail, with the same folders."""
    folders = [each.relative_to(root) for each in root.rglob("*") if each.is_dir() and not each.is_symlink()]
    assert libc.mount(b"small", bytes(root), b"tmpfs", 0, options.encode()) == 0
    try:
        for each in folders:
            (root / each).mkdir(parents=True, exist_ok=True)
        yield
    finally:
        assert libc.umount2(bytes(root), 2) == 0


def test_a_root_that_is_almost_full_is_well_and_says_so(jail: Jail) -> None:
    """From 95 % a second line has the use and the free space, until there is space again; the node accepts jobs in the meantime."""
    with small(jail.root, "size=4m"), watching(jail) as watch:
        watch.until(200, "ok")
        (jail.root / "data/big").write_bytes(bytes(3900 << 10))
        watch.until(200, "jail: the shared root is 96 % full, 0 MiB are left")
        (jail.root / "data/big").unlink()
        watch.until(200)
        end = time.monotonic() + 5
        while not re.fullmatch(r"ok\n\nreadOnly false\nroom( \d+){5}", watch.ask()[1]):
            assert time.monotonic() < end, watch.ask()
            time.sleep(0.1)


def test_it_tells_of_room_in_numbers(jail: Jail) -> None:
    """The metrics have the total and the free bytes and files of the root, and the duration of the check; an incomplete check has none."""
    with small(jail.root, "size=8m,nr_inodes=1000"), watching(jail) as watch:
        watch.until(200, "room")
        word, size, available, files, free, took = watch.ask()[1].splitlines()[3].split()
        assert (word, int(size), int(files)) == ("room", 8 << 20, 1000)
        assert 0 < int(available) <= 8 << 20
        assert 900 < int(free) < 1000
        assert 0 < int(took) < DEADLINE * 1_000_000
        jail.write_plan(("bind", "/usr", "/no-such-target", "-", "submount"))
        watch.until(503)
        assert "room" not in watch.ask()[1]


def test_a_root_that_can_have_no_more_files_says_so(jail: Jail) -> None:
    """Inodes run out with many small files; the check uses the path of its argument."""
    with small(jail.root, "nr_inodes=100"), watching(jail, "--name", "the state of slurmctld") as watch:
        for number in range(89):
            (jail.root / f"data/{number}").touch()
        watch.until(200, "jail: the state of slurmctld has 9")


def test_a_missing_mount_point_is_told_with_its_line_until_it_is_back(jail: Jail) -> None:
    """A step would fail there, so the node must accept no jobs."""
    jail.write_plan(("bind", "/usr", "/scratch", "-", "submount"))
    with watching(jail) as watch:
        watch.until(503, "/scratch")
        (jail.root / "scratch").mkdir()
        watch.until(200)
        (jail.root / "scratch").rmdir()
        (jail.root / "scratch").symlink_to("/data")
        watch.until(503, "/scratch")


def test_a_root_that_vanishes_is_told_and_may_come_back(jail: Jail) -> None:
    """The jail is renamed and renamed back."""
    with watching(jail) as watch:
        watch.until(200)
        jail.root.rename(jail.root.with_name("away"))
        watch.until(503, f"cannot open the root {jail.root}: No such file or directory")
        jail.root.with_name("away").rename(jail.root)
        watch.until(200)


@pytest.mark.parametrize("where", [".", "data"])
def test_a_storage_that_hangs_is_told_by_its_path_and_noticed_when_it_answers_again(jail: Jail, where: str) -> None:
    """jail-watch itself never blocks: it answers throughout, leaves at most one blocked process, and recovers."""
    jail.write_plan(("bind", str(jail.root / "data"), "/home", "-", "submount"))
    with watching(jail) as watch:
        watch.until(200)
        with hung(jail.root / where):
            watch.until(503, f"{(jail.root / where)} does not answer within {DEADLINE} s")
            began = time.monotonic()
            for _ in range(20):
                assert watch.ask()[0] == 503
            assert time.monotonic() - began < 2
        watch.until(200)


def test_a_dead_server_is_told_by_the_kernels_word(jail: Jail) -> None:
    """A FUSE mount whose server has died answers at once, with an error."""
    jail.write_plan(("bind", str(jail.root / "data"), "/home", "-", "submount"))
    if not Path("/dev/fuse").exists():
        pytest.skip("no FUSE here")
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"dead", bytes(jail.root / "data"), b"fuse", 0, options):
        pytest.skip("no FUSE here")
    os.close(device)
    try:
        with watching(jail) as watch:
            watch.until(503, "Transport endpoint is not connected")
    finally:
        libc.umount2(bytes(jail.root / "data"), 2)


def test_one_look_ends_with_what_it_saw(jail: Jail) -> None:
    """slurmd waits for jail-watch before it starts: a node whose jail cannot be entered accepts no jobs."""
    words = [jail.build.jail + "-watch", "--plan", str(jail.plan), "--once", "--deadline", "1"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    with hung(jail.root):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, f"soperator: jail: {jail.root} does not answer within 1 s\n")
    jail.root.rename(jail.root.with_name("away"))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr


def test_a_root_that_takes_no_writes_says_so(jail: Jail) -> None:
    """The file system's own state counts if the container mounts it read-only anyway; with --writable the mount's state counts too."""
    with small(jail.root, "size=4m"), watching(jail) as watch:
        watch.until(200, "readOnly false")
        assert (
            libc.mount(None, bytes(jail.root), None, 0x1 | 0x20 | 0x1000, None) == 0
        )  # RDONLY, REMOUNT, BIND: this mount alone
        time.sleep(1.5)
        watch.until(200, "readOnly false")
        with watching(jail, "--writable", "--name", "the state") as other:
            other.until(200, "readOnly true")
        assert libc.mount(None, bytes(jail.root), None, 0x20 | 0x1000, None) == 0
        assert libc.mount(None, bytes(jail.root), None, 0x1 | 0x20, None) == 0  # the file system
        watch.until(200, "readOnly true")
        assert libc.mount(None, bytes(jail.root), None, 0x20, None) == 0
        watch.until(200, "readOnly false")


def flood(port: int, until: threading.Event) -> None:
    """jail-watch answers during a hundred silent connections a second, of which a thousand stay open."""
    held: list[socket.socket] = []
    while not until.wait(0.01):
        with suppress(OSError):
            held.append(socket.create_connection(("127.0.0.1", port), timeout=0.05))
        if len(held) > 1000:
            held.pop(0).close()
    for each in held:
        each.close()


def test_a_flood_of_idle_clients_keeps_no_probe_waiting(jail: Jail) -> None:
    """With a thousand silent connections and a hundred more each second, jail-watch answers each request of the kubelet within its timeout."""
    stop = threading.Event()
    with watching(jail) as watch:
        watch.until(200)
        held = []
        for _ in range(1000):
            with suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", watch.port), timeout=0.05))
        more = threading.Thread(target=flood, args=(watch.port, stop))
        more.start()
        try:
            took = []
            for _ in range(25):
                began = time.monotonic()
                assert watch.ask()[0] == 200
                took.append(time.monotonic() - began)
                time.sleep(0.1)
            assert max(took) < 1
        finally:
            stop.set()
            more.join()
            for each in held:
                each.close()


def test_who_says_nothing_or_never_ends_is_dropped(jail: Jail) -> None:
    """An idle client, one that sends a byte at a time and one that never ends its request: each is disconnected after 2 s, or after 4 KiB."""
    with watching(jail) as watch:
        watch.until(200)
        idle, slow = (socket.create_connection(("127.0.0.1", watch.port), timeout=5) for _ in range(2))
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 5:
                slow.sendall(b"G")
                time.sleep(0.1)
        assert 1.5 < time.monotonic() - began < 4.5
        with suppress(ConnectionResetError):
            assert idle.recv(1) == b""
        with socket.create_connection(("127.0.0.1", watch.port), timeout=5) as endless, suppress(OSError):
            while time.monotonic() - began < 10:
                endless.sendall(b"x" * 4096)
        assert time.monotonic() - began < 9


def test_a_request_in_pieces_is_answered(jail: Jail) -> None:
    """The end of a request's header may be split at any byte."""
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    with watching(jail) as watch:
        watch.until(200)
        for place in range(len(request) - 5, len(request)):
            with socket.create_connection(("127.0.0.1", watch.port), timeout=5) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(request[:place])
                time.sleep(0.15)
                client.sendall(request[place:])
                assert client.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "words", [[], ["--plan", "x"], ["--plan", "x", "--port", "0"], ["--port", "1", "--what", "x"], ["--once"]]
)
def test_wrong_usage_is_told(build: Build, words: list[str]) -> None:
    """An invalid command line ends with code 64 and the usage."""
    done = subprocess.run([build.jail + "-watch", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert done.stderr.startswith("usage: jail-watch")
