"""`python3 -m local.images outdated|refresh`: lists packages of the built images that Debian's archive has in a newer version.

If there are any, `refresh` stores the present time in the cache. The time is an input of every image's name, so `make images` rebuilds all
images under new tags. Otherwise it changes nothing, so it can run every night.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from local import images, sbom, slurm_release
from local.images import Image, Recipe
from local.paths import REPOSITORY, cache

_POLICY = re.compile(r"^(\S+):\n  Installed: .*\n  Candidate: (\S+)$", re.MULTILINE)


def main(verb: str, names: Sequence[str]) -> int:
    """Print the outdated packages. For `outdated`, return 1 if there are any; for `refresh`, store the time."""
    found = [(recipe, image) for recipe in _recipes(names) if (image := images.image_of(recipe)).tar.exists()]
    lines = [line for recipe, image in found for line in outdated(recipe.name, debian(image), offered(recipe, image))]
    print("\n".join(lines) or f"{len(found)} images are built, and the archive has nothing newer")
    if lines and verb == "refresh":
        note()
        print(f"packages are new from {images.packages_since()} on: `make images` rebuilds every image")
    return 1 if lines and verb == "outdated" else 0


def _recipes(names: Sequence[str]) -> Sequence[Recipe]:
    return images.selected(names) if names else images.RECIPES


def debian(image: Image) -> dict[str, str]:
    """Return the versions of Debian's packages in an image."""
    lines = [line.split() for line in sbom.packages(image.tar)]
    return {line[1]: line[2] for line in lines if line[0] == "debian"}


def offered(recipe: Recipe, image: Image) -> dict[str, str]:
    """Return the versions of these packages that a build of the image would install today."""
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        out = Path(folder)
        (out / "names").write_text("\n".join(debian(image)).replace("\n", " "))
        shutil.copy(REPOSITORY / "images/slurm/release", out)
        update = f"sh /out/release {recipe.release} {slurm_release.RELEASES[recipe.release]}" if recipe.slurm else ""
        script = f"{update or 'apt-get update'} && apt-cache policy $(cat /out/names) >/out/policy"
        images.run_in_base(script, out, recipe.suite)
        return candidates((out / "policy").read_text())


def candidates(policy: str) -> dict[str, str]:
    """Return the candidate version of each package in the output of `apt-cache policy`."""
    return {name: version for name, version in _POLICY.findall(policy) if version != "(none)"}


def outdated(name: str, has: Mapping[str, str], offers: Mapping[str, str]) -> list[str]:
    """Return a line for each package of an image that the archive has in a newer version; a package that the archive lacks is skipped."""
    return [
        f"{name}: {package} {version}: {offers[package]}"
        for package, version in sorted(has.items())
        if package in offers and is_older(version, offers[package])
    ]


def is_older(version: str, other: str) -> bool:
    """Return whether a version of a Debian package is lower than another one, as dpkg compares them."""
    if version == other:
        return False
    return subprocess.run(["dpkg", "--compare-versions", version, "lt", other], check=False).returncode == 0


def note() -> None:
    """Store the present time as the time from which packages are new."""
    (cache() / "packages-since").write_text(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M\n"))
