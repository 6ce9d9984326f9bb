"""SSH into a worker: a real sshd beside slurmd, with pam_jail. A user with a job enters the job, and the session ends with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trixie import JAIL, NEEDS, Slurm, settled, wait_idle

pytestmark = NEEDS

MODULE = "/opt/soperator/lib/slurm/pam_jail.so"
SERVICE = f"account required {MODULE}\naccount required pam_unix.so\nsession required {MODULE}\n"
CONFIG = (
    "Port 2222\nUsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
    "AuthorizedKeysFile /etc/ssh/keys\nStrictModes no\nSubsystem sftp /usr/lib/openssh/sftp-server\nPrintMotd no\nPerSourcePenalties no\n"
)
SSH = "ssh -p 2222 -i /root/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes"
HOLD = "job=$(sbatch --parsable --uid={user} --output=/dev/null --wrap 'touch /tmp/up; exec sleep 60'); n=0; "
HOLD += "until [ -e /mnt/tmp/job-$job/up ]; do n=$((n+1)); [ $n -lt 100 ] || exit 99; sleep 0.1; done; "


@pytest.fixture(scope="module")
def sshd(slurm: Slurm) -> Iterator[Slurm]:
    """Start an sshd in the pod, outside the jail; alice and root have the same key."""
    script = f"""
ssh-keygen -q -t ed25519 -N '' -f /root/key; cp /root/key.pub /etc/ssh/keys; ssh-keygen -A; mkdir -p /run/sshd
printf '{SERVICE}' >/etc/pam.d/sshd; printf '{CONFIG}' >/etc/ssh/sshd_config; rm -rf /etc/ssh/sshd_config.d
setsid /usr/sbin/sshd -D -E /var/log/sshd.log >/dev/null 2>&1 & echo $! >/run/sshd.pid
for i in $(seq 50); do ssh-keyscan -p 2222 10.99.0.1 >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"""
    started = slurm.sh(script)
    assert started.returncode == 0, started.stderr
    yield slurm
    slurm.sh("kill $(cat /run/sshd.pid)")


@pytest.fixture
def job(sshd: Slurm, request: pytest.FixtureRequest) -> Iterator[str]:
    """Start a job of alice, or of the user that the test names."""
    started = sshd.sh(HOLD.format(user=getattr(request, "param", "alice")) + "echo $job")
    assert started.returncode == 0, started.stderr
    yield started.stdout.strip()
    sshd.sh("scancel -f " + started.stdout.strip())
    assert wait_idle(sshd) == "idle none"


def test_without_a_job_nobody_gets_in(sshd: Slurm) -> None:
    """A user without a job on the node is refused with a message, and so is root."""
    for user in ("alice", "root"):
        done = sshd.sh(f"{SSH.replace('ERROR', 'INFO')} {user}@10.99.0.1 echo ran")
        assert (done.returncode, done.stdout) == (255, "")
        assert (
            f"{user} has no job on one: ask Slurm for one (srun, sbatch, salloc), then log in while it runs."
            in done.stderr
        )


def test_a_session_is_in_the_job(sshd: Slurm, job: str) -> None:
    """With a job, the session has the job's root, /tmp, process ids and capabilities, and the user's home."""
    command = "ls -d /in-the-* /tmp/up; cat /proc/1/comm; pgrep -cx sleep; id -un; pwd; grep CapBnd /proc/self/status"
    done = sshd.sh(f"{SSH} alice@10.99.0.1 '{command}'")
    assert done.stdout.splitlines() == [
        *("/in-the-jail", "/tmp/up", "jail-holder", "1", "alice", "/home/alice", "CapBnd:\t00000000a00405fb")
    ], done.stderr


@pytest.mark.parametrize("job", ["root"], indirect=True)
def test_root_is_in_its_job_with_few_capabilities(sshd: Slurm, job: str) -> None:
    """Root's session has the capabilities of root in the jail, and cannot mount."""
    done = sshd.sh(
        f"{SSH} root@10.99.0.1 'grep CapEff /proc/self/status; ls -d /in-the-*; mount -t tmpfs x /mnt || echo refused'"
    )
    assert done.stdout.splitlines() == ["CapEff:\t00000000a00405fb", "/in-the-jail", "refused"], done.stderr


def test_another_users_job_opens_nothing(sshd: Slurm, job: str) -> None:
    """Root is refused while only alice has a job."""
    assert sshd.sh(f"{SSH} root@10.99.0.1 echo ran").returncode == 255


def test_a_terminal_and_sftp_are_the_jails(sshd: Slurm, job: str) -> None:
    """The terminal of a session belongs to the job, and sftp reads and writes files of the jail."""
    done = sshd.sh(f"script -qc \"{SSH} -tt alice@10.99.0.1 'tty; ls -d /in-the-*'\" /dev/null")
    assert done.stdout.replace("\r", "").replace("^@", "").split() == ["/dev/pts/0", "/in-the-jail"], done.stderr
    sftp = SSH.replace("ssh -p", "sftp -P", 1)
    done = sshd.sh(
        f"echo sent >/root/sent; printf 'put /root/sent\\nget /in-the-jail /root/got\\n' | {sftp} -b - alice@10.99.0.1; cat /root/got"
    )
    assert done.stdout.endswith("jail\n"), done.stderr
    assert sshd.read("/home/alice/sent") == "sent\n"


def test_ports_are_forwarded(sshd: Slurm, job: str) -> None:
    """A port that the session forwards reaches a server of the node."""
    done = sshd.sh(
        f"{SSH} -f -N -L 9999:10.99.0.1:2222 alice@10.99.0.1; ssh-keyscan -p 9999 127.0.0.1 2>/dev/null | head -c 5; pkill -f 9999:10"
    )
    assert done.stdout == "# 127", done.stderr


def test_a_session_ends_with_its_job(sshd: Slurm, job: str) -> None:
    """When the job is cancelled, an open session and its background processes end at once; sshd continues."""
    script = f"{SSH} alice@10.99.0.1 'setsid sleep 4444 & exec sleep 4444' & "
    script += f"until_true '[ $(pgrep -xfc \"sleep 4444\") = 2 ]'; scancel {job}; wait $!; echo code $?; "
    script += "until_true '! pgrep -xf \"sleep 4444|sshd-session.*\" >/dev/null'; pgrep -cx sshd"
    done = sshd.sh(script, timeout=60)
    assert (done.stdout.splitlines(), done.returncode) == (["code 255", "1"], 0), done.stdout + done.stderr


def test_sessions_leak_nothing(sshd: Slurm, job: str) -> None:
    """After twenty sessions the pod has as many processes and mounts as before."""
    count = "wc -l </proc/self/mountinfo; ps -e --no-headers | grep -vc 'ps\\|sh\\|grep\\|wc'"
    assert sshd.sh(f"{SSH} alice@10.99.0.1 true").returncode == 0
    sshd.until("! pgrep -x sshd-session >/dev/null")
    before = sshd.sh(count).stdout
    assert sshd.sh(f"for i in $(seq 20); do {SSH} alice@10.99.0.1 true || exit 1; done").returncode == 0
    assert settled(sshd, count, before) == before


@pytest.mark.parametrize("job", ["root"], indirect=True)
def test_root_reads_no_memory_of_sshd(sshd: Slurm, job: str) -> None:
    """Root of the jail cannot access the process of sshd in root's job that has read the host key; it can access its shell."""
    looks = "for process in $(pgrep -x sshd-session) $$; do head -c 1 /proc/$process/maps >/dev/null 2>&1 && echo open || echo closed; done"
    done = sshd.sh(f"{SSH} root@10.99.0.1 '{looks}'")
    assert done.stdout.split() == ["closed", "open"], done.stderr


#: Tells the name of each process that loads it.
LIBRARY = r"""
#include <stdio.h>
#include <sys/prctl.h>

__attribute__((constructor)) static void begin(void)
{
	char name[17] = "";
	FILE *log = fopen("/srv/loaded", "a");

	prctl(PR_GET_NAME, name);
	if (log != NULL && fprintf(log, "%s\n", name) > 0)
		fclose(log);
}
"""


@pytest.mark.parametrize("job", ["root"], indirect=True)
def test_roots_session_loads_no_library_that_the_jail_names(sshd: Slurm, job: str) -> None:
    """The process that has read the host key looks up users in files only; other programs of root load libraries of the jail's nsswitch.conf."""
    library = f"{JAIL}/lib/x86_64-linux-gnu/libnss_late.so.2"
    Path(f"/proc/{sshd.pid}/root{JAIL}/srv/late.c").write_text(LIBRARY)
    made = sshd.sh(
        f"gcc -shared -fPIC -o {library} {JAIL}/srv/late.c && cd {JAIL}/etc && touch nsswitch.conf && cp nsswitch.conf /run"
        " && for each in passwd group hosts; do echo $each: late files; done >nsswitch.conf"
    )
    assert made.returncode == 0, made.stderr
    done = sshd.sh(f"{SSH} root@10.99.0.1 getent passwd nobody")
    loaded = sshd.read("/srv/loaded")
    sshd.sh(f"cp /run/nsswitch.conf {JAIL}/etc; rm -f {library} {JAIL}/srv/loaded {JAIL}/srv/late.c")
    assert (done.returncode, set(loaded.split())) == (0, {"getent"}), done.stderr
