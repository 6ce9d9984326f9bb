"""Prints short messages about the progress, with the seconds so far."""

import sys
import time

_BEGAN = time.monotonic()


class Failure(Exception):  # noqa: N818 (it is what a person is told, not a fault of the program)
    """An error for the person at the terminal; it is printed without a traceback."""


def elapsed() -> float:
    """Return the seconds since the program began."""
    return time.monotonic() - _BEGAN


def say(text: str) -> None:
    """Print one line with the seconds since the program began."""
    print(f"[{elapsed():6.1f} s] {text}", file=sys.stderr, flush=True)
