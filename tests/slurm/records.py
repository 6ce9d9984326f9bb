"""A machine whose slurmctld tells a real slurmdbd with a real MariaDB, by the scripts of our image, without Kubernetes.

A loop stands for the kubelet and the Service: it starts the role of slurmdbd again when that ends, asks the probe, and an address is there while it
is ready. Needs the root of
`python3 -m local.slurm_root records`; `make test-accounting` asks for it.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.machine import RUNNING, Slurm

NEEDS = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_ACCOUNTING"), reason="SOPERATOR_ACCOUNTING is not set"),
]
IMAGE = Path(__file__).parents[2] / "images/slurm"
SLURMDBD = """AuthType=auth/slurm
SlurmUser=slurm
DbdHost=localhost
PidFile=/tmp/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StorageUser=hpc
StorageLoc=slurm_demo
"""
ACCOUNTED = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=10.99.0.2\n"
MARIADBD = "mariadbd --user=mysql --bind-address=127.0.0.1"
MADE = """
mkdir -p /etc/soperator/accounting /etc/soperator/database /run/soperator/keys /run/slurmdbd /opt/soperator/bin /usr/lib/soperator /run/mysqld
printf secret > /etc/soperator/database/password
ln -s /usr/bin/sacctmgr /opt/soperator/bin/sacctmgr
cp /etc/slurm/slurm.key /run/soperator/keys/
chown -R slurm /run/soperator /run/slurmdbd
chmod 1777 /tmp
rm -rf /var/lib/mysql/*
chown mysql /var/lib/mysql /run/mysqld
mariadb-install-db --user=mysql --skip-test-db > /tmp/install 2>&1
"""
#: The second word is how many seconds lie between two looks; a container that ends is not ready from then on.
KUBELET = """
as_slurm="setpriv --reuid=slurm --regid=slurm --clear-groups env SOPERATOR_AUTH=slurm HOSTNAME=demo-accounting-0"
while :; do
    $as_slurm SLURM_SACK_KEY=/run/soperator/keys/slurm.key bash -c 'complain() { exit 1; }; set -euo pipefail; . /usr/lib/soperator/role' \\
        > /dev/null 2>> /var/log/slurm/dbd.log &
    container=$! failed=0
    while kill -0 $container 2> /dev/null; do
        if $as_slurm bash /usr/lib/soperator/accounting > /dev/null 2>> /var/log/slurm/probe.log; then
            failed=0
            ip addr add 10.99.0.2/32 dev inside 2> /dev/null
        else
            failed=$((failed + 1))
            [ $failed -lt 3 ] || ip addr del 10.99.0.2/32 dev inside 2> /dev/null
        fi
        for tenth in $(seq "$(($1 * 10))"); do kill -0 $container 2> /dev/null && sleep 0.1; done
    done
    ip addr del 10.99.0.2/32 dev inside 2> /dev/null
    date +%s >> /var/log/slurm/ended
    sleep 1
done
"""
OWN = "ClusterName=test\nSlurmctldHost=ctl\nSlurmUser=slurm\nAuthType=auth/slurm\nCredType=cred/slurm\n"
FILES = {
    "/etc/soperator/accounting/slurmdbd.conf": SLURMDBD,
    "/etc/soperator/accounting/slurm.conf": OWN + ACCOUNTED.replace("10.99.0.2", "localhost"),
    "/usr/lib/soperator/accounting": (IMAGE / "accounting").read_text(),
    "/usr/lib/soperator/role": (IMAGE / "roles/slurmdbd").read_text(),
    "/usr/lib/soperator/kubelet": KUBELET,
}


@dataclass(frozen=True)
class Records:
    """A machine with Slurm and its accounting."""

    slurm: Slurm

    def begins(self, period: int = 5) -> None:
        """Start all: the database, slurmdbd, and slurmctld when it is ready, as the operator has it."""
        sh = self.slurm.sh
        sh(MADE)
        for place, text in FILES.items():
            sh(f"cat > {place}", text)
        sh("chmod 755 /usr/lib/soperator/accounting")
        sh(f"setsid {MARIADBD} > /var/log/slurm/mariadb.log 2>&1 < /dev/null &")
        self.slurm.until("mariadb-admin ping 2> /dev/null | grep -o alive", "alive")
        self.sql(
            "CREATE DATABASE slurm_demo; CREATE USER hpc@'%' IDENTIFIED BY 'secret'; GRANT ALL ON slurm_demo.* TO hpc@'%';"
        )
        sh(f"setsid bash /usr/lib/soperator/kubelet {period} > /dev/null 2>&1 < /dev/null &")
        self.is_ready()
        self.switched(True)
        self.slurm.starts("w-0", is_saved=False)

    def is_ready(self) -> None:
        """Wait until slurmdbd's address is there."""
        self.slurm.until("ip -o addr show dev inside | grep -o 10.99.0.2", "10.99.0.2")

    def switched(self, on: bool) -> None:
        """Start slurmctld with accounting or without; where it is on, with the database's number, as images/slurm/accounted has it."""
        self.slurm.sh("cat > /etc/slurm/more.conf", f"MinJobAge=300\n{ACCOUNTED if on else ''}")
        self.slurm.sh(f"pkill '^slurmctld'; while pgrep {RUNNING}; do sleep 0.1; done")
        self.slurm.sh("sed -i 's/|.*//' /var/spool/slurmctld/clustername")
        self.slurm.begins()
        if on:
            self.slurm.sh("touch /etc/soperator/accounting/registered")

    def begins_anew(self) -> None:
        """What off and on do: slurmctld runs without slurmdbd, that begins without the key, and slurmctld is told when it is ready."""
        self.switched(False)
        self.slurm.sh("rm -f /etc/soperator/accounting/registered /tmp/served; pkill -x slurmdbd; sleep 1")
        self.is_ready()
        self.switched(True)

    def sql(self, text: str) -> str:
        """What the database answers to root."""
        return self.slurm.sh("mariadb -N", text).strip()

    def jobs(self, count: int) -> set[str]:
        """The numbers of so many jobs, which have all ended."""
        made = set(
            self.slurm.sh(f"for n in $(seq {count}); do sbatch --parsable -o /dev/null --wrap true; done").split()
        )
        self.slurm.until("squeue -h | wc -l", "0")
        return made

    def recorded(self) -> set[str]:
        """The numbers of the jobs that the database has as completed."""
        return set(self.slurm.sh("sacct -a -X -n -P -S now-1days -s CD -E now -o jobid").split())

    def has(self, jobs: set[str], seconds: float = 60) -> None:
        """Wait until these are recorded."""
        end = time.monotonic() + seconds
        while not jobs <= (found := self.recorded()):
            assert time.monotonic() < end, (
                f"{sorted(jobs - found)}\n{self.slurm.sh('tail -n 30 /var/log/slurm/dbd.log')}"
            )
            time.sleep(0.5)

    @property
    def said(self) -> str:
        """What is told of a slurmdbd that is not ready."""
        return self.slurm.sh("cat /tmp/said 2> /dev/null").strip()
