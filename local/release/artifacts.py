"""Other parts of a release: the wheel, the command line as one file with its plugin for krew, the site, and the notes."""

import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from local import zipapp
from local.paths import REPOSITORY
from local.progress import Failure
from local.release import tools

URL = "RELEASE_URL"


def write_wheel(folder: Path) -> Path:
    """Write the wheel of what is committed or changed in src, and return its path."""
    shutil.rmtree(REPOSITORY / "build/lib", ignore_errors=True)  # setuptools packs what a former build has left there
    environment = os.environ | zipapp.BUILDER | {"SOURCE_DATE_EPOCH": str(tools.commit_time())}
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    tools.run([*words, f"--wheel-dir={folder}", str(REPOSITORY)], environment=environment)
    (wheel,) = folder.glob("*.whl")
    set_modes(wheel)
    return wheel


def set_modes(archive: Path) -> None:
    """Write a zip archive again with mode 0644 for each file, because setuptools takes the modes that the umask of the checkout has left."""
    new = archive.with_suffix(".new")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in old.infolist():
            same = zipfile.ZipInfo(entry.filename, entry.date_time)
            same.compress_type, same.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | 0o644) << 16
            packed.writestr(same, old.read(entry))
    new.replace(archive)


def write_program(folder: Path) -> Path:
    """Write soperator.pyz and kubectl-slurm.tar.gz; with RELEASE_URL, the address of the published files, also slurm.yaml for krew."""
    with tempfile.TemporaryDirectory() as name:
        program = folder / "soperator.pyz"
        shutil.copy(zipapp.build(Path(name)), program)
    manifest = zipapp.write_plugin(folder, program, os.environ.get(URL, ""))
    if not os.environ.get(URL):
        manifest.unlink()  # krew could not download from nowhere
    return program


def write_site(folder: Path) -> Path:
    """Write the site as site.tar.gz with one folder `site`."""
    tools.run([sys.executable, "-m", "local.site"])
    archive = folder / "site.tar.gz"
    tools.write_tar(archive, tools.files_below(REPOSITORY / "build/site", "site/"), compressed=True)
    return archive


def write_notes(folder: Path, version: str, digests: Mapping[str, str]) -> Path:
    """Write NOTES.md: the commit, the version's part of CHANGELOG.md, the images, and the commits since the last tag."""
    changes = changelog((REPOSITORY / "CHANGELOG.md").read_text(), version)
    images = "".join(f"| {role} | `{digest}` |\n" for role, digest in sorted(digests.items()))
    commit = tools.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).strip()
    path = folder / "NOTES.md"
    path.write_text(
        f"# Soperator {version}\n\nCommit {commit}.\n\n{changes}\n\n## Images\n\n| role | digest |\n|---|---|\n{images}\n{_commits()}"
    )
    return path


def changelog(text: str, version: str) -> str:
    """Return the part of a changelog about a version, without its heading; a version without a part is a Failure."""
    found = re.search(rf"^## {re.escape(version)}(?![\w.+-])[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not found or not found[1].strip():
        raise Failure(f"CHANGELOG.md: there is nothing below a heading `## {version}`: write what changes for users")
    return found[1].strip()


def _commits() -> str:
    """Return the subjects of the commits since the last tag of a version, newest first; only their number if there is no such tag."""
    tags = tools.run(["git", "tag", "--list", "v*", "--merged", "HEAD^", "--sort=-creatordate"]).split()
    if not tags:
        return f"## Commits\n\n{tools.run(['git', 'rev-list', '--count', 'HEAD']).strip()} commits: no version was released before.\n"
    subjects = tools.run(["git", "log", "--no-merges", "--format=- %s (%h)", f"{tags[0]}..HEAD"])
    return f"## Commits since {tags[0]}\n\n{subjects}"
