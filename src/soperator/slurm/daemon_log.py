"""The error that ended a Slurm daemon, read from its log as one message.

A daemon logs one line for each step that failed, from the cause to the end, between lines of other subjects. So the message contains the first errors
and the last fatal line. Source: slurmctld of 24.11 with an empty state.
"""

import re

_LINE = re.compile(r"(?:slurm\w+(?:-\S+)?: )?(error|fatal): (.*)")
#: Errors of every slurmctld that starts with an empty state, or has no accounting, and of a slurmd that only looks at its files.
_NO_CAUSE = re.compile(
    r"MailProg|state file|state save file|Job accounting|accounting information|_xgetaddrinfo|specified more than once|_find_node_record"
    r"|differs from hardware|Domain socket directory|hwloc"
)
_LONGEST = 600


def cause(log: str) -> str:
    """Return the message; empty if the log has no error."""
    found = [(match[1], match[2].strip()) for match in map(_LINE.search, log.splitlines()) if match]
    errors = [text for kind, text in found if kind == "error" and not _NO_CAUSE.search(text)]
    last = [text for kind, text in found if kind == "fatal"][-1:]
    return "; ".join(dict.fromkeys([*errors[:2], *last]))[:_LONGEST]
