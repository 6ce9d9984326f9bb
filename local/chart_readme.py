"""`python3 -m local.chart_readme`: generates the README of each chart from Chart.yaml and the comments in values.yaml.

So each value is described once. A value is a key of values.yaml, and its description is the comment on its line. A key without a comment
belongs to the key above it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from local.paths import REPOSITORY

CHARTS = REPOSITORY / "charts"
#: Where more about the values of a chart stands, by the chart.
LINKS = {
    "soperator": "[Install it](../../README.md#install-it-on-your-cluster), [publish images](../../docs/howto/publish-charts.md), "
    "[who may create what](../../docs/explain/who-may-create-what.md), [monitoring](../../docs/howto/monitoring.md)",
    "slurm-cluster": "[Start](../../docs/start.md#on-your-own-cluster), and the fields of [`cluster`](../../docs/reference/slurmcluster.md) and of "
    "[each NodeSet](../../docs/reference/nodeset.md)",
    "slurm-cluster-storage": "[Storage](../../docs/howto/storage.md#without-a-storage-driver)",
    "soperator-crds": "[Upgrade](../../docs/howto/upgrade.md), [uninstall](../../docs/howto/uninstall.md)",
}
_KEY = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(?: +(.*?))?(?:  # (.*))?$")


@dataclass(frozen=True)
class Value:
    """One value of a chart: its path, its default as written in the file, and its description."""

    path: str
    default: str
    meaning: str


def main() -> None:
    """Write the README of every chart."""
    for chart in sorted(each.name for each in CHARTS.iterdir()):
        path = CHARTS / chart / "README.md"
        path.write_text(text(chart))
        print(path.relative_to(REPOSITORY))


def text(chart: str) -> str:
    """Return the README of a chart."""
    about = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
    lines = [
        f"# {chart}",
        "",
        "<!-- Generated from Chart.yaml and values.yaml by `make crds`. -->",
        "",
        about["description"],
        "",
    ]
    lines += [
        f"Version {about['version']}, for Kubernetes {about['kubeVersion'].removesuffix('-0')}. More: {LINKS[chart]}.",
        "",
    ]
    if found := list(values((CHARTS / chart / "values.yaml").read_text())):
        lines += ["| value | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{each.path}` | {f'`{each.default}`' if each.default else ''} | {_sentence(each.meaning)} |"
            for each in found
        ]
    else:
        lines += ["It has no values."]
    return "\n".join(lines) + "\n"


def values(content: str) -> Iterator[Value]:
    """Yield the values of a file that have a comment, and the keys without children that lack one."""
    above: list[str] = []
    lines = content.splitlines()
    for number, line in enumerate(lines):
        if not (found := _KEY.match(line)):
            continue
        depth = len(found[1]) // 2
        above = [*above[:depth], found[2]]
        rest = found[3] or ""
        meaning = found[4] or (rest.removeprefix("# ") if rest.startswith("# ") else "")
        default = "" if rest.startswith("# ") else rest
        if meaning or not (_is_parent(lines, number, depth) or _has_meaning_above(lines, number, depth)):
            yield Value(".".join(above), default, meaning)


def _is_parent(lines: list[str], number: int, depth: int) -> bool:
    following = _KEY.match(lines[number + 1]) if number + 1 < len(lines) else None
    return bool(following and len(following[1]) // 2 > depth)


def _has_meaning_above(lines: list[str], number: int, depth: int) -> bool:
    """Return whether the nearest parent key has a comment, which also describes its children."""
    for line in reversed(lines[:number]):
        if (found := _KEY.match(line)) and len(found[1]) // 2 < depth:
            return "# " in line
    return False


def _sentence(meaning: str) -> str:
    escaped = meaning.replace("|", "\\|").replace("<", "&lt;")
    return escaped[:1].upper() + escaped[1:] + ("." if escaped and not escaped.endswith(".") else "")


if __name__ == "__main__":
    main()
