"""Chance in tests that cannot be played twice: its seed is printed, and `SOPERATOR_SEED` gives it again."""

import os
import random


def drawn() -> int:
    """A seed, which pytest shows where the test fails."""
    seed = int(os.environ.get("SOPERATOR_SEED") or random.SystemRandom().randrange(2**31))
    print(f"SOPERATOR_SEED={seed}")
    return seed
