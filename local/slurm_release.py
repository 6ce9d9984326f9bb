"""The release of Slurm in the images and in the roots for tests, and the source of its packages.

`SLURM_RELEASE` names one of `RELEASES`; the default is `DEFAULT`. `SLURM_PACKAGES` names a folder of packages that were built elsewhere,
for example with PMIx: they replace Debian's packages, and must be of that release.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local.paths import cache
from local.progress import Failure

#: The release of `make demo`, of every test, and of images that name none.
DEFAULT = "24.11"
#: Each release, and the Debian whose packages of Slurm it is. All else in an image is of images.SUITE.
RELEASES = {"24.11": "trixie", "26.05": "forky"}
#: What slurm.conf needs for a release, beside what the operator writes: 26.05 wants an extern step where jobs have namespaces, and Debian's packages
#: of it have no PMIx.
SETTINGS = {"24.11": (), "26.05": ("PrologFlags=Contain", "MpiDefault=none")}
#: What a folder of packages must have for an image of the daemons.
NEEDED = ("libslurm-dev", "sackd", "slurm-client", "slurm-wlm-basic-plugins", "slurmctld", "slurmd", "slurmdbd", "slurmrestd")  # fmt: skip


def chosen() -> str:
    """Return the release in the environment; raises Failure for an unknown one."""
    release = os.environ.get("SLURM_RELEASE") or DEFAULT
    if release not in RELEASES:
        raise Failure(f"SLURM_RELEASE={release}: there is {' and '.join(RELEASES)}")
    return release


def prebuilt(release: str) -> Path | None:
    """Return the folder of SLURM_PACKAGES as an archive for apt, if it is set and this release is chosen; raises Failure if it cannot be used.

    The packages are copied to the cache beside an index, under a hash of their content, so that changes in the folder do not disturb a
    build.
    """
    given = os.environ.get("SLURM_PACKAGES")
    if not given or release != chosen():
        return None
    debs = sorted(Path(given).glob("*.deb"))
    entries = [_entry(deb) for deb in debs]
    _check(given, release, entries)
    index = "\n".join(entries)
    folder = cache() / "slurm-packages" / hashlib.sha256(index.encode()).hexdigest()[:16]
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for deb in debs:
            shutil.copy(deb, partial)
        (partial / "Packages").write_text(index)
        partial.rename(folder)
    return folder


def _entry(deb: Path) -> str:
    """Return the paragraph of a package in an archive's index."""
    done = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"SLURM_PACKAGES: {deb} is no Debian package: {done.stderr.strip()}")
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    return f"{done.stdout.rstrip()}\nFilename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"


def _check(given: str, release: str, entries: Sequence[str]) -> None:
    fields = [dict(re.findall(r"^(Package|Version): (.*)$", entry, re.MULTILINE)) for entry in entries]
    versions = {each["Package"]: each["Version"] for each in fields}
    if missing := [name for name in NEEDED if name not in versions]:
        raise Failure(f"SLURM_PACKAGES={given}: there is no package {', '.join(missing)}")
    for name in NEEDED:
        if not re.match(rf"{re.escape(release)}[.-]", versions[name]):
            raise Failure(f"SLURM_PACKAGES={given}: {name} is {versions[name]}; SLURM_RELEASE asks for {release}")


def arguments(release: str) -> list[str]:
    """Return the build arguments of images/slurm/Dockerfile for a release: its name, its Debian, and the packages from SLURM_PACKAGES."""
    folder = prebuilt(release)
    given = f"SLURM_PACKAGES={folder.name if folder else ''}"
    return [f"SLURM_RELEASE={release}", f"SLURM_SUITE={RELEASES[release]}", given]


def volumes(release: str) -> list[str]:
    """Return the folder of SLURM_PACKAGES as a volume of a build, mounted at /packages."""
    return [f"{folder}:/packages:ro"] if (folder := prebuilt(release)) else []


def with_settings(spec: Mapping[str, Any], is_patch: bool = False) -> dict[str, Any]:
    """Return the spec of a SlurmCluster with the lines of slurm.conf that the chosen release needs, after the spec's own lines.

    A patch that does not set those lines keeps them.
    """
    settings = "\n".join(SETTINGS[chosen()])
    config = spec.get("config") or {}
    lines = config.get("extraLines") or {}
    touches = ("config" in spec and not config) or ("extraLines" in config and not lines) or "slurm" in lines
    if not settings or (is_patch and not touches):
        return dict(spec)
    former = lines.get("slurm") or ""
    joined = former if settings in former else f"{former.rstrip()}\n{settings}".lstrip()
    return {**spec, "config": {**config, "extraLines": {**lines, "slurm": joined}}}
