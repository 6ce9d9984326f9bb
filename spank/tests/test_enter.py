"""`jail run` in every kind of pod: its mounts, the rights of root, its exit code, and the files that do not change."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import POD_PYTHON, Jail, Pod
from pod import POD_CAPS

KEPT = {0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 29, 31}  # caps.c


def listing(root: Path) -> dict[str, tuple[int, int, int]]:
    """Return every path below a root with the attributes that a write would change."""
    return {
        str(each.relative_to(root)): (status.st_mode, status.st_size, status.st_mtime_ns)
        for each in [root, *root.rglob("*")]
        for status in [each.lstat()]
    }


def test_the_plan_becomes_the_root(jail: Jail, pod: Pod) -> None:
    """The root of the command is the jail, with each mount of the plan and its options."""
    done = jail.run(pod, "sh", "-c", "echo /*; cat /proc/self/mountinfo; touch /usr/x; echo hi >/tmp/x && cat /tmp/x")
    assert done.returncode == 0, done.stderr
    names, *mounts = done.stdout.splitlines()
    assert "/marker-of-the-jail" in names.split()
    seen = {line.split()[4]: line for line in mounts if " - " in line}
    assert {"/", "/usr", "/tmp", "/proc", "/dev", "/dev/pts", "/dev/shm", "/sys"} <= set(seen)
    assert "size=8192k" in seen["/tmp"]
    assert "nosuid,nodev" in seen["/tmp"]
    assert "Read-only file system" in done.stderr
    assert mounts[-1] == "hi"


def test_processes_are_the_jails_own(jail: Jail, pod: Pod) -> None:
    """In its /proc the command sees the init as pid 1 and itself, and no other process."""
    done = jail.run(pod, "sh", "-c", "for p in /proc/[0-9]*; do echo ${p#/proc/} $(cat $p/comm); done")
    assert done.stdout.splitlines() == ["1 jail-init", "2 sh"]


def test_capabilities_are_exactly_the_declared_ones(jail: Jail, pod: Pod) -> None:
    """Root in the jail has the kept capabilities in permitted, effective and bounding, and none elsewhere."""
    done = jail.run(pod, "grep", "^Cap", "/proc/self/status")
    sets = {name: int(value, 16) for name, value in (line.split(":\t") for line in done.stdout.splitlines())}
    kept = sum(1 << number for number in KEPT)
    assert sets == {"CapInh": 0, "CapPrm": kept, "CapEff": kept, "CapBnd": kept, "CapAmb": 0}


def test_the_jail_is_not_written(jail: Jail, pod: Pod) -> None:
    """Entering and leaving changes no entry, size or time in the jail."""
    (jail.root / "run").joinpath("keep").touch()
    jail.write_plan(("tmpfs", "-", "/run", "-", "-"), ("bind", "/etc/hostname", "/run/a/b/hostname", "ro", "-"))
    before = listing(jail.root)
    done = jail.run(pod, "ls", "/run/a/b/hostname")
    assert (done.returncode, done.stderr) == (0, "")
    assert listing(jail.root) == before


def test_a_file_can_be_bound(jail: Jail, pod: Pod) -> None:
    """A file of the pod appears on a file of the jail, read-only where the plan says so."""
    (jail.root / "etc/hostname").write_text("jail's")
    jail.write_plan(("bind", "/etc/hostname", "/etc/hostname", "ro", "-"))
    done = jail.run(pod, "sh", "-c", "cat /etc/hostname; echo x >/etc/hostname")
    assert done.stdout == Path("/etc/hostname").read_text()
    assert "Read-only file system" in done.stderr


def test_an_optional_source_may_be_missing(jail: Jail, pod: Pod) -> None:
    """A line with `optional` whose source is missing is skipped."""
    jail.write_plan(("bind", "/not/there", "/data", "optional", "-"))
    assert jail.run(pod, "true").returncode == 0


SENTENCES = {
    "missing point": (
        ("tmpfs", "-", "/nope", "-", "-"),
        "jail: mount point /nope is missing in the jail (plan line 7)\n",
    ),
    "missing source": (
        ("bind", "/not/there", "/data", "-", "-"),
        "jail: cannot find /not/there for /data (plan line 7): No such file or directory\n",
    ),
    "file on folder": (
        ("bind", "/etc/hostname", "/data", "-", "-"),
        "jail: cannot bind /etc/hostname on /data (plan line 7): Not a directory\n",
    ),
    "link": (
        ("tmpfs", "-", "/link", "-", "-"),
        "jail: mount point /link leads through a symbolic link (plan line 7)\n",
    ),
    "link above": (
        ("tmpfs", "-", "/link/spool", "-", "-"),
        "jail: mount point /link/spool leads through a symbolic link (plan line 7)\n",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_a_failed_step_is_one_sentence(jail: Jail, pod: Pod, case: str) -> None:
    """A mount that fails ends the run with one message that names step, path and line; no command runs."""
    (jail.root / "link").symlink_to("/var")
    line, sentence = SENTENCES[case]
    jail.write_plan(line)
    done = jail.run(pod, "echo", "ran")
    assert (done.returncode, done.stdout, done.stderr) == (71, "", sentence)


@pytest.mark.parametrize(
    ("options", "taken"), [("ro", "-"), ("nosuid", "ro"), ("nodev", "ro"), ("noexec", "ro"), ("-", "-")]
)
def test_a_mount_that_a_later_one_hides_has_to_have_its_options(jail: Jail, pod: Pod, options: str, taken: str) -> None:
    """A plan that mounts a parent folder over a mount, without the mount's options, is refused; no command runs."""
    source = jail.root.parent / "source"
    (source / "inner").mkdir(parents=True)
    (jail.root / "data/inner").mkdir()
    inner = ("bind", str(source / "inner"), "/data/inner", options, "-")
    jail.write_plan(inner, ("bind", str(source), "/data", taken, "-"))
    done = jail.run(pod, "echo", "ran")
    if options == "-":
        assert (done.returncode, done.stdout) == (0, "ran\n")
    else:
        sentence = "jail: /data/inner lacks an option that plan line 7 asks for\n"
        assert (done.returncode, done.stdout, done.stderr) == (71, "", sentence)


def test_a_missing_root_is_one_sentence(jail: Jail, pod: Pod) -> None:
    """A missing root is named in the message."""
    jail.lines[0] = ("root", "/not/there", "/", "-", "-")
    jail.write_plan()
    done = jail.run(pod, "true")
    assert done.stderr == "jail: cannot find the root /not/there (plan line 1): No such file or directory\n"


def test_a_device_folder_has_what_programs_expect(jail: Jail, pod: Pod) -> None:
    """The private /dev has the basic nodes, which work, its own terminals, and no disk."""
    jail.lines[4] = ("dev", "/dev", "/dev", "size=1m", "-")
    jail.write_plan()
    done = jail.run(
        pod, "sh", "-c", "ls /dev; head -c 3 /dev/zero | wc -c; echo x >/dev/null && echo y >/dev/stdout; ls /dev/pts"
    )
    names = done.stdout.split()
    assert {"null", "zero", "full", "random", "urandom", "tty", "fd", "ptmx", "pts", "shm"} <= set(names)
    assert not {"mem", "kmsg", "vda", "sda", "console", "loop0"} & set(names)
    assert names[-3:] == ["3", "y", "ptmx"]


def test_the_code_of_the_command_is_the_helpers(jail: Jail, pod: Pod) -> None:
    """`jail run` exits with the command's code, or 128 plus the signal that ended it."""
    assert jail.run(pod, "sh", "-c", "exit 7").returncode == 7
    assert jail.run(pod, "sh", "-c", "kill -9 $$").returncode == 137
    assert jail.run(pod, "/not/there").returncode == 127


def test_no_file_of_the_outside_comes_along(jail: Jail, pod: Pod) -> None:
    """A file descriptor of the old root is closed before the command runs."""
    program = f"exec 9</; exec {jail.build.jail} run --plan {jail.plan} -- ls /proc/self/fd"
    done = pod.run("sh", "-c", program)
    assert "9" not in done.stdout.split()
    assert done.returncode == 0


def test_what_is_left_over_ends_with_the_command(jail: Jail, pod: Pod) -> None:
    """A process in its own session ends when the command has ended."""
    run = f"{jail.build.jail} run --plan {jail.plan} -- sh -c 'setsid sleep 3333 & sleep 0.2; echo here'"
    done = pod.run("sh", "-c", f"{run}; cat /proc/[0-9]*/comm")
    names = done.stdout.split()
    assert "here" in names
    assert "sleep" not in names


def test_sigterm_reaches_the_command(jail: Jail) -> None:
    """The stop signal of a container is forwarded to the command, whose code is the exit code."""
    program = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [jail.build.jail, "run", "--plan", str(jail.plan), "--", "sh", "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=5) == 9


def test_enter_joins_the_same_namespaces(jail: Jail, pod: Pod) -> None:
    """`jail enter` runs a command beside those of a running jail: same /tmp, same processes, same capabilities."""
    program = f"""
{jail.build.jail} run --plan {jail.plan} -- sh -c 'echo shared >/tmp/file; sleep 5' &
n=0
until init=$(grep -lsx jail-init /proc/[0-9]*/comm); do n=$((n+1)); [ $n -lt 300 ] || exit 1; sleep 0.01; done
init=${{init#/proc/}}; init=${{init%/comm}}
until {jail.build.jail} enter --pid $init -- cat /tmp/file 2>/dev/null; do n=$((n+1)); [ $n -lt 300 ] || exit 1; sleep 0.01; done
{jail.build.jail} enter --pid $init -- sh -c 'cat /proc/1/comm; ls -d /marker*; grep CapEff /proc/self/status; exit 6'
echo $?
"""
    done = pod.run("sh", "-c", program)
    assert done.stdout.split("\n")[:3] == ["shared", "jail-init", "/marker-of-the-jail"]
    assert f"CapEff:\t{sum(1 << n for n in KEPT):016x}\n6\n" in done.stdout


def test_many_runs_leave_nothing(jail: Jail) -> None:
    """After many runs the machine has the same number of mounts and processes as before."""
    pod = Pod(userns=False, pivot=True)
    loop = f"for i in $(seq 30); do {jail.build.jail} run --plan {jail.plan} -- true || exit 1; done; ls -d /proc/[0-9]* | wc -l"
    done = pod.run("sh", "-c", loop)
    assert int(done.stdout) <= 5
    assert str(jail.root) not in Path("/proc/self/mountinfo").read_text()


def test_check_names_what_is_missing(jail: Jail) -> None:
    """`jail check` checks the plan without mounting and fails at the first missing source."""
    jail.write_plan(("tmpfs", "-", "/nope", "-", "-"), ("bind", "/etc/hosts", "/tmp/hosts", "-", "-"))
    done = subprocess.run(
        [jail.build.jail, "check", "--plan", str(jail.plan)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 71
    assert done.stderr == "jail: mount point /nope is missing in the jail (plan line 7)\n"
    assert "line 8: /tmp/hosts: ok, below an earlier mount" in done.stdout


def test_the_pod_program_is_a_pod(pod: Pod) -> None:
    """The tests' pod has its own pid namespace and, with a user namespace, at most a pod's capabilities."""
    done = pod.run(POD_PYTHON, "-c", "import os; print(os.getpid()); print(open('/proc/self/status').read())")
    assert done.stdout.startswith("2\n")
    own = f"CapEff:\t{sum(1 << number for number in POD_CAPS):016x}\n"
    assert (own in done.stdout) == pod.userns


def test_a_pod_may_forbid_pivot_root(pod: Pod) -> None:
    """Only in the pods for the second method, pivot_root is refused as by a seccomp profile."""
    program = "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); os.chdir('/'); "
    program += f"l.syscall({155}, b'/proc', b'/not/there'); print(ctypes.get_errno())"
    assert pod.run(POD_PYTHON, "-c", program).stdout == ("2\n" if pod.pivot else "1\n")
