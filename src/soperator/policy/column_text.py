"""Shortens a message to the first cause on one line for a WHY column, because kubectl shows one line. The conditions keep the whole message."""

#: The most characters of a text that `kubectl get -o wide` shows in a column.
LENGTH = 120
_MORE = "; …"
#: The longest last link of a chain of causes that is kept at the end of a shortened sentence.
_LAST = 40
#: The longest part of a word that is left out instead of being cut; a longer one is a name or an address.
_PART = 12


def in_column(message: str) -> str:
    """Return the message as one line of at most LENGTH characters: its first sentences, as many as fit, or the first without its middle."""
    line = " ".join(message.split())
    if len(line) <= LENGTH:
        return line
    kept, *others = line.split("; ")
    while others and len(kept) + len("; ") + len(others[0]) + len(_MORE) <= LENGTH:
        kept = f"{kept}; {others.pop(0)}"
    if not others or len(kept) + len(_MORE) > LENGTH:
        return _without_middle(kept, LENGTH)
    if len(kept) > LENGTH // 2:
        return kept + _MORE
    # A short first sentence says where, the next one what.
    return f"{kept}; {_without_middle(others[0], LENGTH - len(kept) - len('; '))}"


def _without_middle(sentence: str, room: int) -> str:
    """Return the sentence in at most `room` characters: its beginning, which names the object, and the last cause of a chain."""
    if len(sentence) <= room:
        return sentence
    links = sentence.split(": ")
    end = f"… {links[-1]}" if len(links) > 2 and len(links[-1]) <= min(_LAST, room // 2) else "…"
    front = sentence[: room - len(end)]
    whole, _, part = front.rpartition(" ")
    return front.rstrip(" ,:;") + end if len(part) > _PART or not whole else f"{whole.rstrip(' ,:;')} {end}"
