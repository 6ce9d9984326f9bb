"""What a release puts into charts, notes and sums, and what it refuses."""

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from local import images
from local.progress import Failure
from local.release import __main__ as release
from local.release import artifacts, charts, push, sums
from local.release import images as released_images
from soperator import __version__

ROOT = Path(__file__).parents[3]
DIGESTS = {"operator": f"sha256:{64 * 'a'}", "slurm": f"sha256:{64 * 'b'}"}


def values(chart: str) -> str:
    return (ROOT / "charts" / chart / "values.yaml").read_text()


def test_the_values_of_a_release_have_its_digests_and_its_registry() -> None:
    """Nothing else changes, and without a registry its address stays empty."""
    before = yaml.safe_load(values("soperator"))
    after = yaml.safe_load(charts.with_images("soperator", values("soperator"), "1.0.0", DIGESTS, "r.test:5000/s"))
    assert (after["images"].pop("prefix"), after["images"].pop("digests")) == ("r.test:5000/s", DIGESTS)
    assert (before["images"].pop("prefix"), before["images"].pop("digests")) == ("", {})
    assert after == before
    alone = yaml.safe_load(charts.with_images("soperator", values("soperator"), "1.0.0", DIGESTS, ""))
    assert (alone["images"]["prefix"], alone["images"]["digests"]) == ("", DIGESTS)
    cluster = yaml.safe_load(charts.with_images("slurm-cluster", values("slurm-cluster"), "1.0.0", DIGESTS, "r.test/s"))
    assert cluster["test"]["image"] == f"r.test/s/operator:1.0.0@{DIGESTS['operator']}"


def test_a_value_that_a_release_does_not_find_is_an_error() -> None:
    """A chart without its images would be worse than none."""
    with pytest.raises(Failure, match=r"charts/soperator/values\.yaml: 0 lines begin with '  digests: {}'"):
        charts.with_images("soperator", "images: {}\n", "1.0.0", DIGESTS, "r.test/s")


def test_a_release_has_every_image_that_the_operator_may_use() -> None:
    """Each role with a value of its own in the chart has an image in the release."""
    named = yaml.safe_load(values("soperator"))["images"].keys()
    roles = {
        role
        for name in released_images.RECIPES
        for each in images.selected([name])
        for role in (each.name, *each.aliases)
    }
    assert roles == named - {"prefix", "tag", "digests", "pullPolicy", "pullSecrets"}


def test_the_modes_in_a_wheel_are_not_those_of_the_checkout(tmp_path: Path) -> None:
    """Names, times and content stay, so two checkouts with another umask make the same bytes."""
    made = []
    for mode in (0o640, 0o664):
        path = tmp_path / f"{mode}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            entry = zipfile.ZipInfo("soperator/a.py", (2026, 11, 25, 1, 2, 4))
            entry.external_attr = mode << 16
            wheel.writestr(entry, "a = 1\n")
        artifacts.set_modes(path)
        with zipfile.ZipFile(path) as wheel:
            (entry,) = wheel.infolist()
            assert (entry.filename, entry.date_time) == ("soperator/a.py", (2026, 11, 25, 1, 2, 4))
            assert wheel.read(entry) == b"a = 1\n"
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_the_notes_have_the_part_of_the_changelog_about_the_version() -> None:
    """A version without a part cannot be released."""
    text = "# Changelog\n\n## 0.2.0\n\n- new\n\n### More\n\n- newer\n\n## 0.1.0, before\n\n- old\n"
    assert artifacts.changelog(text, "0.2.0") == "- new\n\n### More\n\n- newer"
    assert artifacts.changelog(text, "0.1.0") == "- old"
    with pytest.raises(Failure, match=r"nothing below a heading `## 0\.1`: write what changes"):
        artifacts.changelog(text, "0.1")


@pytest.mark.parametrize(
    ("registry", "loopback"),
    [
        ("127.0.0.1:5000/a", True),
        ("localhost:5000", True),
        ("[::1]:5000/a", True),
        ("127.example.test/a", False),
        ("localhost.test:5000", False),
        ("r.test/127.0.0.1", False),
    ],
)
def test_only_a_registry_on_this_machine_is_spoken_to_without_tls(registry: str, loopback: bool) -> None:
    """A name that only looks like it gets TLS."""
    push.check(registry)
    assert push.is_loopback(registry) is loopback


@pytest.mark.parametrize(
    "registry", ["https://r.test/a", "r.test/a/", "r.test/A", "r.test/a b", "oci://r.test", "r.test/a\n"]
)
def test_a_registry_that_is_no_address_is_refused(registry: str) -> None:
    """Before anything is built."""
    with pytest.raises(Failure, match="use host:port/path without a protocol"):
        release.refuse(__version__, registry, "")


def test_another_version_than_that_of_the_code_is_refused() -> None:
    """Or the images would report one version and the charts another."""
    with pytest.raises(Failure, match=rf"VERSION=9.9.9: src/soperator/__init__.py has {__version__}: set it there"):
        release.refuse("9.9.9", "", "")


def test_changes_that_are_not_committed_are_refused() -> None:
    """A release is of a commit, which the notes name."""
    release.refuse(__version__, "r.test:5000/a", "")
    with pytest.raises(Failure, match="these files are not committed, and a release is of a commit:\n M README"):
        release.refuse(__version__, "", " M README.md\n")


def test_what_is_published_is_not_replaced() -> None:
    """The same content is published again, and other content under the same version is not."""
    push.refuse_other("r.test/a:1", None, DIGESTS["slurm"])
    push.refuse_other("r.test/a:1", DIGESTS["slurm"], DIGESTS["slurm"])
    with pytest.raises(
        Failure, match=r"r\.test/a:1: the registry has sha256:a+, and this release has sha256:b+: nothing was pushed"
    ):
        push.refuse_other("r.test/a:1", DIGESTS["operator"], DIGESTS["slurm"])


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_call_our_targets_and_pin_their_actions(path: Path) -> None:
    """An action is named by its commit, with the version in a comment; a command of make by a target that exists."""
    workflow = yaml.safe_load(path.read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    called = [
        word for step in steps for line in re.findall(r"^make ([a-z -]+)", step.get("run", "")) for word in line.split()
    ]
    assert set(called) <= set(targets)
    assert called
    for action in (line for line in path.read_text().splitlines() if "uses:" in line):
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v[0-9.]+$", action), action


def test_the_sums_are_signed_with_the_key_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key nothing is signed; the public key shows a change."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    folder, key, public = tmp_path / "release", tmp_path / "key", tmp_path / "public"
    (folder / "charts").mkdir(parents=True)
    (folder / "charts/a.tgz").write_text("chart\n")
    (folder / "b").write_text("")
    path = sums.write(folder)
    subprocess.run(["sha256sum", "--check", "--strict", path], cwd=folder, check=True, capture_output=True)
    assert [line.split("  ")[1] for line in path.read_text().splitlines()] == ["b", "charts/a.tgz"]
    monkeypatch.delenv(sums.KEY, raising=False)
    assert sums.sign(folder, sums.take_key()) is None
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
        check=True,
        capture_output=True,
    )
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    monkeypatch.setenv(sums.KEY, key.read_text())
    signature = sums.sign(folder, sums.take_key())
    verify = ["openssl", "dgst", "-sha256", "-verify", public, "-signature", str(signature), path]
    assert subprocess.run(verify, check=False, capture_output=True, env=os.environ).returncode == 0
    path.write_text(path.read_text().replace("b", "c"))
    assert subprocess.run(verify, check=False, capture_output=True).returncode != 0


def test_no_other_program_of_a_release_has_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip runs the builders of packages, and the charts are packed by a helm that may be any on PATH."""
    monkeypatch.setenv(sums.KEY, "secret")
    with pytest.raises(Failure):
        release.release("9.9.9", "", ROOT / "dist", changed=True)
    assert sums.KEY not in os.environ


@pytest.mark.parametrize("version", ["`touch {}`", "1$$(touch {})", '1"; touch {}; "'])
def test_a_version_runs_no_command(tmp_path: Path, version: str) -> None:
    """It may be the name of a tag, and the job has the key and the password of the registry."""
    planted = tmp_path / "planted"
    words = ["-o", "venv", "-o", "machine", "release", f"VERSION={version.format(planted)}", "PYTHON=echo"]
    done = subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"-m local.release {version.format(planted)}".replace("$$", "$") in done.stdout
    assert not planted.exists()
