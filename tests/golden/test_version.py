"""The renderer has a version that changes with what it renders."""

from soperator.render.version import VERSION
from tests.golden.version import RECORD, line


def test_the_version_of_the_renderer_belongs_to_these_golden_objects():
    """Golden objects that changed under the same version would restart pods when the operator is upgraded; `make golden` raises it."""
    assert RECORD.read_text() == line(VERSION)
