"""The plugin in a real Slurm 24.11: slurmctld and slurmd in namespaces like a pod's, with the jail beside them (slurm/up)."""

import subprocess
from pathlib import Path

from pods import HERE
from trixie import JAIL, NEEDS, NEEDS_PMIX, PLAN, Slurm, processes, settled, wait_idle

pytestmark = NEEDS

#: Kills slurmd, and starts another one when it is gone; goes on when that answers.
RESTART = """
old=$(cat /run/slurmd.pid); kill -9 $old; until_true '! ps -o stat= -p $old | grep -qv Z'
setsid slurmd; until_true 'scontrol show slurmd >/dev/null 2>&1'
"""


def test_srun_is_in_the_jail(slurm: Slurm) -> None:
    """A step of root sees the jail, its own processes and the kept capabilities."""
    done = slurm.sh("srun sh -c 'ls -d /in-the-*; cat /proc/1/comm; grep CapBnd /proc/self/status; pwd'")
    assert done.stdout.splitlines() == ["/in-the-jail", "jail-holder", "CapBnd:\t00000000a00405fb", "/"]


def test_what_slurmd_opens_for_a_user_is_opened_in_the_jail_of_the_job(slurm: Slurm) -> None:
    """A file that sbcast sends is visible to the job's steps, also to the first one, and not in the pod."""
    script = "sbcast /tmp/f /tmp/g && srun cat /tmp/g; sbcast -f /tmp/f h; srun cat h; srun ls -d /in-the-jail"
    done = slurm.sh(f"echo brought >/tmp/f; salloc -Q sh -c '{script}'", user="alice")
    assert done.stdout.splitlines() == ["brought", "brought", "/in-the-jail"], done.stderr
    assert slurm.sh("rm /tmp/f; ls /tmp/g /home/alice/h").stdout == ""
    assert wait_idle(slurm) == "idle none"


def test_a_pipe_that_nobody_reads_holds_no_node(slurm: Slurm) -> None:
    """An output that is a named pipe blocks slurmstepd for a while: then the job fails, and the node stays usable."""
    job = slurm.sh("sbatch --parsable --output=/home/alice/gate --wrap true --hold", user="alice").stdout.strip()
    slurm.sh(f"mkfifo -m 666 {JAIL}/home/alice/gate; chown alice {JAIL}/home/alice/gate; scontrol release {job}")
    slurm.until(f"squeue -h -j {job} -t R | grep -q .")
    slurm.sh("sleep 2; scancel -u alice")
    slurm.sh("n=0; while squeue -h | grep -q . && [ $n -lt 40 ]; do sleep 1; n=$((n+1)); done", timeout=60)
    slurm.sh(f"timeout 2 cat {JAIL}/home/alice/gate; rm {JAIL}/home/alice/gate; scontrol reconfigure")
    slurm.until("sinfo -h -N -o %T | grep -qx idle")  # it did not answer for a while
    assert wait_idle(slurm) == "idle none"


#: A pipe for sbcast, with and without a reader; then a file, libraries and a program.
PIPES = """#!/bin/sh
cd; mkfifo pipe; head -c 4M /dev/zero >/tmp/file
sbcast -f /tmp/file $HOME/pipe; echo nobody $?
python3 -c 'import os, time; os.open("pipe", os.O_RDONLY | os.O_NONBLOCK); open("is-open", "w").close(); time.sleep(60)' &
until [ -e is-open ]; do sleep 0.1; done
sbcast -f /tmp/file $HOME/pipe; echo reader $?
sbcast -f /tmp/file $HOME/copy; echo file $?; cmp /tmp/file copy && echo same
sbcast -f --send-libs /bin/ls /tmp/ls; echo libraries $?; ls -d /tmp/ls_libs
srun --overlap --bcast=/tmp/program /bin/echo program
rm pipe is-open copy
"""


def test_a_pipe_holds_no_thread_of_slurmd(slurm: Slurm) -> None:
    """slurmd opens files and folders for sbcast, and refuses a named pipe at once: neither its child process nor its lock for all files waits for a
    user.
    """
    assert wait_idle(slurm) == "idle none"
    slurm.sh(f"cat >{JAIL}/srv/pipes.sh <<'END'\n{PIPES}\nEND\ncp {JAIL}/srv/pipes.sh /srv/")
    done = slurm.sh("cd; timeout 25 sbatch --wait -o out /srv/pipes.sh", user="alice", timeout=40)
    out = slurm.sh(f"cat {JAIL}/home/alice/out; rm {JAIL}/home/alice/out {JAIL}/srv/pipes.sh /srv/pipes.sh").stdout
    said = [line for line in out.splitlines() if not line.startswith("sbcast: error")]
    assert said == ["nobody 6", "reader 22", "file 0", "same", "libraries 0", "/tmp/ls_libs", "program"], (
        out,
        done.stderr,
    )
    assert ("No such device or address" in out, "Invalid argument" in out) == (True, True)
    assert slurm.sh("ps -o args= -u alice").stdout == ""
    assert wait_idle(slurm) == "idle none"


def test_sbcast_for_a_job_that_has_ended_leaves_nothing(slurm: Slurm, tmp_path: Path) -> None:
    """The credential of sbcast outlives the job: after the job's end it creates no namespaces, through which the user could log in by SSH."""
    library = tmp_path / "late.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-o", library, HERE / "late.c"], check=True)
    Path(f"/proc/{slurm.pid}/root/srv/late.so").write_bytes(library.read_bytes())
    script = "LD_PRELOAD=/srv/late.so sbcast -f /etc/hostname /tmp/late"
    done = slurm.sh(f"salloc -Q -t 1 sh -c '{script}'", user="alice", timeout=60)
    assert "slurm_sbcast_lookup" not in done.stderr
    assert slurm.sh("ls /run/jail/jobs /mnt/tmp").stdout.split() == ["/mnt/tmp:", "/run/jail/jobs:"]
    assert "so nothing is opened for it" in slurm.sh("cat /var/log/slurm/d.log").stdout
    assert wait_idle(slurm) == "idle none"


def test_root_of_the_jail_cannot_write_to_the_pod_by_way_of_slurmd(slurm: Slurm) -> None:
    """A file that root broadcasts to a path of the pod is refused if the path is read-only, or is written into the jail."""
    script = "sbcast -f /etc/hostname /opt/soperator/new; sbcast -f /etc/hostname /etc/slurm/new; echo $?"
    done = slurm.sh(f"salloc -Q sh -c '{script}'")
    assert "Read-only file system" in done.stderr
    assert slurm.sh("ls /opt/soperator/new /etc/slurm/new").stdout == ""
    assert slurm.read("/etc/slurm/new") == slurm.sh("cat /etc/hostname").stdout
    assert wait_idle(slurm) == "idle none"


def test_sbatch_writes_its_output_in_the_jail(slurm: Slurm) -> None:
    """A user's batch job runs in its working folder and leaves its output in the jail, not in the pod."""
    script = "pwd; id -un; ls -d /in-the-*; hostname"
    done = slurm.sh(f"sbatch -W --output=out.%x --job-name=batch --wrap '{script}'", user="alice")
    assert done.returncode == 0, done.stderr
    assert slurm.read("/home/alice/out.batch").splitlines() == ["/home/alice", "alice", "/in-the-jail", "one"]
    assert slurm.sh("ls /home/alice").stdout == ""


def test_parallel_steps_run_beside_each_other(slurm: Slurm) -> None:
    """Two steps of a batch job with two tasks each run at the same time: each waits for the other."""
    meet = "touch /tmp/$s; n=0; until [ -e /tmp/a -a -e /tmp/b ]; do n=\\$((n+1)); [ \\$n -lt 150 ] || exit 1; sleep 0.1; done"
    tasks = f'srun -n2 --exact sh -c "{meet}; echo $s \\$SLURM_PROCID" &'
    done = slurm.sh(
        f"sbatch -W -n4 --output=out.steps --wrap 'for s in a b; do {tasks} done; wait'", user="alice", timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert sorted(slurm.read("/home/alice/out.steps").splitlines()) == ["a 0", "a 1", "b 0", "b 1"]


def test_an_array_runs_every_task(slurm: Slurm) -> None:
    """Each task of a job array writes its own file."""
    done = slurm.sh(
        "sbatch -W --array=1-4 --output=array.%a --wrap 'echo $SLURM_ARRAY_TASK_ID' && cat /dev/null", user="alice"
    )
    assert done.returncode == 0, done.stderr
    assert [slurm.read(f"/home/alice/array.{n}").strip() for n in range(1, 5)] == ["1", "2", "3", "4"]


def test_salloc_and_the_interactive_step(slurm: Slurm) -> None:
    """srun in an allocation, and the interactive step that salloc starts, are in the jail."""
    done = slurm.sh("salloc -Q -n2 srun -n2 ls -d /in-the-jail /in-the-pod", user="alice")
    assert done.stdout.splitlines() == ["/in-the-jail"] * 2
    done = slurm.sh("echo 'ls -d /in-the-*; exit 5' | salloc -Q", user="alice")
    assert (done.stdout, done.returncode) == ("/in-the-jail\n", 5)


def test_a_second_step_overlaps_the_first(slurm: Slurm) -> None:
    """`srun --overlap` into a running job works."""
    script = "job=$(sbatch --parsable --output=/dev/null --wrap 'sleep 60'); "
    script += 'until_true "srun -Q --overlap --jobid=$job echo beside 2>/dev/null"; scancel $job'
    done = slurm.sh(script, user="alice")
    assert done.stdout == "beside\n"


def test_a_terminal_is_the_jails(slurm: Slurm) -> None:
    """`srun --pty` allocates a terminal that exists in the jail."""
    done = slurm.sh("script -qc 'srun -Q --pty sh -c \"tty && ls -d /in-the-jail\"' /dev/null", user="alice")
    assert done.stdout.replace("^@", "").split() == ["/dev/pts/0", "/in-the-jail"]


def test_salloc_gives_a_terminal_in_the_jail(slurm: Slurm) -> None:
    """The shell of salloc, the interactive step, has a terminal of the jail, and salloc exits with the shell's code."""
    done = slurm.sh("printf 'tty\\nls -d /in-the-*\\nexit 6\\n' | script -eqc 'salloc -Q' /dev/null", user="alice")
    assert {"/dev/pts/0", "/in-the-jail"} <= set(done.stdout.replace("$ ", "").split()), done.stdout
    assert (done.returncode, "in-the-pod" in done.stdout) == (6, False)
    assert wait_idle(slurm) == "idle none"


def test_sattach_reads_a_step_that_runs(slurm: Slurm) -> None:
    """A user who attaches to a step sees its later output, and sattach exits with the step's code."""
    step = "srun sh -c 'touch on; until [ -e attached ]; do echo seen; sleep 0.1; done; ls -d /in-the-*; exit 5'"
    job = slurm.sh(f'sbatch --parsable --output=/dev/null --wrap "{step}"', user="alice").stdout.strip()
    slurm.until(f"[ -e {JAIL}/home/alice/on ]")
    attach = f'sattach {job}.0 >said & until_true "grep -q seen said"; srun -Q --overlap --jobid={job} touch attached; '
    done = slurm.sh(attach + "wait $!; echo $?; sort -u said; rm said", user="alice", timeout=60)
    assert done.stdout.splitlines() == ["5", "/in-the-jail", "seen"], done.stderr
    assert wait_idle(slurm) == "idle none"


def test_x11_is_refused_before_there_is_a_job(slurm: Slurm) -> None:
    """Without X11 in PrologFlags, which is Slurm's own setting, srun and salloc print the reason, and no job starts."""
    for command in ("srun --x11 true", "salloc --x11 true"):
        done = slurm.sh(f"DISPLAY=localhost:10 {command}", user="alice")
        assert "X11" in done.stderr, done.stderr
        assert done.returncode != 0
    assert wait_idle(slurm) == "idle none"


@NEEDS_PMIX
def test_pmix_starts(slurm: Slurm) -> None:
    """`srun --mpi=pmix` gives each task its PMIx environment."""
    done = slurm.sh("srun --mpi=pmix -n2 sh -c 'echo $PMIX_RANK'", user="alice")
    assert sorted(done.stdout.split()) == ["0", "1"], done.stderr


def test_codes_and_signals_come_back(slurm: Slurm) -> None:
    """srun exits with a task's exit code, and with 137 if the task was killed."""
    assert slurm.sh("srun -Q sh -c 'exit 7'").returncode == 7
    assert slurm.sh("srun -Q sh -c 'kill -9 $$'").returncode == 137
    assert slurm.sh("srun -Q -n2 sh -c 'test $SLURM_PROCID = 0 || { sleep 0.5; exit 6; }'").returncode == 6


def test_task_prolog_and_epilog_run_inside(slurm: Slurm) -> None:
    """A task prolog sets the task's environment; a task epilog runs in the jail with bounded capabilities."""
    slurm.sh(f"printf '#!/bin/sh\\necho export WORD=set\\n' >{JAIL}/bin/before; chmod +x {JAIL}/bin/before")
    after = "#!/bin/sh\\n(cat /proc/1/comm; grep CapEff /proc/self/status) >/home/alice/after\\n"
    slurm.sh(f"printf '{after}' >{JAIL}/bin/after; chmod +x {JAIL}/bin/after")
    done = slurm.sh("srun -Q --task-prolog=/bin/before --task-epilog=/bin/after sh -c 'echo $WORD'")
    assert done.stdout == "set\n", done.stderr
    assert slurm.read("/home/alice/after") == "jail-holder\nCapEff:\t00000000a00405fb\n"


def test_left_over_processes_are_killed(slurm: Slurm) -> None:
    """Processes that a job leaves in their own sessions end with the job, and the node is idle, not drained."""
    slurm.sh("srun -Q sh -c 'setsid sleep 3333 & setsid sleep 3333 & sleep 0.1'", user="alice")
    slurm.sh("sbatch -W --output=/dev/null --wrap '(setsid sleep 3333 &) ; sleep 0.1'", user="alice")
    assert wait_idle(slurm) == "idle none"
    assert processes(slurm) == []


def test_scancel_ends_a_job(slurm: Slurm) -> None:
    """A cancelled job, even one that ignores SIGTERM, ends and the node is idle."""
    script = 'trap "" TERM; touch /tmp/on; sleep 3333; sleep 3333'
    start = f"job=$(sbatch --parsable --uid=alice --output=/dev/null --wrap '{script}')"
    done = slurm.sh(f'{start}; until_true "[ -e /mnt/tmp/job-$job/on ]" && scancel $job')
    assert done.returncode == 0, done.stderr
    assert wait_idle(slurm) == "idle none"
    assert processes(slurm) == []


def test_a_step_survives_slurmd(slurm: Slurm) -> None:
    """A step continues while slurmd is killed and restarted, and its exit code is reported."""
    script = "srun -Q sh -c 'touch /tmp/on; until [ -e /tmp/off ]; do sleep 0.1; done; exit 8' & "
    script += "until_true 'ls /mnt/tmp/job-*/on >/run/on 2>/dev/null'; "
    done = slurm.sh(script + RESTART + "touch $(sed s/on$/off/ /run/on); wait $!; echo $?", timeout=60)
    assert done.stdout == "8\n", done.stderr
    assert wait_idle(slurm) == "idle none"


def test_a_failed_mount_fails_the_step_and_not_the_node(slurm: Slurm) -> None:
    """The message is on srun's stderr and in the batch job's output, no task runs, and the node stays idle."""
    sentence = "jail: mount point /nope is missing in the jail (plan line 10)\n"
    slurm.sh(f"cp {PLAN} /plan.good; printf 'tmpfs\\t-\\t/nope\\t-\\t-\\n' >>{PLAN}")
    try:
        step = slurm.sh("srun echo ran", user="alice")
        batch = slurm.sh("sbatch -W --output=out.bad --wrap 'echo ran'", user="alice")
    finally:
        slurm.sh(f"cp /plan.good {PLAN}")
    assert sentence in step.stderr
    assert (step.stdout, step.returncode, batch.returncode) == ("", 127, 127)
    output = slurm.read("/home/alice/out.bad")
    assert sentence in output
    assert "ran" not in output.replace("failed", "").split()
    assert wait_idle(slurm) == "idle none"


def test_a_missing_root_is_told_to_srun(slurm: Slurm) -> None:
    """If the jail is missing, srun reports it and no task runs."""
    slurm.sh(f"cp {PLAN} /plan.good; sed -i s#{JAIL}#/gone# {PLAN}")
    try:
        done = slurm.sh("srun echo ran", user="alice")
    finally:
        slurm.sh(f"cp /plan.good {PLAN}")
    assert "jail: cannot find the root /gone (plan line 1): No such file or directory\n" in done.stderr
    assert done.stdout == ""
    assert wait_idle(slurm) == "idle none"


def test_steps_leak_nothing(slurm: Slurm) -> None:
    """After twenty steps slurmd's namespace has as many mounts, and the pod as many processes, as before."""
    assert wait_idle(slurm) == "idle none"
    count = "wc -l </proc/self/mountinfo; ps -e --no-headers | grep -vc 'ps\\|sh\\|grep\\|wc'"
    before = slurm.sh(count).stdout
    assert slurm.sh("for i in $(seq 20); do srun -Q true || exit 1; done", timeout=60).returncode == 0
    assert wait_idle(slurm) == "idle none"
    assert settled(slurm, count, before) == before


def test_tmp_is_the_jobs(slurm: Slurm) -> None:
    """A batch script and its steps share one /tmp and one /dev/shm, another job of the same user has others, and nothing remains."""
    script = "echo mine >/tmp/a; echo too >/dev/shm/a; srun -Q cat /tmp/a /dev/shm/a; srun -Q touch /tmp/b; ls /tmp"
    done = slurm.sh(f"sbatch -W --output=out.tmp --wrap '{script}'; srun -Q ls /tmp /dev/shm", user="alice")
    assert done.returncode == 0, done.stderr
    assert slurm.read("/home/alice/out.tmp").splitlines() == ["mine", "too", "a", "b"]
    assert "a" not in done.stdout.split()
    assert wait_idle(slurm) == "idle none"
    assert slurm.sh("ls -A /mnt/tmp /run/jail/jobs").stdout.split() == ["/mnt/tmp:", "/run/jail/jobs:"]


def test_an_overlapping_step_sees_the_processes_of_the_job(slurm: Slurm) -> None:
    """`srun --overlap` sees and signals the processes of the job's other step, as a debugger does."""
    script = "job=$(sbatch --parsable --output=/dev/null --wrap 'srun sleep 77'); n=0; "
    script += (
        "until srun -Q --overlap --jobid=$job pkill -x sleep; do n=$((n+1)); [ $n -lt 40 ] || exit 1; sleep 0.1; done"
    )
    assert slurm.sh(script, user="alice").returncode == 0
    assert wait_idle(slurm) == "idle none"


def test_an_allocation_has_its_namespaces_before_its_first_step(slurm: Slurm) -> None:
    """With PrologFlags=Contain the job's namespaces exist as soon as salloc returns, and end with the allocation."""
    assert wait_idle(slurm) == "idle none"
    look = "n=0; until ls /run/jail/jobs | grep .; do n=$((n+1)); [ $n -lt 200 ] || exit; sleep 0.1; done"
    with slurm.contain():
        done = slurm.sh(f"salloc -Q sh -c 'echo $SLURM_JOB_ID; {look}'", timeout=60)
        job, seen = done.stdout.split()
        assert seen == job
        assert wait_idle(slurm) == "idle none"
    assert slurm.sh("ls /run/jail/jobs").stdout == ""


def test_a_job_ends_whole_although_slurmd_was_killed(slurm: Slurm) -> None:
    """A slurmd that was restarted during a job releases the job's resources, and ends its remaining processes."""
    hold = "(setsid sleep 3333 &); touch /tmp/on; until [ -e /tmp/off ]; do sleep 0.1; done"
    script = f"job=$(sbatch --parsable --output=/dev/null --wrap '{hold}'); "
    script += 'until_true "[ -e /mnt/tmp/job-$job/on ]"; ' + RESTART
    script += "ls /run/jail/jobs/$job; touch /mnt/tmp/job-$job/off"
    assert slurm.sh(script, timeout=60).stdout.split() == ["pid", "plan", "scratch", "uid"]
    assert wait_idle(slurm) == "idle none"
    assert slurm.sh("ls -A /mnt/tmp /run/jail/jobs").stdout.split() == ["/mnt/tmp:", "/run/jail/jobs:"]
    assert processes(slurm) == []


def test_a_step_cancelled_alone_leaves_the_job(slurm: Slurm) -> None:
    """`scancel JOB.STEP` ends that step and its remaining processes; the job continues."""
    script = (
        'srun -Q sh -c "(setsid sleep 66 &); touch /tmp/on; exec sleep 66" & until [ -e /tmp/on ]; do sleep 0.1; done; '
    )
    script += "scancel $SLURM_JOB_ID.0; wait; srun -Q pgrep -cx sleep"
    slurm.sh(f"sbatch -W --output=out.cancel --wrap '{script}'", user="alice")
    assert "0" in slurm.read("/home/alice/out.cancel").splitlines()


#: `take SECONDS` gets a folder over a socket in the shared home and fills it; `give` sends the /tmp of its job.
PASS = """
import os, socket, sys, time
path = "/home/alice/pass.sock"
if sys.argv[1] == "give":
    with socket.socket(socket.AF_UNIX) as sending:
        sending.connect(path)
        socket.send_fds(sending, [b"x"], [os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)])
        sending.recv(1)
else:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        client = listening.accept()[0]
        folder = socket.recv_fds(client, 1, 1)[1][0]
        for _ in range(3):
            os.fork()
        number, told, end = 0, False, time.monotonic() + float(sys.argv[2])
        while time.monotonic() < end:
            try:
                os.close(os.open(f"{os.getpid()}-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
                number += 1
            except OSError:
                pass
            if number > 100 and not told:
                told = True
                client.close()
"""


def test_another_job_that_writes_into_a_jobs_folder_does_not_keep_it(slurm: Slurm) -> None:
    """A job whose /tmp another job of its user holds open, and fills, ends at once; its folder is removed, and the other job continues."""
    slurm.sh(f"cat >{JAIL}/home/alice/pass.py <<'END'\n{PASS}\nEND\nrm -f {JAIL}/home/alice/pass.sock")
    taking = slurm.sh(
        "sbatch --parsable -o /dev/null --wrap 'exec python3 pass.py take 20'; until_true '[ -e pass.sock ]'",
        user="alice",
    ).stdout.strip()
    slurm.until(f"[ -e {JAIL}/home/alice/pass.sock ]")
    giving = slurm.sh("sbatch --parsable -o /dev/null --wrap 'exec python3 pass.py give'", user="alice").stdout.strip()
    over = f"until_true '! squeue -h -j {giving} 2>/dev/null | grep -q .'"
    done = slurm.sh(f"{over}; squeue -h -o %T -j {taking}; ls -A /mnt/tmp")
    assert done.stderr == ""
    assert done.stdout.split()[0] == "RUNNING"
    assert f"job-{giving}" not in done.stdout.split()
    slurm.sh(f"scancel {taking}")
    assert wait_idle(slurm) == "idle none"
    slurm.until("[ -z $(ls -A /mnt/tmp) ]")
