"""Gather Slurm, sshd and munged with every library they load into a tree that runs in any distribution's root.

A jail may be older or newer than this image, so nothing in the bundle may load a library of the jail by its name: each
program names the bundle's own dynamic loader and searches ``DT_RPATH``, which has priority over ``LD_LIBRARY_PATH`` and
``ld.so.cache``. Paths that were compiled in (plugin folders) are shortened in place, because they are read before any
configuration file is. The daemons go to ``/usr/sbin``, outside the bundle, but load from it.

Runs in the build stage only: ``bundle.py OUT``.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

PREFIX = Path("/opt/soperator")
LIBRARIES = Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH"))
PMIX = LIBRARIES / "pmix2"
CLIENTS = "sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol scrontab sdiag sinfo sprio squeue sreport srun"
MORE_CLIENTS = "sshare sstat strigger"
DAEMONS = "slurmctld slurmd slurmdbd slurmrestd sackd munged"
DROPPED_PLUGINS = ("libslurm_pmi.so", "site_factor_example.so", "spank_pbs.so", "gpu_nrt.so")
PROOFS = "caching_sha2_password client_ed25519 parsec sha256_password"
PAM_MODULES = "deny env exec keyinit limits loginuid mkhomedir motd nologin permit sss succeed_if umask unix warn"
LATE = ("libmunge.so.2", "liblua5.1.so.0", "libgcc_s.so.1", "libnss_sss.so.2")
HOST_MODULE = Path("/usr/lib/libnss_extrausers.so.2")

Copy = tuple[Path, Path]


def has_pmix() -> bool:
    """Return whether this Slurm was built with PMIx; Debian's packages of 26.05 are not."""
    return (LIBRARIES / "slurm-wlm/mpi_pmix.so").exists()


def programs() -> Iterator[Copy]:
    """Yield every program with its path in the bundle."""
    for name in f"{CLIENTS} {MORE_CLIENTS}".split():
        yield Path("/usr/bin", name), PREFIX / "bin" / name
    for name in ("slurmstepd", "sshd"):
        yield Path("/usr/sbin", name), PREFIX / "sbin" / name
    for name in ("sshd-session", "sshd-auth", "sftp-server"):
        yield Path("/usr/lib/openssh", name), PREFIX / "libexec" / name
    for name in ("cat", "ssh-keygen", "skopeo", "umoci", "mksquashfs", "unsquashfs"):
        yield Path("/usr/bin", name), PREFIX / "libexec" / name
    for name in DAEMONS.split():
        yield Path("/usr/sbin", name), Path("/usr/sbin", name)
    yield from ((path, path) for path in sorted((PREFIX / "libexec").glob("*")))


def modules() -> Iterator[Copy]:
    """Yield every shared object that a program loads at run time by path or by name, with its path in the bundle."""
    for path in sorted((LIBRARIES / "slurm-wlm").glob("*.so")):
        if path.name not in DROPPED_PLUGINS and path.name != "libslurmfull.so":
            yield path, PREFIX / "lib/slurm" / path.name
    yield from ((path, path) for path in sorted((PREFIX / "lib/slurm").glob("*.so")))
    yield from ((path, path) for path in sorted((PREFIX / "lib/security").glob("*.so")))
    for name in PROOFS.split():  # how slurmdbd proves its password, as the database asks for
        if (path := LIBRARIES / f"libmariadb3/plugin/{name}.so").exists():
            yield path, PREFIX / f"lib/mariadb/{name}.so"
    for name in PAM_MODULES.split():
        yield LIBRARIES / f"security/pam_{name}.so", PREFIX / f"lib/security/pam_{name}.so"
    if has_pmix():
        for path in sorted((PMIX / "lib/pmix").glob("*.so")):
            yield path, PREFIX / "lib/pmix" / path.name
        yield PMIX / "lib/libpmix.so.2", PREFIX / "lib/libpmix.so.2"
    for name in LATE:
        yield LIBRARIES / name, PREFIX / "lib" / name
    # A daemon that has gone into a jail may look a user up there: what nsswitch.conf names is found here, and never looked for in the jail.
    yield HOST_MODULE, PREFIX / "lib" / HOST_MODULE.name


def needed(files: Iterable[Path]) -> dict[str, Path]:
    """Return the libraries that the files need, directly or indirectly, by their sonames."""
    found: dict[str, Path] = {}
    env = os.environ | {"LD_LIBRARY_PATH": str(LIBRARIES / "slurm-wlm")}
    for file in files:
        done = subprocess.run(["ldd", file], env=env, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            match line.split():
                case [name, "=>", "not", "found"]:
                    sys.exit(f"{file} needs {name}, which is not installed.")
                case [name, "=>", path, _]:
                    found[name] = Path(path)
                case [path, _] if path.startswith("/"):
                    found[Path(path).name] = Path(path)
    return found


def shortened() -> dict[bytes, bytes]:
    """Return the compiled-in folders and their replacements, which are never longer."""
    table = {
        LIBRARIES / "slurm-wlm": PREFIX / "lib/slurm",
        LIBRARIES / "hwloc": PREFIX / "lib/hwloc",
        PMIX: PREFIX,
        PMIX / "lib": PREFIX / "lib",
        PMIX / "share": PREFIX / "share",
    }
    return {bytes(old): bytes(new).ljust(len(bytes(old)), b"\0") for old, new in table.items()}


def place(out: Path, source: Path, target: Path) -> Path:
    """Copy one file into the tree with its compiled-in folders replaced, and return its path."""
    landed = out / target.relative_to("/")
    landed.parent.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    for old, new in shortened().items():
        content = content.replace(b"\0" + old + b"\0", b"\0" + new + b"\0")
    landed.write_bytes(content)
    landed.chmod(0o755)
    return landed


def set_search_path(files: Iterable[Path], loader: Path | None) -> None:
    """Set the search path of the files to the bundle, and the loader of programs to the bundle's.

    Two calls in this order are necessary: one call, or the other order, makes patchelf 0.18 write a skopeo that crashes.
    """
    for file in files:
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", str(PREFIX / "lib"), str(file)], check=True)
        if loader:
            subprocess.run(["patchelf", "--set-interpreter", str(loader), str(file)], check=True)


def record_packages(out: Path, sources: Iterable[Path]) -> None:
    """Write the Debian packages of the bundle's files, one file for each, where scanners look for packages that dpkg did not install."""
    asked = ["dpkg-query", "--search", *sorted({str(source.resolve()) for source in sources})]
    found = subprocess.run(
        asked, capture_output=True, text=True, check=False
    ).stdout  # what we compiled belongs to none
    folder = out / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True)
    for name in sorted({line.partition(": ")[0] for line in found.splitlines() if not line.startswith("diversion ")}):
        status = subprocess.run(["dpkg-query", "--status", name], capture_output=True, text=True, check=True).stdout
        (folder / name.partition(":")[0]).write_text(status)


def main(out: Path) -> None:
    """Build the tree under ``out``."""
    run, loaded = list(programs()), list(modules())
    libraries = needed(source.resolve() for source, _ in run + loaded)
    loader = next(name for name in libraries if name.startswith("ld-linux"))
    untouched = {loader, "libc.so.6"}
    started = [place(out, source.resolve(), target) for source, target in run]
    opened = [place(out, source.resolve(), target) for source, target in loaded]
    for name, path in libraries.items():
        landed = place(out, path.resolve(), PREFIX / "lib" / name)
        if name not in untouched:
            opened.append(landed)
    set_search_path(started, PREFIX / "lib" / loader)
    set_search_path(opened, None)
    if has_pmix():
        shutil.copytree(PMIX / "share/pmix", out / "opt/soperator/share/pmix", dirs_exist_ok=True)
    shutil.copytree(PREFIX / "share/deep", out / "opt/soperator/share/deep")
    place(out, HOST_MODULE, HOST_MODULE)
    record_packages(out, [*(source for source, _ in run + loaded), *libraries.values(), HOST_MODULE])
    for name in ("lib", "bin"):  # where a node's GPU driver is mounted; empty on nodes without one
        (out / "opt/soperator/driver" / name).mkdir(parents=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
