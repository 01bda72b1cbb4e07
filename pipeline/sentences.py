"""Sentence offsets by NLTK's Punkt: its pre-trained model, or one trained on the dump itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nltk.tokenize.punkt import (
    PunktLanguageVars,
    PunktParameters,
    PunktSentenceTokenizer,
    PunktTrainer,
    load_punkt_params,
)

from pipeline.errors import UserError
from pipeline.languages import language
from pipeline.wikitext import Anchor

Span = tuple[int, int]

_PUNKT_END = re.compile(r"[.?!]")
_SIMPLE_CONTEXT = re.compile(r"([^\W\d_]{2,})([.?!])\s+\S")
_FULL_STOP = re.compile(r"[「『（(【《〈]|[」』）)】》〉]|[。！？｡]+|[।॥۔؟։።။]+(?=\s)")
"""Ends of sentences that Punkt does not know, and brackets that keep them from ending one."""


class _LanguageVars(PunktLanguageVars):
    """NLTK's expressions, compiled by `re`: the same matches, without NLTK's timers."""

    re_boundary_realignment = re.compile(
        PunktLanguageVars.re_boundary_realignment.pattern, re.MULTILINE
    )

    def __init__(self) -> None:
        flags = re.UNICODE | re.VERBOSE
        self._re_period_context = re.compile(super().period_context_re().pattern, flags)
        self._re_word_tokenizer = re.compile(super()._word_tokenizer_re().pattern, flags)


class _Tokenizer(PunktSentenceTokenizer):
    """NLTK's tokenizer, with a short cut to the decision it takes most often.

    A full stop after a word of letters, at least two, that is neither an abbreviation nor the first
    of a collocation, and before white space, ends a sentence whatever follows; so does a question
    or exclamation mark after such a word. (First pass: the token is a sentence break. Second pass:
    only collocations, abbreviations, initials and numbers are looked at again.)
    """

    def __init__(self, parameters: PunktParameters) -> None:
        super().__init__(parameters, lang_vars=_LanguageVars())
        self._no_break = set(parameters.abbrev_types)
        self._no_break.update(first for first, _ in parameters.collocations)

    def text_contains_sentbreak(self, text: str) -> bool:
        simple = _SIMPLE_CONTEXT.match(text)
        if simple and (simple[2] != "." or simple[1].lower() not in self._no_break):
            return True
        return bool(super().text_contains_sentbreak(text))


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
    contexts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def _from_punkt(cls, source: str, parameters: Any) -> SentenceModel:
        return cls(
            source=source,
            abbreviations=tuple(sorted(parameters.abbrev_types)),
            collocations=tuple(sorted(tuple(pair) for pair in parameters.collocations)),
            starters=tuple(sorted(parameters.sent_starters)),
            contexts=tuple(sorted((word, n) for word, n in parameters.ortho_context.items() if n)),
        )

    @classmethod
    def train(cls, texts: Iterable[str]) -> SentenceModel:
        """A model of texts that need no annotation. Source: Kiss and Strunk 2006."""
        trainer = PunktTrainer()
        for text in texts:
            trainer.train(text, finalize=False)
        trainer.finalize_training()
        return cls._from_punkt("dump", trainer.get_params())

    @classmethod
    def pretrained(cls, code: str) -> SentenceModel:
        """NLTK's model for the language `code`.

        Raises:
            UserError: NLTK has none for this language, or its data is not installed.
        """
        from nltk.data import find

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
        return cls._from_punkt(f"nltk:{name}", load_punkt_params(folder))

    def to_json(self) -> str:
        """The model as JSON, in a fixed order."""
        return json.dumps(self.__dict__, ensure_ascii=False, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> SentenceModel:
        """The model that `to_json` wrote."""
        fields = json.loads(text)
        return cls(
            source=fields["source"], abbreviations=tuple(fields["abbreviations"]),
            collocations=tuple((a, b) for a, b in fields["collocations"]),
            starters=tuple(fields["starters"]),
            contexts=tuple((word, n) for word, n in fields["contexts"]),
        )  # fmt: skip

    @cached_property
    def tokenizer(self) -> Any:
        """NLTK's tokenizer with these parameters."""
        parameters = PunktParameters()
        parameters.abbrev_types = set(self.abbreviations)
        parameters.collocations = set(self.collocations)
        parameters.sent_starters = set(self.starters)
        for word, contexts in self.contexts:
            parameters.ortho_context[word] = contexts
        return _Tokenizer(parameters)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "tokenizer"}

    def split_line(self, line: str) -> list[Span]:
        """Spans of the sentences of one paragraph, in characters."""
        spans: list[Span] = []
        for start, end in _split_full_stops(line):
            if _PUNKT_END.search(line, start, end - 1) is None:
                spans.append((start, end))
            else:
                found = self.tokenizer.span_tokenize(line[start:end])
                spans.extend((start + first, start + last) for first, last in found)
        return spans

    def split(self, text: str, anchors: Sequence[Anchor] = ()) -> list[Span]:
        """Spans of the sentences of `text`, paragraph by paragraph; none ends inside an anchor."""
        spans: list[Span] = []
        position = 0
        for line in text.split("\n"):
            spans += [(position + start, position + end) for start, end in self.split_line(line)]
            position += len(line) + 1
        return _joined_over_anchors(spans, anchors)


def _split_full_stops(line: str) -> list[Span]:
    """Pieces of a line at full stops of other scripts, outside brackets; stripped."""
    if line.isascii() or not _FULL_STOP.search(line):
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
    joined: list[Span] = []
    remaining = iter(anchors)
    anchor = next(remaining, None)
    for start, end in spans:
        if joined and anchor is not None and anchor.start < joined[-1][1] < anchor.end:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
        while anchor is not None and anchor.end <= joined[-1][1]:
            anchor = next(remaining, None)
    return joined
