"""Builds the images without a registry or a container engine: mmdebstrap, buildah in a chroot, one tar per image.

The name of an image's tar has a hash of all its inputs, so an image is built if a file of that name exists, and an unchanged input needs no
build. The storage is a folder of the cache: the machine's containers and their configuration are not touched. One image may have several
names (the same layers, loaded into a Node once).
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from local import sbom, slurm_release, wheels
from local.paths import REPOSITORY, cache
from local.progress import Failure

SUITE = "trixie"
#: Packages of images are as new as the archive had them on this day, or later. Another day is another base, so every image is built anew with what
#: the archive has then; local/freshness.py notes a later one when Debian mends something (docs/howto/security-updates.md).
PACKAGES_SINCE = "2026-11-23"
BASE_PACKAGES = "ca-certificates"
PREFIX = "localhost/soperator"
EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*")
IGNORED = {"__pycache__", "fuzz", "tests", ".pytest_cache", ".hypothesis", "build", ".coverage"}
#: What of our Python runs on workers.
CHECKS = (
    "src/soperator/__init__.py",
    "src/soperator/checks",
    "src/soperator/agents/__init__.py",
    "src/soperator/agents/checks",
    "src/soperator/agents/usage",
    "src/soperator/observe",
)
KEPT_TARS = 2
KEPT_LAYERS = 150
CHOSEN = "chosen"


@dataclass(frozen=True)
class Recipe:
    """An image to build: its additional names, and the inputs in the repository that its content depends on.

    An optional image is built only if it is named. `folder` has its Dockerfile if the folder is not named after the image; `slurm` is the
    release of Slurm in it, or CHOSEN for the release that slurm_release selects.
    """

    name: str
    aliases: tuple[str, ...]
    inputs: tuple[str, ...]
    python_packages: bool = False
    optional: bool = False
    suite: str = SUITE
    folder: str = ""
    slurm: str = ""

    @property
    def release(self) -> str:
        """The release of Slurm in the image; empty if it has none."""
        return slurm_release.chosen() if self.slurm == CHOSEN else self.slurm

    @property
    def arguments(self) -> list[str]:
        """The build arguments for the Dockerfile, NAME=VALUE."""
        return slurm_release.arguments(self.release) if self.slurm else []


@dataclass(frozen=True)
class Image:
    """A built image: its names with tags, and its docker-archive.

    Each name has two tags: the version, and the version with a hash of the image's inputs. With the second tag a changed image changes the
    pod template, and Kubernetes rolls it out.
    """

    name: str
    tags: tuple[str, ...]
    tar: Path

    def references(self) -> dict[str, str]:
        """The reference of each name with the tag of the content."""
        by_content = self.tags[len(self.tags) // 2 :]
        return {tag.rpartition("/")[2].partition(":")[0]: tag for tag in by_content}


SLURM = ("images/slurm", "images/login", "images/munge", "spank", *CHECKS)
BACKUP = (
    "images/backup",
    "src/soperator/__init__.py",
    "src/soperator/agents/__init__.py",
    "src/soperator/agents/backup",
)
RECIPES = (
    Recipe("slurm", ("login", "munge"), SLURM, slurm=CHOSEN),
    *(
        Recipe(f"slurm-{release.replace('.', '')}", (), SLURM, optional=True, folder="slurm", slurm=release)
        for release in slurm_release.RELEASES
    ),
    Recipe("jail", (), ("images/jail",)),
    Recipe(
        "operator",
        ("agents",),
        ("images/operator", "images/agents", "src", "requirements/runtime.txt"),
        python_packages=True,
    ),
    Recipe("jail-bookworm", (), ("images/jail",), optional=True, suite="bookworm", folder="jail"),
    Recipe("mariadb", (), ("images/mariadb", "spank"), optional=True),
    Recipe("backup", (), BACKUP, optional=True),
    Recipe("proxy", (), ("images/proxy",)),
    Recipe("sssd", (), ("images/sssd",), optional=True),
    Recipe("slapd", (), ("images/slapd",), optional=True),
)


def version() -> str:
    """Return the package's version, read without importing it."""
    text = (REPOSITORY / "src/soperator/__init__.py").read_text()
    found = re.search(r'__version__ = "([^"]+)"', text)
    if not found:
        sys.exit("src/soperator/__init__.py has no __version__.")
    return found.group(1)


def selected(names: Iterable[str]) -> list[Recipe]:
    """Return the recipes of the named images, each once; without names, all except the optional ones."""
    wanted = set(names)
    known = {name for recipe in RECIPES for name in (recipe.name, *recipe.aliases)}
    if unknown := sorted(wanted - known):
        sys.exit(f"unknown image {unknown[0]}: use one of {', '.join(sorted(known))}.")
    if not wanted:
        return [each for each in RECIPES if not each.optional]
    return [each for each in RECIPES if wanted & {each.name, *each.aliases}]


def files_of(root: Path, inputs: Iterable[str]) -> Iterator[Path]:
    """Yield the files under the inputs in a fixed order, without the files that compilers and test runs create."""
    for name in sorted(inputs):
        path = root / name
        if path.is_file():
            yield path
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(set(folders) - IGNORED)
            yield from (Path(folder, file) for file in sorted(files) if not file.endswith((".o", ".so", ".pyc")))


def fingerprint(root: Path, recipe: Recipe, base: str) -> str:
    """Return a hash of the content and mode of every input of an image, including the base."""
    digest = hashlib.sha256(f"{base} {recipe.name} {recipe.aliases} {version()} {PREFIX} by content".encode())
    digest.update(" ".join(recipe.arguments).encode())
    for path in files_of(root, recipe.inputs):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {path.stat().st_mode & 0o111} {len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def packages_since() -> str:
    """Return the time from which packages are new: that of the source, or the later one of the last refresh."""
    note = cache() / "packages-since"
    return max(PACKAGES_SINCE, note.read_text().strip() if note.exists() else "")


def base(suite: str) -> str:
    """Return the name of the base of a Debian suite."""
    return f"localhost/soperator/base:{suite}"


def base_fingerprint(suite: str = SUITE) -> str:
    """Return a hash of the base's inputs."""
    return hashlib.sha256(f"{suite} {packages_since()} {BASE_PACKAGES} {EXCLUDED}".encode()).hexdigest()[:16]


def image_of(recipe: Recipe) -> Image:
    """Return the image of the present inputs; it may not be built yet."""
    names = (recipe.name, *recipe.aliases)
    key = fingerprint(REPOSITORY, recipe, base_fingerprint(recipe.suite))
    tags = tuple(f"{PREFIX}/{name}:{tag}" for tag in (version(), f"{version()}-{key[:8]}") for name in names)
    return Image(recipe.name, tags, cache() / "images" / f"{recipe.name}-{key}.tar")


def built(names: Iterable[str] = ()) -> list[Image]:
    """Return the named images, and build those whose inputs changed."""
    images = []
    for recipe in selected(names):
        image = image_of(recipe)
        if not image.tar.exists():
            with _alone():
                if not image.tar.exists():
                    _build(recipe, image)
        images.append(image)
    return images


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process builds: two builds would share the storage and slow each other down."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(recipe: Recipe, image: Image) -> None:
    image.tar.parent.mkdir(parents=True, exist_ok=True)
    _ensure_base(recipe.suite)
    tag = image.tags[0]
    contexts = [f"--build-context=packages={wheels.packages(_run)}"] if recipe.python_packages else []
    dockerfile = f"images/{recipe.folder or recipe.name}/Dockerfile"
    volumes = [f"--volume={each}" for each in (slurm_release.volumes(recipe.release) if recipe.slurm else [])]
    how = [
        "--isolation=chroot",
        "--layers",
        f"--tag={tag}",
        f"--file={dockerfile}",
        f"--build-arg=BASE_IMAGE={base(recipe.suite)}",
        f"--label=soperator.packages-since={packages_since()}",
        *(f"--build-arg={argument}" for argument in recipe.arguments),
        *volumes,
    ]
    _buildah("bud", *how, *_apt_volumes(recipe.suite), *contexts, ".")
    partial = image.tar.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    _buildah("push", tag, f"docker-archive:{partial}:{tag}")
    name_all(partial, image.tags)
    partial.rename(image.tar)
    _forget_older(image)


def name_all(archive: Path, tags: Sequence[str]) -> None:
    """Give the one image of a docker-archive several names: rewrites the manifest at the end of the file."""
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        first = next(i for i, member in enumerate(members) if member.name in ("manifest.json", "repositories"))
        tail = [(member, (tar.extractfile(member) or BytesIO()).read()) for member in members[first:]]
        end = members[first].offset
    with archive.open("r+b") as file:
        file.truncate(end)
        file.seek(end)
        with tarfile.open(fileobj=file, mode="w") as tar:
            for member, content in tail:
                if member.name == "manifest.json":
                    entries = json.loads(content)
                    entries[0]["RepoTags"] = list(tags)
                    content = json.dumps(entries).encode()  # noqa: PLW2901
                    member.size = len(content)
                if member.name != "repositories":
                    tar.addfile(member, BytesIO(content) if member.isfile() else None)


def _forget_older(image: Image) -> None:
    tars = sorted(
        image.tar.parent.glob(f"{image.name}-{16 * '[0-9a-f]'}.tar"), key=lambda tar: tar.stat().st_mtime, reverse=True
    )
    for tar in tars[KEPT_TARS:]:
        tar.unlink()
    layers = cache() / "buildah/root/overlay"
    if len(list(layers.iterdir())) > KEPT_LAYERS:  # stages that no image names any more, which later builds would reuse
        _buildah("rmi", "--prune", check=False)


def archive() -> list[str]:
    """Return the mirror in DEBIAN_MIRROR as mmdebstrap's last argument; empty if mmdebstrap chooses the mirror."""
    return [os.environ["DEBIAN_MIRROR"]] if "DEBIAN_MIRROR" in os.environ else []


def _ensure_base(suite: str) -> None:
    """Build the base image once: the smallest Debian with apt, without documentation."""
    name = f"localhost/soperator/base-{base_fingerprint(suite)}"
    if _buildah("inspect", "--type=image", name, check=False, quiet=True) == 0:
        return
    tar = cache() / "images" / "base.partial"
    tar.unlink(missing_ok=True)
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED]
    options += [f"--aptopt={line}" for line in machines_apt("Check")]
    mirror = archive()
    forget = ["/etc/apt/apt.conf.d/99mmdebstrap", *(["/etc/apt/sources.list"] if mirror else [])]
    hooks = [f"--customize-hook=rm -f $1{path}" for path in forget]
    made = ["--variant=minbase", f"--include={BASE_PACKAGES}", *options, *hooks, suite, f"{tar}.tar", *mirror]
    _run(["mmdebstrap", "--quiet", *made])
    dockerfile = tar.with_name("base.Dockerfile")
    dockerfile.write_text(f"FROM scratch\nADD {tar.name}.tar /\n")
    _buildah(
        "bud", "--isolation=chroot", f"--tag={base(suite)}", f"--tag={name}", f"--file={dockerfile}", str(tar.parent)
    )
    Path(f"{tar}.tar").unlink()
    dockerfile.unlink()


def fetch_packages(names: Sequence[str], into: Path) -> list[Path]:
    """Download packages of the images' Debian into a folder that caches them; return their files."""
    into.mkdir(parents=True, exist_ok=True)
    if not all(list(into.glob(f"{name}_*.deb")) for name in names):
        run_in_base(f"apt-get update && cd /out && apt-get download {' '.join(names)}", into)
    return sorted(into.glob("*.deb"))


def run_in_base(script: str, out: Path, suite: str = SUITE) -> None:
    """Run a shell script in the base of a suite with the machine's apt settings, and a folder as /out; the base does not change."""
    with _alone():
        _ensure_base(suite)
    dockerfile = out / "Dockerfile"
    dockerfile.write_text(f"FROM {base(suite)}\nRUN {script}\n")
    how = ["--isolation=chroot", "--network=host", f"--volume={out}:/out", f"--file={dockerfile}"]
    _buildah("bud", *how, *_apt_volumes(suite), str(out))


def _apt_volumes(suite: str) -> list[str]:
    """Mount a cache of downloaded packages and the machine's apt settings into the builds, so that no image contains them."""
    store = cache() / "apt"
    (store / "archives/partial").mkdir(parents=True, exist_ok=True)
    conf = store / "host.conf"
    conf.write_text("\n".join([*machines_apt("https?|Check|Retries"), 'APT::Keep-Downloaded-Packages "true";', ""]))
    volumes = [f"{store}/archives:/var/cache/apt/archives", f"{conf}:/etc/apt/apt.conf.d/99host:ro"]
    if mirror := os.environ.get("DEBIAN_MIRROR"):
        sources = store / f"sources-{suite}.list"
        sources.write_text(f"deb {mirror} {suite} main\n")
        volumes.append(f"{sources}:/etc/apt/sources.list:ro")
    return [f"--volume={volume}" for volume in volumes]


def machines_apt(which: str) -> list[str]:
    """Return the settings and keys with which this machine's apt reaches the archive; images do not keep them."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return [line for line in dump.splitlines() if re.match(rf"Acquire::({which})", line)]


def _buildah(*arguments: str, check: bool = True, quiet: bool = False) -> int:
    store = cache() / "buildah"
    own = ["--root", f"{store}/root", "--runroot", f"{store}/run", "--storage-driver", "overlay"]
    return _run(["buildah", *own, *arguments], check=check, quiet=quiet)


def _run(command: Sequence[str], check: bool = True, quiet: bool = False) -> int:
    log = cache() / "images.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as output:
        output.write(f"$ {' '.join(command)}\n")
        output.flush()
        done = subprocess.run(command, cwd=REPOSITORY, stdout=output, stderr=subprocess.STDOUT, check=False)
    if check and done.returncode and not quiet:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        sys.exit(f"{tail}\n{command[0]} failed; the whole log is {log}.")
    return done.returncode


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python3 -m local.images", description="Build the images.")
    parser.add_argument("verb", choices=("build", "list", "packages", "outdated", "refresh"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args(arguments)
    if chosen.verb in ("outdated", "refresh"):
        from local import freshness

        sys.exit(freshness.main(chosen.verb, chosen.names))
    try:
        _carry_out(chosen)
    except Failure as failure:
        sys.exit(str(failure))


def _carry_out(chosen: argparse.Namespace) -> None:
    for recipe in selected(chosen.names):
        started = time.monotonic()
        image = image_of(recipe) if chosen.verb == "list" else built([recipe.name])[0]
        if chosen.verb == "packages":
            print("".join(f"{recipe.name} {each}\n" for each in sbom.packages(image.tar)), end="")
            continue
        if chosen.verb == "build":
            size = image.tar.stat().st_size / 1e6
            print(f"{recipe.name:10} {time.monotonic() - started:6.1f} s {size:6.0f} MB  {image.tar}", flush=True)
            continue
        for tag in image.tags:
            print(tag.removeprefix("localhost/soperator/").split(":")[0], tag, image.tar)


if __name__ == "__main__":
    main()
