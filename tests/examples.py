"""How many generated inputs a property is tried on: a quarter in `make check`, all in `make test` and wherever nobody says otherwise."""

import os

_FEW = os.environ.get("SOPERATOR_FEW", "") != ""


def examples(number: int) -> int:
    """That many, or a quarter."""
    return max(8, number // 4) if _FEW else number
