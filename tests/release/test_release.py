"""A release is made, published in a registry on this machine, and taken from there again: what `make test-release` runs.

Nothing of the local cluster is needed. At the end the times go into docs/reports/release.md.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.error
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import pinned, report, slurm_release
from local.progress import Failure
from local.release import charts, push, registry, tools
from local.release.images import Released
from soperator import __version__
from tests.runtime.server import ADMIN, ControlPlane, find_binaries

ROOT = Path(__file__).parents[2]
URL = "https://release.test/v1"
LOGIN = "publisher:made for this test"
NEEDED = {"slurm-cluster-storage": ["--set", "hostPath.path=/data"]}

pytestmark = [
    pytest.mark.skipif(not os.environ.get("SOPERATOR_RELEASE"), reason="`make test-release` runs it"),
    pytest.mark.timeout(900),
]


@dataclass
class Made:
    """A release in a folder and in a registry, the public key of its signature, and how long each step took in seconds."""

    folder: Path
    address: str
    public: Path
    work: Path
    environment: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        return self.environment["REGISTRY"]

    def again(self, into: Path, tree: Path = ROOT) -> Path:
        """Make it in another folder and publish it, by the code of a checkout."""
        command = [sys.executable, "-m", "local.release", __version__, "--changed", "--into", str(into)]
        code = {"PYTHONPATH": f"{tree / 'src'}:{tree}"}
        subprocess.run(command, cwd=tree, env=self.environment | code, check=True, timeout=800)
        return into / __version__

    def digests(self) -> dict[str, str]:
        """The digest of each role according to the notes."""
        return dict(re.findall(r"\| (\w+) \| `(sha256:\w+)` \|", (self.folder / "NOTES.md").read_text()))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    program = registry.find()
    assert program, "python3 -m local.release.registry builds the registry"
    work = tmp_path_factory.mktemp("release")
    key, public = work / "key.pem", work / "key.pub"
    new = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key)]
    subprocess.run(new, check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    with registry.running(program, work, LOGIN) as address, pytest.MonkeyPatch.context() as environment:
        logins = str(work / "logins.json")
        own = {"REGISTRY": f"{address}/team/soperator", "RELEASE_KEY": key.read_text(), "RELEASE_URL": URL}
        for name, value in (own | {"REGISTRY_AUTH_FILE": logins, "HELM_REGISTRY_CONFIG": logins}).items():
            environment.setenv(name, value)
        user, _, password = LOGIN.partition(":")
        login = ["skopeo", "login", "--tls-verify=false", f"--username={user}", "--password-stdin", address]
        tools.run(login, stdin=password.encode())
        release = Made(work / "dist" / __version__, address, public, work, dict(os.environ))
        began = time.monotonic()
        release.again(work / "dist")
        release.seconds["the release is made, signed and published in an empty registry"] = time.monotonic() - began
        yield release


def digest_of(made: Made, name: str, reference: str) -> str | None:
    return registry.manifest_digest(made.address, name, reference, LOGIN)


@pytest.fixture(scope="module")
def pulled(made: Made) -> Path:
    """The charts as helm gets them from the registry."""
    folder = made.work / "pulled"
    began = time.monotonic()
    for name in charts.NAMES:
        address = f"oci://{made.prefix}/charts/{name}"
        command = ["pull", address, "--version", __version__, "--plain-http", "--untar", "-d", str(folder)]
        tools.run([tools.helm(), *command])
    made.seconds["four charts are pulled"] = time.monotonic() - began
    return folder


def rendered(chart: Path, *words: str) -> list[dict[str, Any]]:
    command = [tools.helm(), "template", "demo", str(chart), "-n", "slurm", *NEEDED.get(chart.name, []), *words]
    return [each for each in yaml.safe_load_all(tools.run(command)) if each]


def images_of(value: Any) -> Iterator[str]:
    """Every image that an object names: in a container, and in the operator's environment."""
    if isinstance(value, list):
        for each in value:
            yield from images_of(each)
    if isinstance(value, dict):
        if str(value.get("name", "")).startswith("SOPERATOR_IMAGE_"):
            yield value["value"]
        for key, each in value.items():
            if key == "image" and isinstance(each, str):
                yield each
            yield from images_of(each)


def verified(made: Made, sums: Path) -> bool:
    words = ["openssl", "dgst", "-sha256", "-verify", made.public, "-signature", made.folder / "SHA256SUMS.sig", sums]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


def test_every_file_has_its_sum_and_the_sums_are_signed(made: Made) -> None:
    """Also a sum that somebody changed is noticed, by the public key alone."""
    sums = made.folder / "SHA256SUMS"
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", sums.name], cwd=made.folder, check=True)
    listed = {line.split("  ")[1] for line in sums.read_text().splitlines()}
    assert listed == set(tools.files_below(made.folder)) - {"SHA256SUMS", "SHA256SUMS.sig"}
    assert verified(made, sums)
    changed = made.work / "changed"
    changed.write_text(sums.read_text().replace("a", "b", 1))
    assert not verified(made, changed)


def test_every_image_that_the_charts_name_is_in_the_registry_by_its_digest(made: Made, pulled: Path) -> None:
    """The digest is that of the notes, and the tag in the registry leads to it."""
    found = {image for name in charts.NAMES for each in rendered(pulled / name) for image in images_of(each)}
    assert len(found) == len(made.digests()) == 10
    for image in found:
        name, _, rest = image.removeprefix(f"{made.address}/").partition(":")
        tag, _, digest = rest.partition("@")
        role = name.removeprefix("team/soperator/")
        assert (tag, digest) == (__version__, made.digests()[role]), image
        assert digest_of(made, name, digest) == digest, image
        assert digest_of(made, name, tag) == digest, image
    assert digest_of(made, "team/soperator/slurm", f"sha256:{64 * '0'}") is None
    with pytest.raises(urllib.error.HTTPError, match="401"):
        registry.manifest_digest(made.address, "team/soperator/slurm", __version__, "publisher:another")


def test_helm_installs_the_charts_from_the_registry_into_a_real_api_server(made: Made) -> None:
    """By the commands of README: the API server takes every object, and the operator's Deployment and the cluster's test have their image."""
    binaries = find_binaries()
    assert binaries, "`python3 -m local binaries` builds kube-apiserver"
    folder = made.work / "plane"
    folder.mkdir()
    plane = ControlPlane(binaries, folder)
    kubeconfig = folder / "admin.conf"
    cluster = {"server": plane.url, "insecure-skip-tls-verify": True}
    settings: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": "x"}
    settings["clusters"] = [{"name": "c", "cluster": cluster}]
    settings["users"] = [{"name": "u", "user": {"token": ADMIN}}]
    settings["contexts"] = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    kubeconfig.write_text(json.dumps(settings))
    kubernetes = os.environ | {"KUBECONFIG": str(kubeconfig)}
    values = made.work / "my-cluster.yaml"
    spec = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
    values.write_text(json.dumps({"cluster": spec, "nodeSets": {"cpu": {"replicas": 2}}}))
    try:
        plane.start()
        began = time.monotonic()
        for release, chart, namespace, more in (
            ("soperator-crds", "soperator-crds", "soperator-system", []),
            ("soperator", "soperator", "soperator-system", []),
            ("demo", "slurm-cluster", "slurm", ["-f", str(values)]),
            ("storage", "slurm-cluster-storage", "slurm", NEEDED["slurm-cluster-storage"]),
        ):
            address = [f"oci://{made.prefix}/charts/{chart}", "--version", __version__, "--plain-http"]
            install = [tools.helm(), "install", release, *address, "-n", namespace, "--create-namespace", *more]
            tools.run(install, environment=kubernetes)
        made.seconds["helm installs four charts from the registry into an API server"] = time.monotonic() - began
        kubectl = [str(binaries / "kubectl"), "get", "-o", "json"]
        asked = [*kubectl, "-n", "soperator-system", "deployment", "soperator"]
        deployment = json.loads(tools.run(asked, environment=kubernetes))
        assert set(images_of(deployment["spec"])) == {
            f"{made.prefix}/{role}:{__version__}@{digest}" for role, digest in made.digests().items()
        }
        kinds = json.loads(tools.run([*kubectl, "-n", "slurm", "slurmclusters,nodesets"], environment=kubernetes))
        assert [each["kind"] for each in kinds["items"]] == ["SlurmCluster", "NodeSet"]
        hooks = tools.run([tools.helm(), "get", "hooks", "demo", "-n", "slurm"], environment=kubernetes)
        assert f"image: {made.prefix}/operator:{__version__}@{made.digests()['operator']}\n" in hooks
    finally:
        plane.stop()


def test_an_image_is_pulled_as_it_is_in_the_folder(made: Made) -> None:
    """The same manifest and the same layers come back."""
    layout = made.work / "layout"
    source = f"docker://{made.prefix}/proxy@{made.digests()['proxy']}"
    tools.run(["skopeo", "copy", "--quiet", "--src-tls-verify=false", source, f"oci:{layout}:x"])
    with tarfile.open(made.folder / "proxy.oci.tar") as archive:
        ours = {each.name for each in archive if each.name.startswith("blobs/")}
    assert set(tools.files_below(layout / "blobs", "blobs/")) == ours


def test_charts_have_the_version_and_are_the_files_of_the_folder(made: Made, pulled: Path) -> None:
    """And the chart of the operator without a registry is refused with a sentence."""
    for name in charts.NAMES:
        about = yaml.safe_load((pulled / name / "Chart.yaml").read_text())
        assert (about["version"], about["appVersion"]) == (__version__, __version__)
        content = (made.folder / f"{name}-{__version__}.tgz").read_bytes()
        assert (
            push._layer(f"{made.prefix}/charts/{name}:{__version__}") == f"sha256:{hashlib.sha256(content).hexdigest()}"
        )
    with pytest.raises(Failure, match=r"images\.prefix: it is empty: set it to where your images are"):
        rendered(pulled / "soperator", "--set", "images.prefix=")


def test_the_list_of_packages_is_valid_and_has_those_of_slurm(made: Made) -> None:
    """spdx-tools, which wrote none of it, finds nothing wrong; the operator's has Python's packages."""
    python = pinned.build("spdx")
    script = (
        "import sys; from spdx_tools.spdx.parser.parse_anything import parse_file\n"
        "from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document as check\n"
        "sys.exit('\\n'.join(str(each) for path in sys.argv[1:] for each in check(parse_file(path))) or 0)"
    )
    documents = sorted(made.folder.glob("*.spdx.json"))
    assert {each.name.partition(".")[0] for each in documents} == {
        each.name.partition(".")[0] for each in made.folder.glob("*.oci.tar")
    }
    done = subprocess.run([python, "-c", script, *documents], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    versions = {each["name"]: each["versionInfo"] for each in packages(made, "slurm")}
    for name in ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "slurm-client"):
        assert versions[name].startswith(f"{slurm_release.chosen()}."), name
    (pydantic,) = (each for each in packages(made, "operator") if each["name"] == "pydantic")
    assert f"pydantic=={pydantic['versionInfo']} " in (ROOT / "requirements/runtime.txt").read_text()


def packages(made: Made, image: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((made.folder / f"{image}.spdx.json").read_text())["packages"]
    return found


def test_nothing_names_this_machine(made: Made, pulled: Path) -> None:
    """Neither the path of the repository nor a name of the local images, in charts, wheel, program, site, notes and lists of packages."""
    forbidden = [str(ROOT).encode(), str(Path.home() / ".cache").encode()]
    texts = tools.files_below(pulled) | {
        each.name: each for each in (*made.folder.glob("*.json"), made.folder / "NOTES.md")
    }
    contents = {name: path.read_bytes() for name, path in texts.items()}
    for packed in (*made.folder.glob("*.whl"), made.folder / "soperator.pyz"):
        with zipfile.ZipFile(packed) as archive:
            contents |= {f"{packed.name}:{name}": archive.read(name) for name in archive.namelist()}
    with tarfile.open(made.folder / "site.tar.gz") as site:
        contents |= {f"site:{each.name}": read.read() for each in site if (read := site.extractfile(each))}
    assert len(contents) > 1000
    assert not [name for name, content in contents.items() for each in forbidden if each in content]
    assert "localhost/" not in json.dumps([rendered(pulled / name) for name in charts.NAMES])


def test_the_wheel_is_built_with_the_pinned_setuptools(made: Made) -> None:
    """Its own list of files says which one has written it."""
    (path,) = made.folder.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/WHEEL"))
        generator = re.findall(rb"^Generator: setuptools \((.+)\)$", wheel.read(name), re.MULTILINE)
    assert f"setuptools=={generator[0].decode()}\n" in (ROOT / "requirements/build.txt").read_text()


def test_the_command_line_works_outside_the_repository(made: Made) -> None:
    """As one file and as krew's plugin, whose manifest has the hash of the archive and the address of the release."""
    home = made.work / "home"
    home.mkdir()
    command = [sys.executable, str(made.folder / "soperator.pyz"), "--version"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=True)
    assert done.stdout == f"soperator {__version__}\n"
    (platform,) = json.loads((made.folder / "slurm.yaml").read_text())["spec"]["platforms"]
    archive = (made.folder / "kubectl-slurm.tar.gz").read_bytes()
    assert (platform["uri"], platform["sha256"]) == (f"{URL}/kubectl-slurm.tar.gz", hashlib.sha256(archive).hexdigest())


def test_the_same_commit_makes_the_same_files(made: Made) -> None:
    """Every sum is the same, and what is in the registry already is not refused."""
    if report.commit().endswith("+"):
        pytest.skip("files are not committed: a clone would not have them")
    clone = made.work / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    began = time.monotonic()
    second = made.again(made.work / "second", clone)
    made.seconds["it is made and published once more, from a clone in another folder"] = time.monotonic() - began
    assert (second / "SHA256SUMS").read_text() == (made.folder / "SHA256SUMS").read_text()
    shutil.rmtree(second)


def test_a_version_is_never_published_with_other_content(made: Made, tmp_path: Path) -> None:
    """Neither an image nor a chart replaces one that clusters may run, and nothing else is pushed before that is known."""
    proxy = made.digests()["proxy"]
    other = Released(made.folder / "proxy.oci.tar", proxy, ("new", "slurm"))
    with pytest.raises(
        Failure, match=rf"slurm:{__version__}: the registry has sha256:\w+, and this release has {proxy}"
    ):
        push.push(made.prefix, __version__, [other], [])
    assert digest_of(made, "team/soperator/new", __version__) is None
    chart = tmp_path / f"soperator-{__version__}.tgz"
    shutil.copy(made.folder / f"slurm-cluster-{__version__}.tgz", chart)
    with pytest.raises(Failure, match=rf"charts/soperator:{__version__}: the registry has sha256:"):
        push.push(made.prefix, __version__, [], [chart])


def test_the_report_is_written(made: Made) -> None:
    """With the commit, the times and the sizes of this run; it comes last."""
    sizes = {path.name: path.stat().st_size / 1e6 for path in sorted(made.folder.glob("*.oci.tar"))}
    rows = "".join(f"| {what} | {seconds:.0f} s |\n" for what, seconds in made.seconds.items())
    images = "".join(
        f"| {name} | {size:.0f} MB | {len(packages(made, name.partition('.')[0])) - 1} |\n"
        for name, size in sizes.items()
    )
    total = sum(path.stat().st_size for path in tools.files_below(made.folder).values()) / 1e6
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    (ROOT / "docs/reports/release.md").write_text(
        f"# A release, published and taken from the registry\n\n`make test-release` at commit {report.commit()}, "
        f"{time.strftime('%Y-%m-%d')}, on {os.cpu_count()} cores (load {load} at its end); the images were built before. The registry is "
        "distribution/registry on this machine, with a password and without TLS.\n\n"
        f"| step | time |\n|---|---|\n{rows}\nThe folder has {total:.0f} MB.\n\n"
        f"| image | size as an OCI archive | packages |\n|---|---|---|\n{images}\n"
        "What was checked is the list of tests in `tests/release`: sums and signature, each image of the rendered charts by its digest, the SPDX "
        "documents by spdx-tools, no path of this machine, the same sums from a clone in another folder, and that a published version is not "
        "replaced. "
        "helm installs the charts from the registry into a kube-apiserver without Nodes, which takes every object. Not checked: a registry with "
        "TLS, and pods that run the images.\n"
    )
    assert len(made.seconds) in (3, 4)
