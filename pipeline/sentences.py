"""Sentence offsets by Punkt: NLTK's pre-trained model, or one trained on the dump itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pipeline.errors import UserError
from pipeline.languages import language
from pipeline.punkt import Parameters, Span, Splitter
from pipeline.punkt_training import train
from pipeline.wikitext import Anchor

_PUNKT_END = re.compile(r"[.?!]")
_FULL_STOP = re.compile(r"[「『（(【《〈]|[」』）)】》〉]|[。！？｡]+|[।॥۔؟։።။]+(?=\s)")
"""Ends of sentences that Punkt does not know, and brackets that keep them from ending one."""
_OTHER_STOP = re.compile(r"[。！？｡।॥۔؟։።]")


@dataclass(frozen=True)
class SentenceModel:
    """Parameters of a Punkt model.

    Attributes:
        source: where it comes from: "dump" or "nltk:LANGUAGE".
        abbreviations: word types written with a full stop, without it.
        collocations: pairs of word types that a full stop does not part.
        starters: word types that often begin a sentence.
        contexts: word type -> orthographic contexts it occurs in (Punkt's bit field).
    """

    source: str
    abbreviations: tuple[str, ...] = ()
    collocations: tuple[tuple[str, str], ...] = ()
    starters: tuple[str, ...] = ()
    contexts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str, known: Parameters) -> SentenceModel:
        """The model with these parameters."""
        return cls(
            source=source,
            abbreviations=tuple(sorted(known.abbreviations)),
            collocations=tuple(sorted(known.collocations)),
            starters=tuple(sorted(known.starters)),
            contexts={word: n for word, n in sorted(known.contexts.items()) if n},
        )

    @classmethod
    def train(cls, texts: Iterable[str]) -> SentenceModel:
        """A model of texts that need no annotation. Source: Kiss and Strunk 2006."""
        return cls.of("dump", train(line for text in texts for line in (*text.split("\n"), "")))

    @classmethod
    def pretrained(cls, code: str) -> SentenceModel:
        """NLTK's model for the language `code`.

        Raises:
            UserError: NLTK has none for this language, or its data is not installed.
        """
        from nltk.data import find
        from nltk.tokenize.punkt import load_punkt_params

        name = language(code).punkt
        if name is None:
            raise UserError(
                f"NLTK has no pre-trained Punkt model for language {code!r}; "
                "use --sentence-model dump"
            )
        try:
            folder = find(f"tokenizers/punkt_tab/{name}/")
        except LookupError:
            raise UserError(
                f"NLTK data tokenizers/punkt_tab/{name} not found; set NLTK_DATA to a folder that "
                "holds it (python -m nltk.downloader punkt_tab), or use --sentence-model dump"
            ) from None
        known = load_punkt_params(folder)
        parameters = Parameters(
            frozenset(known.abbrev_types), frozenset(tuple(pair) for pair in known.collocations),
            frozenset(known.sent_starters), dict(known.ortho_context),
        )  # fmt: skip
        return cls.of(f"nltk:{name}", parameters)

    def to_json(self) -> str:
        """The model as JSON, in a fixed order."""
        fields = {key: value for key, value in self.__dict__.items() if key[0] != "_"}
        return json.dumps(fields, ensure_ascii=False, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> SentenceModel:
        """The model that `to_json` wrote."""
        fields = json.loads(text)
        return cls(
            source=fields["source"], abbreviations=tuple(fields["abbreviations"]),
            collocations=tuple((a, b) for a, b in fields["collocations"]),
            starters=tuple(fields["starters"]),
            contexts=fields["contexts"],
        )  # fmt: skip

    @property
    def parameters(self) -> Parameters:
        """What `pipeline.punkt` takes."""
        return Parameters(
            frozenset(self.abbreviations), frozenset(self.collocations), frozenset(self.starters),
            dict(self.contexts),
        )  # fmt: skip

    @cached_property
    def _splitter(self) -> Splitter:
        return Splitter(self.parameters)

    def split_line(self, line: str) -> list[Span]:
        """Spans of the sentences of one paragraph, in characters."""
        spans: list[Span] = []
        for start, end in _split_full_stops(line):
            if _PUNKT_END.search(line, start, end - 1) is None:
                spans.append((start, end))
            else:
                found = self._splitter.spans(line[start:end])
                spans.extend((start + first, start + last) for first, last in found)
        return spans

    def split(self, text: str, anchors: Sequence[Anchor] = ()) -> list[Span]:
        """Spans of the sentences of `text`, paragraph by paragraph; none ends inside an anchor."""
        if text.isascii() or not _OTHER_STOP.search(text):
            return _joined_over_anchors(self._splitter.spans(text), anchors)
        spans: list[Span] = []
        position = 0
        for line in text.split("\n"):
            spans += [(position + start, position + end) for start, end in self.split_line(line)]
            position += len(line) + 1
        return _joined_over_anchors(spans, anchors)


def _split_full_stops(line: str) -> list[Span]:
    """Pieces of a line at full stops of other scripts, outside brackets; stripped."""
    if line.isascii() or not _OTHER_STOP.search(line):
        return [(0, len(line))] if line else []
    cuts, depth = _cuts(line, brackets=True)
    if depth:  # a bracket that never closes says nothing
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


def _joined_over_anchors(spans: list[Span], anchors: Sequence[Anchor]) -> list[Span]:
    """`spans` with those joined that an anchor reaches across."""
    if not spans or not anchors:
        return spans
    ends = np.array([end for _, end in spans])
    anchor_starts, anchor_ends = np.array([anchor[:2] for anchor in anchors]).T
    first = np.searchsorted(
        ends, anchor_starts, "right"
    )  # the first end behind each anchor's start
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
