"""Converts Kubernetes quantities to exact numbers, because a comparison of texts or floats is wrong.

Source: Kubernetes' resource.Quantity, without exponents, which the schema refuses.
"""

from decimal import Decimal
from types import MappingProxyType

_FACTORS = MappingProxyType(
    {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(10**3)}
    | {unit: Decimal(1000**power) for power, unit in enumerate("MGTPE", 2)}
    | {f"{unit}i": Decimal(1024**power) for power, unit in enumerate("KMGTPE", 1)}
)


def amount(text: str) -> Decimal:
    """Return the exact number of a quantity; raises ValueError for an invalid one."""
    digits = text.rstrip("mkKMGTPEi")
    factor = _FACTORS.get(text[len(digits) :])
    if factor is None or not digits.replace(".", "", 1).isdigit():
        raise ValueError(f"{text!r} is not a quantity: write a number with a suffix such as m, Mi or Gi")
    return Decimal(digits) * factor
