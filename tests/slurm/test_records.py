"""No record is lost in silence to a database that does not know the cluster: a real slurmctld, slurmdbd and MariaDB."""

import pytest

from tests.slurm.records import MARIADBD, NEEDS, Records

pytestmark = [*NEEDS, pytest.mark.timeout(300)]
UNKNOWN = "cat /tmp/said 2> /dev/null | grep -o 'does not know the cluster test'"


def test_the_database_knows_the_cluster_before_slurmctld_is_told(records: Records) -> None:
    """Its jobs are recorded, and the probe that added it has nothing to say."""
    records.has(records.jobs(3))
    assert records.said == ""
    assert records.slurm.sh("cat /var/log/slurm/ended 2> /dev/null") == ""


def test_a_database_that_is_dropped_is_told_and_what_follows_is_kept(records: Records) -> None:
    """slurmctld's connection is broken, and jobs of the time are recorded when accounting was off and is on again."""
    records.has(records.jobs(2))
    records.sql("DROP DATABASE slurm_demo;")
    records.slurm.until(UNKNOWN, "does not know the cluster test")
    kept = records.jobs(5)
    records.begins_anew()
    records.has(kept)
    records.has(records.jobs(2))


def test_a_database_that_is_away_and_comes_back_empty_gets_nothing(records: Records) -> None:
    """slurmdbd does not send it what slurmctld has kept before somebody looked."""
    records.has(records.jobs(2))
    records.slurm.sh("mariadb-admin shutdown; while pgrep -x mariadbd; do sleep 0.1; done")
    kept = records.jobs(5)
    records.slurm.sh("cat > /init.sql", "DROP DATABASE slurm_demo;\nCREATE DATABASE slurm_demo;\n")
    records.slurm.sh(f"setsid {MARIADBD} --init-file=/init.sql > /dev/null 2>&1 < /dev/null &")
    records.slurm.until(UNKNOWN, "does not know the cluster test")
    records.begins_anew()
    records.has(kept)


def test_the_former_database_is_given_back(records: Records) -> None:
    """Then all is well by itself."""
    records.sql("CREATE DATABASE other;")
    before = records.jobs(2)
    records.has(before)
    records.slurm.sh("mariadb-dump slurm_demo > /dump.sql")
    records.sql("DROP DATABASE slurm_demo;")
    records.slurm.until(UNKNOWN, "does not know the cluster test")
    kept = records.jobs(3)
    records.slurm.sh("mariadb slurm_demo < /dump.sql")
    records.has(before | kept, 90)
