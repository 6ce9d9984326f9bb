"""No path that a user or root of the jail gives to Slurm leads out of the jail, in a real Slurm 24.11.

slurmstepd and slurmd open files by names that a user gives, with threads and a /proc that are not the user's. Each attempt here names a
file of the pod, by the numbers of the slurmstepd that opens it (ways.py); a control shows that the same step can read and write the user's
files.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from trixie import HOOK, JAIL, KIND, NEEDS, Slurm, wait_idle

pytestmark = NEEDS

USERS = ("alice", "root")
#: Files of the pod, by what a name may have in it: processes of Slurm as its daemons see them, links that lead out, and memory.
READ = [
    "/proc/self/task/{tid}/root/run/shared/marker",
    "/proc/{stepd}/task/{tid}/cwd/run/shared/marker",
    "/proc/{tid}/root/run/shared/marker",
    "/proc/{slurmd}/root/run/shared/marker",
    "/proc/1/root/run/shared/marker",
    "/proc/self/mem",
    "/proc/self/task/{tid}/mem",
    "/proc/{slurmd}/mem",
    "/proc/{slurmd}/environ",
    "/proc/{slurmd}/maps",
    "/proc/{slurmd}/fd/3",
    "/proc/{holder}/fd/3",
    "/proc/{holder}/mem",
    "/proc/thread-self/environ",
    "/proc/self/stat",
    "/dev/fd/4",
    "/run/shared/marker",
    "/run/soperator/keys/slurm.key",
]
WRITE = [
    "/proc/self/task/{tid}/root/run/shared/made",
    "/proc/{slurmd}/root/run/soperator/keys/made",
    "/proc/{slurmd}/root/etc/slurm/plugstack.conf",
    "/proc/self/mem",
    "/proc/sysrq-trigger",
]
FOLDERS = ["/proc/self/task/{tid}/root/run/shared", "/proc/{slurmd}/root/run/shared", "/proc/{slurmd}/cwd/run/shared"]


@pytest.fixture
def pod(slurm: Slurm) -> Iterator[Slurm]:
    """Start a pod without a job."""
    assert wait_idle(slurm) == "idle none"
    yield slurm
    slurm.sh("rm -f /run/shared/made /run/soperator/keys/made")
    assert wait_idle(slurm) == "idle none"


def attempts(slurm: Slurm, user: str, way: str, *templates: str) -> list[dict[str, str]]:
    """Return the result of each attempt; the program is sent through a pipe, because the pod cannot read the folder of the tests."""
    user_namespace = ["-U", "--preserve-credentials"] if slurm.userns else []
    enter = ["nsenter", "-t", str(slurm.pid), "-m", "-u", "-i", "-n", "-p", *user_namespace]
    program = Path(__file__).with_name("ways.py").read_text()
    done = subprocess.run(
        [*enter, "python3", "-", user, way, *templates],
        check=False,
        input=program,
        text=True,
        capture_output=True,
        timeout=200,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(found)) == (0, len(templates)), done.stderr
    return found


def got_out(found: list[dict[str, str]]) -> list[str]:
    """Return the paths whose file was opened: the program of the step ran."""
    return [each["path"] for each in found if "OPENED" in each["said"].splitlines()]


@pytest.mark.parametrize("user", USERS)
def test_no_input_is_a_file_of_the_pod(pod: Slurm, user: str) -> None:
    """The step fails if its path goes through any process, thread or link of the pod."""
    assert got_out(attempts(pod, user, "batch-input", *READ)) == []


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("way", ["batch", "array"])
def test_no_output_goes_to_the_pod(pod: Slurm, user: str, way: str) -> None:
    """No option that names a file makes Slurm write outside the jail."""
    attempts(pod, user, way, *(WRITE if way == "batch" else WRITE[:1]))
    assert pod.sh("ls /run/shared /run/soperator/keys").stdout.split() == [
        *("/run/shared:", "marker", "/run/soperator/keys:", "slurm.key")
    ]
    assert "OPENED" not in pod.sh("cat /etc/slurm/plugstack.conf").stdout


@pytest.mark.parametrize("user", USERS)
def test_no_working_folder_is_of_the_pod(pod: Slurm, user: str) -> None:
    """A step whose working folder is one of the pod starts in a folder of the jail."""
    assert got_out(attempts(pod, user, "batch-chdir", *FOLDERS)) == []


@pytest.mark.parametrize("user", USERS)
def test_the_same_step_opens_what_the_user_may(pod: Slurm, user: str) -> None:
    """The control: through the same link a file of the jail can be read, written, appended to, and a folder entered."""
    shared = f"{JAIL}/home/open"
    pod.sh(f"mkdir -p {shared}; chmod 777 {shared}; echo of-the-jail >{shared}/marker")
    assert "of-the-jail" in attempts(pod, user, "batch-input", "/home/open/marker")[0]["said"]
    for way in ("batch", "array"):
        attempts(pod, user, way, "/home/open/made")
        assert "OPENED" in pod.sh(f"cat {shared}/made; rm {shared}/made").stdout, way
    assert "OPENED" in attempts(pod, user, "batch-chdir", "/home/open")[0]["said"]


#: Prints the process id of a batch step's slurmstepd; where a job has an extern step, that has one too.
BATCH = r"pgrep -f '^slurmstepd: \[[0-9]*\.batch\]'"


def test_slurmstepd_opens_in_the_opening_mounts_with_the_rights_of_root_of_the_jail(pod: Slurm) -> None:
    """While slurmstepd waits to open an output, its /proc is an empty tmpfs, and its effective capabilities are those of root of the jail."""
    waits = f"until pid=$({BATCH}) && grep -q '^257 ' /proc/$pid/syscall; do sleep 0.05; done"
    look = "grep CapEff /proc/$pid/task/$pid/status; awk '$5 == \"/proc\" { print $(NF-2) }' /proc/$pid/task/$pid/mountinfo | tail -n 1"
    script = f"mkfifo {JAIL}/root/gate; sbatch -Q --output=/root/gate --wrap true; {waits}; {look}; cat {JAIL}/root/gate; rm {JAIL}/root/gate"
    done = pod.sh(script)
    assert done.stdout.split() == ["CapEff:", "00000000a00405fb", "tmpfs"], done.stderr


def test_slurmstepd_sees_the_tasks_of_a_step_while_they_run(pod: Slurm) -> None:
    """Afterwards its main thread is in mounts with the pod's /proc, read-only and without links, with the capabilities that accounting needs."""
    script = "job=$(sbatch --parsable --output=/dev/null --wrap 'touch /tmp/on; sleep 60'); "
    script += f'until_true "[ -e /mnt/tmp/job-$job/on ]"; pid=$({BATCH}); '
    script += "grep -h CapEff /proc/$pid/task/$pid/status /proc/$(cat /run/slurmd.pid)/status; "
    script += "grep ' /proc ' /proc/$pid/task/$pid/mountinfo; scancel $job"
    stepd, shell, mount = pod.sh(script).stdout.splitlines()
    assert stepd == shell
    assert {"ro", "nosymfollow"} <= set(mount.split()[5].split(",")), mount
    assert " - proc " in mount


#: What slurmd's child does for a file of sbcast: it calls the plugin, and here prints what it may do then.
RIGHTS = """
import ctypes, struct, sys
ctypes.CDLL("/usr/lib/x86_64-linux-gnu/slurm-wlm/libslurmfull.so", ctypes.RTLD_GLOBAL)
plugin, libc = ctypes.CDLL("/opt/soperator/lib/slurm/%KIND%_jail.so"), ctypes.CDLL(None)
step = ctypes.create_string_buffer(struct.pack("QIII", 2**64 - 2, int(sys.argv[1]), 2**32 - 2, 2**32 - 2))
assert plugin.%HOOK%_p_join(step, ctypes.c_uint32(0), ctypes.c_bool(False)) == 0
sets = (ctypes.c_uint32 * 6)()
assert libc.capget(struct.pack("II", 0x20080522, 0), sets) == 0
bound = sum(1 << number for number in range(64) if libc.prctl(23, number, 0, 0, 0) == 1)
print(*(f"{value:08x}" for value in (sets[0], sets[1], bound)))
""".replace("%KIND%", KIND).replace("%HOOK%", HOOK)


def test_what_slurmd_opens_for_root_of_the_jail_it_opens_with_those_rights(pod: Slurm) -> None:
    """slurmd's child process that opens the file of sbcast has the capabilities of root of the jail, and so cannot reach a holder."""
    pod.sh(f"cat >/root/rights.py <<'END'\n{RIGHTS}\nEND")
    begin = "salloc --no-shell -n1 2>&1 | sed -n 's/.*Granted job allocation //p'"
    done = pod.sh(f"job=$({begin}); python3 /root/rights.py $job; scancel $job; rm /root/rights.py")
    assert done.stdout.split() == ["a00405fb"] * 3, done.stderr


@pytest.mark.parametrize(
    "path",
    [
        "/proc/1/mem",
        "/proc/1/root/../run/shared/made",
        "/proc/{slurmd}/root/run/shared/made",
        "/proc/self/root/run/shared/made",
    ],
)
@pytest.mark.parametrize("user", USERS)
def test_sbcast_opens_nothing_of_the_pod(pod: Slurm, user: str, path: str) -> None:
    """A file cannot be broadcast into the memory or the root of a process of another user."""
    slurmd = pod.sh("cat /run/slurmd.pid").stdout.strip()
    done = pod.sh(f"salloc -Q sbcast -f /etc/hostname {path.format(slurmd=slurmd)}", user=user)
    assert done.returncode != 0
    assert pod.sh("ls /run/shared").stdout == "marker\n"
