"""The output of the command line for people.

Much of it comes from somebody else: the comment of a job, a reason of a node, the log of a container, a tenant's file. A terminal executes control
sequences, which can hide lines, write the clipboard or rename the window. So none reaches it.
"""

import typer


def plain(text: str) -> str:
    """The text with each letter that is not to be printed as its number; lines stay lines."""
    return "".join(each if each in "\n\t" or each.isprintable() else ascii(each)[1:-1] for each in text)


def line(text: str) -> str:
    """The same as one line, for a text among our own lines: a second line could be taken for ours."""
    return plain(text).replace("\n", "\\n")


def say(text: str, err: bool = False) -> None:
    """Print a text for a person."""
    typer.echo(plain(text), err=err)
