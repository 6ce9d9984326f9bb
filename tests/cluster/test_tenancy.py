"""Accounts and QOS as objects on the real cluster: limits that hold jobs back, drift, what is not ours, and a deletion that waits for a job."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster import books
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, condition

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(700)]

OBJECTS = {
    ("SlurmQOS", "urgent"): {"priority": 1000, "flags": ["DenyOnLimit"], "limits": {"maxJobsPerUser": 1}},
    ("SlurmAccount", "optics"): {"parent": "mechanics", "users": [{"name": "alice"}], "deletionPolicy": "Delete"},
    ("SlurmAccount", "mechanics"): {
        "description": "everything that falls",
        "limits": {"grpTRES": {"cpu": 1}, "maxWall": "1-00:00:00"},
        "qos": ["normal"],
    },
    ("SlurmAccount", "ceramics"): {"qos": ["normal", "urgent"], "defaultQOS": "urgent", "users": [{"name": "bob"}]},
}


@pytest.fixture(scope="module")
def on(lab: Lab, alice: str) -> Iterator[str]:
    """Accounting with limits, and an account that an administrator made; alice's job that began before, by its number."""
    if not lab.target.is_local:
        pytest.skip("the image of MariaDB is not in a foreign cluster")
    make_user(lab, "bob")
    books.make_volume(lab, f"{lab.cluster}-database")
    books.switch_on(lab, books.bring_image(), {"enforce": ["associations", "limits", "qos"]})
    lab.ssh(
        "root", "sacctmgr -i add account botany GrpJobs=7; sacctmgr -i add user bob account=botany MaxJobs=3 || true"
    )
    yield "botany"
    lab.ssh("root", "scancel -u alice; scancel -u bob")
    lab.kubectl("delete", "slurmaccounts,slurmqos", "--all", "--timeout=60s")
    books.switch_off(lab)


def shown(lab: Lab, what: str, *fields: str) -> list[list[str]]:
    """What sacctmgr shows, by fields."""
    printed = lab.ssh("root", f"sacctmgr -nP show {what} format={','.join(fields)}")
    return [line.split("|") for line in printed.splitlines()]


def ready(lab: Lab, kind: str, name: str) -> tuple[str, str]:
    """Status and reason of the condition Ready, once it speaks of the present spec."""
    status = lab.status(kind, name)
    found = condition(status, "Ready") if status.get("conditions") else {"status": "", "reason": ""}
    return found["status"], found["reason"]


def reasons(lab: Lab, user: str) -> set[str]:
    """Why jobs of a user wait."""
    return set(lab.ssh(user, "squeue --me -h -t PD -o %r").split())


def test_objects_become_accounts_in_whatever_order_they_come(lab: Lab, on: str) -> None:
    """An account waits for its parent and for its QOS; each bears its object's mark."""
    made = [
        {
            "apiVersion": "slurm.soperator.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"clusterRef": {"name": lab.cluster}, **spec},
        }
        for (kind, name), spec in reversed(OBJECTS.items())
    ]
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    lab.timed(
        "three accounts and a QOS are as their objects say",
        lambda: all(ready(lab, *each) == ("True", "InStep") for each in OBJECTS),
        120,
    )
    fields = ("account", "user", "parentname", "grptres", "maxwall", "qos", "defaultqos", "comment")
    rows = {(each[0], each[1]): each[2:] for each in shown(lab, "assoc wopl", *fields)}
    mark = f"soperator:{lab.namespace}"
    assert rows["mechanics", ""] == ["root", "cpu=1", "1-00:00:00", "normal", "", f"{mark}/mechanics"]
    assert rows["optics", ""] == ["mechanics", "", "", "", "", f"{mark}/optics"]
    assert rows["optics", "alice"] == ["", "", "", "", "", f"{mark}/optics"]
    assert rows["ceramics", ""] == ["root", "", "", "normal,urgent", "urgent", f"{mark}/ceramics"]
    assert rows["botany", "bob"][-1] == ""


def test_their_limits_hold_jobs_back_and_slurm_says_why(lab: Lab, on: str) -> None:
    """The account's above for alice; for bob that of the QOS, which refuses what could never run."""
    books.submit(lab, "alice", 2, "sleep 600", "-A", "optics")
    books.submit(lab, "bob", 2, "sleep 600", "-A", "ceramics")
    lab.until("alice's second job waits", lambda: reasons(lab, "alice") == {"AssocGrpCpuLimit"}, 60)
    lab.until("bob's second job waits", lambda: reasons(lab, "bob") == {"QOSMaxJobsPerUserLimit"}, 60)


def test_drift_is_set_right_and_what_is_somebody_elses_stays(lab: Lab, on: str) -> None:
    """A limit that an object says; not one that it does not say, nor an account, nor a user in the object's own account."""
    lab.ssh("root", "sacctmgr -i modify account mechanics set GrpTRES=cpu=8,node=3 MaxJobs=9")
    lab.ssh("root", "sacctmgr -i add user bob account=mechanics || true")
    where = "assoc wopl account=mechanics user="
    lab.timed("drift is set right", lambda: shown(lab, where, "grptres", "maxjobs") == [["cpu=1", "9"]], 150)
    rows = {(each[0], each[1]): each[2:] for each in shown(lab, "assoc wopl", "account", "user", "grpjobs", "maxjobs")}
    assert (rows["botany", ""], rows["botany", "bob"], rows["mechanics", "bob"]) == (["7", ""], ["", "3"], ["", ""])


def test_a_deletion_waits_for_a_running_job(lab: Lab, on: str) -> None:
    """The object says for which; when the job has ended object and account are gone, and the parent, an orphan by default, is not."""
    job = lab.ssh("alice", "squeue --me -h -t R -o %i").strip()
    lab.kubectl("delete", "slurmaccount", "optics", "--wait=false")
    lab.kubectl("delete", "slurmaccount", "mechanics", "--timeout=30s")
    said = lab.until(
        "the deletion says that it waits",
        lambda: "jobs in it" in (said := lab.says("slurmaccount", "optics")) and said,
        120,
    )
    assert job in said
    assert lab.ssh("alice", f"squeue -h -j {job} -o %T").strip() == "RUNNING"
    lab.ssh("alice", "scancel --me")
    lab.timed("the account is gone", lambda: not lab.look("slurmaccount", "optics"), 60)
    accounts = {each[0] for each in shown(lab, f"assoc cluster={lab.cluster}", "account")}
    assert {"mechanics", "botany", "ceramics"} <= accounts
    assert "optics" not in accounts
