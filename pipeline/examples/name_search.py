"""Finds names in the texts of documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from itertools import compress, groupby, product, repeat
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from pipeline.examples.unlinked import NamesByStart, PageWords

Ints = npt.NDArray[np.int64]

_INITIAL = re.compile(r"\b[^\W\d_]\. ?$")
"""The end of a text after which a name goes on: "Richard M."."""
_PARTICLES = (
    "of de del della di da do dos du des la le los las y von van der den bin ibn al".split()
)
_ARTICLES = "the la los las der den".split()
_FOLLOWING = re.compile(r" (\w+)")
_OF = re.compile(r" (?:of|de|du|des|di|del|della|do|da|dos|von) (?:the )?$")
"""What stands before the second half of a name: "Bank of England"."""
DIRECT = (" ", "-", "–")
"""What stands before a capitalised word that goes on with a name."""
_ANY = 1 << 20
_LONGEST = {".": 1, ". ": 2, "-": _ANY} | {
    " ".join(["", *filter(None, words), ""]): _ANY
    for words in product(["", *_PARTICLES], ["", *_ARTICLES])
}
"""What stands between the words of one name -> letters of the word before, at most: "J. R. Smith",
"St. Paul"."""


def _upper_case() -> str:
    """A regular-expression class of all letters in upper case."""
    codes = [code for code in range(0x10000) if chr(code).isupper()]
    ends = [code for code in codes if not chr(code + 1).isupper()]
    begins = [code for code in codes if not chr(code - 1).isupper()]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(begins, ends, strict=True))


_CAPITAL = re.compile(rf"([{_upper_case()}](?<!\w.)\w*)", re.DOTALL)
"""A capitalised word. A search is fast for an expression that begins with a set of characters."""
_BETWEEN = "\n\n\n"
"""What stands between documents: names of one document are beside none of another one."""


class Capitals:
    """The capitalised words in the sentences of some documents."""

    def __init__(
        self,
        words: PageWords,
        documents: Ints,
        starts: Ints,
        ends: Ints,
        is_noun: Callable[[str], bool] = lambda word: False,
    ) -> None:
        """Finds the words.

        Args:
            words: texts of the documents, and their words.
            documents: document of each sentence, in order, shape (sentences,).
            starts: start of each sentence in its document, shape (sentences,).
            ends: end of each sentence, shape (sentences,).
            is_noun: whether a word with a capital is a common noun, which is a part of no name.
        """
        texts = words.texts
        self._page_words, self._texts, self._documents = words, texts, documents
        self._sentence_starts, self._sentence_ends = starts.tolist(), ends.tolist()
        # One search for all documents: they are placed one after the other.
        self._text = _BETWEEN.join(texts)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts)) + len(_BETWEEN)
        self._bases = np.cumsum(lengths) - lengths
        firsts, lasts = (self._bases[documents] + edges for edges in (starts, ends))
        pieces = _CAPITAL.split(self._text)  # a gap, a word, a gap, a word, ..., a gap
        places = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
        begins, stops = places[:-1:2], places[1::2]
        rows = np.searchsorted(firsts, begins, "right") - 1
        inside = (rows >= 0) & (begins < np.append(lasts, 0)[rows])
        self._starts, self._rows = begins[inside], rows[inside]
        self._ends = np.minimum(stops[inside], lasts[self._rows])
        self._words, self._gaps = (
            list(compress(texts, inside.tolist())) for texts in (pieces[1::2], pieces[2::2])
        )
        self._bounds = [*np.searchsorted(self._starts, self._bases).tolist(), len(self._words)]
        self._tells_noun = is_noun
        are_nouns = {word: is_noun(word) for word in set(self._words)}
        self._is_noun = np.fromiter(map(are_nouns.get, self._words), bool, len(self._words))
        self._is_plain = self._plain(np.flatnonzero(self._starts == firsts[self._rows]))

    def _plain(self, begin: Ints) -> list[bool]:
        """Whether each word begins a sentence of a page that has it in lower case, too.

        Args:
            begin: numbers of the words that begin a sentence.
        """
        is_plain = [False] * len(self._words)
        documents = self._documents[self._rows[begin]].tolist()
        places = zip(documents, begin.tolist(), strict=True)
        for document, group in groupby(places, key=itemgetter(0)):
            low = {number: self._words[number].lower() for _, number in group}
            in_lower_case = self._page_words.among(document, low.values())
            for number, word in low.items():
                is_plain[number] = word in in_lower_case
        return is_plain

    def occurrences(
        self,
        document: int,
        names: Collection[str],
        occupied: Sequence[tuple[int, int]],
        beside_nouns: Collection[str] = (),
        hiding: Collection[str] = (),
    ) -> Iterator[tuple[int, int, int, str]]:
        """Finds names in the sentences of a document that are not a part of a longer name.

        Of several names at one place the longest is found. A capitalised word directly before or
        after an occurrence makes it a part of a longer name, also with "of" between ("Bank of
        England"); the first word of a sentence does so only if the text nowhere has it in lower
        case.

        Args:
            document: number of the document.
            names: names that begin with a capital.
            occupied: spans of its anchors, in order.
            beside_nouns: names that a common noun with a capital may stand beside: "Philosoph
                Kant", "Kants Werk". "Universität Berlin" is another one than "Berlin".
            hiding: names that are found whatever capitalised word follows.

        Yields:
            Number of the sentence, start and end of the occurrence in the document, and the name.
        """
        matches = ((_CAPITAL.match(name), name) for name in names)
        by_word = NamesByStart((word[0], name) for word, name in matches if word is not None)
        text, base = self._texts[document], int(self._bases[document])
        first, last = self._bounds[document : document + 2]
        words = self._words[first:last]
        anchor = free = 0
        for number in [first + n for n, word in enumerate(words) if word in by_word]:
            start = int(self._starts[number]) - base
            if start < free:
                continue
            row = int(self._rows[number])
            begin, end = self._sentence_starts[row], self._sentence_ends[row]
            while anchor < len(occupied) and occupied[anchor][1] <= start:
                anchor += 1
            for name in by_word.at(self._words[number], text, start, end):
                stop = start + len(name)
                is_taken = anchor < len(occupied) and occupied[anchor][0] < stop
                may_be_beside = name in beside_nouns
                is_whole = may_be_beside and self._is_before_noun(text, stop, end)
                if is_taken or (_goes_on(text, stop, end) and not (is_whole or name in hiding)):
                    continue
                if _INITIAL.search(text, max(begin, start - 3), start):
                    continue
                if (
                    number
                    and self._rows[number - 1] == row
                    and self._is_joined(number - 1)
                    and not (may_be_beside and self._is_noun[number - 1])
                ):
                    continue
                yield row, start, stop, name
                free = stop
                break

    def _is_before_noun(self, text: str, stop: int, end: int) -> bool:
        """Whether a common noun follows a place in a text, behind a blank."""
        match = _FOLLOWING.match(text, stop, end)
        return match is not None and self._tells_noun(match[1])

    def _is_joined(self, number: int) -> bool:
        """Whether a name that begins with a word goes on with the next capitalised one."""
        gap = self._gaps[number]
        return not self._is_plain[number] and (gap in DIRECT or _OF.fullmatch(gap) is not None)

    def whole_names(
        self, taken_rows: Ints, taken_starts: Ints, taken_ends: Ints, common: Container[str] = ()
    ) -> Iterator[tuple[int, int, int, int]]:
        """Finds the longest runs of capitalised words: "Bank of England", not "England" in it.

        The first word of a sentence is no part of a run if the text has it in lower case, too. If
        it is a common word ("The") and not capitalised elsewhere ("New"), the run is found with and
        without it.

        Args:
            taken_rows: sentences of known mentions, in order; a run that touches one is left out.
            taken_starts: their starts.
            taken_ends: their ends.
            common: the most frequent words of the language, in lower case.

        Yields:
            Numbers of the document and of the sentence, start and end of the run in the document;
            of two that overlap, the longer one first.
        """
        if not self._words:
            return
        longest = np.fromiter(map(_LONGEST.get, self._gaps, repeat(0)), np.int64)
        goes_on = (self._ends - self._starts <= longest)[:-1] & (np.diff(self._rows) == 0)
        goes_on &= ~self._is_noun[1:]
        first = np.flatnonzero(np.append(True, ~goes_on))
        last = np.append(first[1:], len(self._words)) - 1
        starts, ends, rows = self._starts[first], self._ends[last], self._rows[first]
        # A run beside a mention may be a part of its name.
        bases = self._bases[self._documents[taken_rows]]
        place = np.searchsorted(bases + taken_ends, starts - 1)
        after = np.append(bases + taken_starts, len(self._text) + 2)[place]
        free_runs = np.flatnonzero((after > ends + 1) & (ends - starts > 1) & ~self._is_noun[first])
        documents = self._documents[rows]
        doubtful: dict[tuple[int, str], bool] = {}  # each word of a page once: it reads the page
        columns = first, last, rows, documents, self._bases[documents], starts, ends
        for number, final, row, document, base, start, end in zip(
            *(column[free_runs].tolist() for column in columns), strict=True
        ):
            text = self._texts[document]
            start, end = start - base, end - base
            if _goes_on(text, end, self._sentence_ends[row]):
                continue
            if start == self._sentence_starts[row]:
                is_plain, has_more = self._is_plain[number], final > number
                word = self._words[number]
                if has_more and not is_plain and (document, word) not in doubtful:
                    doubtful[document, word] = _is_doubtful(text, word, common)
                if has_more and (is_plain or doubtful[document, word]):
                    if not is_plain:
                        yield document, row, start, end
                    start = int(self._starts[number + 1]) - base
                elif is_plain:
                    continue
            if end - start > 1:
                yield document, row, start, end


def _is_doubtful(text: str, word: str, common: Container[str]) -> bool:
    """Whether the first word of a sentence is a common one, and not capitalised elsewhere."""
    return word.lower() in common and not _is_inside(text, word)


def _is_inside(text: str, word: str) -> bool:
    """Whether a capitalised word stands inside of a sentence, after a word in lower case."""
    place = text.find(f" {word}")
    while place >= 0:
        before = text[place - 1 : place] if text[place - 1] != "," else text[place - 2 : place - 1]
        after = text[place + len(word) + 1 : place + len(word) + 2]
        if before.islower() and not after.isalnum():
            return True
        place = text.find(f" {word}", place + 1)
    return False


def _goes_on(text: str, stop: int, last: int) -> bool:
    """Whether the name ends inside a word, or a capitalised word or a number follows it."""
    after = text[stop : min(stop + 2, last)]
    if not after:
        return False
    if after[0].isalnum() or after[0] == "_":
        return True
    return len(after) > 1 and after[0] in " -–" and (after[1].isupper() or after[1].isdigit())
