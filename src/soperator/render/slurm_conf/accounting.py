"""The lines of slurm.conf by which slurmctld and the clients find slurmdbd.

Source of each setting: slurm.conf(5) of 24.11.
"""

from soperator.render.parts import names
from soperator.render.parts.model import Cluster


def settings(cluster: Cluster) -> dict[str, str | int]:
    """The lines of slurm.conf by which slurmctld tells slurmdbd of its jobs; none until that can be."""
    if not cluster.accounted:
        return {}
    said = cluster.spec.accounting_or_default
    enforced = {"AccountingStorageEnforce": ",".join(said.enforce)} if said.enforce else {}
    return {**client(cluster), "AccountingStorageTRES": "gres/gpu", **enforced}


def client(cluster: Cluster) -> dict[str, str | int]:
    """What any program of Slurm needs to reach slurmdbd."""
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": names.accounting(cluster.name),
        "AccountingStoragePort": names.DBD_PORT,
    }
