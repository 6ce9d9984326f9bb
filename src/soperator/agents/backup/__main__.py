"""The entry point of the pods: `take`, `read SNAPSHOT`, or `write SNAPSHOT`. The last message of a failure goes to the container's status."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from soperator.agents.backup.errors import BackupError
from soperator.agents.backup.restic import Restic
from soperator.agents.backup.restore import read, write
from soperator.agents.backup.take import take, task_of

_LOG = Path("/dev/termination-log")
#: The exit code where no other attempt would fare better.
FINAL = 65
#: Seconds for which the pod shows what it has read.
_SHOWN = 1800


def main(words: list[str]) -> int:
    """Run one verb; return the exit code."""
    try:
        match words:
            case ["take"]:
                task = task_of(os.environ)
                _say(json.dumps(take(task, Restic(f"{task.namespace}/{task.cluster}", maker=task.maker))))
            case ["read", snapshot]:
                read(Restic(os.environ["SOPERATOR_HOST"]), snapshot)
                time.sleep(_SHOWN)
            case ["write", snapshot]:
                write(Restic(os.environ["SOPERATOR_HOST"]), snapshot)
            case _:
                _say("soperator: Give one of: take, read SNAPSHOT, write SNAPSHOT.")
                return FINAL
    except (BackupError, OSError) as error:
        _say(ending(error))
        return FINAL if isinstance(error, BackupError) and error.is_final else 1
    return 0


def ending(error: BackupError | OSError) -> str:
    """Return the last message of a container that has failed, from which the operator takes the reason of its condition."""
    reason = error.reason if isinstance(error, BackupError) else "BackupFailed"
    return f"soperator: {reason}: {error}"


def pass_on_the_end() -> None:
    """Let the programs that this one runs end with it where it is the first process of its container, which ignores SIGTERM otherwise.

    A restic that is killed leaves its lock, for which the next backup would wait in vain until it is half an hour old.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(-1, signal.SIGTERM))


def _say(text: str) -> None:
    print(text, flush=True)
    if _LOG.exists():
        _LOG.write_text(text[:4000])


if __name__ == "__main__":
    pass_on_the_end()
    sys.exit(main(sys.argv[1:]))
