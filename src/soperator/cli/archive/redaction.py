"""Removes secrets from texts and objects, so that a support archive can be given to others.

It uses two methods, because each alone misses some secrets. The first removes texts by their form: values of environment variables, private
keys, tokens, passwords in configuration files. The second searches each file for the contents of all Secrets of the namespaces: unchanged,
line by line, as base64 (at all three alignments), as hex, and escaped for JSON and for URLs. It does not search for values of fewer than
four bytes.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

MARK = b"(redacted)"
#: Shorter values are searched for as whole words only; the shortest not at all, for they stand everywhere.
_SHORT, _SHORTEST = 8, 4
#: A part of a longer value, such as the password in an address, is searched for if it has this length.
_PART = 16
_LARGE = 256 * 1024
_DROPPED = ("kubectl.kubernetes.io/last-applied-configuration",)
#: Variables that the operator sets, whose values are settings.
_OURS = re.compile(r"(SOPERATOR_|POD_|SLURM_CONF$)")
_TOKENS = re.compile(rb"[A-Za-z0-9+/=_.~-]{%d,}" % _PART)
_FORMS = (
    re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
    re.compile(rb"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
)
_KEY = rb"(?i)(pass(?:word|wd|phrase)?\\?[\"']?\s*[=:]\s*)"
_QUOTED = re.compile(_KEY + rb"(\\?[\"'])(?:(?!\2).)+\2")
_PASSWORD = re.compile(_KEY + rb"(?!\(null\)|[\\\"'])([^\s\"'\\,}&]+)")


#: The beginning of a word, also after an escaped line break of JSON.
_BEFORE = rb"(?:(?<![A-Za-z0-9])|(?<=\\n)|(?<=\\t)|(?<=\\r))"


def _by_length(text: bytes) -> tuple[int, bytes]:
    return -len(text), text


class Redaction:
    """The search for the values of Secrets; built once, used for each file."""

    def __init__(self, values: Iterable[bytes], harmless: Iterable[str] = ()) -> None:
        """Build the search.

        `values` are the contents of Secrets; `harmless` are words in Secrets that are not secret, such as names of objects.
        """
        skipped = {each.encode() for each in harmless}
        found = {piece for value in values for piece in _pieces(value) if piece not in skipped}
        forms = {form for each in found for form in _encoded(each)}
        words = [each for each in found if len(each) < _SHORT]
        #: Longer ones first, so that none leaves a rest.
        self._needles = sorted((each for each in forms if len(each) >= _SHORT), key=_by_length)
        any_word = b"|".join(map(re.escape, sorted(words, key=_by_length)))
        self._words = re.compile(rb"%s(?:%s)(?![A-Za-z0-9])" % (_BEFORE, any_word)) if words else None

    def clean(self, content: bytes) -> bytes:
        """Return the content of a file without secrets."""
        for form in _FORMS:
            content = form.sub(MARK, content)
        content = _PASSWORD.sub(rb"\1" + MARK, _QUOTED.sub(rb"\1\2" + MARK + rb"\2", content))
        for needle in self._needles:
            if needle in content:
                content = content.replace(needle, MARK)
        return self._words.sub(MARK, content) if self._words else content

    def finds(self, content: bytes) -> bool:
        """Return whether the content has a value of a Secret in one of the forms."""
        return any(needle in content for needle in self._needles) or bool(self._words and self._words.search(content))


def clean_object(value: Any) -> Any:
    """Return an object of Kubernetes without the values of Secrets and of environment variables, copies of former specs and field managers."""
    if isinstance(value, list):
        return [clean_object(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "Secret":
        value = {key: each for key, each in value.items() if key not in ("data", "stringData")} | {
            "keys": sorted(value.get("data") or {})
        }
    return {key: _clean_field(key, each) for key, each in value.items() if key != "managedFields"}


def _clean_field(key: str, value: Any) -> Any:
    if key == "annotations" and isinstance(value, dict):
        return {name: clean_object(text) for name, text in value.items() if name not in _DROPPED}
    if key == "env" and isinstance(value, list):
        return [_clean_variable(each) for each in value]
    return clean_object(value)


def _clean_variable(variable: Any) -> Any:
    is_plain = isinstance(variable, Mapping) and "value" in variable
    if not is_plain or _OURS.match(str(variable.get("name", ""))):
        return variable
    return {**variable, "value": MARK.decode()}


def _pieces(value: bytes) -> Iterator[bytes]:
    """Yield the value, its lines, and its longer parts, such as the password in an address or the key in a JSON document."""
    stripped = value.strip()
    if len(stripped) >= _SHORTEST:
        yield value
        yield stripped
    if len(value) > _LARGE:
        return
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _SHORT)
    yield from (part for part in _TOKENS.findall(value) if re.search(rb"[0-9]", part) and re.search(rb"[A-Za-z]", part))


def _encoded(piece: bytes) -> Iterator[bytes]:
    """Yield a piece in each form in which a file may contain it."""
    yield piece
    yield piece.hex().encode()
    yield piece.hex().upper().encode()
    yield from _in_base64(piece)
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return
    once = json.dumps(text, ensure_ascii=False)[1:-1]
    for form in (
        once,
        json.dumps(text)[1:-1],
        json.dumps(once, ensure_ascii=False)[1:-1],
        quote(text),
        quote(text, safe=""),
    ):
        yield form.encode()


def _in_base64(piece: bytes) -> Iterator[bytes]:
    """Yield the base64 of a piece, and the part of it that does not depend on adjacent bytes, at the three alignments; in both alphabets."""
    whole = base64.b64encode(piece)
    forms = [whole, whole.rstrip(b"=")]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + piece)
        begin = -(-before * 8 // 6)
        end = (before + len(piece)) * 8 // 6
        forms.append(encoded[begin:end])
    for form in forms:
        if len(form) >= _SHORT:
            yield form
            yield form.replace(b"+", b"-").replace(b"/", b"_")
