"""The base of all kinds of the API.

The models are the only source of the CRDs, of the command line's help and of the reference pages, so a field's description is written for the person
who sets it. They are frozen: a pass reads a spec and never changes it. Reading is tolerant (a field of a newer version is skipped, so that a rollback
works); `soperator lint` and the CRD's schema are strict.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "slurm.soperator.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_NAME = r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$"
SLURM_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
PLAIN = r"^[^\x00-\x1f\x7f]*$"
ABSOLUTE_PATH = r"^/[^\x00-\x1f\x7f]*$"


def camel_case(name: str) -> str:
    """Return a field's name in the API: camelCase, with TRES and QOS as Slurm writes them."""
    return re.sub(r"(?<=[a-z])(Tres|Qos)(?=[A-Z]|$)", lambda word: word[0].upper(), to_camel(name))


class Model(BaseModel):
    """A frozen piece of a spec, camelCase outside and snake_case inside."""

    model_config = ConfigDict(
        frozen=True, alias_generator=camel_case, populate_by_name=True, extra="ignore", use_attribute_docstrings=False
    )


@dataclass(frozen=True)
class Problem:
    """One fault in a spec: its object and field, the value, and the remedy."""

    field: str
    value: str
    remedy: str
    subject: str = ""

    def __str__(self) -> str:
        """Return the problem as one sentence for a condition, an event or the terminal; it begins with the subject, if it has one."""
        return ": ".join(part for part in (self.subject, self.field, self.value, self.remedy) if part)


def numbers(values: Mapping[str, str]) -> dict[str, float]:
    """Return decimal numbers by name, for arithmetic."""
    return {name: float(value) for name, value in values.items()}


def _quantity_text(value: object) -> object:
    """Turn a whole number into the text of a quantity, because people write `cpu: 2` without quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Quantity = Annotated[
    str,
    Field(pattern=QUANTITY, max_length=32, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_quantity_text),
]
#: A number without unit or exponent. Kubernetes' conventions forbid floats, because their text differs from one language to another.
DecimalNumber = Annotated[
    str,
    Field(
        pattern=r"^(0|[1-9][0-9]*)([.][0-9]+)?$", max_length=32, json_schema_extra={"x-kubernetes-int-or-string": True}
    ),
    BeforeValidator(_quantity_text),
]
Text = Annotated[str, Field(max_length=65536)]

#: The most bytes of an `Opaque` value as JSON: a pod template with a hundred variables has 10,000.
OPAQUE_MOST = 65536


def _bounded(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse a value that is too large: its fields have no schema, so the API server cannot bound it."""
    if (size := len(json.dumps(value, separators=(",", ":")))) > OPAQUE_MOST:
        raise ValueError(f"it has {size} bytes as JSON, and may have {OPAQUE_MOST}: put large text into a ConfigMap")
    return value


#: A piece of the Kubernetes API that we hand through unread; the API server checks it when the pod is applied.
Opaque = Annotated[
    dict[str, Any],
    Field(max_length=64, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    AfterValidator(_bounded),
]
