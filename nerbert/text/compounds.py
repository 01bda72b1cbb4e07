"""Words inside of NLTK's tokens: elided articles, and compounds of a name and another word.

NLTK's tokens are those of English, where "l'Académie" and "Soviet-era" are one token each. A name
in such a token could not be tagged. The rules see the token and the language alone, and never which
of its words are linked: else the tokens themselves would tell where a name begins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_ARTICLES = frozenset("al an ar as ash at az ad adh el es ul ud ur us in bin ibn ben abu".split())
"""Parts in front of a hyphen that belong to the name: "al-Qaeda"."""
_LEAST = 2
"""Letters of the parts of a compound: "T-shirt", "e-Estonia" and "A-level" are one word each."""


@cache
def _elisions(language: str) -> re.Pattern[str] | None:
    """Matches an elided word at its apostrophe; None for languages without such words."""
    text = (files("nerbert.text") / "data" / "elisions.toml").read_text(encoding="utf-8")
    words = tomllib.loads(text)["languages"].get(language, "").split()
    if not words:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})['’](?=\w)", re.IGNORECASE)


def with_straight_marks(text: str, language: str) -> str:
    """The text with straight apostrophes behind elided words, where NLTK would cut curved ones."""
    elisions = _elisions(language)
    if elisions is None or "’" not in text:
        return text
    return elisions.sub(lambda match: match[0].replace("’", "'"), text)


def signs(language: str) -> str:
    """The characters that a token must have to be cut."""
    return "-/" if _elisions(language) is None else "-/'"


def cuts(token: str, language: str = "") -> list[int]:
    """Places inside of a token where another word begins, ascending.

    An elided word ends at its apostrophe. Names on both sides of a slash are parted, and the words
    of a compound of one name and words in lower case: "Soviet-era", "pro-Western". "Rolls-Royce",
    "Aix-en-Provence" and "well-known" stay as they are.

    Args:
        token: a token of NLTK.
        language: code of the language; without it nothing is known to be elided.
    """
    places: set[int] = set()
    if "'" in token and (elisions := _elisions(language)) is not None:
        places.update(match.end() for match in elisions.finditer(token))
    start = 0
    for word in re.split(r"(?<=')", token) if places else [token]:
        places.update(start + cut for cut in _signs(word))
        start += len(word)
    return sorted(places - {0, len(token)})


def _signs(word: str) -> Iterator[int]:
    """Both ends of each slash and hyphen where a word is cut."""
    parts = word.split("/")
    place = 0
    for number, part in enumerate(parts):
        yield from (place + cut for cut in _hyphens(part))
        place += len(part)
        following = parts[number + 1] if number + 1 < len(parts) else ""
        if part[:1].isupper() and following[:1].isupper():
            yield from (place, place + 1)
        place += 1


def _hyphens(word: str) -> Iterator[int]:
    """Both ends of the hyphens between a name and words in lower case."""
    parts = word.split("-")
    if len(parts) == 1 or not all(len(part.strip(".")) >= _LEAST for part in parts):
        return
    low = [part.islower() and part.isalpha() for part in parts]
    names = [number for number, is_low in enumerate(low) if not is_low]
    if not names or not all(any(map(str.isupper, parts[number])) for number in names):
        return
    first, last = names[0], names[-1]
    if any(part in _ARTICLES for part in parts[:first]):
        first = 0
    place = 0
    for number, part in enumerate(parts[:-1]):
        place += len(part)
        if number < first or number >= last:
            yield from (place, place + 1)
        place += 1
