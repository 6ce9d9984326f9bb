"""What is noted of a user's token that is kept in a Secret."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TokenNote:
    """Whose token it is, until when (seconds since 1970), for how many seconds it was made, and the version of the key that signed it."""

    user: str
    ends: float
    lifetime: float
    key: str
