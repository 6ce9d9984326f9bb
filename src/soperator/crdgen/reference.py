"""The reference pages of the operator's kinds, computed from the models, and those of the other modules here; `make crds` writes them. One entry
collects all pages, so that none is forgotten.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from soperator.api.base import API_VERSION
from soperator.api.validation.cel_rules import NAMES
from soperator.cli.support import reference as cli
from soperator.crdgen import checks, conditions, deep_checks, labels, metrics, slurm_settings
from soperator.crdgen.columns import ALL, Definition
from soperator.crdgen.fields import fields, rules_of
from soperator.crdgen.schema import Schema, structural

FOLDER = Path("docs/reference")


def page(kind: Definition) -> str:
    """Return the page of one kind as Markdown."""
    return "\n".join(_lines(kind)) + "\n"


def files() -> Mapping[str, str]:
    """Return the pages by file name."""
    return {f"{kind.kind.lower()}.md": page(kind) for kind in ALL} | {
        checks.NAME: checks.page(),
        deep_checks.NAME: deep_checks.page(),
        metrics.NAME: metrics.page(),
        conditions.NAME: conditions.page(),
        labels.NAME: labels.page(),
        slurm_settings.NAME: slurm_settings.page(),
        cli.NAME: cli.page(),
    }


def _lines(kind: Definition) -> Iterator[str]:
    yield f"# {kind.kind}"
    yield ""
    yield f"<!-- Generated from src/soperator/api by `make crds`. -->\n\n{_escaped(kind.description)}"
    yield ""
    names = ", ".join(f"`{name}`" for name in (kind.plural, *kind.short_names))
    yield f"`apiVersion: {API_VERSION}`. Names for `kubectl get`: {names}."
    yield ""
    yield "## Name"
    yield ""
    for rule in NAMES[kind.kind]:
        yield f"- {rule.message}."
    yield from _table("spec", structural(kind.spec))
    yield from _table("status", structural(kind.status))


def _table(title: str, schema: Schema) -> Iterator[str]:
    rows = list(fields(schema))
    yield ""
    yield f"## {title}"
    yield ""
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for row in rows:
        default = f"`{row.default}`" if row.default and row.default != "required" else row.default
        yield f"| `{row.path}` | {row.type} | {default} | {_escaped(row.description)} |"
    rules = [(title, rule) for rule in rules_of(schema)] + [(row.path, rule) for row in rows for rule in row.rules]
    if rules:
        yield ""
        yield "Rules that the API server checks:"
        yield ""
        for path, rule in rules:
            yield f"- `{path}`: {rule}."


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
