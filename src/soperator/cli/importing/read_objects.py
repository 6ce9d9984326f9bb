"""Reads the objects of another system from YAML files."""

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from soperator.cli.support.manifests import YamlLoader
from soperator.importers.parts.fields import ForeignObject, foreign_objects
from soperator.importers.parts.report import UnreadableInputError

#: The largest file that is read.
_LARGEST = 32 << 20


def read_objects(given: Sequence[Path]) -> list[ForeignObject]:
    """Return the objects in the files, in their order; `-` is standard input. Raises UnreadableInputError."""
    return [found for file in given for found in _of_file(file)]


def _of_file(file: Path) -> list[ForeignObject]:
    shown = "standard input" if str(file) == "-" else str(file)
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UnreadableInputError(f"{shown}: it has more than {_LARGEST >> 20} MiB: give the objects alone")
        text = content.decode()
        return foreign_objects(shown, list(yaml.load_all(text, YamlLoader)))
    except OSError as error:
        raise UnreadableInputError(f"{shown}: it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableInputError(f"{shown}: it is not UTF-8 text: give a YAML file") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise UnreadableInputError(f"{shown}: {line}{error.problem or error.context}: correct the YAML") from None
    except yaml.YAMLError as error:
        raise UnreadableInputError(f"{shown}: {str(error).splitlines()[0]}: correct the YAML") from None
