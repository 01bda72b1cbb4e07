"""Sentence boundaries by a Punkt model, also where marks of other scripts end a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nerbert.text.punkt import LOWER, Parameters, SentenceSplitter, Span
from nerbert.text.punkt_training import train

SENTENCES = "sentences.json"
"""File with the Punkt model of a corpus; checkpoints that learnt from the corpus have it, too."""

TRAINED = "dump"
"""Source of a model that is trained on the texts themselves."""


Anchored = tuple[int, int, str]
"""Start and end of a link's text, and its target."""

_PUNKT_END = re.compile(r"[.?!]")
_FULL_STOP = re.compile(
    r"[「『（(【《〈]|[」』）)】》〉]|[。！？｡]+|[।॥۔؟։።။]+(?=\s)|(?<=다)\.(?=[가-힣])"
)
"""Marks that end a sentence and that Punkt does not know, and brackets in which they do not."""
_OTHER_STOP = re.compile(r"[。！？｡।॥۔؟։።]|다\.[가-힣]")
"""Such a mark, or the end of a Korean verb without a blank behind it."""
_ORDINALS = frozenset(
    "als bar bs cs da de dsb et eu fi fo frr hr hsb hu is ksh lb ltg lv nb nds nn no pfl pl sh sk "
    "sl sr stq sv szl tr".split()
)
"""Languages that write ordinals as a number and a full stop: "die 2. Bundesliga"."""
_ORDINAL = re.compile(r"(?<![^\s(/–])\d{1,2}\.")
_LETTERS = re.compile(r"[^\W\d_][\w-]*")
_BRACKET = 200
"""Characters in which a bracket closes, or its mark counts for nothing."""


@dataclass(frozen=True)
class SentenceModel:
    """A Punkt model.

    Attributes:
        source: "dump", or "nltk:" and the name of NLTK's model.
        parameters: parameters of the model.
        language: code of the language of the texts, by which ordinals and words are found; "" if
            it is unknown.
    """

    source: str
    parameters: Parameters = field(default_factory=Parameters)
    language: str = ""

    @classmethod
    def train(
        cls, texts: Iterable[str], abbreviations: Iterable[str] = (), language: str = ""
    ) -> SentenceModel:
        """Trains a model on texts without annotation. Source: Kiss and Strunk 2006.

        Args:
            texts: the texts.
            abbreviations: usual abbreviations of their language, in lower case and without their
                last full stop; they are added to those that are found.
            language: code of their language.
        """
        # The empty line after each text separates its last paragraph from the next text.
        lines = (line for text in texts for line in (*text.split("\n"), ""))
        parameters = train(lines)
        return cls(
            TRAINED,
            replace(parameters, abbreviations=parameters.abbreviations.union(abbreviations)),
            language,
        )

    def to_json(self) -> str:
        """The model as JSON; everything is sorted."""
        parameters = self.parameters
        fields = {
            "source": self.source,
            "language": self.language,
            "abbreviations": sorted(parameters.abbreviations),
            "collocations": sorted(parameters.collocations),
            "starters": sorted(parameters.starters),
            "contexts": {word: bits for word, bits in sorted(parameters.contexts.items()) if bits},
        }
        return json.dumps(fields, ensure_ascii=False, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> SentenceModel:
        """Reads the JSON of a model.

        Raises:
            ValueError: it is no model.
        """
        try:
            fields = json.loads(text)
            parameters = Parameters(
                frozenset(map(str, fields["abbreviations"])),
                frozenset((str(first), str(second)) for first, second in fields["collocations"]),
                frozenset(map(str, fields["starters"])),
                {str(word): int(bits) for word, bits in fields["contexts"].items()},
            )
            return cls(str(fields["source"]), parameters, str(fields.get("language", "")))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"no model of sentences ({error!r:.100})") from None

    @cached_property
    def _splitter(self) -> SentenceSplitter:
        return SentenceSplitter(self.parameters)

    def split_line(self, line: str) -> list[Span]:
        """Spans of the sentences of one paragraph, in characters."""
        spans: list[Span] = []
        for start, end in _split_full_stops(line):
            # A mark at the very end splits nothing, so most short lines need no Punkt.
            if _PUNKT_END.search(line, start, end - 1) is None:
                spans.append((start, end))
            else:
                inner_spans = self._splitter.spans(line[start:end])
                spans.extend((start + first, start + last) for first, last in inner_spans)
        return spans

    def split(self, text: str, anchors: Sequence[Anchored] = ()) -> list[Span]:
        """Spans of the sentences of a text. No sentence crosses a line or ends inside an anchor."""
        # Punkt reads whole texts, which is faster than line by line.
        if text.isascii() or not _OTHER_STOP.search(text):
            return _joined_over_anchors(self._joined(self._splitter.spans(text), text), anchors)
        spans: list[Span] = []
        position = 0
        for line in text.split("\n"):
            spans += [(position + start, position + end) for start, end in self.split_line(line)]
            position += len(line) + 1
        return _joined_over_anchors(self._joined(spans, text), anchors)

    def _joined(self, spans: list[Span], text: str) -> list[Span]:
        """Joins a span with the one before where no sentence ends."""
        joined: list[Span] = []
        for start, end in spans:
            if joined and self._goes_on(joined[-1], start, text):
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        return joined

    def _goes_on(self, sentence: Span, following: int, text: str) -> bool:
        """Whether a sentence goes on behind its end: in lower case, in brackets, after an ordinal.

        Punkt ends one behind an abbreviation that it does not know ("400 π.Χ. περίπου", "(von
        griech. Atlas)"), behind a quoted one ("he asked"), and behind numbers.
        """
        return "\n" not in text[sentence[1] : following] and (
            text[following].islower()
            or _is_in_bracket(sentence, following, text)
            or self._is_behind_ordinal(sentence[1], following, text)
        )

    def _is_behind_ordinal(self, end: int, following: int, text: str) -> bool:
        """Whether a sentence seems to end behind an ordinal, before a name or a noun.

        A word that the texts have in lower case, too, begins a sentence.
        """
        if self.language not in _ORDINALS or not text[max(end - 2, 0)].isdigit():
            return False
        word = _LETTERS.match(text, following)
        if word is None or _ORDINAL.search(text, max(end - 3, 0), end) is None:
            return False
        return not self.parameters.contexts.get(word[0].lower(), 0) & LOWER


def _is_in_bracket(sentence: Span, following: int, text: str) -> bool:
    """Whether a bracket that opens inside of a sentence closes behind its end."""
    start, end = sentence
    opening = text.rfind("(", start + 1, end)
    if opening < 0 or text.find(")", opening, end) >= 0:
        return False
    closing = text.find(")", following, following + _BRACKET)
    return closing >= 0 and not {"(", "\n"} & {*text[following:closing]}


def _split_full_stops(line: str) -> list[Span]:
    """Splits a line at full stops of other scripts, except in brackets; the pieces are stripped."""
    if line.isascii() or not _OTHER_STOP.search(line):
        return [(0, len(line))] if line else []
    cuts, depth = _cuts(line, brackets=True)
    if depth:  # brackets are not balanced, so they are ignored
        cuts, _ = _cuts(line, brackets=False)
    spans = []
    for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True):
        piece = line[start:end]
        start += len(piece) - len(piece.lstrip())
        if piece.strip():
            spans.append((start, start + len(piece.strip())))
    return spans


def _cuts(line: str, brackets: bool) -> tuple[list[int], int]:
    cuts: list[int] = []
    depth = 0
    for match in _FULL_STOP.finditer(line):
        if match[0] in "「『（(【《〈":
            depth += brackets
        elif match[0] in "」』）)】》〉":
            depth = max(0, depth - 1)
        elif depth == 0:
            cuts.append(match.end())
    return cuts, depth


def _joined_over_anchors(spans: list[Span], anchors: Sequence[Anchored]) -> list[Span]:
    """Joins the spans that an anchor crosses."""
    if not spans or not anchors:
        return spans
    ends = np.array([end for _, end in spans])
    anchor_starts, anchor_ends = np.array([anchor[:2] for anchor in anchors]).T
    # The ends of sentences that lie inside an anchor: from `first` to `beyond`.
    first = np.searchsorted(ends, anchor_starts, "right")
    beyond = np.searchsorted(ends, anchor_ends, "left")
    crossed = {
        end for i in np.flatnonzero(first < beyond).tolist() for end in range(first[i], beyond[i])
    }
    joined: list[Span] = []
    for index, (start, end) in enumerate(spans):
        if index - 1 in crossed and joined:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined if crossed else spans
