"""The reference page of Slurm's settings: those that the operator owns, and its defaults, computed from the code that applies them so that the
page is complete; `make crds` writes it.
"""

from collections.abc import Iterator, Mapping

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf
from soperator.slurm import conf
from soperator.slurm.settings import managed

NAME = "slurm-settings.md"
_OWNED = (
    ("slurm.conf", "The operator refuses a line of `spec.config.extraLines.slurm` with one of these.", managed.OWNED),
    ("slurm.conf, where accounting is on", "With `spec.accounting` it also refuses these.", managed.ACCOUNTING),
    ("slurm.conf, with a topology", "With `spec.topology.type` it also refuses this one.", managed.TOPOLOGY),
    ("A node", "The operator refuses `extraConf` of a NodeSet with one of these.", managed.OWNED_NODE),
    (
        "A partition",
        "The operator refuses an entry of `spec.partitions[].options` with one of these.",
        managed.OWNED_PARTITION,
    ),
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
    yield "All settings of slurm.conf(5) that the first tables do not list are yours: write them into `spec.config.extraLines.slurm`."
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
    yield "The operator merges your values with its own."
    yield ""
    yield from _table(("setting", "ours"), {key: f"`{value}`" for key, value in managed.SHARED.items()})
    yield ""
    yield "## Defaults"
    yield ""
    yield "A cluster with an empty spec has these lines. Your lines follow them, and Slurm uses the last of two lines with one setting."
    yield ""
    yield from _table(("setting", "value"), {each.key: f"`{each.value}`" for each in defaults()})


def _table(head: tuple[str, str], rows: Mapping[str, str]) -> Iterator[str]:
    yield f"| {head[0]} | {head[1]} |"
    yield "|---|---|"
    for key, text in rows.items():
        yield f"| `{key}` | {text} |"
