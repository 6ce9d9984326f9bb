"""Prints the command line's output for people.

Much of it was written by others: the comment of a job, a reason of a node, the log of a container, a tenant's file. A terminal executes control
sequences, which can hide lines, write the clipboard or rename the window. So this module removes them from all output.
"""

import typer


def plain(text: str) -> str:
    """Return the text with each unprintable character as its number; line breaks stay."""
    return "".join(each if each in "\n\t" or each.isprintable() else ascii(each)[1:-1] for each in text)


def line(text: str) -> str:
    """Return the same on one line, for a text within our own lines, because a second line could be mistaken for one of our lines."""
    return plain(text).replace("\n", "\\n")


def say(text: str, err: bool = False) -> None:
    """Print a text for a person."""
    typer.echo(plain(text), err=err)
