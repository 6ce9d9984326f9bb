"""Accounting together with what else a cluster may have: a backup of slurmctld, munge, an archive, and words that somebody types who means harm.

`make test-accounting` asks for it. The second cluster is apart from the first, and has accounting from its first moment.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.demo import STATE
from tests.cluster import books, second
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, condition, is_ready, local
from tests.cluster.test_standby import QUICK, answers, full, is_back, pings

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_ACCOUNTING"), reason="SOPERATOR_ACCOUNTING is not set"),
]

JOBS = 15
CLUSTER = "booked"
ARCHIVE = "booked-archive"
#: In single quotes for the shell.
ODD = 'x"; DROP TABLE booked_job_table; -- `id` $(id) \\ %s a=b # é\n%n <b>'
OLD = 4 * 3600
#: Seconds after which slurmctld has written down what it was told; one that is killed forgets what is newer, jobs too (decision 46).
SAVED = 10


@pytest.fixture(scope="module")
def booked(lab: Lab, mariadb: str) -> Iterator[Lab]:
    """A cluster that authenticates by munge, and has accounting, with purge and archive, from its first moment."""
    made = Lab(lab.target, "slurm-booked", CLUSTER, lab.timings)
    volumes = (f"{CLUSTER}-database", ARCHIVE)
    clear(made, *volumes)
    try:
        second.make_storage(made)
        for each in volumes:
            books.make_volume(made, each)
        books.make_claim(made, ARCHIVE)
        kept = {"purge": {"jobs": "1hours", "steps": "1hours"}, "archive": {"claimName": ARCHIVE}}
        spec = {
            "auth": {"type": "munge"},
            "accounting": kept,
            "images": {"mariadb": mariadb},
            "config": {"extraLines": {"slurm": "AccountingStoreFlags=job_comment"}},
        }
        began = time.monotonic()
        second.install(made, {**spec, **second.claims(made)})
        made.until("accounting is on", lambda: books.told(made) == books.WELL, 400)
        made.wait_available(240)
        made.timings.note("munge: helm install → available, with accounting", time.monotonic() - began)
        for user in ("alice", "bob"):
            make_user(made, user)
        yield made
    finally:
        clear(made, *volumes)


def clear(lab: Lab, *volumes: str) -> None:
    """Remove the second cluster with all its volumes, as far as they are there."""
    second.clean(lab)
    for each in volumes:
        books.remove_volume(lab, each)


def test_jobs_of_a_cluster_with_munge_are_recorded(booked: Lab) -> None:
    """slurmctld, slurmdbd, users' sacct and root's sacctmgr know each other by munge alone."""
    assert "auth/munge" in booked.ssh("bob", "scontrol show config | grep -w AuthType")
    assert "auth/munge" in booked.ssh("root", "sacctmgr show configuration | grep -w AuthType")
    jobs = books.submit(booked, "bob", JOBS, "true")
    books.wait_idle(booked)
    booked.until("every record is there, once", lambda: books.are_recorded(booked, jobs), 120)
    assert set(booked.ssh("bob", "sacct -X -n -P -S now-1days -o jobid").split()) >= jobs


def test_odd_words_come_back_and_harm_nothing(booked: Lab) -> None:
    """Quotation marks, line breaks, percent signs, backslashes and an accent in a job's name, account and comment, and in the reason of a drain."""
    for user in ("bob", "root"):
        booked.ssh(user, "cat > odd", stdin=ODD.encode())
    odd = '"$(cat odd)"'
    (job,) = booked.ssh("bob", f"sbatch --parsable -o /dev/null -J {odd} -A {odd} --comment {odd} --wrap true").split()
    booked.until("the job is recorded", lambda: " ".join(state(booked, job).split()) == "COMPLETED", 90)
    folded = ODD.replace('"', "`")
    for field, kept in (("jobname", folded), ("account", folded.lower()), ("comment", ODD)):
        assert booked.ssh("bob", f"sacct -X -n -P -j {job} -o {field}") == f"{kept}\n"
    booked.ssh("root", f"scontrol update nodename=worker-1 state=drain reason={odd}")
    try:
        shown = "sacctmgr -n -P show event nodes=worker-1 format=reason start=now-1hours"
        assert booked.until("the drain is recorded", lambda: booked.ssh("root", shown), 60) == f"{ODD}\n"
    finally:
        booked.ssh("root", "scontrol update nodename=worker-1 state=resume")
    booked.wait_available()


def state(lab: Lab, job: str) -> str:
    """What the database has of a job."""
    return lab.ssh("bob", f"sacct -X -n -P -j {job} -o state")


def test_old_records_are_archived_and_purged_and_can_be_read_back(booked: Lab) -> None:
    """Jobs that the database believes to be four hours old go by slurmdbd's hourly run, and by nobody's hand; newer ones stay."""
    old, new = (books.submit(booked, "bob", 5, "srun true") for _ in range(2))
    books.wait_idle(booked)
    booked.until("all are recorded", lambda: books.are_recorded(booked, old | new), 90)
    age(booked, old)
    booked.kubectl("delete", "pod", f"{CLUSTER}-accounting-0")
    booked.until("slurmdbd is back", lambda: is_ready(booked.look("pod", f"{CLUSTER}-accounting-0")), 120)
    booked.until("the old jobs are purged", lambda: not old & books.recorded(booked).keys(), 120)
    assert new <= books.recorded(booked).keys()
    steps = f"SELECT COUNT(*) FROM {CLUSTER}_step_table WHERE time_start < UNIX_TIMESTAMP() - 3600"
    assert books.asked(booked, steps).strip() == "0"
    files = sorted(each.name for each in Path(f"{STATE}/storage/{ARCHIVE}").iterdir())
    (jobs,) = (each for each in files if "job_table_archive" in each)
    assert any("step_table_archive" in each for each in files)
    booked.ssh("root", f"sacctmgr -i archive load file=/var/spool/slurmdbd/{jobs}")
    assert books.are_recorded(booked, old)
    assert condition(booked.status(), "AccountingReady")["status"] == "True"


def age(lab: Lab, jobs: set[str]) -> None:
    """Let the database believe that jobs are four hours old, and that slurmdbd's last hourly run was two hours ago."""
    table, those = f"{CLUSTER}_job_table", f"id_job IN ({','.join(jobs)})"
    back = [f"{each} = {each} - {OLD}" for each in ("j.time_submit", "time_eligible", "j.time_start", "j.time_end")]
    steps = f"{CLUSTER}_step_table s JOIN {table} j USING (job_db_inx)"
    ran = f"{CLUSTER}_last_ran_table"
    hours = ", ".join(["UNIX_TIMESTAMP() - 7200"] * 3)
    books.asked(
        lab,
        f"UPDATE {steps} SET s.time_start = s.time_start - {OLD}, s.time_end = s.time_end - {OLD} WHERE {those}; "
        f"UPDATE {table} j SET {', '.join(back)} WHERE {those}; "
        f"DELETE FROM {ran}; INSERT INTO {ran} (hourly_rollup, daily_rollup, monthly_rollup) VALUES ({hours})",
    )


@pytest.fixture
def backed(booked: Lab) -> Iterator[None]:
    """slurmctld has a backup."""
    booked.patch("slurmcluster", CLUSTER, {"controller": {"replicas": 2}, "config": {"extraLines": {"slurm": QUICK}}})
    booked.until("two slurmctlds", lambda: booked.status().get("controller", {}).get("summary") == "2/2", 240)
    booked.until("clients know both", lambda: pings(booked) == ["UP", "UP"], 120)
    yield
    booked.patch("slurmcluster", CLUSTER, {"controller": {"replicas": None}})
    booked.until("one slurmctld", lambda: len(booked.pods("controller")) == 1 and pings(booked) == ["UP"], 240)


def test_no_record_is_missing_when_the_leading_slurmctld_is_killed_under_load(booked: Lab, backed: None) -> None:
    """Its backup takes over jobs that run and that wait, and their records, and gives both back; each job is recorded once."""
    name = f"{CLUSTER}-controller-0"
    first = booked.pods("controller")[name]["metadata"]["uid"]
    jobs = books.submit(booked, "alice", JOBS, "true")
    books.wait_idle(booked, 240)
    jobs |= books.submit(booked, "alice", 2, "sleep 40", "--exclusive")
    jobs |= books.submit(booked, "alice", JOBS - 2, "true", "--exclusive")
    time.sleep(SAVED)
    with full(booked):
        local("pod", "kill", f"{booked.namespace}/{name}", "slurmctld")
        booked.kubectl("delete", "pod", name, "--grace-period=1", "--wait=false")
        booked.until("the backup leads", lambda: pings(booked) == ["DOWN", "UP"] and answers(booked), 180)
        jobs |= books.submit(booked, "alice", JOBS, "sleep 1")
        books.wait_idle(booked, 240)
    booked.until("the first is back", lambda: is_back(booked, first), 180)
    booked.until("the first leads", lambda: pings(booked) == ["UP", "UP"] and answers(booked), 180)
    jobs |= books.submit(booked, "alice", JOBS, "true")
    books.wait_idle(booked, 240)
    booked.until("every record is there, once", lambda: books.are_recorded(booked, jobs), 180)
    booked.timings.note(f"{len(jobs)} jobs under a slurmctld that was killed, and its backup: recorded, once each", 0)
    assert len(jobs) == 4 * JOBS
