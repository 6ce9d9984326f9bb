"""Images of a release: each built image as an OCI archive with its digest, and the list of its packages as an SPDX document.

skopeo converts and later uploads the same bytes, so the digest here is the digest in the registry.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from local import images, sbom
from local.progress import say
from local.release import tools

#: The recipes of the images that the chart `soperator` names.
RECIPES = ("slurm", "jail", "operator", "proxy", "backup", "mariadb", "sssd")


@dataclass(frozen=True)
class Released:
    """An image of a release: its OCI archive, its manifest's digest (sha256:…), and the roles that use it."""

    archive: Path
    digest: str
    roles: tuple[str, ...]


def write(folder: Path, version: str) -> list[Released]:
    """Write NAME.oci.tar and NAME.spdx.json for each image, and return the images."""
    released = []
    for image in images.built(RECIPES):
        archive = folder / f"{image.name}.oci.tar"
        digest = _convert(image, archive, version)
        document = sbom.spdx(image.tar, image.name, version, digest, tools.commit_time())
        (folder / f"{image.name}.spdx.json").write_text(json.dumps(document, indent=1) + "\n")
        released.append(Released(archive, digest, tuple(sorted(image.references()))))
        say(f"{image.name}: {archive.stat().st_size / 1e6:.0f} MB, {digest}, {len(document['packages']) - 1} packages")
    return released


def digests(released: list[Released]) -> dict[str, str]:
    """Return the digest of each role's image."""
    return {role: image.digest for image in released for role in image.roles}


def _convert(image: images.Image, archive: Path, version: str) -> str:
    """Write the OCI archive of a docker-archive, and return the digest of its manifest."""
    layout = archive.with_suffix(".layout")
    tools.run(["skopeo", "copy", "--quiet", f"docker-archive:{image.tar}:{image.tags[0]}", f"oci:{layout}:{version}"])
    tools.write_tar(archive, tools.files_below(layout), compressed=False)
    digest = str(json.loads((layout / "index.json").read_text())["manifests"][0]["digest"])
    shutil.rmtree(layout)
    return digest
