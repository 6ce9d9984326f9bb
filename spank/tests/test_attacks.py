"""An attacker with Slurm's own commands: for each option that takes a value, and each path out of the jail, no attempt succeeds.

Every attempt is made in the jail, as its root and as an ordinary user, and again without a jail. Attempts that name a file succeed without
a jail, which shows that the jail stopped them and not a wrong spelling. Slurm itself lists the options. With SPANK_ATTACKS a line of JSON
for each user and test is appended to the file of that name, from which bench/attack_suite.py writes its report.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hostile import AHEAD, DROP, OUTSIDE, SECRET, USES, WORD, Attempt, by_thread, reading, texts, writing
from pods import HERE, PODS
from trixie import AUTHS, JAIL, KINDS, NEEDS, PLAN, TRIXIE, Slurm, wait_idle, wait_until_ready

pytestmark = [*NEEDS, pytest.mark.timeout(600)]

USERS = ("root", "alice")
ENTER = f"/opt/soperator/lib/slurm/jail run --plan {PLAN} --"
LINES_OF_THE_JAIL = ("JobContainerType=", '"required /opt/soperator/lib/slurm/spank_jail.so"')
OWN = f"""#!/bin/sh
[ ! -e /in-the-pod ] || echo "as $(id -un) by $0 $*" >>{JAIL}/srv/broke-out
"""
SET_UP = f"""set -e
mkdir -p /{DROP}; chmod 755 /run/soperator /{OUTSIDE}; chmod 1777 /{DROP}; echo {WORD} >/{SECRET}; cp /{SECRET} /{SECRET}0
for root in / {JAIL}/; do
    mkdir -p $root/srv; touch $root/srv/broke-out; chmod 666 $root/srv/broke-out
    for home in home/alice root; do cp /srv/own $root/$home/own; chmod 755 $root/$home/own $root/$home; done
done
"""


@dataclass
class Ground:
    """A pod with Slurm for the attempts, and the result of each: the files in its folder and its outputs, by user and name."""

    slurm: Slurm
    kind: str
    auth: str
    is_jailed: bool
    ends: dict[tuple[str, str], str] = field(default_factory=dict)

    def put(self, path: str, text: str) -> None:
        """Return a file in the pod."""
        Path(f"/proc/{self.slurm.pid}/root{path}").write_text(text)

    def play(self, user: str, attempts: list[Attempt]) -> None:
        """Make all attempts of a user, wait until Slurm has finished them, and read their results."""
        root = JAIL if self.is_jailed else ""
        home = f"{root}/root" if user == "root" else f"{root}/home/{user}"
        self.put(f"{root}/srv/attack.py", (HERE / "attack.py").read_text())
        self.put(f"{root}/srv/attempts", json.dumps([(each.name, each.script) for each in attempts]))
        as_user = f"su - {user} -c 'python3 /srv/attack.py </srv/attempts >~/printed'"
        done = self.slurm.sh(f"{ENTER if self.is_jailed else ''} {as_user}", timeout=300)
        assert done.returncode == 0, done.stderr
        self.slurm.sh(
            "for i in $(seq 600); do squeue -h -t R,CG,PD -r | grep -qv Dependency || break; sleep 0.1; done",
            timeout=90,
        )
        self.slurm.sh(f"scancel -u {user}")
        printed = json.loads(self.slurm.sh(f"cat {home}/printed").stdout)
        for number, each in enumerate(attempts):
            left = self.slurm.sh(f"cat {home}/attack-{number}/* 2>/dev/null | head -c 20000").stdout
            self.ends[user, each.name] = printed[each.name] + left
        self.slurm.sh(f"rm -rf {home}/attack-* {home}/printed")

    def outside(self) -> str:
        """Return what attempts have written outside the jail."""
        return self.slurm.sh(f"ls /{DROP}; cat {JAIL}/srv/broke-out").stdout

    def got_through(self, user: str, attempt: Attempt) -> bool:
        """Return whether the sign of an attempt's success is in its output, in its folder, or outside."""
        return attempt.shows in (self.outside_at_end if attempt.is_outside else self.ends[user, attempt.name])

    outside_at_end: str = ""

    def count(self, user: str, what: str, made: list[str], through: set[str], wanted: set[str]) -> None:
        """Store for the report the number of attempts, those that succeeded, and those that must succeed without a jail."""
        line = {
            "pod": self.kind, "auth": self.auth, "jail": self.is_jailed, "user": user, "what": what,
            "made": len(made), "through": sorted(through), "wanted": len(wanted), "missed": sorted(wanted - through),
        }  # fmt: skip
        if path := os.environ.get("SPANK_ATTACKS"):
            with Path(path).open("a") as out:
                out.write(json.dumps(line) + "\n")


def begin(plugin: Path, work: Path, kind: str, auth: str, is_jailed: bool) -> Iterator[Slurm]:
    """Return a pod with Slurm, with or without the jail."""
    script = work / "up"
    lines = (HERE / "slurm/up").read_text().splitlines(keepends=True)
    kept = [each for each in lines if is_jailed or not any(word in each for word in LINES_OF_THE_JAIL)]
    script.write_text("".join(kept).replace("CPUs=4", "CPUs=48"))  # many jobs at once
    script.chmod(0o755)
    up = [str(script), str(TRIXIE), str(work), str(plugin), auth]
    with (work / "up.log").open("w") as log:
        pod = subprocess.Popen([*PODS[kind].words(), "--net", "--", *up], stdout=log, stderr=log)
    try:
        yield wait_until_ready(pod, PODS[kind].userns, work / "up.log")
    finally:
        pod.kill()
        pod.wait()


def table(slurm: Slurm) -> dict[str, tuple[bool, list[str]]]:
    """Return the options of Slurm's commands: whether each takes a value, and which commands have it."""
    Path(f"/proc/{slurm.pid}/root/srv/slurm_options.py").write_text((HERE / "slurm_options.py").read_text())
    done = slurm.sh("python3 /srv/slurm_options.py")
    assert done.returncode == 0, done.stderr
    return {name: (takes, commands) for name, (takes, commands) in json.loads(done.stdout).items()}


def attempts_of(ground: Ground, user: str) -> list[Attempt]:
    """Return every attempt of a user, with the numbers of this pod's processes."""
    slurmd = int(ground.slurm.sh("cat /run/slurmd.pid").stdout)
    return reading(user, slurmd) + writing(user, slurmd)


@pytest.fixture(
    scope="module",
    params=[(kind, auth, is_jailed) for kind in KINDS for auth in AUTHS for is_jailed in (True, False)],
    ids=lambda each: f"{each[0]}-{each[1]}-{'jail' if each[2] else 'no jail'}",
)
def ground(plugin: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Return a pod of each kind, with each authentication type, with and without the jail, and with targets outside the jail."""
    kind, auth, is_jailed = request.param
    pods = begin(plugin, tmp_path_factory.mktemp("slurm"), kind, auth, is_jailed)
    made = Ground(next(pods), kind, auth, is_jailed)
    try:
        made.put("/srv/own", OWN)
        done = made.slurm.sh(SET_UP)
        assert done.returncode == 0, done.stderr
        assert f"auth/{auth}" in made.slurm.sh("scontrol show config | grep ^AuthType").stdout
        yield made
    finally:
        pods.close()


@pytest.mark.parametrize("user", USERS)
def test_a_path_that_a_user_names_leads_out_only_where_there_is_no_jail(ground: Ground, user: str) -> None:
    """A file that slurmstepd or slurmd opens, writes or enters for a user is inside the jail; without a jail the same attempts succeed."""
    attempts = attempts_of(ground, user)
    ground.play(user, attempts)
    ground.outside_at_end = ground.outside()
    through = {each.name for each in attempts if ground.got_through(user, each)}
    wanted = {each.name for each in attempts if each.through and not ground.is_jailed}
    ground.count(user, "paths", [each.name for each in attempts], through, wanted)
    if ground.is_jailed:
        assert through == set(), "\n".join(f"{name}: {ground.ends[user, name][:200]}" for name in sorted(through))
    else:
        assert wanted - through == set()
    assert wait_idle(ground.slurm) == "idle none"


@pytest.mark.parametrize("user", USERS)
def test_no_thread_of_slurmstepd_leads_out(ground: Ground, user: str) -> None:
    """A user who guesses the numbers of the threads outside the jail cannot reach files through them; without a jail a guess succeeds."""
    read: list[bool] = []
    for ahead in AHEAD:
        newest = int(ground.slurm.sh("cat /proc/sys/kernel/ns_last_pid").stdout)
        attempt = by_thread(newest + ahead)
        ground.play(user, [attempt])
        read.append(ground.got_through(user, attempt))
        if read[-1]:
            break
    through = {"another thread's root"} if any(read) else set()
    ground.count(
        user, "threads", ["guess"] * len(read), through, set() if ground.is_jailed else {"another thread's root"}
    )
    assert any(read) is not ground.is_jailed
    assert wait_idle(ground.slurm) == "idle none"


@pytest.mark.parametrize("user", USERS)
def test_no_option_runs_a_users_program_outside(ground: Ground, user: str) -> None:
    """Options that take other values receive paths, lines, formats and commands: the attacker's program never runs outside the jail."""
    if not ground.is_jailed:
        pytest.skip(
            "the control of these is the other test's: programs around a step run in the pod where there is no jail"
        )
    slurmd = int(ground.slurm.sh("cat /run/slurmd.pid").stdout)
    attempts = texts(user, slurmd, table(ground.slurm))
    ground.play(user, attempts)
    broke_out = ground.slurm.sh(f"cat {JAIL}/srv/broke-out").stdout
    through = {each.name for each in attempts if WORD in ground.ends[user, each.name]}
    ground.count(user, "options", [each.name for each in attempts], through | set(broke_out.splitlines()), set())
    assert broke_out == ""
    assert through == set()
    assert ground.slurm.sh("srun hostname").stdout == "one\n"
    assert wait_idle(ground.slurm) == "idle none"


def test_every_option_of_slurm_is_judged(ground: Ground) -> None:
    """Each option that takes a value is listed in hostile.py; a new release's option fails the test until its possible abuse is listed."""
    takes = {name for name, (takes, _) in table(ground.slurm).items() if takes}
    assert sorted(takes - set(USES)) == []
