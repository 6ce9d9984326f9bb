"""What the command line prints for people.

Much of it was written by somebody else: the comment of a job by its user, a reason of a node, the last words of a container, a tenant's file.
A terminal takes some bytes for orders, to hide lines, to write the clipboard, to name the window. So none reaches it.
"""

import typer


def plain(text: str) -> str:
    """The text with each letter that is not to be printed as its number; lines stay lines."""
    return "".join(each if each in "\n\t" or each.isprintable() else ascii(each)[1:-1] for each in text)


def line(text: str) -> str:
    """The same as one line, for what stands among lines of ours: a second one could be taken for ours."""
    return plain(text).replace("\n", "\\n")


def say(text: str, err: bool = False) -> None:
    """Print a text for a person."""
    typer.echo(plain(text), err=err)
