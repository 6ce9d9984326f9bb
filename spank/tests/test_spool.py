"""slurmd's spool: only Slurm can write in it, and files that Slurm leaves in it are removed."""

import pytest
from trixie import HAS_PMIX, JAIL, NEEDS, NEEDS_PMIX, Slurm, settled, wait_idle

pytestmark = NEEDS

#: What a program tries in the spool: in the mounts of the job, and in mounts of its own from which those of the job are gone, where that is possible.
ATTEMPTS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
spool = os.open("/var/spool/slurmd", os.O_RDONLY | os.O_DIRECTORY)
def attempt(what, do):
    try:
        do()
        print("DONE", what)
    except OSError as error:
        print("held:", what, error.strerror)
def all_of_them(where):
    attempt(where + " rename", lambda: os.rename("cred_state", "mine", src_dir_fd=spool, dst_dir_fd=spool))
    attempt(where + " folder", lambda: os.mkdir("mine", dir_fd=spool))
    attempt(where + " mode", lambda: os.fchmod(spool, 0o777))
    attempt(where + " topology", lambda: os.open("hwloc_topo_whole.xml", os.O_WRONLY, dir_fd=spool))
all_of_them("job:")
ids = os.getuid(), os.getgid()
if libc.unshare(0x10000000 | 0x20000) == 0:
    for file, text in ("setgroups", "deny"), ("uid_map", f"0 {ids[0]} 1"), ("gid_map", f"0 {ids[1]} 1"):
        with open("/proc/self/" + file, "w") as opened:
            opened.write(text)
    libc.mount(b"spool", b"/var/spool/slurmd", None, 0x1000 | 0x20, None)
    libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None)
    os.mkdir("/tmp/old")
    os.chdir("/tmp")
    if libc.syscall(155, b".", b"old") == 0:
        os.chroot(".")
        os.chdir("/")
        libc.umount2(b"/old", 2)
    all_of_them("own:")
"""


@pytest.mark.parametrize("user", ["root", "alice"])
def test_a_job_changes_nothing_in_the_spool(slurm: Slurm, user: str) -> None:
    """Neither root of the jail nor a user can write, rename or change the mode of slurmd's files, in any mount namespace."""
    before = slurm.sh("stat -c '%a %U' /var/spool/slurmd; ls /var/spool/slurmd | grep -v _").stdout
    slurm.sh(f"cat >{JAIL}/srv/attempts.py <<'END'\n{ATTEMPTS}\nEND")
    done = slurm.sh("srun -Q python3 /srv/attempts.py", user=user)
    slurm.sh(f"rm {JAIL}/srv/attempts.py")
    assert len(done.stdout.splitlines()) == 8, done.stderr
    assert "DONE" not in done.stdout
    assert slurm.sh("stat -c '%a %U' /var/spool/slurmd; ls /var/spool/slurmd | grep -v _").stdout == before
    # the same by a process of the pod, which the mounts of a job do not hold
    control = slurm.sh("touch /var/spool/slurmd/mine; ls /var/spool/slurmd/mine; rm /var/spool/slurmd/mine")
    assert control.stdout == "/var/spool/slurmd/mine\n"


def test_a_batch_script_is_not_a_way_to_fill_the_spool(slurm: Slurm) -> None:
    """The user owns the file of the script, but only Slurm can append to it."""
    slurm.sh("cd; sbatch --wait -o out --wrap 'head -c 1M /dev/zero >> $0'", user="alice")
    assert "Read-only file system" in slurm.sh(f"cat {JAIL}/home/alice/out; rm {JAIL}/home/alice/out").stdout
    assert wait_idle(slurm) == "idle none"


#: A socket that nobody listens on, as a slurmstepd leaves it that is killed.
STRAY = "stray() { python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' /var/spool/slurmd/$1; }; "


#: What a user owns in the spool, for slurmstepd to write to: the script of the job by `--output` and, appended to, by `--error`; a folder of PMIx.
OUTPUTS = """#!/bin/sh
cd; script=$(printf /var/spool/slurmd/job%05d/slurm_script $SLURM_JOB_ID)
ln -s $script link0
srun -Q --overlap --output=link%t head -c 1M /dev/zero; echo output $?
srun -Q --overlap --open-mode=append --error=link%t sh -c 'head -c 1M /dev/zero >&2'; echo error $?
rm link0
ls -l $script
[ -z "$1" ] || {
srun -Q --overlap --mpi=pmix sleep 4 & sleep 2
srun -Q --overlap --output=$(echo /var/spool/slurmd/pmix.$SLURM_JOB_ID.*)/fill%t head -c 1M /dev/zero; echo pmix $?
du -k /var/spool/slurmd/pmix.$SLURM_JOB_ID.*; wait
}
srun -Q --overlap --output=plain%t echo elsewhere; cat plain0; rm plain0
exit # what was written behind is no script
"""


def test_output_is_not_a_way_to_fill_the_spool(slurm: Slurm) -> None:
    """A step whose output would be a file of the spool starts no task, because slurmstepd could open the file for writing."""
    slurm.sh(f"cat >/srv/outputs.sh <<'END'\n{OUTPUTS}\nEND")
    done = slurm.sh(
        f"cd; sbatch -Q --wait -o out /srv/outputs.sh {'pmix' if HAS_PMIX else ''}", user="alice", timeout=60
    )
    out = slurm.sh(f"cat {JAIL}/home/alice/out; rm {JAIL}/home/alice/out /srv/outputs.sh").stdout.splitlines()
    told = "jail: --output or --error leads into slurmd's spool, where only Slurm may write"
    assert [line for line in out if line.startswith(("output", "error", "pmix"))] == [
        "output 127",
        "error 127",
        *(["pmix 127"] if HAS_PMIX else []),
    ], done.stderr
    assert "elsewhere" in out
    sizes = [int(line.split()[4]) for line in out if line.startswith("-rwx")]
    sizes += [1024 * int(line.split()[0]) for line in out if "/pmix." in line and line[0].isdigit()]
    assert len(sizes) == 1 + HAS_PMIX, out
    assert max(sizes) < 8192, out
    slurm.until(f'grep -qF "{told}" /var/log/slurm/d.log')
    assert wait_idle(slurm) == "idle none"


def test_what_a_killed_slurmstepd_left_goes_with_its_job(slurm: Slurm) -> None:
    """The epilog removes the sockets, the topologies and the script of its own job, and those of no other job."""
    start = "sbatch --parsable --output=/dev/null --wrap 'touch /tmp/on; sleep 60'"
    script = f"a=$({start}); b=$({start}); " + 'for j in $a $b; do until_true "[ -e /mnt/tmp/job-$j/on ]"; done; '
    script += STRAY + "stray one_$a.0; stray one_$a.5.1; stray one_$b.7; stray one_$a$b.0; "
    script += "mkdir -p /var/spool/slurmd/$(printf job%05d $a)/more; touch /var/spool/slurmd/hwloc_topo_$a.0.xml; "
    script += 'scancel $a; until_true "[ -z \\"\\$(squeue -h -j $a 2>/dev/null)\\" ]"; echo $a $b; '
    script += "cd /var/spool/slurmd; ls -d one_* hwloc_topo_[0-9]* job*"
    done = slurm.sh(script, timeout=60)
    a, b = done.stdout.split("\n")[0].split()
    left = done.stdout.split()[2:]
    mine = [each for each in left if each.startswith((f"one_{a}.", f"hwloc_topo_{a}.", f"job{int(a):05}"))]
    assert mine == [], done.stderr
    assert {f"one_{b}.7", f"one_{a}{b}.0"} < set(left)
    assert any(each.startswith("job") for each in left)
    assert slurm.sh(f"srun -Q --overlap --jobid={b} true; scancel {b}").returncode == 0
    assert wait_idle(slurm) == "idle none"
    assert slurm.sh(f"cd /var/spool/slurmd; rm one_{a}{b}.0; ls -d one_* hwloc_topo_[0-9]* job*").stdout == ""


@NEEDS_PMIX
def test_a_user_has_no_folder_made_for_pmix_where_only_root_may(slurm: Slurm) -> None:
    """slurmstepd creates the folder of PMIx's clients as root: in the job's own /tmp, whatever path the user sets."""
    done = slurm.sh(
        "SLURM_PMIX_TMPDIR=/etc srun -Q -t1 --mpi=pmix sh -c 'ls -d /etc/spmix*; ls -d /tmp/spmix* | wc -l'",
        user="alice",
    )
    assert done.stdout == "1\n", done.stderr
    assert "/etc/spmix*" in done.stderr


@NEEDS_PMIX
def test_what_a_step_with_pmix_could_not_begin_goes_with_the_job(slurm: Slurm) -> None:
    """A folder that slurmstepd leaves after a failed start would block the same step of a job that is requeued."""
    assert wait_idle(slurm) == "idle none"
    taken = "ln -s / /tmp/spmix_appdir_1000_$SLURM_JOB_ID.0; srun -Q --mpi=pmix true; [ $? != 0 ] && echo failed >$HOME/failed"
    slurm.sh(f"cd; sbatch -Q --wait -o /dev/null --wrap '{taken}'", user="alice")
    assert slurm.sh(f"cat {JAIL}/home/alice/failed; rm {JAIL}/home/alice/failed").stdout == "failed\n"
    assert wait_idle(slurm) == "idle none"
    assert settled(slurm, "ls /var/spool/slurmd | grep pmix", "") == ""


@NEEDS_PMIX
def test_a_folder_of_pmix_of_any_depth_goes_with_the_job(slurm: Slurm) -> None:
    """slurmstepd does not remove a folder that is nested too deeply for it."""
    assert wait_idle(slurm) == "idle none"
    deep = "import glob, os; os.chdir(glob.glob('/var/spool/slurmd/pmix.*')[0]); [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"
    slurm.sh(
        "srun -Q -t1 --mpi=pmix sh -c 'until [ -e go ]; do sleep 0.1; done; rm go' & "
        f"until_true 'ls /var/spool/slurmd | grep -q ^pmix'; python3 -c \"{deep}\"; touch {JAIL}/go; wait"
    )
    assert wait_idle(slurm) == "idle none"
    assert settled(slurm, "ls /var/spool/slurmd | grep pmix", "") == ""


def test_a_full_spool_ends_no_job(slurm: Slurm) -> None:
    """The spool has a size limit and its own file system: if it is full, running jobs continue, and slurmd reports that it is full."""
    assert wait_idle(slurm) == "idle none"
    batch = "sbatch --parsable --output=/dev/null --uid"
    goes_on = "touch /tmp/on; until [ -e /home/alice/is-full ]; do sleep 0.2; done; srun -Q true && touch /home/alice/went-on; sleep 60"
    script = f"b=$({batch}=1000 --wrap '{goes_on}'); until_true '[ -e /mnt/tmp/job-$b/on ]'; "
    script += f"head -c 1G /dev/zero >/var/spool/slurmd/filler 2>/dev/null; touch {JAIL}/home/alice/is-full; "
    script += f"until_true '[ -e {JAIL}/home/alice/went-on ]'; df --output=pcent /var/spool/slurmd; c=$({batch}=1000 --wrap true); "
    script += "until_true 'scontrol show node one | grep -q SlurmdSpoolDir.is.full'; squeue -h -o %T -j $b; scancel $b; rm /var/spool/slurmd/filler; "
    script += "until_true '[ -z \"$(squeue -h -t R,CG)\" ]'; scontrol update node=one state=resume; until_true '[ -z \"$(squeue -h -j $c)\" ]'; "
    script += f"rm {JAIL}/home/alice/is-full {JAIL}/home/alice/went-on"
    done = slurm.sh(script, timeout=100)
    assert done.stdout.split()[1:] == ["100%", "RUNNING"], (done.stdout, done.stderr)
    assert wait_idle(slurm) == "idle none"


def test_slurm_itself_clears_only_an_old_socket_away(slurm: Slurm) -> None:
    """slurmd itself removes a stale socket only if it is older than 10 min, so the epilog removes younger ones."""
    make = STRAY + "stray one_998.0; stray one_999.0; touch -d '-610 seconds' /var/spool/slurmd/one_998.0; "
    done = slurm.sh(make + "scontrol reconfigure; until_true '[ ! -e /var/spool/slurmd/one_998.0 ]'", timeout=60)
    assert done.returncode == 0, done.stderr
    assert slurm.sh("rm /var/spool/slurmd/one_999.0").returncode == 0
    assert wait_idle(slurm) == "idle none"
