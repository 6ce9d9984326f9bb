"""The lines of slurm.conf by which slurmctld and the clients find slurmdbd.

They are a separate module, because the probe of slurmdbd uses them too. Source of each setting: slurm.conf(5) of 24.11.
"""

from soperator.render.parts import names
from soperator.render.parts.model import Cluster


def settings(cluster: Cluster) -> dict[str, str | int]:
    """Return the lines of slurm.conf with which slurmctld reports jobs to slurmdbd; none until slurmdbd has answered."""
    if not cluster.accounted:
        return {}
    said = cluster.spec.accounting_or_default
    enforced = {"AccountingStorageEnforce": ",".join(said.enforce)} if said.enforce else {}
    return {**client(cluster), "AccountingStorageTRES": "gres/gpu", **enforced}


def client(cluster: Cluster) -> dict[str, str | int]:
    """Return the settings with which a program of Slurm reaches slurmdbd."""
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": names.accounting(cluster.name),
        "AccountingStoragePort": names.DBD_PORT,
    }
