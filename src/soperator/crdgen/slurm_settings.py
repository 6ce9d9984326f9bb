"""The reference page of Slurm's settings: those that the operator owns, and its defaults; `make crds` writes it."""

from collections.abc import Iterator, Mapping

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf
from soperator.slurm import conf
from soperator.slurm.settings import managed

NAME = "slurm-settings.md"
_OWNED = (
    ("slurm.conf", "A line of `spec.config.extraLines.slurm` with one of these is refused.", managed.OWNED),
    ("slurm.conf, where accounting is on", "With `spec.accounting` these are refused too.", managed.ACCOUNTING),
    ("slurm.conf, with a topology", "With `spec.topology.type` this is refused too.", managed.TOPOLOGY),
    ("A node", "A word of `extraConf` of a NodeSet with one of these is refused.", managed.OWNED_NODE),
    ("A partition", "An entry of `spec.partitions[].options` with one of these is refused.", managed.OWNED_PARTITION),
)


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def defaults() -> list[conf.Setting]:
    """Return the settings of a cluster with an empty spec that an administrator may override, in their order in slurm.conf."""
    mine = {each.lower() for each in (*managed.OWNED, *managed.SHARED)}
    text = slurm_conf.slurm_conf(Cluster("slurm", "demo", "", SlurmClusterSpec()))
    return [each for each in conf.settings(text) if each.key.lower() not in mine]


def _lines() -> Iterator[str]:
    yield "# Settings of Slurm"
    yield ""
    yield "<!-- Generated from src/soperator/slurm/settings and src/soperator/render by `make crds`. -->"
    yield ""
    yield "Every setting of slurm.conf(5) that is not in the first tables is yours: write it into `spec.config.extraLines.slurm`."
    yield ""
    yield "## Settings that the operator owns"
    for title, said, owned in _OWNED:
        yield ""
        yield f"### {title}"
        yield ""
        yield said
        yield ""
        yield from _table(("setting", "what to do instead"), owned)
    yield ""
    yield "## Lists that are shared"
    yield ""
    yield "What you write is united with ours."
    yield ""
    yield from _table(("setting", "ours"), {key: f"`{value}`" for key, value in managed.SHARED.items()})
    yield ""
    yield "## Defaults"
    yield ""
    yield "A cluster with an empty spec has these lines. Yours stand after them, and of a setting that is written twice Slurm takes the last."
    yield ""
    yield from _table(("setting", "value"), {each.key: f"`{each.value}`" for each in defaults()})


def _table(head: tuple[str, str], rows: Mapping[str, str]) -> Iterator[str]:
    yield f"| {head[0]} | {head[1]} |"
    yield "|---|---|"
    for key, text in rows.items():
        yield f"| `{key}` | {text} |"
