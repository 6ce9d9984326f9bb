"""Errors of a slurmrestd without a usable answer."""


class SlurmError(Exception):
    """slurmrestd could not be reached, or refused a request; the text says which."""


class SlurmDenied(SlurmError):  # noqa: N818
    """slurmrestd rejects our token: the key has changed."""
