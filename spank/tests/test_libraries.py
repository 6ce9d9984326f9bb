"""The libraries that slurmstepd loads inside the jail, and the resources of a task before it runs the user's program, in a real Slurm 24.11.

slurmstepd has capabilities that no user has, and threads outside. Root of the jail can write every file of the jail, so slurmstepd must not
read a library, or a file that names libraries, from it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trixie import HAS_PMIX, JAIL, NEEDS, NEEDS_PMIX, Slurm, wait_idle

pytestmark = NEEDS

PMIX = "/usr/lib/x86_64-linux-gnu/pmix2/share"
#: A library that, where it is loaded by slurmstepd, has a thread that is outside read Slurm's key, and says so. Others only tell their name.
LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int is_read;

static void read_key(int number)
{
	(void)number;
	if (open("/etc/soperator/keys/slurm.key", O_RDONLY) >= 0)
		is_read = 1;
}

__attribute__((constructor)) static void begin(void)
{
	char name[17] = "";
	FILE *log = fopen("/srv/loaded", "a");

	prctl(PR_GET_NAME, name);
	if (name[0] == 's' && name[5] == 's') {
		signal(SIGUSR2, read_key);
		for (int thread = getpid() + 1; thread < getpid() + 40 && !is_read; thread++)
			if (syscall(SYS_tgkill, getpid(), thread, SIGUSR2) == 0)
				usleep(20000);
	}
	if (log != NULL && fprintf(log, "%s%s\n", name, is_read ? " has the key" : "") > 0)
		fclose(log);
}
"""
#: A step with PMIx, where there is any.
STEP = f"srun -Q -t1 {'--mpi=pmix' if HAS_PMIX else ''}"
#: Where root of the jail names it.
NAMES = {
    "nsswitch.conf": f"printf 'passwd: late files\\ngroup: late files\\nhosts: late files\\n' >{JAIL}/etc/nsswitch.conf",
    "components of PMIx in a home": f"cp {JAIL}/srv/late/* {JAIL}/root/.pmix/components",
    "parameters of PMIx in a home": f"echo mca_base_component_path=/srv/late >{JAIL}/root/.pmix/mca-params.conf",
    "parameters of PMIx": f"echo mca_base_component_path=/srv/late >{JAIL}{PMIX}/pmix-mca-params.conf",
    "parameters of PMIx above others": f"echo mca_base_component_path=/srv/late >{JAIL}{PMIX}/pmix-mca-params-override.conf",
}


@pytest.fixture
def pod(slurm: Slurm, request: pytest.FixtureRequest) -> Iterator[Slurm]:
    """Put the library into the jail, named by one file there."""
    assert wait_idle(slurm) == "idle none"
    Path(f"/proc/{slurm.pid}/root{JAIL}/srv/late.c").write_text(LIBRARY)
    script = f"""set -e
mkdir -p {JAIL}{PMIX} {JAIL}/srv/late {JAIL}/root/.pmix/components /run/before
touch {JAIL}/etc/nsswitch.conf {JAIL}{PMIX}/pmix-mca-params.conf {JAIL}{PMIX}/pmix-mca-params-override.conf
for each in etc/nsswitch.conf {PMIX}/pmix-mca-params.conf {PMIX}/pmix-mca-params-override.conf; do cp {JAIL}/$each /run/before/; done
gcc -shared -fPIC -o {JAIL}/srv/late/pmix_mca_gds_late.so {JAIL}/srv/late.c
cp {JAIL}/srv/late/pmix_mca_gds_late.so {JAIL}/lib/x86_64-linux-gnu/libnss_late.so.2
: >{JAIL}/srv/loaded; chmod 666 {JAIL}/srv/loaded
{NAMES[request.param]}"""
    made = slurm.sh(script)
    assert made.returncode == 0, made.stderr
    yield slurm
    assert wait_idle(slurm) == "idle none"
    undone = slurm.sh(
        f"cp /run/before/nsswitch.conf {JAIL}/etc; cp /run/before/pmix* {JAIL}{PMIX}; rm -rf {JAIL}/root/.pmix {JAIL}/srv/late*"
        f" {JAIL}/srv/loaded {JAIL}/lib/x86_64-linux-gnu/libnss_late.so.2"
    )
    assert undone.returncode == 0, undone.stderr


@pytest.mark.parametrize("pod", list(NAMES), indirect=True)
@pytest.mark.parametrize("user", ["root", "alice"])
def test_slurmstepd_loads_no_library_that_the_jail_names(pod: Slurm, user: str) -> None:
    """With PMIx, which loads components late and looks up users, slurmstepd does not load the library either."""
    done = pod.sh(f"{STEP} true", user=user)
    assert (done.returncode, pod.read("/srv/loaded")) == (0, ""), done.stderr


@pytest.mark.parametrize("pod", ["nsswitch.conf"], indirect=True)
def test_the_same_library_is_loaded_by_a_users_program(pod: Slurm) -> None:
    """The user's own program loads the library, which shows that the library and its name are right."""
    assert pod.sh("srun -Q -t1 getent passwd nobody").returncode == 0
    assert pod.read("/srv/loaded") == "getent\n"


@NEEDS_PMIX
def test_a_task_has_its_own_environment(slurm: Slurm) -> None:
    """The variables that keep PMIx from the jail are only in slurmstepd's environment."""
    done = slurm.sh("env HOME=/home/alice srun -Q -t1 --mpi=pmix sh -c 'echo $HOME; env | grep -c PMIX_MCA_mca_base'")
    assert done.stdout.split() == ["/home/alice", "0"], done.stderr


LOOK = """#!/bin/sh
( sleep 9 & cat /proc/$!/maps >/dev/null && ls /proc/$!/fd >/dev/null && echo own; kill $! ) >/tmp/looked
cat /proc/$PPID/maps >/dev/null 2>&1 && echo maps >>/tmp/looked
for each in /proc/$PPID/fd/*; do readlink $each; done 2>/dev/null >>/tmp/looked
cat /proc/$PPID/comm >>/tmp/looked
"""


@pytest.mark.parametrize("user", ["root", "alice"])
def test_a_task_that_is_still_slurmstepd_is_closed(slurm: Slurm, user: str) -> None:
    """A task's prolog cannot read the copy of slurmstepd beside it, its memory, or its open files, such as slurmd's log."""
    Path(f"/proc/{slurm.pid}/root{JAIL}/srv/look").write_text(LOOK)
    done = slurm.sh(f"chmod 755 {JAIL}/srv/look; su {user} -c 'srun -Q -t1 --task-prolog=/srv/look cat /tmp/looked'")
    assert done.stdout.split() == ["own", "slurmstepd"], done.stderr


@NEEDS_PMIX
def test_what_pmix_says_of_itself_goes_to_no_file_of_a_user(slurm: Slurm) -> None:
    """PMIX_DEBUG of a user does not make slurmstepd write, as root, a file that the user named by a link; the step runs, and tools can connect."""
    assert wait_idle(slurm) == "idle none"
    links = (
        "import os; [os.symlink('/etc/precious', f'/tmp/pmix-output-pid{each}-output.txt') for each in range(1, 5000)]"
    )
    look = "ls /tmp | grep ^pmix-output; echo $PMIX_DEBUG $PMIX_SYSTEM_TMPDIR"
    step = f"PMIX_DEBUG=100 srun -t1 --overlap --mpi=pmix sh -c '{look}'"
    batch = f'#!/bin/sh\n{step}\npython3 -c "{links}"\n{step} | tail -n 1'
    begin = f"echo whole >{JAIL}/etc/precious; chmod 600 {JAIL}/etc/precious; "
    slurm.sh(f"{begin}cat >/srv/debug.sh <<'END'\n{batch}\nEND")
    slurm.sh("cd; timeout 25 sbatch --wait -t 1 -o out /srv/debug.sh", user="alice", timeout=40)
    end = f"rm {JAIL}/home/alice/out {JAIL}/etc/precious /srv/debug.sh"
    said = slurm.sh(f"cat {JAIL}/home/alice/out {JAIL}/etc/precious; {end}").stdout
    assert said == "100 /tmp\n100 /tmp\nwhole\n"
    assert wait_idle(slurm) == "idle none"
