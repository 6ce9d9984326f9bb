"""The failure of a step, with the reason and the message that end the container."""

from typing import Literal

#: The reason of the condition Ready of the SlurmBackup; the operator has the same list (`reconcile/backup/result.py`).
Reason = Literal[
    "BackupFailed",
    "RepositoryChanged",
    "RepositoryDamaged",
    "RepositoryLocked",
    "RepositoryMissing",
    "StoreDenied",
    "StoreUnreachable",
    "WrongPassword",
]


class BackupError(Exception):
    """A step failed; the text has the step, the cause and the remedy. `is_final` says that another attempt would also fail."""

    def __init__(self, text: str, is_final: bool = False, reason: Reason = "BackupFailed") -> None:
        super().__init__(text)
        self.is_final = is_final
        self.reason = reason
