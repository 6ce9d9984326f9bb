"""Ends an agent that cannot do its work: with one message, also in Kubernetes' termination message."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

TERMINATION_LOG = Path("/dev/termination-log")


class Refusal(Exception):  # noqa: N818
    """A refusal with a message for a person; `final` if a later run cannot succeed either."""

    def __init__(self, sentence: str, final: bool = False) -> None:
        super().__init__(sentence)
        self.final = final


def exit_with_error(error: Exception, code: int = 1) -> NoReturn:
    """End this agent: print the cause on standard error, and write it to the termination message."""
    sentence = f"soperator: {error}"
    write_termination_message(sentence)
    print(sentence, file=sys.stderr)
    sys.exit(code)


def write_termination_message(text: str) -> None:
    """Write a container's termination message; outside a container its file does not exist, and nothing is written."""
    if TERMINATION_LOG.exists():
        with suppress(OSError):
            TERMINATION_LOG.write_text(text)
