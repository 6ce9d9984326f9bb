"""The data parser of slurmrestd is named in one place of the operator and one of the images, and the trial asks for it."""

import re
import subprocess

from local.paths import REPOSITORY
from soperator.slurmrest.parser import PARSER

IMAGES = REPOSITORY / "images"
NAMED = re.compile(r"v0[._]0[._][0-9]+")


def test_the_images_have_the_parser_that_the_operator_speaks() -> None:
    """slurmrestd is started with it, and the proxy asks by it."""
    assert f"SOPERATOR_PARSER={PARSER}\n" in (IMAGES / "slurm/parser").read_text()
    assert set(NAMED.findall((IMAGES / "proxy/nginx.conf").read_text())) == {PARSER}


def test_no_other_file_names_a_parser() -> None:
    """So a release that changes it changes it everywhere."""
    found = [each for each in [*(REPOSITORY / "src").rglob("*.py"), *IMAGES.rglob("*")] if each.is_file()]
    named = {str(each.relative_to(REPOSITORY)) for each in found if NAMED.search(each.read_text(errors="replace"))}
    assert named == {"src/soperator/slurmrest/parser.py", "images/slurm/parser", "images/proxy/nginx.conf"}


def test_the_trial_refuses_an_image_without_it(tmp_path) -> None:
    """slurmctld cannot go back, and without REST nothing could be drained; the plugin's file says whether it is there."""
    assert ". /usr/lib/soperator/judge" in (IMAGES / "slurm/roles/trial").read_text()
    judge = (IMAGES / "slurm/judge").read_text()
    check = judge[judge.index("# slurmctld does not go back") :]
    check = check.replace("/usr/lib/soperator/parser", str(IMAGES / "slurm/parser"))
    script = f'refuse() {{ echo "$*"; exit 65; }}\n{check.replace("/opt/soperator/lib/slurm", str(tmp_path))}'
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=False)
    assert (done.returncode, PARSER in done.stdout) == (65, True)
    (tmp_path / f"data_parser_{PARSER.replace('.', '_')}.so").touch()
    assert subprocess.run(["bash", "-euc", script], check=False).returncode == 0
