"""Mentions at the borders of tokens: tokens do not depend on mentions, so these must fit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nerbert.text.tokens import Tokens
from pipeline.examples.exact_names import KOREAN_END
from pipeline.examples.mentions import Bools, Ints, Sentences

_APART = frozenset(' \n\t()[]{},;:"“”«»„‚‘’')
"""Characters that NLTK's tokens do not cross, beside a digit: most mentions stand between these."""


@dataclass(frozen=True)
class Fitted:
    """The mentions that begin and end at borders of tokens, and those that do not.

    Attributes:
        sentences: the sentences with the first ones.
        extended: number of mentions that got the punctuation or the ending of their token, too.
        rows: sentence of each mention that was left out, shape (left out,).
        starts: its start in the text of the document, shape (left out,).
        ends: its end, shape (left out,).
    """

    sentences: Sentences
    extended: int
    rows: Ints
    starts: Ints
    ends: Ints


def fitted(sentences: Sentences, texts: Sequence[str], language: str) -> Fitted:
    """Fits mentions to tokens.

    A mention that cuts a token is extended to it if the rest is punctuation, an ending behind an
    apostrophe ("Voltaire'i"), or a Korean particle. Else it is left out: in
    "Puccini-Oper" the token is no composer.

    Args:
        sentences: sentences and mentions of documents.
        texts: texts of the documents.
        language: code of their language.
    """
    rows = np.flatnonzero(_may_cut(sentences, texts))
    owners, place = np.unique(sentences.anchor_sentences[rows], return_inverse=True)
    documents, starts, ends = (
        column[owners].tolist()
        for column in (sentences.documents, sentences.starts, sentences.ends)
    )
    places = zip(documents, starts, ends, strict=True)
    tokens = Tokens.of([texts[number][start:end] for number, start, end in places], language)
    offsets = tokens.bases[place] - sentences.starts[owners][place]
    first, last = sentences.anchor_starts[rows] + offsets, sentences.anchor_ends[rows] + offsets
    begins = tokens.starts[np.maximum(np.searchsorted(tokens.starts, first, "right") - 1, 0)]
    stops = tokens.ends[np.minimum(np.searchsorted(tokens.ends, last), len(tokens.ends) - 1)]
    # A mention may begin or end between tokens, at a space that is no part of any.
    begins = np.where(_is_inside(tokens, first), begins, first)
    stops = np.where(_is_inside(tokens, last), stops, last)
    fits = np.array(
        [
            _has_no_letter(tokens.text[begin:start])
            and (
                _has_no_letter(tokens.text[end:stop])
                or tokens.text[end] in "'’"
                or (language == "ko" and KOREAN_END.match(tokens.text, end) is not None)
            )
            for begin, start, end, stop in zip(
                *(column.tolist() for column in (begins, first, last, stops)), strict=True
            )
        ],
        bool,
    )
    is_extended = fits & ((begins < first) | (stops > last))
    anchor_starts, anchor_ends = sentences.anchor_starts.copy(), sentences.anchor_ends.copy()
    anchor_starts[rows[fits]] = (begins - offsets)[fits]
    anchor_ends[rows[fits]] = (stops - offsets)[fits]
    is_fit = np.ones(len(anchor_starts), bool)
    is_fit[rows[~fits]] = False
    left_out = (
        column[~is_fit] for column in (sentences.anchor_sentences, anchor_starts, anchor_ends)
    )
    changed = replace(sentences, anchor_starts=anchor_starts, anchor_ends=anchor_ends)
    return Fitted(changed.where(is_fit), int(is_extended.sum()), *left_out)


def _may_cut(sentences: Sentences, texts: Sequence[str]) -> Bools:
    """Whether each mention has a character beside it that may belong to its token."""
    documents = sentences.documents[sentences.anchor_sentences].tolist()
    spans = zip(
        documents, sentences.anchor_starts.tolist(), sentences.anchor_ends.tolist(), strict=True
    )
    return np.array(
        [
            texts[number][start - 1 : start] not in _APART
            or texts[number][end : end + 1] not in _APART
            for number, start, end in spans
        ],
        bool,
    )


def _is_inside(tokens: Tokens, places: Ints) -> Bools:
    """Whether each place is inside of a token."""
    number = np.searchsorted(tokens.starts, places, "right") - 1
    inside: Bools = (tokens.starts[number] < places) & (places < tokens.ends[number])
    return inside & (number >= 0)


def _has_no_letter(text: str) -> bool:
    return not any(map(str.isalnum, text))
