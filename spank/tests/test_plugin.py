"""The plugin in a fake slurmstepd (stepd.c), with Slurm's order of hooks, threads and identities."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import POD_PYTHON, PODS, Jail, Pod

BATCH, EXTERN = 0xFFFFFFFB, 0xFFFFFFFC
KEPT_MASK = "00000000a00405fb"


def step(
    jail: Jail, pod: Pod, *commands: str, uid: int = 0, step_id: int = 0, context: str = "remote", **environment: str
) -> subprocess.CompletedProcess[str]:
    folder = jail.build.folder
    words = [str(folder / "stepd"), str(folder / "spank_jail.so"), context, str(step_id), str(uid), str(jail.plan)]
    return pod.run(*words, *commands, **environment)


def test_a_task_ending_first_ends_no_other(jail: Jail, pod: Pod) -> None:
    """Two tasks run in the jail, and the second outlives the first."""
    done = step(jail, pod, "exit 3", "sleep 0.3; ls -d /marker-of-the-jail; exit 4")
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["inside 1", "task0 3", "/marker-of-the-jail", "task1 4", "exit 0", "children 0"]


def test_tasks_share_a_pid_namespace_and_its_proc(jail: Jail, pod: Pod) -> None:
    """A task sees the holder as pid 1 and the other task, and nothing of the pod."""
    first = "exec tail -f /dev/null"
    second = (
        "until grep -qx tail /proc/[0-9]*/comm; do :; done; cat /proc/[0-9]*/comm | sort -u; echo pid $$; pkill tail"
    )
    seen = step(jail, pod, first, second).stdout.splitlines()
    assert {"jail-holder", "sh", "tail", "pid 3"} <= set(seen)
    assert not {"stepd", "python3"} & set(seen)


@pytest.mark.parametrize("uid", [0, 1000])
def test_tasks_have_bounded_capabilities(jail: Jail, pod: Pod, uid: int) -> None:
    """A task of root has the kept capabilities, a user's has none, and both have the same bounding set."""
    done = step(jail, pod, "grep ^Cap /proc/self/status; id -u", uid=uid)
    assert f"CapBnd:\t{KEPT_MASK}\n" in done.stdout
    assert f"CapEff:\t{KEPT_MASK if uid == 0 else '0' * 16}\n" in done.stdout
    assert f"\n{uid}\n" in done.stdout


def test_the_mode_of_a_device_is_the_pods(jail: Jail, pod: Pod) -> None:
    """The devices of a job are those of the pod and of all its jobs: root of the jail can use them, and cannot change their mode or owner."""
    full = Path("/dev/full")
    before = full.stat().st_mode
    try:
        done = step(
            jail, pod, "chmod 600 /dev/full; chown 1000 /dev/full; echo x >/dev/null && head -c 1 /dev/full | wc -c"
        )
        assert full.stat().st_mode == before
    finally:
        full.chmod(before)
        os.chown(full, 0, 0)
    assert done.stderr.count("Read-only file system") == 2, done.stderr
    assert done.stdout.splitlines()[1] == "1"


TERMINALS = """
import os
count = 0
try:
    while count < 300:
        os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        count += 1
    print(count)
except OSError as error:
    print(count, error.strerror)
"""


def test_a_job_has_a_bounded_number_of_terminals(jail: Jail, pod: Pod) -> None:
    """A faulty program does not use up the terminals of all pods of the Node; a login session, which all users share, has no limit of its own."""
    (jail.root / "data/terminals.py").write_text(TERMINALS)
    run = f"ulimit -n 4096; exec {POD_PYTHON} -I /data/terminals.py"
    assert step(jail, pod, run).stdout.splitlines()[1] == "256 No space left on device"
    assert jail.run(pod, "sh", "-c", run).stdout.strip() == "300"


@pytest.mark.parametrize(("mode", "folder"), [(0o755, "/home/private/open"), (0o700, "/")])
def test_a_task_goes_back_to_its_folder_with_the_rights_of_its_user(
    jail: Jail, pod: Pod, mode: int, folder: str
) -> None:
    """slurmstepd looks up the working folder again by its name, which a user can redirect in between: so it uses the rights of the user."""
    (jail.root / "home/private/open").mkdir(parents=True)
    (jail.root / "home/private").chmod(mode)
    done = step(jail, pod, "readlink /proc/self/cwd", uid=1000, STEPD_FOLDER="/home/private/open")
    assert done.stdout.splitlines()[1] == folder, done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "/opt/a"),
        ("/usr/lib", "/opt/a:/usr/lib"),
        ("/opt/ab:/x/opt/a", "/opt/a:/opt/ab:/x/opt/a"),
        ("/x:/opt/a", "/x:/opt/a"),
        ("/opt/a:/x", "/opt/a:/x"),
    ],
)
def test_a_folder_of_the_plan_is_in_the_users_variable_once(jail: Jail, old: str, new: str) -> None:
    """A `path` line prepends to PATH, one with `last` appends; a batch script that passes its environment on adds no duplicates."""
    jail.write_plan(
        ("path", "THE_LIBRARIES", "/opt/a", "-", "libraries"), ("path", "PATH", "/opt/tools", "last", "tools")
    )
    pod = PODS["userns-pivot"]
    said = {"THE_LIBRARIES": old} if old else {}
    done = step(jail, pod, "echo $THE_LIBRARIES; echo $PATH", PATH="/usr/sbin:/usr/bin", **said)
    assert done.stdout.splitlines()[1:3] == [new, "/usr/sbin:/usr/bin:/opt/tools"], done.stderr


def test_an_epilog_runs_inside_too(jail: Jail, pod: Pod) -> None:
    """Processes that slurmstepd forks without a hook, after the tasks, are in the jail and its namespaces, with bounded capabilities."""
    done = step(jail, pod, "true", STEPD_EPILOG="cat /proc/1/comm; ls -d /marker*; grep CapEff /proc/self/status")
    wanted = [
        "inside 1",
        "task0 0",
        "jail-holder",
        "/marker-of-the-jail",
        f"CapEff:\t{KEPT_MASK}",
        "epilog 0",
        "exit 0",
    ]
    assert done.stdout.splitlines()[:7] == wanted


def test_root_cannot_look_into_the_holder(jail: Jail, pod: Pod) -> None:
    """A task of root cannot reach the holder's root, memory or files."""
    done = step(jail, pod, "ls /proc/1/root/ || readlink /proc/1/fd/3 || cat /proc/1/environ || kill -9 1; echo alive")
    assert "Permission denied" in done.stderr
    assert "alive" in done.stdout
    assert "task0 0" in done.stdout


def test_a_failed_mount_reaches_the_user_and_nothing_runs(jail: Jail, pod: Pod) -> None:
    """A mount that fails is reported twice, in slurmd's log and on the job's stderr, and every fork exits with 127."""
    jail.write_plan(("tmpfs", "-", "/nope", "-", "-"))
    done = step(jail, pod, "echo ran", STEPD_EPILOG="echo ran")
    assert done.stderr == "jail: mount point /nope is missing in the jail (plan line 7)\n" * 2
    assert done.stdout.splitlines() == ["inside 1", "task0 127", "epilog 127", "exit 0", "children 0"]


def test_a_missing_root_reaches_the_user_of_srun(jail: Jail, pod: Pod) -> None:
    """If even the root is missing, an srun step reports it to its user, and no task runs."""
    jail.lines[0] = ("root", "/not/there", "/", "-", "-")
    jail.write_plan()
    done = step(jail, pod, "echo ran", STEPD_EPILOG="echo ran")
    sentence = "jail: cannot find the root /not/there (plan line 1): No such file or directory\n"
    assert done.stderr == sentence * 2
    assert done.stdout.splitlines()[:3] == ["inside 0", "task0 127", "epilog 127"]


def test_a_batch_step_without_a_root_ends_at_once(jail: Jail, pod: Pod) -> None:
    """If even the root is missing, a batch step fails in init_post_opt, before it opens a file."""
    jail.lines[0] = ("root", "/not/there", "/", "-", "-")
    jail.write_plan()
    done = step(jail, pod, "echo ran", step_id=BATCH)
    assert (done.returncode, done.stdout) == (95, "init failed\n")


def test_a_bad_plan_is_told(jail: Jail, pod: Pod) -> None:
    """The error about an unreadable plan names the line."""
    jail.plan.write_text("foo\n")
    done = step(jail, pod, "echo ran")
    assert f"plan {jail.plan} line 1: has 1 fields" in done.stderr
    assert "ran" not in done.stdout.replace("task0", "")


@pytest.mark.parametrize(("context", "step_id"), [("local", 0), ("remote", EXTERN)])
def test_other_contexts_are_left_alone(jail: Jail, pod: Pod, context: str, step_id: int) -> None:
    """In srun and sbatch themselves, and in the extern step, the plugin does nothing."""
    done = step(jail, pod, "ls -d /marker* 2>/dev/null || echo outside", context=context, step_id=step_id)
    assert done.stdout.splitlines()[:3] == ["inside 0", "outside", "task0 0"]


def test_a_step_writes_nothing_into_the_jail(jail: Jail, pod: Pod) -> None:
    """A complete step changes no time in the jail's folders."""
    before = {each: each.lstat().st_mtime_ns for each in jail.root.rglob("*")}
    assert step(jail, pod, "true", "true").returncode == 0
    assert {each: each.lstat().st_mtime_ns for each in jail.root.rglob("*")} == before


def test_many_tasks_start(jail: Jail) -> None:
    """Sixty tasks of one step all run in the jail."""
    done = step(jail, Pod(userns=True, pivot=False), *["ls /marker-of-the-jail"] * 60, uid=1000)
    assert done.stdout.count("/marker-of-the-jail") == 60
    assert done.stderr == ""
