"""`sbatch --get-user-env` and `--export=NONE`: slurmd runs su, and the image's su runs the jail's su, in a real Slurm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trixie import JAIL, NEEDS, Slurm, wait_idle

pytestmark = NEEDS

SU = Path(__file__).parents[2] / "images/slurm/su"
HOME = f"{JAIL}/home/alice"
#: What a user of a directory may do: a login shell that is a file of the shared root, by the name that it has outside the jail.
OUTSIDE = f"""#!/bin/sh
[ ! -e /in-the-pod ] || cat /etc/soperator/keys/slurm.key >/dev/null 2>&1; id >{HOME}/ran-outside
exec /bin/sh "$@"
"""
PROFILE = """export FROM_PROFILE=yes
sleep 9876 &
exec 3>&1 >~/profile
ls -d /in-the-*
id -un
grep CapBnd /proc/self/status
grep CapEff /proc/self/status
cat /proc/[0-9]*/comm | grep -c slurm
ls -A /tmp
touch /tmp/mine && echo writable
ls /proc/self/fd | tr '\\n' ' '
exec >&3 3>&-
"""


@pytest.fixture
def pod(slurm: Slurm) -> Iterator[Slurm]:
    """Install the image's su in the pod, with alice's shell outside as a trap, and her profile in the jail."""
    assert wait_idle(slurm) == "idle none"
    script = f"""set -e
cat >/run/su <<'END'
{SU.read_text()}
END
cat >{HOME}/shell <<'END'
{OUTSIDE}
END
cat >{HOME}/.profile <<'END'
{PROFILE}
END
chmod 0755 /run/su {HOME}/shell
chown alice {HOME}/shell {HOME}/.profile
mkdir -p /opt/soperator/libexec
ln -sf ../lib/slurm/jail /opt/soperator/libexec/jail
cp /etc/passwd /run/passwd
sed -i 's|^\\(alice:.*:\\)[^:]*$|\\1{HOME}/shell|' /etc/passwd
mount --bind /run/su /usr/bin/su
"""
    made = slurm.sh(script)
    assert made.returncode == 0, made.stderr
    yield slurm
    assert wait_idle(slurm) == "idle none"
    undone = slurm.sh(
        f"umount /usr/bin/su; cat /run/passwd >/etc/passwd; rm -rf {HOME}/shell {HOME}/.profile {HOME}/profile {HOME}/ran-outside {HOME}/out"
    )
    assert undone.returncode == 0, undone.stderr


def submit(slurm: Slurm, *options: str) -> dict[str, str]:
    """Return the environment of a job of alice; it differs from the environment of the submission."""
    words = " ".join(options)
    alice = (
        "cd /; setpriv --reuid alice --regid alice --init-groups env -i PATH=/usr/bin:/bin HOME=/elsewhere USER=other"
    )
    done = slurm.sh(f"{alice} sbatch --wait --output=/home/alice/out --chdir=/ {words} --wrap 'env -0'", timeout=60)
    assert done.returncode == 0, done.stderr
    pairs = slurm.read("/home/alice/out").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


@pytest.mark.parametrize("option", ["--get-user-env", "--export=NONE"])
def test_the_environment_is_that_of_a_login_in_the_jail(pod: Slurm, option: str) -> None:
    """The job has HOME, USER, PATH and the variables of the user's profile, and no shell of the user ran outside the jail."""
    found = submit(pod, option)
    assert pod.sh(f"ls {HOME}/ran-outside").returncode != 0
    assert found["FROM_PROFILE"] == "yes"
    if option == "--export=NONE":
        assert (found["HOME"], found["USER"]) == ("/home/alice", "alice")
        assert "/usr/local/bin" in found["PATH"].split(":")
    else:
        assert found["HOME"] == "/elsewhere"  # what is passed comes first


def test_the_profile_has_the_rights_of_a_job(pod: Slurm) -> None:
    """The profile runs as the user with bounded capabilities, sees no process, folder or file of others, and leaves nothing.

    Of its descriptors 3 is the profile's own copy of 1, and 4 the folder that ls reads.
    """
    other = pod.sh("sbatch --parsable --output=/dev/null --wrap 'touch /tmp/of-root; exec sleep 30'").stdout.strip()
    try:
        pod.until(f"[ -e /mnt/tmp/job-{other}/of-root ]")
        submit(pod, "--export=NONE")
    finally:
        pod.sh(f"scancel -f {other}")
    assert pod.read("/home/alice/profile").splitlines() == [
        *(
            "/in-the-jail",
            "alice",
            "CapBnd:\t00000000a00405fb",
            "CapEff:\t0000000000000000",
            "0",
            "writable",
            "0 1 2 3 4 ",
        )
    ]
    assert pod.sh("pgrep -f 'sleep 987[6]'").returncode == 1


def test_a_jail_without_su_leaves_slurmd_well(pod: Slurm) -> None:
    """24.11 reports the error in slurmd's log and the job runs with the passed environment; later releases hold the job. slurmd continues."""
    try:
        pod.sh(f"mv {JAIL}/usr/bin/su {JAIL}/usr/bin/no-su; : >/var/log/slurm/d.log")
        if pod.is_2411():
            assert submit(pod, "--export=NONE,PASSED=yes")["PASSED"] == "yes"
            said = "Unable to get user's local environment, running only with passed"
            assert said in pod.sh("cat /var/log/slurm/d.log").stdout
        else:
            job = pod.sh("sbatch --parsable --export=NONE --output=/dev/null --wrap true", user="alice").stdout.strip()
            pod.until(f"squeue -h -j {job} -o %R | grep -q 'user env retrieval failed requeued held'")
            pod.sh(f"scancel {job}")
    finally:
        pod.sh(f"mv {JAIL}/usr/bin/no-su {JAIL}/usr/bin/su")
    assert "FROM_PROFILE" in submit(pod, "--export=NONE")


def test_a_profile_that_hangs_is_ended(pod: Slurm) -> None:
    """After its time limit the wrapper and all processes of the profile end, and the wrapper fails."""
    pod.sh(f"echo 'setsid sleep 9875 & trap \"\" TERM HUP; while :; do sleep 9874; done' >{HOME}/.profile")
    done = pod.sh("sed s/^limit=.*/limit=2/ /run/su >/run/soon; sh /run/soon - alice -c env")
    assert done.returncode == 137
    assert "FROM" not in done.stdout
    pod.until("! pgrep -f 'sleep 987[45]'")


def test_a_user_whom_the_jail_does_not_know_has_no_environment(pod: Slurm) -> None:
    """The jail's su refuses a user who exists only outside the jail, and the wrapper fails with a message."""
    pod.sh("grep -q ^outside: /etc/passwd || useradd -u 1234 outside")
    done = pod.sh("su - outside -c env")
    assert done.returncode != 0
    assert "outside" in done.stderr
    assert done.stdout == ""
