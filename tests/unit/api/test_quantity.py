"""Quantities compare as Kubernetes compares them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.api.validation.quantity import amount


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", "1"),
        ("1500m", "1.5"),
        ("0.5", "0.5"),
        ("2k", "2000"),
        ("1Ki", "1024"),
        ("1G", "1000000000"),
        ("1Gi", "1073741824"),
    ],
)
def test_amounts_are_exact(text: str, number: str) -> None:
    """Units are powers of 1000 or of 1024."""
    assert amount(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "Gi", "1KiB", "-1", "1.2.3", "1i"])
def test_other_texts_are_refused(text: str) -> None:
    """What is no quantity raises ValueError."""
    with pytest.raises(ValueError, match="is not a quantity"):
        amount(text)


@given(st.integers(0, 10**9))
def test_a_thousand_millis_are_one(number: int) -> None:
    """The unit m divides by a thousand."""
    assert amount(f"{number}000m") == amount(str(number))
