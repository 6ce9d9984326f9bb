"""Errors of requests to slurmrestd, apart from the client, so that callers and tests need not import HTTP."""


class SlurmError(Exception):
    """slurmrestd could not be reached, or refused a request; the text names the request and the cause."""


class SlurmDenied(SlurmError):  # noqa: N818
    """slurmrestd rejected the operator's token, because the key has changed."""
