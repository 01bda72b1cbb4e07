"""Words that no link marks although the page tells that they name an entity.

Editors link a name once, mostly where it comes first, and never link a page to itself. Later
occurrences would be taught as outside; marked, they can be left out of the loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.tokens import Span

_BRACKET = re.compile(r" \([^()]+\)$")
_WORD = re.compile(r"\w+")
_SHORTEST = 4  # characters of a title's word that may stand for it ("Lincoln"); spares "The"
_KEY = 2  # characters by which names are found


class Names:
    """The names of a page: what its links with a category show; its title, and words of that."""

    def __init__(self, title: str, surfaces: Iterable[str]) -> None:
        """Collects the names.

        Args:
            title: of the page; a bracket at its end is no part of the name, its capitalised words
                ("Lincoln") are names too.
            surfaces: texts of the page's anchors that have a category.
        """
        title = _BRACKET.sub("", title)
        words = (word for word in _WORD.findall(title) if word[0].isupper())
        names = {title, *(word for word in words if len(word) >= _SHORTEST), *surfaces}
        self._by_key: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda name: (-len(name), name)):
            if name.strip():
                self._by_key.setdefault(name[:_KEY], []).append(name)

    def mark(self, sentence: str, spans: Sequence[Span], tags: Sequence[int]) -> list[bool]:
        """Which tokens belong to a name that is not linked, shape (tokens,).

        The longest name counts; it begins and ends with a token, and none of its tokens is tagged.

        Args:
            sentence: its text.
            spans: of the tokens, in characters.
            tags: label ids of the tokens, 0 outside.
        """
        marked = [False] * len(spans)
        token_after = {end: index + 1 for index, (_, end) in enumerate(spans)}
        free = 0  # first token behind the last name
        for index, (start, _) in enumerate(spans):
            names = self._by_key.get(sentence[start : start + _KEY])
            if names is None or index < free:
                continue
            for name in names:
                after = token_after.get(start + len(name))
                if after and sentence.startswith(name, start) and not any(tags[index:after]):
                    marked[index:after] = [True] * (after - index)
                    free = after
                    break
        return marked
