"""What the container of a backup or a restoration does, with folders of a test: `python -m tests.backup.pod FOLDER take|read`.

Its environment is that of the container. What the container leaves as its last message is printed.
"""

import json
import os
import sys
from pathlib import Path

from soperator.agents.backup import restic, restore, state, take
from soperator.agents.backup.__main__ import ending
from soperator.agents.backup.errors import BackupError

#: Seconds for a first answer: the server of the tests is on this machine.
ANSWERS = 6.0


def main(folder: Path, verb: str) -> int:
    """Take a backup of the folders in `folder`, or read the newest one into it; return 1 on failure."""
    restic._ANSWERS = ANSWERS
    state._BEGINS_WITHIN = 0.0  # no slurmctld saves here
    program = (os.environ["RESTIC"], "--no-cache", "--retry-lock", os.environ.get("PATIENCE", "1m"))
    repository = restic.Restic("slurm/demo", program, "nightly")
    try:
        if verb == "take":
            places = take.Folders(*(folder / name for name in ("state", "secrets", "objects", "backup", "keys")))
            expected = os.environ.get("SOPERATOR_REPOSITORY_ID", "")
            task = take.BackupTask("slurm", "demo", "24.11.5", None, ["--keep-last=3"], "nightly", "here", expected)
            print(json.dumps(take.take(task, repository, places)))
        else:
            restore.BACKUP, restore.KEYS = saved(repository)
            restore.read(repository, "latest", restore.Places(folder / "scratch", folder / "private"))
    except (BackupError, OSError) as error:
        print(ending(error))
        return 1
    return 0


def saved(repository: restic.Restic) -> list[str]:
    """Return the folders in the newest backup: each pod of the tests has its own, where that of the image has one path."""
    repository.open()
    printed = repository._run("snapshots", "--json", "latest").stdout
    return sorted(json.loads(printed)[-1]["paths"])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
