"""The fields that decide when a cluster adopts a newer operator's rendering of the same spec, because a changed rendering restarts pods."""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model

Reference = Annotated[str, Field(max_length=512)]
Digest = Annotated[str, Field(max_length=64)]
#: Images by their roles: slurm, login, munge, agents, jail, sssd, mariadb.
Images = Annotated[dict[str, Reference], Field(max_length=16)]


class Upgrade(Model):
    """The rule by which a cluster adopts the defaults of a newer operator: images that the spec does not name, and its rendering of an unchanged
    spec.
    """

    mode: Literal["OnRequest", "WithOperator"] = Field(
        default="OnRequest",
        description=(
            "OnRequest: when request has a new value; until then an upgrade of the operator restarts nothing. "
            "WithOperator: as soon as a newer operator runs."
        ),
    )
    request: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)] = Field(
        default="",
        description="Any new value is one request, for example the operator's version. It is carried out once; a former value is not.",
    )


class RenderedNote(Model):
    """The record of the last rendering, which tells a newer operator what must not change (docs/decisions/0040-upgrades-are-asked-for.md)."""

    renderer: str = Field(default="", max_length=64, description="Version of the renderer.")
    inputs: str = Field(default="", max_length=64, description="From what: a hash.")
    request: str = Field(default="", max_length=63, description="spec.upgrade.request at that time.")
    wanted: Annotated[dict[str, Digest], Field(max_length=32)] = Field(
        default_factory=dict, description="Hashes of the workloads, or of the template of workers."
    )
    same: Annotated[dict[str, Annotated[list[Digest], Field(max_length=8)]], Field(max_length=32)] = Field(
        default_factory=dict, description="Hashes of a former version that count as equal."
    )


class ImagesRecord(Model):
    """The images that a cluster keeps, and the progress of new ones."""

    defaults: Images = Field(
        default_factory=dict,
        description="The operator's images that the cluster adopted. spec.images overrides them.",
    )
    workers: Images = Field(
        default_factory=dict,
        description="Images of workers and slurmrestd. They change after slurmctld runs its new image.",
    )
    login: Images = Field(
        default_factory=dict, description="Images of login nodes. They change after all workers run their new image."
    )
    request: str = Field(default="", max_length=63, description="The last completed spec.upgrade.request.")
    versions: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=8)] = Field(
        default_factory=dict,
        description="Slurm version of each image, from its trial. Empty: the trial reported none.",
    )
