"""The namespaces of a job: its first step creates them, all others join them, and its end removes them (stepd.c is a fake slurmstepd)."""

import subprocess
from pathlib import Path

import pytest
from conftest import POD_PYTHON, PODS, Jail, Pod

SHELL = r"""
step() {{ job=$1 id=$2 uid=$3; shift 3; STEPD_JOB=$job {stepd} {plugin} ${{context:-remote}} $id $uid {plan} "$@"; }}
epilog() {{ STEPD_JOB=$1 {stepd} {plugin} epilog 0 0 {plan}; }}
slurmd() {{ {stepd} {plugin} slurmd 0 0 {plan}; }}
until_true() {{ n=0; until eval "$1"; do n=$((n+1)); [ $n -lt 500 ] || {{ echo "never: $1"; exit 1; }}; sleep 0.01; done; }}
names() {{ cat /proc/[0-9]*/comm 2>/dev/null | grep -x "$1"; }}
jail={jail}
"""


#: A second machine beside the first, with a host name and a /run of its own; both see the same file systems.
OTHER = r"""
other() {{ unshare -um sh -c ". {functions}; hostname $1; mount -t tmpfs none /run; $2"; }}
"""


def shell(
    jail: Jail, pod: Pod, script: str, timeout: float = 30, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a shell script in one pod, with the functions above."""
    folder = jail.build.folder
    head = SHELL.format(
        stepd=folder / "stepd", plugin=folder / "spank_jail.so", plan=jail.plan, jail=folder / "jail", root=jail.root
    )
    functions = jail.plan.with_name("functions")
    functions.write_text(head)
    return pod.run("sh", "-c", head + OTHER.format(functions=functions) + script, timeout=timeout, **environment)


@pytest.fixture
def scratch(jail: Jail, tmp_path: Path) -> Path:
    """Return the plan with a scratch folder at /tmp, as in pods."""
    folder = tmp_path / "scratch"
    folder.mkdir(mode=0o777)
    jail.lines[2] = ("scratch", str(folder), "/tmp", "nosuid,nodev", "private to the job")
    jail.write_plan()
    return folder


@pytest.fixture
def any_pod() -> Pod:
    """Return the harder kind of pod, for tests that do not depend on the kind."""
    return PODS["userns-move"]


def test_steps_of_a_job_share_what_is_theirs(jail: Jail, pod: Pod) -> None:
    """A second, parallel step sees the first step's /tmp, /dev/shm and processes, and so does a later one."""
    script = """
step 7 0 1000 'echo a >/tmp/a; echo b >/dev/shm/b; exec sleep 3333' & first=$!
until_true 'names sleep'
step 7 1 1000 'cat /tmp/a /dev/shm/b; cat /proc/[0-9]*/comm | sort | uniq -c; pkill sleep'
wait $first
step 7 2 1000 'cat /tmp/a /dev/shm/b'
epilog 7; echo released $?; ls /run/jail/jobs; until_true '! names jail-holder >/dev/null'
"""
    done = shell(jail, pod, script)
    assert done.stderr == ""
    lines = done.stdout.split("\n")
    assert [line for line in lines if line in "ab"][:4] == ["a", "b", "a", "b"]
    assert "1 jail-holder" in [line.strip() for line in lines]
    assert "1 sleep" in [line.strip() for line in lines]
    assert lines[-2:] == ["released 0", ""]


def test_two_jobs_share_nothing_of_this(jail: Jail, pod: Pod, scratch: Path) -> None:
    """Two jobs of a user at the same time each have their own /tmp, /dev/shm and process ids."""
    script = """
step 7 0 1000 'echo a >/tmp/a; echo b >/dev/shm/b; exec sleep 3333' & first=$!
until_true 'names sleep'
step 8 0 1000 'ls /tmp /dev/shm; cat /proc/[0-9]*/comm | grep -c sleep; pkill sleep; touch /tmp/mine'
find {scratch} -printf '%P %m %U\\n' | sort
kill -9 $first; epilog 7; epilog 8; ls {scratch} /run/jail/jobs
"""
    done = shell(jail, pod, script.format(scratch=scratch))
    assert done.stderr == ""
    text = done.stdout
    assert "/dev/shm:\n\n/tmp:\n0\n" in text, text
    assert " 700 0\njob-7 1777 0\njob-7/a 644 1000\njob-8 1777 0\njob-8/mine 644 1000\n" in text
    assert text.endswith(f"/run/jail/jobs:\n\n{scratch}:\n")


def test_many_first_steps_make_one_set(jail: Jail, any_pod: Pod) -> None:
    """Twelve steps that begin at the same time are all in the namespaces of one holder."""
    script = """
for i in $(seq 12); do step 7 $i 1000 'readlink /proc/self/ns/pid /proc/self/ns/mnt' & done; wait
echo; names jail-holder
"""
    done = shell(jail, any_pod, script)
    namespaces = [line for line in done.stdout.splitlines() if line.startswith(("pid:", "mnt:"))]
    assert (len(namespaces), len(set(namespaces))) == (24, 2), done.stdout + done.stderr
    assert done.stdout.endswith("\njail-holder\n")


def test_what_a_step_leaves_behind_ends_with_it(jail: Jail, pod: Pod) -> None:
    """A daemon of a step ends with its slurmstepd; a daemon of another step of the job continues until the job ends."""
    script = """
step 7 0 1000 'touch /tmp/here; until [ -e /tmp/go ]; do sleep 0.05; done; setsid sleep 4444 & sleep 2' & first=$!
until_true 'names jail-holder'
step 7 1 1000 'until [ -e /tmp/here ]; do sleep 0.05; done; for i in 1 2 3; do (setsid sleep 3333 &); done; touch /tmp/go'
until_true 'pgrep -xf "sleep 4444"'
pgrep -xfc 'sleep 3333'; pgrep -xfc 'sleep 4444'
wait $first; pgrep -xfc 'sleep 4444'
"""
    done = shell(jail, pod, script)
    assert [line for line in done.stdout.splitlines() if line in "012"] == ["0", "1", "0"], done.stdout + done.stderr


def test_the_end_of_slurmstepd_ends_its_tasks(jail: Jail, pod: Pod) -> None:
    """SIGKILL of slurmstepd ends its tasks at once, and their children at the end of the job."""
    script = """
step 7 0 1000 'exec sleep 3333' 'setsid sleep 4444 & exec sleep 3333' &
until_true 'pgrep -xf "sleep 4444"'; until_true '[ $(pgrep -xfc "sleep 3333") = 2 ]'
kill -9 $(pgrep -x stepd)
until_true '! pgrep -xf "sleep 3333"'
epilog 7; until_true '! names jail-holder >/dev/null'; pgrep -xc sleep
"""
    done = shell(jail, pod, script)
    assert done.stdout.splitlines()[-1] == "0", done.stdout + done.stderr


def test_a_job_keeps_its_plan(jail: Jail, any_pod: Pod) -> None:
    """A plan that changes or breaks while a job runs does not affect the job's later steps."""
    done = shell(
        jail,
        any_pod,
        f"step 7 0 0 true; echo nonsense >{jail.plan}; step 7 1 0 'ls -d /marker*'; step 8 0 0 'echo ran'",
    )
    assert "/marker-of-the-jail" in done.stdout
    assert "line 1: has 1 fields" in done.stderr
    assert "ran" not in done.stdout.split()


def test_a_killed_holder_is_replaced(jail: Jail, any_pod: Pod) -> None:
    """A step after the holder's end creates the namespaces again, and removes the content of the job's folder."""
    done = shell(
        jail,
        any_pod,
        "step 7 0 0 'touch /tmp/a'; pkill -9 jail-holder; until_true '! names jail-holder'; step 7 1 0 'ls /tmp; echo inside; ls -d /marker*'",
    )
    assert done.stderr == ""
    assert "inside\n/marker-of-the-jail\n" in done.stdout


def test_slurmd_sweeps_what_is_left(jail: Jail, any_pod: Pod, scratch: Path) -> None:
    """The start of slurmd removes jobs without a holder and scratch folders without a job; a running job keeps everything."""
    (scratch / "job-99").mkdir()
    (scratch / "job-99/file").touch()
    (scratch / "job-x").mkdir()
    script = f"""
step 7 0 0 'touch /tmp/dead'; pkill -9 jail-holder; step 8 0 0 'touch /tmp/alive'
slurmd; find {scratch} -mindepth 1 -printf '%P\\n' | sort; ls /run/jail/jobs; step 8 1 0 'ls /tmp'
"""
    done = shell(jail, any_pod, script)
    assert "cleared what 2 ended jobs had left\njob-8\njob-8/alive\njob-x\n8\n" in done.stdout, (
        done.stdout + done.stderr
    )
    assert done.stdout.splitlines()[-4] == "alive"


def test_the_extern_step_makes_the_namespaces(jail: Jail, any_pod: Pod) -> None:
    """With Contain the namespaces exist before the first step; the extern step itself stays outside."""
    script = """
step 7 0xfffffffc 1000 'ls -d /marker* 2>/dev/null || echo outside'; names jail-holder; ls /run/jail/jobs
STEPD_ARGUMENTS=timing step 7 0 1000 'echo joined'
"""
    done = shell(jail, any_pod, script)
    assert done.stdout.startswith("inside 0\noutside\n")
    assert "jail-holder\n7\njail: namespaces of the job found in " in done.stdout


def test_a_job_has_an_ipc_namespace_of_its_own(jail: Jail, any_pod: Pod) -> None:
    """Only the steps of one job share their System V objects; with `shared_ipc` they use the pod's."""
    steps = "for i in 0 1; do STEPD_ARGUMENTS=$o step 7 $i 0 'readlink /proc/self/ns/ipc'; done"
    script = f"readlink /proc/self/ns/ipc; for o in shared_ipc ''; do {steps}; epilog 7; done"
    seen = [line for line in shell(jail, any_pod, script).stdout.splitlines() if line.startswith("ipc:")]
    assert seen[0] == seen[1] == seen[2]
    assert seen[3] == seen[4] != seen[0]


def test_another_users_job_is_not_joined(jail: Jail, any_pod: Pod) -> None:
    """A step that names a job of another user fails with a message."""
    done = shell(jail, any_pod, "step 7 0 1000 true; step 7 1 1001 'echo ran'")
    assert done.stderr == "jail: the namespaces of job 7 belong to user 1000, not 1001\n" * 2
    assert "ran" not in done.stdout.split()


def test_scratch_of_any_shape_is_removed(jail: Jail, any_pod: Pod, scratch: Path) -> None:
    """The end of a job removes deep trees, links to the outside, folders without permissions and unusual names, and nothing else."""
    outside = scratch.parent / "outside"
    outside.mkdir()
    (outside / "file").touch()
    program = f"""
ln -s {outside} /tmp/link; mkdir -p /tmp/deep/link; ln -s ../../../../.. /tmp/deep/link/up; mkdir /tmp/closed; touch /tmp/closed/x
chmod 0 /tmp/closed; touch "/tmp/$(printf "odd\\nname")" /tmp/-rf; mkfifo /tmp/pipe; touch /tmp/.deep-0; mkdir /tmp/.deep-1; touch /tmp/.deep-1/x
cd /tmp; i=0; while [ $i -lt 300 ]; do mkdir -p d/d/d/d; cd d/d/d/d; touch f; i=$((i+1)); done"""
    done = shell(jail, any_pod, f"step 7 0 1000 '{program}'; epilog 7; echo released $?; ls -A {scratch}")
    assert done.stdout.endswith("released 0\n"), done.stdout + done.stderr
    assert (outside / "file").exists()


def test_a_folder_that_is_not_roots_is_refused(jail: Jail, any_pod: Pod, scratch: Path) -> None:
    """A scratch folder that belongs to a user is not used."""
    scratch.rmdir()
    done = shell(jail, any_pod, f"mkdir {scratch}; chown 1000 {scratch}; step 7 0 0 'echo ran'")
    assert f"jail: the scratch folder {scratch} belongs to user 1000, not to root (plan line 3)\n" in done.stderr


def test_without_a_job_the_folders_of_jobs_are_out_of_sight(jail: Jail, any_pod: Pod, scratch: Path) -> None:
    """`jail run` has an empty folder in place of the jobs' folders: root in it, such as sshd's command for keys, sees no job's files."""
    (scratch / "job-9").mkdir()
    done = jail.run(
        any_pod,
        "sh",
        "-c",
        "ls -A /tmp; touch /tmp/mine; stat -f -c %T /tmp; stat -c %a /tmp; df -k --output=size /tmp",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["tmpfs", "1777", "1K-blocks", "65536"]
    assert [each.name for each in scratch.iterdir()] == ["job-9"]


def test_many_jobs_leave_nothing(jail: Jail, any_pod: Pod, scratch: Path) -> None:
    """After fifty jobs of two steps the number of processes and mounts is as before, and no folder remains.

    The shell counts processes without a pipe, because the pipe's own processes might be counted.
    """
    script = f"""
count() {{ set -- /proc/[0-9]*; echo $#; wc -l </proc/self/mountinfo; ls -A {scratch} /run/jail/jobs | wc -l; }}
step 1 0 0 true >/dev/null; epilog 1; until_true '! names jail-holder >/dev/null'; count >/run/before
for i in $(seq 2 51); do step $i 0 1000 true >/dev/null; step $i 1 1000 true >/dev/null; epilog $i; done
until_true 'count >/run/after; cmp -s /run/before /run/after'; echo same
"""
    assert shell(jail, any_pod, script).stdout == "same\n"


@pytest.fixture
def shared(jail: Jail, scratch: Path) -> Path:
    """Return the scratch folder of nodes that share it; the first node's host name is `one`, if its script sets it."""
    jail.lines[2] = ("scratch", str(scratch), "/tmp", "nosuid,nodev,owner=demo.1234", "private to the job")
    jail.write_plan()
    return scratch


def test_nodes_that_share_a_folder_leave_each_others_jobs_alone(jail: Jail, pod: Pod, shared: Path) -> None:
    """A job of two nodes has one number; the start of the second node, its part of the job, and its end do not touch the first node's files."""
    script = f"""
hostname one
step 7 0 1000 'echo keep >/tmp/checkpoint; until [ -e /tmp/go ]; do sleep 0.05; done; cat /tmp/checkpoint' & first=$!
until_true '[ -e {shared}/demo.1234.one/job-7/checkpoint ]'
other two 'slurmd; step 7 0 1000 "echo mine >/tmp/mine; ls -A /tmp"; find {shared} -printf "%P %m %U\n" | sort; epilog 7; slurmd'
step 7 1 1000 'touch /tmp/go'; wait $first; epilog 7; find {shared} -mindepth 1 -printf "%P\n" | sort
"""
    done = shell(jail, pod, script)
    assert "No such file" not in done.stderr, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith(("task", "code", "inside", "post"))]
    assert "keep" in lines
    assert "mine" in lines
    assert "demo.1234.one 700 0" in lines
    assert "demo.1234.two/job-7/mine 644 1000" in lines
    assert lines[-2:] == ["demo.1234.one", "demo.1234.two"]


def test_a_node_that_comes_back_clears_its_own_leftovers(jail: Jail, any_pod: Pod, shared: Path) -> None:
    """A node finds its own files by its name, in any process or machine, and none of another node's or another owner's."""
    for owner in ("demo.1234.one", "demo.1234.two", "demo.9999.one"):
        (shared / owner).mkdir(mode=0o700)
        (shared / owner / "job-99").mkdir()
        (shared / owner / "job-99/file").touch()
    (shared / "job-98").mkdir()
    (shared / "demo.1234.one/.gone-job-97-1").mkdir()
    done = shell(jail, any_pod, f"hostname one; slurmd; find {shared} -mindepth 1 -printf '%P\\n' | sort")
    assert done.stdout.splitlines() == [
        "jail: cleared what 1 ended jobs had left",
        "demo.1234.one",
        "demo.1234.two",
        "demo.1234.two/job-99",
        "demo.1234.two/job-99/file",
        "demo.9999.one",
        "demo.9999.one/job-99",
        "demo.9999.one/job-99/file",
        "job-98",
    ], done.stderr


@pytest.mark.parametrize("made", ["install -d -o 1000 {own}", "ln -s {outside} {own}", "touch {own}"])
def test_what_another_made_in_a_nodes_place_is_refused(jail: Jail, any_pod: Pod, shared: Path, made: str) -> None:
    """If a folder of a user, a link or a file is at the path of the node's own folder, no job starts there, and nothing is removed."""
    outside, own = shared.parent / "outside", shared / "demo.1234.one"
    (outside / "job-7").mkdir(parents=True)
    (outside / "job-7/file").touch()
    done = shell(
        jail, any_pod, f"hostname one; {made.format(own=own, outside=outside)}; step 7 0 0 'echo ran'; epilog 7; slurmd"
    )
    assert f"the scratch folder {own}" in done.stderr
    assert "ran" not in done.stdout.split()
    assert (outside / "job-7/file").exists()
    assert own.is_symlink() or own.exists()


def test_a_leftover_of_a_jobs_own_number_is_set_aside(jail: Jail, any_pod: Pod, shared: Path) -> None:
    """A requeued job finds an empty folder at once; its former content is removed too."""
    own = shared / "demo.1234.one"
    script = f"""
hostname one; mkdir -m 700 {own}; mkdir {own}/job-7; touch {own}/job-7/old
step 7 0 1000 'echo "in /tmp: $(ls -A /tmp)"'; ls -A {own} | cut -c 1-11; epilog 7; echo "left: $(ls -A {own})"
"""
    done = shell(jail, any_pod, script)
    assert done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("in ", ".gone", "job", "left"))]
    assert lines == ["in /tmp: ", ".gone-job-7", "job-7", "left: "]


#: Makes folders with a file each below file 9, which it holds open, from three processes for 8 s.
FILL = """
import os, time
for _ in range(2):
    os.fork()
end, number = time.monotonic() + 8, 0
while time.monotonic() < end:
    try:
        name = f"{os.getpid()}-{number}"
        os.mkdir(name, dir_fd=9)
        number += 1
        os.close(os.open(f"{name}/x", os.O_CREAT | os.O_WRONLY, dir_fd=9))
    except OSError:
        pass
"""


@pytest.mark.parametrize(("user", "where"), [(1000, "."), (1000, "deep/er"), (0, ".")])
def test_a_folder_that_is_still_written_to_does_not_hold_its_job(
    jail: Jail, any_pod: Pod, scratch: Path, user: int, where: str
) -> None:
    """A user who keeps a folder of an ended job open, and fills it, delays neither the job's end nor that of a later job; the folder is removed in
    the end.
    """
    fill = jail.plan.with_name("fill.py")
    fill.write_text(FILL)
    script = f"""
step 7 0 {user} 'mkdir -p /tmp/deep/er'
cd {scratch}/job-7/{where}; setpriv --reuid {user} --clear-groups {POD_PYTHON} -I {fill} 9<. & cd /
until [ -n "$(ls -A {scratch}/job-7/{where} | grep -- -9)" ]; do sleep 0.05; done
began=$(date +%s%N); epilog 7; echo first $?; step 8 0 0 true; epilog 8; echo second $?; echo took $((($(date +%s%N) - began) / 1000000))
ls -A {scratch} | grep -c ^job-; wait
n=0; until [ -z "$(ls -A {scratch})" ]; do n=$((n+1)); [ $n -lt 2000 ] || break; sleep 0.1; done; echo "left: $(ls -A {scratch})"
"""
    done = shell(jail, any_pod, script, timeout=300)
    words = done.stdout.split()
    assert "first" in words, done.stdout + done.stderr
    assert words[words.index("first") + 1] == "0", done.stdout + done.stderr
    assert words[words.index("second") + 1] == "0", done.stdout + done.stderr
    assert int(words[words.index("took") + 1]) < 10_000
    assert done.stdout.endswith("\n0\nleft: \n"), done.stdout
