"""What is inside an image is read from its archive."""

import io
import json
import tarfile
from pathlib import Path

from local import sbom

STATUS = """Package: bash
Status: install ok installed
Version: 5.2-1
Description: a shell
 with: a colon

Package: gone
Status: deinstall ok config-files
Version: 1
"""
NEWER = STATUS.replace("5.2-1", "5.2-2")
COPIED = "Package: libslurm42\nStatus: install ok installed\nSource: slurm-wlm (24.11.5-4)\nVersion: 24.11.5-4+b1\n"
WHEEL = "Metadata-Version: 2.4\nName: msgspec\nVersion: 0.19\n\nVersion: no field\n"


def tar(files: dict[str, bytes]) -> bytes:
    """A tar archive of files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_the_highest_layer_says_what_is_installed(tmp_path: Path) -> None:
    """With what was copied as files and what pip brought; packages that were removed are left out."""
    low = tar({"var/lib/dpkg/status": STATUS.encode(), "etc/status": b"Package: no\nVersion: 1\n"})
    high = tar(
        {
            "./var/lib/dpkg/status": NEWER.encode(),
            "var/lib/dpkg/status.d/libslurm42": COPIED.encode(),
            "usr/lib/python3/dist-packages/msgspec-0.19.dist-info/METADATA": WHEEL.encode(),
        }
    )
    manifest = json.dumps([{"Layers": ["a.tar", "b.tar"]}]).encode()
    archive = tmp_path / "image.tar"
    archive.write_bytes(tar({"b.tar": high, "a.tar": low, "manifest.json": manifest}))
    assert sbom.packages(archive) == [
        "debian bash 5.2-2 bash", "debian libslurm42 24.11.5-4+b1 slurm-wlm", "python msgspec 0.19",
    ]  # fmt: skip
    document = sbom.spdx(archive, "slurm", "0.1.0", "sha256:ab", 0)
    image, *contents = document["packages"]
    assert document["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    assert (image["name"], image["externalRefs"][0]["referenceLocator"]) == ("slurm", "pkg:oci/slurm@sha256%3Aab")
    assert [(each["name"], each["versionInfo"], each["externalRefs"][0]["referenceLocator"]) for each in contents] == [
        ("bash", "5.2-2", "pkg:deb/debian/bash@5.2-2"),
        ("libslurm42", "24.11.5-4+b1", "pkg:deb/debian/libslurm42@24.11.5-4%2Bb1"),
        ("msgspec", "0.19", "pkg:pypi/msgspec@0.19"),
    ]
    related = {
        each["relatedSpdxElement"] for each in document["relationships"] if each["relationshipType"] == "CONTAINS"
    }
    assert related == {each["SPDXID"] for each in contents}
