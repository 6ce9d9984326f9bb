"""What goes wrong with a database: it is told in words, jobs go on, and what slurmctld kept is recorded when it is over.

`make test-accounting` asks for it. Another database is taken only while accounting is off (docs/howto/accounting.md).
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.paths import DEFAULT_STATE
from tests.cluster import books, databases
from tests.cluster.lab import Lab, condition, is_ready, local
from tests.cluster.leaders import restarts

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_ACCOUNTING"), reason="SOPERATOR_ACCOUNTING is not set"),
]

MINUTES = 10
MACHINE = "node-1"
SMALL = DEFAULT_STATE / "storage" / "small-database"
OUTSIDE = {"host": "outside", "database": "slurm_demo", "user": "hpc", "password": {"secretName": "outside"}}


@pytest.fixture
def own(lab: Lab, mariadb: str) -> Iterator[None]:
    """Accounting is on, with an empty database of the operator."""
    with books.owned(lab, mariadb):
        yield


def why(lab: Lab) -> str:
    """The sentence of the condition AccountingReady."""
    return str(condition(lab.status(), "AccountingReady")["message"])


def is_told(lab: Lab, reason: str) -> Callable[[], bool]:
    """Whether AccountingReady is False for this reason."""
    return lambda: books.told(lab) == ("False", reason)


def runs(lab: Lab) -> tuple[str, int]:
    """Which pod of slurmctld this is, and how often its containers were started again."""
    name = f"{lab.cluster}-controller-0"
    return lab.pods("controller")[name]["metadata"]["uid"], restarts(lab, name, lab.namespace)


@pytest.fixture
def outside(lab: Lab, mariadb: str) -> Iterator[None]:
    """Accounting is to be on with a database elsewhere, whose host says nothing and whose password slurmdbd cannot take."""
    books.apply(lab, databases.secret("outside", {"password": 'no "quotes"'}))
    books.apply(lab, {"kind": "Service", "metadata": {"name": "outside"}, "spec": {"ports": [{"port": 3306}]}})
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"externalDatabase": OUTSIDE}})
    try:
        yield
    finally:
        books.switch_off(lab)
        lab.kubectl("delete", "pod,service,secret", "outside", "--ignore-not-found", "--timeout=60s")


def give_password(lab: Lab, text: str) -> None:
    """Put another password into the Secret."""
    books.apply(lab, databases.secret("outside", {"password": text}))


def test_each_cause_has_its_reason_and_remedy_before_accounting_is_on_and_after(
    lab: Lab, mariadb: str, outside: None
) -> None:
    """Silence, a wrong password, a missing right: mended one by one, with slurmctld untouched; a password that becomes wrong later loses nothing."""
    before = runs(lab)
    lab.until("the quotation mark is told", lambda: "quotation mark" in why(lab), 120)
    give_password(lab, "wrong")
    lab.until("the silence is told", is_told(lab, "DatabaseDown"), 180)
    assert "check that the database runs" in why(lab)
    assert lab.ssh("root", "srun -n1 echo runs") == "runs\n"
    lab.kubectl("delete", "service", "outside")
    databases.server(lab, "outside", mariadb)
    databases.query(lab, "outside", "CREATE DATABASE slurm_demo; CREATE USER hpc@'%' IDENTIFIED BY 'right';")
    lab.until("the wrong password is told", is_told(lab, "WrongPassword"), 180)
    assert "correct the password in the Secret" in why(lab)
    give_password(lab, "right")
    lab.until("the missing right is told", is_told(lab, "NoRights"), 180)
    assert "grant the user all rights" in why(lab)
    assert lab.ssh("root", "srun -n1 echo runs") == "runs\n"
    assert runs(lab) == before
    databases.query(lab, "outside", "GRANT ALL ON slurm_demo.* TO hpc@'%';")
    lab.until("all is well", lambda: books.told(lab) == books.WELL, 240)
    jobs = books.submit(lab, "alice", 1, "true")
    lab.until("a job is recorded there", lambda: books.are_recorded(lab, jobs), 90)

    before = runs(lab)
    databases.query(lab, "outside", "ALTER USER hpc@'%' IDENTIFIED BY 'other';")
    lab.kubectl("delete", "pod", f"{lab.cluster}-accounting-0")
    lab.until("the password is told that became wrong", is_told(lab, "WrongPassword"), 180)
    assert "slurmctld keeps its records" in why(lab)
    jobs |= books.submit(lab, "alice", 5, "true")
    books.wait_idle(lab)
    give_password(lab, "other")
    lab.until("all is well again", lambda: books.told(lab) == books.WELL, 180)
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 120)
    assert runs(lab) == before


def test_off_and_on_again_nothing_is_lost_and_another_database_is_taken(lab: Lab, mariadb: str, own: None) -> None:
    """The records stay while it is off. Where they are thrown away with their claim, slurmctld takes the new database's number."""
    jobs = books.submit(lab, "alice", 5, "true")
    lab.until("the jobs are recorded", lambda: books.are_recorded(lab, jobs), 120)
    books.switch_off(lab)
    assert lab.ssh("alice", "srun -n1 echo runs") == "runs\n"
    books.switch_on(lab, mariadb, {})
    assert books.are_recorded(lab, jobs)
    books.switch_off(lab)
    books.throw_away(lab)
    held = lab.hold("worker-0")
    books.make_volume(lab, f"{lab.cluster}-database")
    books.switch_on(lab, mariadb, {})
    held.let_go()
    lab.until("the job is recorded", lambda: books.are_recorded(lab, {held.number}), 60)
    assert books.number(lab) == books.given_number(lab)
    assert not jobs & books.recorded(lab).keys()


def minute_of(lab: Lab) -> Callable[[], bool]:
    """Whether a minute has passed since this was called, and no job is queued or runs."""
    began = time.monotonic()
    return lambda: time.monotonic() - began > 60 and not lab.ssh("root", "squeue -h").strip()


def restart(lab: Lab) -> None:
    """Have slurmctld end in order, by which it writes down what it keeps, and wait for its successor."""
    name = f"{lab.cluster}-controller-0"
    lab.kubectl("delete", "pod", name, "--timeout=120s")
    lab.until("slurmctld is back", lambda: (pod := lab.pods("controller").get(name)) and is_ready(pod), 180)
    lab.until("slurmctld answers", lambda: "UP" in lab.ssh("root", "timeout 10 scontrol ping || true"), 60)


def test_no_record_is_missing_after_minutes_without_a_database(lab: Lab, own: None) -> None:
    """Its Node is away; jobs begin and end all the while, slurmctld is started anew in between, and all is recorded when the Node is back."""
    jobs: set[str] = set()
    nowhere = {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"managedDatabase": {"scheduling": nowhere}}})
    lab.until("its absence is told", is_told(lab, "DatabaseNotReady"), 180)
    for minute in range(MINUTES):
        jobs |= books.submit(lab, "alice", 10, "sleep 1")
        if minute == MINUTES // 2:
            restart(lab)
        lab.until("a minute has passed, and its jobs", minute_of(lab), 240)
    assert books.told(lab)[0] == "False"
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"managedDatabase": {"scheduling": None}}})
    lab.until("the database is back", lambda: books.told(lab) == books.WELL, 300)
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 180)
    said = f"{len(jobs)} jobs in {MINUTES} min without a database, slurmctld started anew in order once: all recorded"
    lab.timings.note(said, MINUTES * 60)


def on_node(script: str) -> str:
    """What a script printed on the Node of the small database."""
    return local("node", "exec", MACHINE, "--", "sh", "-c", script)


@pytest.fixture
def small(lab: Lab, mariadb: str) -> Iterator[None]:
    """Accounting is on, with a database on a file system of 320 MiB of its own."""
    image = f"{SMALL}.img"
    on_node(f"umount -l {SMALL} 2>/dev/null; rm -rf {SMALL} {image}; mkdir -p {SMALL}")
    on_node(f"truncate -s 320M {image} && mkfs.ext4 -q -F -m 0 {image} && mount -o loop {image} {SMALL}")
    books.make_volume(lab, "small-database")
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "10Gi"}}}
    books.apply(lab, {"kind": "PersistentVolumeClaim", "metadata": {"name": "small-database"}, "spec": claim})
    said: dict[str, Any] = {
        "claim": {"name": "small-database"},
        "resources": {"limits": {"memory": "512Mi"}},  # which makes a redo log of 64 MiB
        "scheduling": {"nodeSelector": {"kubernetes.io/hostname": MACHINE}},
    }
    try:
        books.switch_on(lab, mariadb, {"database": said})
        assert "mysql" in on_node(f"ls {SMALL}/data")
        yield
    finally:
        on_node(f"rm -f {SMALL}/filler {SMALL}/rest")
        books.switch_off(lab)
        lab.kubectl("delete", "pvc", "small-database", "--timeout=60s")
        lab.kubectl("delete", "pv", f"{lab.namespace}-small-database", "--timeout=60s")
        on_node(f"umount -l {SMALL}; rm -rf {SMALL} {image}")


def room(lab: Lab) -> str:
    """The reason of the condition DatabaseHasRoom."""
    return str(condition(lab.status(), "DatabaseHasRoom")["reason"])


def test_a_full_volume_of_the_database_is_told_before_and_when_and_loses_nothing(lab: Lab, small: None) -> None:
    """DatabaseHasRoom is False from 95 % on; with no byte left jobs run on, and what slurmctld kept is recorded when there is room."""
    left = f"$(($(df -k --output=avail {SMALL} | tail -n 1) / 1024 - 10))"
    on_node(f"fallocate -l {left}M {SMALL}/filler")
    lab.until("too little room is told", lambda: room(lab) == "AlmostFull", 180)
    on_node(f"cat /dev/zero > {SMALL}/rest || true")
    big = "head -c 6000 /dev/zero | tr '\\0' x"
    jobs = books.submit(lab, "alice", 150, "true", f"--export ALL,FILL=$({big})")
    books.wait_idle(lab, 300)
    logs = ("logs", f"{lab.cluster}-accounting-0", "-c", "slurmdbd")
    lab.until("slurmdbd is refused for want of room", lambda: "failed: 1114 " in lab.kubectl(*logs), 60)
    assert not books.are_recorded(lab, jobs)
    said = condition(lab.status(), "DatabaseHasRoom")
    assert (said["status"], said["reason"]) == ("False", "AlmostFull")
    assert "enlarge claim small-database" in said["message"]
    on_node(f"rm {SMALL}/filler {SMALL}/rest")
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 180)
    lab.until("enough room is told", lambda: room(lab) == "Enough", 180)
