"""Slurm's files survive being written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.slurm import conf

KEYS = st.text("abcXYZ019", min_size=1, max_size=8)
VALUES = st.text(
    st.characters(blacklist_characters='"\n\r', blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20
)
LINES = st.lists(
    st.lists(st.tuples(KEYS, VALUES.filter(lambda text: text.strip() == text)), min_size=1, max_size=4),
    max_size=6,
)


@given(LINES)
def test_what_is_written_is_read_back(pairs):
    """parse(render(lines)) has the same pairs in the same order, also with the marks that begin a comment or continue a line."""
    lines = [conf.Line(tuple(each)) for each in pairs]
    assert [each.pairs for each in conf.parse(conf.render(lines))] == [each.pairs for each in lines]


def test_comments_blank_lines_and_continued_lines_are_read_as_slurm_does():
    """A comment ends a line, a backslash joins two, and the number is that of the first."""
    found = conf.parse("# head\n\nNodeSet=a \\\n Feature=a # tail\nFoo=1\n")
    assert [(each.number, each.pairs) for each in found] == [
        (3, (("NodeSet", "a"), ("Feature", "a"))),
        (5, (("Foo", "1"),)),
    ]


def test_a_line_without_a_value_is_refused_with_its_number():
    """The error names the line and the word."""
    with pytest.raises(conf.ConfError, match="line 2: 'nonsense' is not of the form Key=Value"):
        conf.parse("A=1\nnonsense\n")


@pytest.mark.parametrize("value", ["a\nInclude=/etc/shadow", 'a"b'])
def test_a_value_cannot_smuggle_in_a_line(value):
    """A line break or quotation mark in a value is refused, not written."""
    with pytest.raises(conf.ConfError):
        conf.render([conf.line(Key=value)])
