"""Charts of a release: packages with the release's version, and with the digests of its images as values.

The digests hold in every registry. The registry's address is a value of its own, which stays empty without REGISTRY: then helm refuses the
chart until `images.prefix` is set.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from local.paths import REPOSITORY
from local.progress import Failure
from local.release import tools

NAMES = ("soperator-crds", "soperator", "slurm-cluster", "slurm-cluster-storage")
_OPERATOR, _CLUSTER = "soperator", "slurm-cluster"


def write(folder: Path, version: str, digests: Mapping[str, str], registry: str) -> list[Path]:
    """Write NAME-VERSION.tgz for each chart, and return the files."""
    return [_package(folder, name, version, digests, registry) for name in NAMES]


def with_images(chart: str, values: str, version: str, digests: Mapping[str, str], registry: str) -> str:
    """Return a chart's values.yaml with the images of a release; comments stay. A line that is not there any more is a Failure."""
    if chart == _OPERATOR:
        lines = "".join(f"\n    {role}: {digest}" for role, digest in sorted(digests.items()))
        values = _replaced(chart, values, "  digests: {}", "  digests:", lines)
        return _replaced(chart, values, '  prefix: ""', f'  prefix: "{registry}"') if registry else values
    if chart == _CLUSTER and registry:
        image = f"{registry}/operator:{version}@{digests['operator']}"
        return _replaced(chart, values, '  image: ""', f'  image: "{image}"')
    return values


def _replaced(chart: str, text: str, before: str, after: str, following: str = "") -> str:
    """Replace the beginning of exactly one line, and insert further lines after it."""
    lines = text.splitlines()
    found = [number for number, line in enumerate(lines) if line == before or line.startswith(f"{before} ")]
    if len(found) != 1:
        raise Failure(
            f"charts/{chart}/values.yaml: {len(found)} lines begin with {before!r}: a release needs exactly one"
        )
    lines[found[0]] = after + lines[found[0]].removeprefix(before) + following
    return "\n".join(lines) + "\n"


def _package(folder: Path, chart: str, version: str, digests: Mapping[str, str], registry: str) -> Path:
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / chart
        shutil.copytree(REPOSITORY / "charts" / chart, copy)
        values = copy / "values.yaml"
        values.write_text(with_images(chart, values.read_text(), version, digests, registry))
        when = tools.commit_time()
        for path in [copy, *copy.rglob("*")]:
            os.utime(path, (when, when))  # helm gives each entry of the package the time of its file
        versions = ["--version", version, "--app-version", version]
        tools.run([tools.helm(), "package", str(copy), "--destination", str(folder), *versions])
    return folder / f"{chart}-{version}.tgz"
