"""A wait of a test that ran out."""


class LateError(AssertionError):
    """What was waited for did not come in time: `make test` plays such a test once more, and tells it (docs/decisions/0083)."""
