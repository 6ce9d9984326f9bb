"""A cluster that was lost with its keys, its state and its database comes back from a backup: the queue in its order, records, host keys, accounts.

A second cluster is lost, not the demo's. Its jail stays, because backups do not have it.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from local import s3
from local.paths import DEFAULT_STATE
from tests.cluster import books, second
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, condition

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

NAME, CLAIM, SECRET = "kept", "backups", "restic"
WAITING = 5
SPEC = {
    "clusterRef": {"name": NAME},
    "repository": {"claimName": CLAIM, "password": {"secretName": SECRET}},
}
#: Where the Nodes and their pods reach this machine.
ADDRESS, PORT = "10.10.0.1", 7470
QUEUE = "squeue -h -t PD --sort=-p,i -o '%i %j %u %Q'"
SHARES = "sacctmgr -nP show assoc format=account,user,share"
HOST_KEY = "ssh-keyscan -t ed25519 localhost 2> /dev/null | cut -d ' ' -f 2-"
ROWS = "sacct -a -X -n -P -S now-2days -E now -s CD -o jobid,jobname,user,account,end"


@pytest.fixture(scope="module")
def kept(lab: Lab, mariadb: str) -> Iterator[Lab]:
    """A second cluster with accounting, two users and an account, and a claim and a password for its backups."""
    books.bring_image("backup")
    made = Lab(lab.target, NAME, NAME, lab.timings)
    second.make_storage(made)
    try:
        for claim in (f"{NAME}-database", CLAIM):
            books.make_volume(made, claim)
        books.make_claim(made, CLAIM)
        made.kubectl("create", "secret", "generic", SECRET, "--from-literal=password=a long one")
        second.install(made, {**second.claims(made), "accounting": {}, "images": {"mariadb": mariadb}}, workers=1)
        made.wait_available(300)
        for user in ("alice", "bob"):
            make_user(made, user)
        made.ssh(
            "root",
            "sacctmgr -i add account physics Fairshare=3; sacctmgr -i add user alice account=physics Fairshare=7",
        )
        yield made
    finally:
        lose(made)
        made.kubectl("delete", "slurmbackup", "--all", "--ignore-not-found")
        for claim in (f"{NAME}-database", CLAIM):
            books.remove_volume(made, claim)
        second.clean(made)


def lose(lab: Lab) -> None:
    """Delete the cluster with its objects and its keys, and its jobs, for which a deletion would wait."""
    lab.kubectl("annotate", "slurmcluster,nodeset", "--all", "--overwrite", "slurm.soperator.io/abandon-jobs=true")
    lab.target.run("helm", "-n", NAME, "uninstall", NAME, "--ignore-not-found", "--wait", "--timeout", "90s")
    ours = ("auth-key", "jwt-key", "ssh-host-keys", "database-password")
    names = [f"{NAME}-{each}{end}" for each in ours for end in ("", "-kept")]
    lab.kubectl("delete", "slurmcluster,nodeset", "--all", "--ignore-not-found", "--timeout=90s")
    lab.kubectl("delete", "secret", *names, "--ignore-not-found")
    lab.until(
        "its pods are gone", lambda: all(each["status"]["phase"] == "Succeeded" for each in lab.pods().values()), 120
    )


def lose_volumes(lab: Lab) -> None:
    """Delete the files of the state and of the database, and make empty volumes in their places."""
    for claim in (f"{NAME}-state", f"{NAME}-database"):
        lab.kubectl("delete", "pvc", claim, "--ignore-not-found", "--timeout=60s")
    lab.kubectl(
        "delete", "pv", f"{NAME}-{NAME}-state", f"{NAME}-{NAME}-database", "--ignore-not-found", "--timeout=60s"
    )
    for folder in (second.folder(lab) / f"{NAME}-state", DEFAULT_STATE / "storage" / f"{NAME}-database"):
        subprocess.run(["rm", "-rf", str(folder)], check=True)
    for claim in (f"{NAME}-state", f"{NAME}-database"):
        books.make_volume(lab, claim)
    books.make_claim(lab, f"{NAME}-state")


def restore(lab: Lab, *options: str, place: Sequence[str] = ("--claim", CLAIM)) -> "subprocess.CompletedProcess[str]":
    """What `soperator restore` ends with."""
    words = ["restore", NAME, "-n", NAME, *place, "--password-secret", SECRET, *options]
    env = os.environ | {"KUBECONFIG": lab.target.kubeconfig}
    command = [sys.executable, "-m", "soperator.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=300)


def backed_up(lab: Lab) -> str:
    """The reason of the condition Ready, once it is about the present spec and no backup runs."""
    status = lab.status("slurmbackup", "nightly")
    reason = condition(status, "Ready")["reason"] if status.get("conditions") else ""
    return "" if reason == "BackingUp" else reason


def test_a_lost_cluster_comes_back(kept: Lab) -> None:
    """With the queue in its order, every record, the same accounts and host keys; no job id is given twice, also not one from after the backup."""
    done = books.submit(kept, "alice", 3, "true")
    kept.until("jobs are recorded", lambda: books.are_recorded(kept, done), 90)
    held = kept.hold("worker-0")
    for number in range(WAITING):
        user = "bob" if number % 2 else "alice"
        kept.ssh(user, f"sbatch --parsable -J w{number} -o /dev/null --nice={number * 10} --wrap true")
    assert kept.apply("SlurmBackup", "nightly", SPEC).returncode == 0
    kept.until("the SlurmBackup waits for a request", lambda: backed_up(kept) == "OnRequest", 30)
    kept.timings.note("backup of a small cluster", backup(kept))
    waiting = [line.split()[0] for line in kept.ssh("root", QUEUE).splitlines()]
    rows, shares, key = (kept.ssh("root", each) for each in (ROWS, SHARES, HOST_KEY))
    latest = kept.ssh("alice", "sbatch --parsable -o /dev/null --wrap true").strip()
    assert (len(waiting), len(rows.splitlines())) == (WAITING, len(done))
    refused = restore(kept)
    assert (refused.returncode, f"SlurmCluster {NAME} exists" in refused.stderr) == (1, True), refused.stderr

    lose(kept)
    lose_volumes(kept)
    began = time.monotonic()
    restored = restore(kept)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    kept.__dict__.pop("address", None)  # the Service has another port
    kept.wait_available(300)
    kept.timings.note("restore of a small cluster, until it is available", time.monotonic() - began)
    assert kept.ssh("root", SHARES) == shares
    assert kept.ssh("root", HOST_KEY) == key
    assert set(rows.splitlines()) <= set(kept.ssh("root", ROWS).splitlines())
    new = kept.ssh("alice", "sbatch --parsable -H -o /dev/null --wrap true").strip()
    assert int(new) > int(latest)
    kept.until("the job that ran is queued again or runs", lambda: held.state() in ("PENDING", "RUNNING"), 60)
    kept.ssh("root", f"scancel {held.number}")
    ended = f"sacct -a -X -n -P -S now-2days -E now -s CD -o start,jobid -j {','.join(waiting)}"
    kept.until("the queue has run", lambda: len(kept.ssh("root", ended).splitlines()) == WAITING, 120)
    assert [line.split("|")[1] for line in sorted(kept.ssh("root", ended).splitlines())] == waiting


def backup(lab: Lab) -> float:
    """Request a backup, and return how long it took until its result was in the status."""
    began = time.monotonic()
    lab.soperator("request", "backup", "nightly", "-n", NAME)
    lab.until("the backup has succeeded", lambda: backed_up(lab) == "BackedUp", 120)
    return time.monotonic() - began


def test_a_damaged_repository_is_found_before_anything_is_touched(kept: Lab) -> None:
    """Where one byte of a file in the repository is another one, `--verify` fails, says why, and leaves no pod."""
    good = restore(kept, "--verify")
    assert (good.returncode, "is whole" in good.stdout) == (0, True), good.stdout + good.stderr
    packs = (DEFAULT_STATE / "storage" / CLAIM / "restic/data").rglob("*")
    flip(max((each for each in packs if each.is_file()), key=lambda each: each.stat().st_size))
    bad = restore(kept, "--verify")
    assert (bad.returncode, "verification failed" in bad.stderr or "damaged" in bad.stderr) == (1, True), bad.stderr
    assert not [name for name in kept.pods() if "-restore-" in name]


def flip(file: Path) -> None:
    """Change one byte in the middle of a file."""
    file.chmod(0o600)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


in_full = pytest.mark.skipif(not os.environ.get("SOPERATOR_BACKUP"), reason="make test-backup runs it")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the store, with its bucket."""
    made = tmp_path_factory.mktemp("store")
    (made / "data/backups").mkdir(parents=True)
    return made


@pytest.fixture
def store(kept: Lab, folder: Path) -> Iterator[s3.Store]:
    """A store with TLS that pods reach, and Secrets with its keys and its certificate."""
    with s3.serve(s3.build(), folder, ADDRESS, PORT) as made:
        kept.kubectl("delete", "secret", "store", "store-ca", "--ignore-not-found")
        give_keys(kept, made.secret_key)
        kept.kubectl("create", "secret", "generic", "store-ca", f"--from-file=ca.crt={made.certificate}")
        yield made


def give_keys(lab: Lab, secret_key: str) -> None:
    """Write the Secret with the keys of the store."""
    data = {"AWS_ACCESS_KEY_ID": "backups", "AWS_SECRET_ACCESS_KEY": secret_key}
    books.apply(lab, {"kind": "Secret", "metadata": {"name": "store"}, "stringData": data})


S3_SPEC = {
    "clusterRef": {"name": NAME},
    "repository": {
        "s3": {
            "endpoint": f"https://{ADDRESS}:{PORT}",
            "bucket": "backups",
            "prefix": "slurm",
            "credentialsSecretName": "store",
            "ca": {"secretName": "store-ca"},
        },
        "password": {"secretName": SECRET},
    },
}
S3_PLACE = (
    *("--s3-endpoint", f"https://{ADDRESS}:{PORT}", "--s3-bucket", "backups", "--s3-prefix", "slurm"),
    *("--s3-credentials-secret", "store", "--s3-ca-secret", "store-ca"),
)


def offsite(lab: Lab, word: str, seconds: float = 120) -> tuple[str, str]:
    """Request a backup into the store; return the reason and the message of Ready once they are about this request."""

    def ended() -> tuple[str, str] | None:
        status = lab.status("slurmbackup", "offsite")
        ready = condition(status, "Ready") if status.get("conditions") else {"reason": "BackingUp"}
        if status.get("request") != word or ready["reason"] == "BackingUp":
            return None
        return ready["reason"], ready["message"]

    assert lab.apply("SlurmBackup", "offsite", S3_SPEC | {"runRequest": word}).returncode == 0
    found = lab.until(f"the backup {word} has ended", ended, seconds)
    assert found is not None
    return found


@in_full
def test_faults_of_a_store_are_in_the_condition(kept: Lab, store: s3.Store) -> None:
    """A wrong key, a repository that was emptied, and a pod that is killed; what was made before stays."""
    began = time.monotonic()
    assert offsite(kept, "first") == ("BackedUp", "")
    kept.timings.note("backup of a small cluster into a store, the first one", time.monotonic() - began)
    began = time.monotonic()
    assert offsite(kept, "again") == ("BackedUp", "")
    kept.timings.note("backup of a small cluster into a store, the second one", time.monotonic() - began)
    give_keys(kept, "wrong")
    reason, why = offsite(kept, "wrong-key")
    assert (reason, "credentialsSecretName" in why) == ("StoreDenied", True), why
    give_keys(kept, store.secret_key)
    repository = store.folder / "backups/slurm/restic"
    repository.rename(store.folder / "aside")
    reason, why = offsite(kept, "emptied")
    assert (reason, f"https://{ADDRESS}:{PORT}/backups/slurm/restic is gone" in why) == ("RepositoryMissing", True), why
    assert not repository.exists()
    (store.folder / "aside").rename(repository)
    assert kept.apply("SlurmBackup", "offsite", S3_SPEC | {"runRequest": "killed"}).returncode == 0
    pod = kept.until("the pod runs", lambda: running(kept), 60)
    kept.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
    assert offsite(kept, "killed", 300) == ("BackedUp", "")


def running(lab: Lab) -> str:
    """The pod of a backup that runs."""
    return next((name for name, pod in lab.pods("backup").items() if pod["status"]["phase"] == "Running"), "")


@in_full
def test_a_store_that_is_away_is_named(kept: Lab, folder: Path) -> None:
    """Within minutes, and not after the three quarters of an hour for which restic would go on."""
    reason, why = offsite(kept, "away", 400)
    assert (reason, "connection refused" in why) == ("StoreUnreachable", True), why


@in_full
def test_a_lost_cluster_comes_back_from_a_store(kept: Lab, store: s3.Store) -> None:
    """With its queue and its host keys; a living one is refused, and one byte that is another one is found before anything is touched."""
    made = {kept.ssh("alice", "sbatch --parsable -H -o /dev/null --wrap true").strip() for _ in range(3)}
    queued = job_ids(kept)
    assert made <= queued
    key = kept.ssh("root", HOST_KEY)
    assert offsite(kept, "last") == ("BackedUp", "")
    refused = restore(kept, place=S3_PLACE)
    assert (refused.returncode, f"SlurmCluster {NAME} exists" in refused.stderr) == (1, True), refused.stderr
    good = restore(kept, "--verify", place=S3_PLACE)
    assert (good.returncode, "is whole" in good.stdout) == (0, True), good.stdout + good.stderr
    copy = store.folder.parent / "copy"
    shutil.copytree(store.folder / "backups/slurm/restic", copy)
    for pack in (store.folder / "backups/slurm/restic/data").rglob("*"):  # one of them has nothing of the last backup
        if pack.is_file():
            flip(pack)
    bad = restore(kept, "--verify", place=S3_PLACE)
    assert bad.returncode == 1, bad.stdout
    shutil.copytree(copy, store.folder / "backups/slurm/restic", dirs_exist_ok=True)
    lose(kept)
    lose_volumes(kept)
    began = time.monotonic()
    done = restore(kept, place=S3_PLACE)
    assert done.returncode == 0, done.stdout + done.stderr
    kept.__dict__.pop("address", None)
    kept.wait_available(300)
    kept.timings.note("restore of a small cluster from a store, until it is available", time.monotonic() - began)
    assert kept.ssh("root", HOST_KEY) == key
    assert job_ids(kept) == queued


def job_ids(lab: Lab) -> set[str]:
    """Return the jobs in the queue."""
    return {str(each["job_id"]) for each in json.loads(lab.ssh("root", "squeue -h --json"))["jobs"]}
