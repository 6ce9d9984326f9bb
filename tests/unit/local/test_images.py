"""The builder's bookkeeping: what an image depends on, and one image under several names."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from local import images
from local.images import RECIPES, Recipe, files_of, fingerprint, image_of, name_all, selected

RECIPE = Recipe("one", (), ("images/one", "src"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a tree with two inputs."""
    (tmp_path / "images/one").mkdir(parents=True)
    (tmp_path / "src/__pycache__").mkdir(parents=True)
    (tmp_path / "images/one/Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "src/a.py").write_text("a = 1\n")
    return tmp_path


def test_the_same_inputs_have_the_same_name(repository: Path) -> None:
    """Reading twice, with compiled leftovers in between, gives the same fingerprint."""
    before = fingerprint(repository, RECIPE, "base")
    (repository / "src/__pycache__/a.pyc").write_bytes(b"x")
    (repository / "src/plugin.o").write_bytes(b"x")
    (repository / "src/.hypothesis").mkdir()
    (repository / "src/.hypothesis/example").write_bytes(b"x")
    assert fingerprint(repository, RECIPE, "base") == before


@pytest.mark.parametrize("change", ["content", "mode", "name", "new", "base"])
def test_any_change_of_an_input_changes_the_name(repository: Path, change: str) -> None:
    """Content, mode, name and number of the files count, and so does the base."""
    before, file = fingerprint(repository, RECIPE, "base"), repository / "src/a.py"
    if change == "content":
        file.write_text("a = 2\n")
    elif change == "mode":
        file.chmod(0o755)
    elif change == "name":
        file.rename(repository / "src/b.py")
    elif change == "new":
        (repository / "src/new.py").touch()
    assert fingerprint(repository, RECIPE, "base2" if change == "base" else "base") != before


def test_an_alias_selects_the_image_that_serves_it() -> None:
    """The names login and munge belong to the slurm image, and naming both builds it once."""
    assert [each.name for each in selected(["login", "munge"])] == ["slurm"]
    assert selected([]) == [each for each in RECIPES if not each.optional]
    assert [each.name for each in selected(["sssd"])] == ["sssd"]


def test_an_unknown_image_is_refused_with_the_known_ones() -> None:
    """A typo is answered with the names there are."""
    with pytest.raises(SystemExit, match="unknown image slum: use one of agents, backup, jail, jail-bookworm, login"):
        selected(["slum"])


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_input_of_a_recipe_exists(recipe: Recipe) -> None:
    """A recipe names files and folders that are there, its own Dockerfile among them."""
    found = list(files_of(images.REPOSITORY, recipe.inputs))
    assert images.REPOSITORY / f"images/{recipe.folder or recipe.name}/Dockerfile" in found
    assert all((images.REPOSITORY / name).exists() for name in recipe.inputs)


def test_an_image_names_its_tags() -> None:
    """The operator's image is also the populate image: by the package's version, and by that with a hash of its inputs."""
    image = image_of(next(each for each in RECIPES if each.name == "operator"))
    version = images.version()
    assert image.tags[:2] == (f"localhost/soperator/operator:{version}", f"localhost/soperator/agents:{version}")
    key = image.tar.stem.removeprefix("operator-")[:8]
    assert image.references() == {
        name: f"localhost/soperator/{name}:{version}-{key}" for name in ("operator", "agents")
    }


def test_an_archive_takes_several_names(tmp_path: Path) -> None:
    """The manifest at the archive's end names all tags; the layers before it are untouched."""
    archive = tmp_path / "a.tar"
    manifest = json.dumps([{"Config": "c.json", "RepoTags": ["one:1"], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(archive, "w") as tar:
        for name, content in (("layer.tar", b"layer" * 1000), ("c.json", b"{}"), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    name_all(archive, ["one:1", "two:1"])
    with tarfile.open(archive) as tar:
        assert tar.getnames() == ["layer.tar", "c.json", "manifest.json"]
        file = tar.extractfile("manifest.json")
        assert file is not None
        assert json.loads(file.read())[0]["RepoTags"] == ["one:1", "two:1"]


def test_every_script_of_the_images_is_clean() -> None:
    """Shellcheck finds nothing in any script, and none is longer than a page."""
    scripts = [path for path in images.files_of(images.REPOSITORY, ["images"]) if is_script(path)]
    assert {"entry", "copy.sh", "slurmd", "sshd", "munged", "install", "users"} <= {path.name for path in scripts}
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert all(len(path.read_text().splitlines()) <= 45 for path in scripts)


def is_script(path: Path) -> bool:
    """Tell a shell script by its first line."""
    first = path.read_text().split("\n", 1)[0]
    return first.startswith(("#!/bin/sh", "#!/bin/bash", "# shellcheck shell="))


def test_another_day_of_packages_is_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base is of that day, and every image stands on it; the suite alone would name the same base for ever."""
    before = {each.name: image_of(each).tags for each in RECIPES}
    base = images.base_fingerprint()
    monkeypatch.setattr(images, "PACKAGES_SINCE", "2026-12-24")
    assert images.base_fingerprint() != base
    assert [
        name for name, tags in before.items() if image_of(next(e for e in RECIPES if e.name == name)).tags == tags
    ] == []
