"""Finds the names of users, because slurmrestd only knows system accounts: users are created in the jail.

The names come from the copy of the jail's passwd that another container of the pod keeps (agents/identity), which has checked every line.
"""

from pathlib import Path


class UserNames:
    """Names by uid from the file, which is read again after it was replaced."""

    def __init__(self, passwd: Path | None = None) -> None:
        self._passwd = passwd
        self._seen: tuple[int, int] = (0, 0)
        self._names: dict[int, str] = {}

    def refresh(self) -> None:
        """Read the file if it has changed; if it is missing, the known names stay."""
        if self._passwd is None:
            return
        try:
            status = self._passwd.stat()
            if (status.st_ino, status.st_mtime_ns) == self._seen:
                return
            lines = self._passwd.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        self._seen = (status.st_ino, status.st_mtime_ns)
        words = [line.split(":") for line in lines]
        self._names = {int(each[2]): each[0] for each in words if len(each) > 2 and each[2].isdecimal()}

    def name(self, said: str | None, number: int) -> str:
        """Return a user's name: from Slurm, otherwise from the jail, otherwise the uid."""
        return said or self._names.get(number) or str(number)
