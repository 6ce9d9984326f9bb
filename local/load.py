"""Imports images into the Nodes' containerd, each only once.

Each Node has its own image store, as machines have. A file beside the store lists its images, by tag and digest of the image's
configuration, so that a tar which was rebuilt without a change is not imported again.
"""

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from local.addons import DNS_IMAGE
from local.archive import File, docker_archive, identity
from local.machines import inside
from local.node import PAUSE_IMAGE, SOCKET
from local.paths import image_store
from local.progress import Failure, elapsed, say

CATATONIT = Path("/usr/bin/catatonit")


@dataclass(frozen=True)
class Store:
    """The image store of a running Node; ``init`` is the pid of process 1 of ``node``."""

    node: str
    init: int
    binaries: Path

    @property
    def record(self) -> Path:
        """The file that lists the imported images."""
        return image_store(self.node) / "soperator-loaded.json"

    def ctr(self, *arguments: str) -> str:
        """Run containerd's own client on the Node."""
        argv = [str(self.binaries / "ctr"), "--address", SOCKET, "--namespace", "k8s.io", *arguments]
        done = subprocess.run(inside(self.init, argv), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{self.node}: ctr {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def loaded(self) -> dict[str, str]:
        """Return a map from tag to configuration of the images that were imported and still exist."""
        if not self.record.exists():
            return {}
        noted: dict[str, str] = json.loads(self.record.read_text())
        present = set(self.ctr("images", "list", "--quiet").split())
        return {tag: config for tag, config in noted.items() if tag in present}

    def load(self, archives: Sequence[Path]) -> list[str]:
        """Import the missing images; return the tags that were imported."""
        loaded = self.loaded()
        imported: list[str] = []
        for archive in archives:
            images = identity(archive)
            if all(loaded.get(tag) == config for tag, config in images.items()):
                continue
            self.ctr("images", "import", str(archive.resolve()))
            loaded |= images
            imported += images
            partial = self.record.with_suffix(".partial")
            partial.write_text(json.dumps(loaded, indent=1))
            partial.rename(self.record)
        return imported

    def forget_containers(self) -> int:
        """Remove the containers of an earlier start of the Node from containerd; return their number.

        Images remain. containerd must be restarted afterwards, because its CRI plugin has already read the containers.
        """
        containers = self.ctr("containers", "list", "--quiet").split()
        sandboxes = [line.split()[0] for line in self.ctr("sandboxes", "list").splitlines()[1:]]
        if containers:
            self.ctr("containers", "remove", *containers)
        if sandboxes:
            self.ctr("sandboxes", "remove", "--force", *sandboxes)
        return len(containers) + len(sandboxes)


def load(stores: Sequence[Store], archives: Sequence[Path]) -> None:
    """Import the archives into several Nodes at the same time."""
    lost = [str(archive) for archive in archives if not archive.is_file()]
    if lost:
        raise Failure(f"no such image archive: {', '.join(lost)}")

    def one(store: Store) -> None:
        began = elapsed()
        imported = store.load(archives)
        if imported:
            say(f"{store.node}: imported {', '.join(imported)} in {elapsed() - began:.1f} s")

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, stores))


def own_images(binaries: Path) -> list[Path]:
    """Return the archives of the pause and the CoreDNS image, and create them beside the programs if they are missing."""
    pause, coredns = binaries / "images" / "pause.tar", binaries / "images" / "coredns.tar"
    if not pause.exists():
        docker_archive(pause, PAUSE_IMAGE, {"catatonit": File(CATATONIT.read_bytes(), 0o755)}, ["/catatonit", "-P"])
    if not coredns.exists():
        program = File((binaries / "coredns").read_bytes(), 0o755)
        docker_archive(coredns, DNS_IMAGE, {"coredns": program}, ["/coredns"])
    return [pause, coredns]
