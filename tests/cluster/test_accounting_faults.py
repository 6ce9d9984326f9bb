"""What goes wrong with a database: it is told in words, jobs go on, and what slurmctld kept is recorded when it is over.

`make test-accounting` asks for it.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.paths import DEFAULT_STATE
from tests.cluster import books, databases
from tests.cluster.lab import Lab, condition, local

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_ACCOUNTING"), reason="SOPERATOR_ACCOUNTING is not set"),
]

MINUTES = 10
MACHINE = "node-1"
SMALL = DEFAULT_STATE / "storage" / "small-database"


@pytest.fixture(scope="module")
def mariadb(lab: Lab, alice: str) -> str:
    """The image of MariaDB, on the Nodes of this cluster."""
    if not lab.target.is_local:
        pytest.skip("the image of MariaDB is not in a foreign cluster")
    return books.bring_image()


@pytest.fixture(scope="module")
def on(lab: Lab, mariadb: str) -> Iterator[None]:
    """Accounting is on, with the operator's database."""
    books.throw_away(lab)
    books.make_volume(lab, f"{lab.cluster}-database")
    try:
        books.switch_on(lab, mariadb, {})
        yield
    finally:
        books.switch_off(lab)


def why(lab: Lab) -> str:
    """The sentence of the condition AccountingReady."""
    return str(condition(lab.status(), "AccountingReady")["message"])


def minute_of(lab: Lab) -> Callable[[], bool]:
    """Whether a minute has passed since this was called, and no job is queued or runs."""
    began = time.monotonic()
    return lambda: time.monotonic() - began > 60 and not lab.ssh("root", "squeue -h").strip()


def external(lab: Lab, **said: Any) -> None:
    """Have the database elsewhere."""
    at = {"host": "outside", "database": "slurm_demo", "user": "hpc", "password": {"secret": "outside"}, **said}
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"external": at}})


def test_a_database_that_is_down_and_a_wrong_password_are_told_and_corrected(lab: Lab, mariadb: str, on: None) -> None:
    """Each cause has its reason and remedy, jobs run meanwhile, and when the last is mended all is well without a restart of slurmctld."""
    before = lab.pods("controller")[f"{lab.cluster}-controller-0"]["metadata"]["uid"]
    try:
        books.apply(lab, databases.secret("outside", {"password": 'no "quotes"'}))
        books.apply(lab, {"kind": "Service", "metadata": {"name": "outside"}, "spec": {"ports": [{"port": 3306}]}})
        external(lab)
        lab.until("the quotation mark is told", lambda: "quotation mark" in why(lab), 60)
        books.apply(lab, databases.secret("outside", {"password": "wrong"}))
        lab.until("the silence is told", lambda: books.told(lab)[1] == "DatabaseDown", 90)
        assert lab.ssh("root", "srun -n1 echo runs") == "runs\n"
        lab.kubectl("delete", "service", "outside")
        databases.server(lab, "outside", mariadb)
        databases.query(lab, "outside", "CREATE DATABASE slurm_demo; CREATE USER hpc@'%' IDENTIFIED BY 'right';")
        lab.until("the wrong password is told", lambda: books.told(lab)[1] == "WrongPassword", 90)
        assert "correct the password in the Secret" in why(lab)
        books.apply(lab, databases.secret("outside", {"password": "right"}))
        lab.until("the missing right is told", lambda: books.told(lab)[1] == "NoRights", 90)
        databases.query(lab, "outside", "GRANT ALL ON slurm_demo.* TO hpc@'%';")
        lab.until("all is well", lambda: books.told(lab) == books.WELL, 90)
        jobs = books.submit(lab, "alice", 1, "true")
        lab.until("a job is recorded there", lambda: books.are_recorded(lab, jobs), 60)
        assert lab.pods("controller")[f"{lab.cluster}-controller-0"]["metadata"]["uid"] == before
    finally:
        lab.patch("slurmcluster", lab.cluster, {"accounting": {"external": None}})
        lab.kubectl("delete", "pod,service,secret", "outside", "--ignore-not-found", "--wait=false")
    lab.until("the first database is back", lambda: books.told(lab) == books.WELL, 120)


def test_off_and_on_again_nothing_is_lost_and_another_database_is_taken(lab: Lab, mariadb: str, on: None) -> None:
    """The records stay while it is off. Where they are thrown away with their claim, slurmctld takes the new database's number."""
    before = books.recorded(lab)
    books.switch_off(lab)
    assert lab.ssh("alice", "srun -n1 echo runs") == "runs\n"
    books.switch_on(lab, mariadb, {})
    assert before.items() <= books.recorded(lab).items()
    books.switch_off(lab)
    books.throw_away(lab)
    held = lab.hold("worker-0")
    books.make_volume(lab, f"{lab.cluster}-database")
    books.switch_on(lab, mariadb, {})
    held.let_go()
    lab.until("the job is recorded", lambda: books.are_recorded(lab, {held.number}), 60)
    assert books.number(lab) == books.given_number(lab)
    assert not before.keys() & books.recorded(lab).keys()


def test_no_record_is_missing_after_minutes_without_a_database(lab: Lab, on: None) -> None:
    """Its Node is away; jobs begin and end all the while, slurmctld is started anew in between, and all is recorded when the Node is back."""
    jobs: set[str] = set()
    nowhere = {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"database": {"scheduling": nowhere}}})
    lab.until("its absence is told", lambda: books.told(lab)[1] == "DatabaseNotReady", 90)
    for minute in range(MINUTES):
        jobs |= books.submit(lab, "alice", 10, "sleep 1")
        if minute == MINUTES // 2:
            local("pod", "kill", f"{lab.namespace}/{lab.cluster}-controller-0", "slurmctld")
        lab.until("a minute has passed, and its jobs", minute_of(lab), 180)
    assert books.told(lab)[0] == "False"
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"database": {"scheduling": None}}})
    lab.until("the database is back", lambda: books.told(lab) == books.WELL, 120)
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 120)
    lab.timings.note(
        f"{len(jobs)} jobs in {MINUTES} min without a database, slurmctld killed once: all recorded", MINUTES * 60
    )


@pytest.fixture
def small(lab: Lab, on: None) -> Iterator[None]:
    """The database is on a file system of 320 MiB of its own."""
    on_node(
        f"truncate -s 320M {SMALL}.img; mkfs.ext4 -q -F -m 0 {SMALL}.img; mkdir -p {SMALL}; mount -o loop {SMALL}.img {SMALL}"
    )
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "10Gi"}}}
    books.make_volume(lab, "small-database")
    books.apply(lab, {"kind": "PersistentVolumeClaim", "metadata": {"name": "small-database"}, "spec": claim})
    here = {"scheduling": {"nodeSelector": {"kubernetes.io/hostname": MACHINE}}}
    size = {"limits": {"memory": "512Mi"}}
    try:
        lab.patch(
            "slurmcluster",
            lab.cluster,
            {"accounting": {"database": {"claim": {"name": "small-database"}, "resources": size, **here}}},
        )
        lab.until(
            "the small database is used",
            lambda: books.told(lab) == books.WELL and "mysql" in on_node(f"ls {SMALL}/data"),
            150,
        )
        yield
    finally:
        former = {"claim": {"name": ""}, "resources": None, "scheduling": None}
        lab.patch("slurmcluster", lab.cluster, {"accounting": {"database": former}})
        lab.until("the first database is back", lambda: books.told(lab) == books.WELL, 150)
        lab.kubectl("delete", "pvc", "small-database", "--timeout=60s")
        lab.kubectl("delete", "pv", f"{lab.namespace}-small-database", "--timeout=60s")
        on_node(f"umount -l {SMALL}; rm -rf {SMALL} {SMALL}.img")


def on_node(script: str) -> str:
    """What a script printed on the Node of the small database."""
    return local("node", "exec", MACHINE, "--", "sh", "-c", script)


def test_a_full_volume_of_the_database_is_told_before_and_when_and_loses_nothing(lab: Lab, small: None) -> None:
    """DatabaseHasRoom is False from 95 % on; with no byte left jobs run on, and what slurmctld kept is recorded when there is room."""
    left = f"$(($(df -k --output=avail {SMALL} | tail -n 1) / 1024 - 10))"
    on_node(f"fallocate -l {left}M {SMALL}/filler")
    lab.until(
        "too little room is told", lambda: condition(lab.status(), "DatabaseHasRoom")["reason"] == "AlmostFull", 150
    )
    on_node(f"cat /dev/zero > {SMALL}/rest || true")
    big = "head -c 6000 /dev/zero | tr '\\0' x"
    jobs = books.submit(lab, "alice", 150, "true", f'--comment "$({big})"')
    books.wait_idle(lab, 300)
    print(lab.tried("logs", f"{lab.cluster}-accounting-0", "-c", "slurmdbd", "--tail=30").stdout[-3000:])
    print(condition(lab.status(), "AccountingReady"), condition(lab.status(), "DatabaseHasRoom"))
    on_node(f"rm {SMALL}/filler {SMALL}/rest")
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 120)
    lab.until("enough room is told", lambda: condition(lab.status(), "DatabaseHasRoom")["reason"] == "Enough", 150)
