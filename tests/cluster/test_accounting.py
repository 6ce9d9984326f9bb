"""Accounting as its users meet it: switched on under a running job, shares, limits and history of two accounts, a database that is lost.

The other databases, and what goes wrong with one, are in `test_accounting_ways.py` and `test_accounting_faults.py`.
"""

import json
from collections.abc import Iterator

import pytest

from tests.cluster import books
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, local

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

JOBS = 15
#: Names as somebody types them who means harm, or French: for the shell in single quotes.
ODD = 'x"; DROP TABLE demo_job_table; -- `id` $(id) \\ %s a=b # é'
ACCOUNTS = """
sacctmgr -i add account physics Fairshare=3
sacctmgr -i add account chemistry Fairshare=1
sacctmgr -i add user alice account=physics
sacctmgr -i add user bob account=chemistry
sacctmgr -i modify account physics set GrpTRES=cpu=1
"""


@pytest.fixture(scope="module")
def on(lab: Lab, mariadb: str) -> Iterator[str]:
    """A job that began before accounting was switched on, which it is by now; its number."""
    make_user(lab, "bob")
    held = lab.hold("worker-0")
    with books.owned(lab, mariadb) as took:
        lab.timings.note("accounting is switched on, under a job", took)
        assert books.number(lab) == books.given_number(lab)
        assert held.state() == "RUNNING"
        held.let_go()
        yield held.number


def test_a_job_is_accounted_that_began_before(lab: Lab, on: str) -> None:
    """It ran on while slurmctld took over the database's number, and its end is recorded."""
    lab.until(f"job {on} is recorded", lambda: books.recorded(lab).get(on) == "COMPLETED", 30)


def test_two_accounts_have_their_limits_shares_and_history(lab: Lab, on: str) -> None:
    """Who is in no account cannot submit; one account's second job waits for the limit, the other's runs; sshare and sacct tell them apart."""
    lab.ssh("root", ACCOUNTS)
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"enforce": ["associations", "limits", "qos"]}})
    lab.wait_available()
    make_user(lab, "carol")
    refused = lab.ssh("carol", "sbatch --wrap true 2>&1 || true")
    assert "Invalid account" in refused
    held = lab.hold("worker-0")
    (waits,) = books.submit(lab, "alice", 1, "true")
    theirs = books.submit(lab, "bob", 3, "sleep 2")
    reason = f"squeue -h -j {waits} -o %r"
    lab.until("the limit is told", lambda: lab.ssh("alice", reason).strip() == "AssocGrpCpuLimit", 60)
    lab.until("the other account's jobs have run", lambda: books.are_recorded(lab, theirs), 90)
    assert lab.ssh("alice", reason).strip() == "AssocGrpCpuLimit"
    held.let_go()
    lab.until("the job that waited is recorded", lambda: books.are_recorded(lab, {held.number, waits}), 60)
    asked = "sacct -a -X -n -P -S now-2days -o account,user,jobid"
    history = {tuple(line.split("|")) for line in lab.ssh("root", asked).splitlines()}
    assert {("physics", "alice", each) for each in (held.number, waits)} <= history
    assert {("chemistry", "bob", each) for each in theirs} <= history
    assert {line.split("|")[1] for line in lab.ssh("bob", asked.replace("-a ", "")).splitlines()} == {"bob"}


def test_an_account_has_its_share_and_its_usage(lab: Lab, on: str) -> None:
    """As sshare shows it when slurmctld has reckoned: three shares against one, and what both users have used."""

    def shares() -> dict[str, list[str]]:
        lines = lab.ssh("root", "sshare -a -n -P -o account,user,normshares,rawusage").splitlines()
        found = [[word.strip() for word in line.split("|")] for line in lines]
        return {each[1] or each[0]: each[2:] for each in found}

    lab.until("both have usage", lambda: all(int(shares()[user][1]) for user in ("alice", "bob")), 60)
    physics, chemistry = (float(shares()[account][0]) for account in ("physics", "chemistry"))
    assert physics == pytest.approx(3 * chemistry, rel=0.01)


def folded(text: str) -> str:
    """A text whose quotation marks are backticks, as Slurm has them in some places."""
    return text.strip().replace('"', "`").replace("'", "`")


def test_odd_names_harm_nothing(lab: Lab, on: str) -> None:
    """Quotation marks, a semicolon, a backslash and a line break in a job's name and comment, and in an account's description."""
    lab.ssh("root", f"sacctmgr -i modify account chemistry set Description='{ODD}'")
    options = f"-J '{ODD}' --comment 'two\nlines of '\\''it'\\'''"
    job = lab.ssh("bob", f"sbatch --parsable -o /dev/null {options} --wrap true").strip()
    lab.until("the job is recorded", lambda: books.are_recorded(lab, {job}), 60)
    assert folded(lab.ssh("root", f"sacct -n -P -X -j {job} -o jobname")) == folded(ODD)
    told = json.loads(lab.ssh("root", "sacctmgr --json show account chemistry"))["accounts"]
    assert [folded(each["description"]) for each in told] == [folded(ODD.lower())]


def test_no_record_is_missing_when_the_database_is_killed_under_load(lab: Lab, on: str) -> None:
    """Killed like for want of memory, then its pod deleted: jobs are submitted, run and end meanwhile, and each is recorded once."""
    pod = f"{lab.cluster}-database-0"
    jobs = books.submit(lab, "bob", JOBS, "sleep 1")
    local("pod", "kill", f"{lab.namespace}/{pod}", "mariadb")
    jobs |= books.submit(lab, "bob", JOBS, "true")
    lab.kubectl("delete", "pod", pod, "--wait=false")
    jobs |= books.submit(lab, "bob", JOBS, "true")
    books.wait_idle(lab)
    lab.until("the database is back", lambda: books.told(lab) == books.WELL, 120)
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 90)
    lab.timings.note(f"{len(jobs)} jobs under a database that was killed and deleted: recorded, once each", 0)
    assert len(jobs) == 3 * JOBS
