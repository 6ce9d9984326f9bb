"""When a token in a Secret is made anew: a function of what is asked for, what is noted on the Secret, and the time.

A token cannot be taken back, so it is short, and one that is half over gives way: a program that reads the Secret when it begins has the other half,
and slurmctld may be away for as long. One that an older key has signed is no token any more.
"""

from soperator.api.fields.change import seconds
from soperator.api.fields.rest import KeptToken
from soperator.slurm.user_tokens import TokenNote

#: Of a token's life, after which it is made anew.
_HALF = 0.5


def renewal(wanted: KeptToken, note: TokenNote | None, key: str) -> float:
    """From when on the token is to be made anew, in seconds since 1970; 0 where it is no good as it is."""
    lifetime = seconds(wanted.lifetime)
    if note is None or (note.user, note.lifetime, note.key) != (wanted.user, lifetime, key):
        return 0.0
    return note.ends - lifetime * _HALF
