"""The record of a user's token in a Secret."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TokenNote:
    """The token's user, its expiry (seconds since 1970), its life in seconds, and the version of the key that signed it."""

    user: str
    ends: float
    lifetime: float
    key: str
