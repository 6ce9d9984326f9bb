"""What a slurmrestd that gives no usable answer is reported as."""


class SlurmError(Exception):
    """slurmrestd could not be reached, or said no; the text says which."""


class SlurmDenied(SlurmError):  # noqa: N818
    """slurmrestd takes our token for none: the key has changed."""
