"""The record of a user's token in a Secret, from which the operator knows when to replace the token without reading it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TokenNote:
    """A token's user, its expiry (seconds since 1970), its lifetime in seconds, and the version of the key that signed it."""

    user: str
    ends: float
    lifetime: float
    key: str
