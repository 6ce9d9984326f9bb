"""Lists the files of a GPU driver, from a folder or from a CDI specification.

The entry script of slurmd binds the listed files into one folder of the node. The list has a line for each file: `lib` or `bin`, the name, the path
in the pod; or `link`, the name in lib, the name of its target. Libraries of the C runtime are never listed, because a jail has its own, and the
loader would find a second copy first.

From a CDI specification (Container Device Interface, 0.x) it takes `containerEdits` of all devices together: the mounts of libraries and programs,
and the links of the hook `create-symlinks`. The container runtime creates the devices and their nodes.

python3 -m soperator.agents.driver --root /mnt/driver/root --name NAME --list FILES [--cdi PATH --host-root /usr]
"""

import argparse
import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from soperator.agents.errors import Refusal, exit_with_error

FOLDERS_OF_LIBRARIES = ("lib", "lib64", "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib", ".")
FOLDERS_OF_PROGRAMS = ("bin", "usr/bin")
#: Names in the root of a whole distribution that belong to a driver. Source: nvidia-container-toolkit's lists.
LIBRARIES = (
    "libcuda.so*",
    "libcudadebugger.so*",
    "libnvcuvid.so*",
    "libnvoptix.so*",
    "libnvidia-*.so*",
    "lib*_nvidia.so*",
)
PROGRAMS = ("nvidia-*", "amd-smi", "rocm-smi")
#: The C runtime, by which a whole distribution is recognized.
RUNTIME = (
    "ld-linux*",
    "libc.so*",
    "libc-*",
    "libm.so*",
    "libpthread*",
    "libdl.so*",
    "librt.so*",
    "libresolv*",
    "libgcc_s*",
    "libstdc++*",
)


@dataclass(frozen=True, order=True)
class File:
    """One line of the list; for a link, `path` is the name of its target."""

    kind: str
    name: str
    path: str

    def __str__(self) -> str:
        """Return the line in the format of the entry script."""
        return f"{self.kind}\t{self.name}\t{self.path}"


def of_folder(root: Path, name: str) -> list[File]:
    """Return the driver in a folder: all files if the folder contains only a driver, or the known driver files of a whole distribution."""
    folders = [root / each for each in FOLDERS_OF_LIBRARIES if (root / each).is_dir()]
    is_whole = any(_matches(path.name, RUNTIME) for folder in folders for path in folder.glob("l*.so*"))
    found = [
        File("lib", path.name, str(_real(path, root)))
        for folder in folders
        for path in sorted(folder.glob("lib*.so*"))
        if path.is_file() and (not is_whole or _matches(path.name, LIBRARIES))
    ]
    if not found:
        places = ", ".join(FOLDERS_OF_LIBRARIES[:-1])
        raise Refusal(
            f"{name} has no GPU driver: neither it nor {places} has a library of one; name the folder with these libraries"
        )
    found += [
        File("bin", path.name, str(_real(path, root)))
        for folder in FOLDERS_OF_PROGRAMS
        for path in sorted((root / folder).glob("*"))
        if path.is_file() and path.stat().st_mode & 0o111 and (not is_whole or _matches(path.name, PROGRAMS))
    ]
    return _unique(found)


def of_cdi(spec: Path, root: Path, host_root: str, name: str) -> list[File]:
    """Return the driver that the specifications at a path name.

    The named files must be below `host_root` of the Node, which is `root` in this pod.
    """
    edits = [each for document in _specifications(spec, name) for each in _edits(document)]
    if not edits:
        raise Refusal(f"{name} lists no device: generate it again, for example with nvidia-ctk cdi generate")
    found = [*_mounts(edits, root, host_root, name), *_links(edits)]
    if not any(each.kind == "lib" for each in found):
        raise Refusal(
            f"{name} lists no library below {host_root}: set gpu.driver.cdi.root to the Node's folder with the libraries"
        )
    return _unique(found)


def write(files: Iterable[File], to: Path) -> None:
    """Write the list."""
    to.write_text("".join(f"{each}\n" for each in files))


def _mounts(edits: Iterable[Mapping[str, Any]], root: Path, host_root: str, name: str) -> Iterator[File]:
    for edit in edits:
        for mount in edit.get("mounts") or []:
            inside, host = PurePosixPath(mount["containerPath"]), PurePosixPath(mount["hostPath"])
            kind = "lib" if _is_library(inside.name) else "bin" if inside.parent.name in ("bin", "sbin") else ""
            if not kind or not host.is_relative_to(host_root) or _matches(inside.name, RUNTIME):
                continue
            path = root / host.relative_to(host_root)
            if not path.is_file():
                raise Refusal(
                    f"{name} names {host}, which the Node does not have: generate the specification again after each change of the driver"
                )
            yield File(kind, inside.name, str(_real(path, root)))


def _links(edits: Iterable[Mapping[str, Any]]) -> Iterator[File]:
    """Yield the links to libraries that the hook create-symlinks would make: `--link TARGET::LINK`."""
    for edit in edits:
        for hook in edit.get("hooks") or []:
            words = hook.get("args") or []
            if "create-symlinks" not in words:
                continue
            for word in words[words.index("create-symlinks") + 1 :]:
                target, separator, link = word.removeprefix("--link=").partition("::")
                if separator and _is_library(PurePosixPath(link).name):
                    yield File("link", PurePosixPath(link).name, PurePosixPath(target).name)


def _edits(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    devices = document.get("devices") or []
    if devices:
        yield document.get("containerEdits") or {}
        yield from (each.get("containerEdits") or {} for each in devices)


def _specifications(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the documents of a file, or of all files in a folder."""
    import yaml

    files = (
        sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml", ".json"))
        if path.is_dir()
        else [path]
    )
    for file in files:
        try:
            document = yaml.safe_load(file.read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise Refusal(f"{name} cannot be read ({file.name}): {str(error).splitlines()[0]}") from error
        if not isinstance(document, dict) or "cdiVersion" not in document:
            raise Refusal(f"{name} is not a CDI specification ({file.name}): it has no cdiVersion")
        yield document


def _real(path: Path, root: Path) -> Path:
    """Return the real file behind links. Raises Refusal if it is outside the folder that the pod mounts."""
    real = path.resolve()
    if not real.is_relative_to(root.resolve()):
        raise Refusal(
            f"{path.relative_to(root)} of the GPU driver links to {real}, outside its folder: name a folder that contains both"
        )
    return real


def _is_library(name: str) -> bool:
    return name.startswith("lib") and ".so" in name


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _unique(files: Iterable[File]) -> list[File]:
    """Return the first file of each name; links come after the files."""
    first: dict[tuple[bool, str], File] = {}
    for each in files:
        first.setdefault((each.kind == "bin", each.name), each)
    return sorted(first.values(), key=lambda each: (each.kind == "link", each.kind, each.name))


def main() -> None:
    """Run the command line; an error is one message on standard error and in the termination message."""
    parser = argparse.ArgumentParser(prog="python3 -m soperator.agents.driver", description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--list", type=Path, required=True)
    parser.add_argument("--cdi", type=Path)
    parser.add_argument("--host-root", default="/usr")
    said = parser.parse_args()
    try:
        files = of_cdi(said.cdi, said.root, said.host_root, said.name) if said.cdi else of_folder(said.root, said.name)
        write(files, said.list)
        print(f"{said.name}: {len(files)} files of a GPU driver")
    except (Refusal, OSError) as error:
        exit_with_error(error)


if __name__ == "__main__":
    main()
