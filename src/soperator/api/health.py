"""Health checks, as the spec of a SlurmCluster has them."""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model
from soperator.api.change import Share


class Health(Model):
    """Quick checks that every worker runs beside its jobs."""

    checks: Literal["Off", "Tell", "Drain"] = Field(
        default="Off",
        description=(
            "Off: none run. Tell: they run, and what they find is told. Drain: a node that fails one takes no more jobs until it passes again; "
            "jobs that run go on. Changing it from or to Off rolls the workers."
        ),
    )
    interval: Annotated[str, Field(pattern=r"^([1-9][0-9]{1,2}s|[1-9][0-9]?m)$")] = Field(
        default="60s", description="How often they run, from 10s to 99m."
    )
    max_out: Share = Field(
        default="10%",
        description="How many nodes of each NodeSet may be out through checks at once, as a number or a share of its replicas, at least 1 unless it "
        "is 0. When more fail, the others stay in service and it is told.",
    )
    skip: list[Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=63)]] = Field(
        default_factory=list, max_length=64, description="Checks that are left out, by name."
    )
