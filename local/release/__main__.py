"""`python3 -m local.release VERSION`: makes dist/VERSION, and with REGISTRY publishes its images and charts.

A release is of a commit: changed files are refused, unless `--changed` allows them for a trial.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from local import debian, images
from local.paths import REPOSITORY
from local.progress import Failure, say
from local.release import artifacts, charts, push, sums, tools
from local.release import images as released_images

DIST = REPOSITORY / "dist"


def main() -> int:
    """Run the command line; print a failure without a traceback."""
    parser = argparse.ArgumentParser(prog="python3 -m local.release", description="Make a release.")
    parser.add_argument("version")
    parser.add_argument("--changed", action="store_true", help="allow files that are not committed, for a trial")
    parser.add_argument("--into", type=Path, default=DIST, help="the folder for the folder of the release")
    arguments = parser.parse_args()
    try:
        release(arguments.version, os.environ.get("REGISTRY", ""), arguments.into, changed=arguments.changed)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


def release(version: str, registry: str, into: Path, *, changed: bool) -> Path:
    """Make the release in a folder VERSION below `into`, publish it if there is a registry, and return the folder."""
    key = sums.take_key()
    refuse(version, registry, "" if changed else tools.run(["git", "status", "--porcelain", "--untracked-files=no"]))
    if not shutil.which("skopeo"):
        if os.geteuid():
            raise Failure("skopeo is not there: install it, or run this as root on Debian")
        debian.apt("install", "--no-install-recommends", "skopeo")
    into.mkdir(parents=True, exist_ok=True)
    partial, folder = into / f".{version}", into / version
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    released = released_images.write(partial, version)
    digests = released_images.digests(released)
    packages = charts.write(partial, version, digests, registry)
    say("charts: " + ", ".join(each.name for each in packages))
    for made in (
        artifacts.write_wheel(partial),
        artifacts.write_program(partial),
        artifacts.write_site(partial),
        artifacts.write_notes(partial, version, digests),
        sums.write(partial),
    ):
        say(made.name)
    say("signed" if sums.sign(partial, key) else f"not signed: {sums.KEY} has no private key in PEM")
    if registry:
        push.push(registry, version, released, packages)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    say(f"the release is in {folder}")
    return folder


def refuse(version: str, registry: str, uncommitted: str) -> None:
    """Raise Failure if the version is not the code's, the registry is not an address, or git lists uncommitted files."""
    if version != images.version():
        raise Failure(
            f"VERSION={version}: src/soperator/__init__.py has {images.version()}: set it there and in charts/*/Chart.yaml, and commit"
        )
    if registry:
        push.check(registry)
    artifacts.changelog((REPOSITORY / "CHANGELOG.md").read_text(), version)
    if uncommitted:
        raise Failure(f"these files are not committed, and a release is of a commit:\n{uncommitted.rstrip()}")


if __name__ == "__main__":
    sys.exit(main())
