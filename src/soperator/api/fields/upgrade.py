"""When a cluster adopts a newer operator's rendering of the same spec."""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model

Reference = Annotated[str, Field(max_length=512)]
Digest = Annotated[str, Field(max_length=64)]
#: Images by their roles: slurm, login, munge, agents, jail, sssd, mariadb.
Images = Annotated[dict[str, Reference], Field(max_length=16)]


class Upgrade(Model):
    """When a cluster adopts the defaults of a newer operator: images that the spec does not name, and its rendering of an unchanged spec."""

    mode: Literal["OnRequest", "WithOperator"] = Field(
        default="OnRequest",
        description=(
            "OnRequest: when request has a new word; until then an upgrade of the operator restarts nothing. WithOperator: as soon as the "
            "operator is a newer one."
        ),
    )
    request: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)] = Field(
        default="", description="Any word that was not there before is one request, for example the operator's version."
    )


class RenderedNote(Model):
    """What the last pass rendered, so that a newer operator knows what it must not change (docs/decisions/0040-upgrades-are-asked-for.md)."""

    renderer: str = Field(default="", max_length=64, description="The version of the renderer that produced it.")
    inputs: str = Field(default="", max_length=64, description="From what: a hash.")
    request: str = Field(default="", max_length=63, description="The last spec.upgrade.request at that time.")
    wanted: Annotated[dict[str, Digest], Field(max_length=32)] = Field(
        default_factory=dict, description="Hashes of the workloads, or of the template of workers."
    )
    same: Annotated[dict[str, Annotated[list[Digest], Field(max_length=8)]], Field(max_length=32)] = Field(
        default_factory=dict, description="Hashes of a former version that count as those."
    )


class ImagesRecord(Model):
    """The images that a cluster keeps, and the progress of new ones."""

    defaults: Images = Field(
        default_factory=dict,
        description="The operator's images, as they were adopted; spec.images overrides them.",
    )
    workers: Images = Field(
        default_factory=dict, description="Images of workers and slurmrestd; behind those wanted until slurmctld runs."
    )
    login: Images = Field(
        default_factory=dict, description="Images of login; behind those wanted until all workers have theirs."
    )
    request: str = Field(default="", max_length=63, description="The last spec.upgrade.request that was carried out.")
    versions: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=8)] = Field(
        default_factory=dict,
        description="The Slurm version in an image, from its trial; empty where the trial reported none.",
    )
