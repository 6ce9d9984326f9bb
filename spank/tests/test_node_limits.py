"""The Node's limits of namespaces: one user's job can exhaust them for all pods of the Node; the errors of others name the limit."""

import pytest
from conftest import POD_PYTHON, Jail, Pod
from test_jobs import shell

#: Holds as many namespaces of a kind as it gets: those of mounts by files, user and pid namespaces by processes.
HOG = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
kept = []
def more():
    if sys.argv[1] == "mnt":
        kept.append(os.open("/proc/self/ns/mnt", os.O_RDONLY))
        return libc.unshare(0x20000) == 0
    parent_end, child_end = os.pipe()
    if os.fork() == 0:
        made = libc.unshare(0x10000000 if sys.argv[1] == "user" else 0x20000000)
        os.write(child_end, b"y" if made == 0 else b"n")
        if made == 0 and sys.argv[1] == "pid":
            os.fork() or time.sleep(1000)
        time.sleep(1000)
    return os.read(parent_end, 1) == b"y"
if sys.argv[1] != "user":
    assert libc.unshare(0x10000000) == 0
while more():
    pass
open("/tmp/full", "w").close()
time.sleep(1000)
"""
SCRIPT = """
step 7 0 1000 '{python} -I /hog {kind}' >/dev/null 2>&1 &
until_true 'names jail-holder'
until_true '[ -e /proc/$(pgrep -x jail-holder)/root/tmp/full ]'
step 8 0 1001 'echo srun ran'; step 9 0xfffffffb 1001 'echo sbatch ran'; step 7 1 1000 'echo beside it ran'
kill -9 $(pgrep -x stepd); epilog 7; sleep 1; step 10 0 1001 'echo later ran'
"""


def play(jail: Jail, kind: str) -> tuple[str, str]:
    """Return the output of jobs beside a job that has exhausted that kind of namespace."""
    jail.root.joinpath("hog").write_text(HOG)
    pod = Pod(userns=True, pivot=False, node_limit=f"{kind}=60")
    jail.lines[3] = ("proc", "-", "/proc", "unmasked", "processes")
    jail.write_plan()
    done = shell(jail, pod, SCRIPT.format(python=POD_PYTHON, kind=kind), timeout=60)
    return done.stdout, done.stderr


@pytest.mark.parametrize(("kind", "words"), [("mnt", "mount"), ("pid", "pid")])
def test_a_job_that_finds_no_namespace_left_says_which_limit_of_the_node_is_reached(
    jail: Jail, kind: str, words: str
) -> None:
    """No program of the user runs; the message names the limit, and jobs that run already or start later succeed."""
    out, err = play(jail, kind)
    assert f"{words} namespace: user.max_{kind}_namespaces of the Node is reached, by processes of any pod" in err
    assert "srun ran" not in out
    assert "sbatch ran" not in out
    assert "beside it ran" in out
    assert "later ran" in out


def test_jobs_need_no_user_namespace(jail: Jail) -> None:
    """A job that has exhausted the Node's user namespaces does not affect other users' steps: only containers need them."""
    out, err = play(jail, "user")
    assert "srun ran" in out, err
    assert "sbatch ran" in out
