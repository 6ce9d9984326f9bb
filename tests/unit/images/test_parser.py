"""The data parsers of slurmrestd are listed in one place of the operator and one of the images, and the trial asks for one of them."""

import re
import subprocess

import pytest

from local.paths import REPOSITORY
from soperator.slurmrest.parser import PARSERS

IMAGES = REPOSITORY / "images"
NAMED = re.compile(r"v0[._]0[._][0-9]+")


def test_the_images_load_the_parsers_that_the_operator_reads() -> None:
    """slurmrestd is started with those that its release has; the proxy asks by the oldest, which every release of the list has."""
    assert f'SOPERATOR_PARSERS="{" ".join(PARSERS)}"\n' in (IMAGES / "slurm/parser").read_text()
    assert '-d "$SOPERATOR_HAS"' in (IMAGES / "slurm/roles/slurmrestd").read_text()
    assert set(NAMED.findall((IMAGES / "proxy/nginx.conf").read_text())) == {PARSERS[0]}


def test_no_other_file_names_a_parser() -> None:
    """So a release that changes it changes it everywhere."""
    found = [each for each in [*(REPOSITORY / "src").rglob("*.py"), *IMAGES.rglob("*")] if each.is_file()]
    named = {str(each.relative_to(REPOSITORY)) for each in found if NAMED.search(each.read_text(errors="replace"))}
    assert named == {"src/soperator/slurmrest/parser.py", "images/slurm/parser", "images/proxy/nginx.conf"}


@pytest.mark.parametrize(
    ("has", "loaded"), [((), None), (PARSERS[:1], PARSERS[0]), (PARSERS[1:3], ",".join(PARSERS[1:3]))]
)
def test_the_trial_refuses_an_image_without_any_of_them(tmp_path, has, loaded) -> None:
    """slurmctld cannot go back, and without REST nothing could be drained; the plugins' files say which there are."""
    assert ". /usr/lib/soperator/judge" in (IMAGES / "slurm/roles/trial").read_text()
    judge = (IMAGES / "slurm/judge").read_text()
    parser = tmp_path / "parser"
    parser.write_text((IMAGES / "slurm/parser").read_text().replace("/opt/soperator/lib/slurm", str(tmp_path)))
    check = judge[judge.index("# slurmctld does not go back") :].replace("/usr/lib/soperator/parser", str(parser))
    script = f'refuse() {{ echo "$*"; exit 65; }}\n{check}\necho "$SOPERATOR_HAS"'
    for each in ("v0.0.41", *has):
        (tmp_path / f"data_parser_{each.replace('.', '_')}.so").touch()
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if loaded else 65)
    assert done.stdout.strip() == loaded if loaded else PARSERS[0] in done.stdout
