"""What the steps of populate share: the lock, and the sync to the storage."""

import ctypes
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soperator.agents.errors import Refusal


def flush(claim: Path) -> None:
    """Sync the claim's file system to its storage."""
    descriptor = os.open(claim, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise Refusal(f"{claim} could not be synced to its storage: {os.strerror(ctypes.get_errno())}.")
    finally:
        os.close(descriptor)


@contextmanager
def alone(records: Path) -> Iterator[None]:
    """Lock out a second Job, as copy.sh does, if the claim's file system supports locks."""
    if not records.is_dir():
        raise Refusal(f"{records.parent} has no complete copy: copy.sh has to run before seal.")
    with (records / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refusal(f"Another populate Job is working in {records.parent}.") from error
        except OSError as error:
            print(
                f"soperator: {records.parent} does not support locks ({error.strerror}); continuing without one.",
                flush=True,
            )
        yield
