"""Computes when a token in a Secret is renewed, from the request, the Secret's annotations, and the time.

A token cannot be revoked, so it is short-lived. It is renewed after half of its lifetime, so that a program that reads the Secret at its start has
the other half, and slurmctld may be down for that time. A token that a former key signed is invalid.
"""

from soperator.api.fields.change import seconds
from soperator.api.fields.rest import KeptToken
from soperator.slurm.user_tokens import TokenNote

#: The part of a token's life after which it is renewed.
_HALF = 0.5


def renewal(wanted: KeptToken, note: TokenNote | None, key: str) -> float:
    """Return when the token must be renewed, in seconds since 1970; 0 if it is already invalid."""
    lifetime = seconds(wanted.lifetime)
    if note is None or (note.user, note.lifetime, note.key) != (wanted.user, lifetime, key):
        return 0.0
    return note.ends - lifetime * _HALF
