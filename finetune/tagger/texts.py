"""Texts: their sentences and words, parted as the corpora do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from finetune.tagger.entities import Text
from nerbert.errors import UserError
from nerbert.text.sentences import SENTENCES, SentenceModel
from nerbert.text.tokens import Span, tokenize
from nerbert.text.words import ENGLISH_ABBREVIATIONS, spans_in_text

_USUAL = {word.casefold() for word in ENGLISH_ABBREVIATIONS}
"""Abbreviations that are known if a checkpoint has no model."""

_INNER_STOP = re.compile(r"[.?!]\s")


class TextSplitter:
    """Parts texts by a Punkt model; without one, by a model that is trained on the text itself."""

    def __init__(self, model: SentenceModel | None = None) -> None:
        self._model = model

    @classmethod
    def beside(cls, folder: str | os.PathLike[str]) -> TextSplitter:
        """The splitter of a checkpoint, by the Punkt model of the corpus that it was made from.

        Args:
            folder: folder, or name on the hub.

        Raises:
            UserError: the model cannot be read.
        """
        path: str | Path | None = Path(folder, SENTENCES)
        if not Path(folder).is_dir():
            from transformers.utils.hub import cached_file  # takes a second, and folders need none

            path = cached_file(
                os.fspath(folder),
                SENTENCES,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
                _raise_exceptions_for_gated_repo=False,
            )
        if path is None or not Path(path).is_file():
            return cls()
        try:
            return cls(SentenceModel.from_json(Path(path).read_bytes()))
        except ValueError as error:
            raise UserError(f"{path}: {error}; remove this file, or restore it") from None

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the model, if there is one, to the folder of a checkpoint."""
        if self._model is not None:
            Path(folder, SENTENCES).write_text(self._model.to_json(), encoding="utf-8")

    def sentences(self, text: str) -> list[Span]:
        """Spans of the sentences of a text, in characters. A line's end ends a sentence."""
        model = self._model
        if model is None:
            needs_training = _INNER_STOP.search(text) is not None
            model = SentenceModel.train([text] if needs_training else [], _USUAL)
        return model.split(text)

    def words(self, text: str, split: bool = True) -> list[list[Span]]:
        """Spans of the words of each sentence, in characters.

        Args:
            text: a text of any length.
            split: whether it is parted; else it is one sentence.
        """
        language = self._model.language if self._model is not None else ""
        if not split:
            spans = spans_in_text(text, language)
            return [spans] if spans else []
        return [
            [(start + first, start + last) for first, last in tokenize(text[start:end], language)]
            for start, end in self.sentences(text)
        ]


def checked_texts(texts: Any) -> list[Text]:
    """The texts that a user gave; a single one is a list of one.

    Raises:
        UserError: one is neither a text nor a list of tokens, or holds half of a character.
    """
    if isinstance(texts, str):
        texts = [texts]
    if isinstance(texts, Mapping | bytes) or not isinstance(texts, Iterable):
        raise UserError(f"give a text, or a list of texts, not {type(texts).__name__}")
    return [_checked_text(number, text) for number, text in enumerate(texts)]


def _checked_text(number: int, text: Any) -> Text:
    is_list = isinstance(text, Iterable) and not isinstance(text, str | Mapping | bytes)
    tokens: list[Any] = list(text) if is_list else [text]
    if not all(isinstance(token, str) for token in tokens):
        raise UserError(
            f"text {number}: give a text, or a list of tokens, not {type(text).__name__} "
            f"({str(text)[:40]})"
        )
    try:
        " ".join(tokens).encode()
    except UnicodeEncodeError as error:
        raise UserError(f"text {number}: {error.reason}; give Unicode text, as UTF-8") from error
    return tokens if is_list else text


def beside(sentences: Sequence[Sequence[str]], context: int) -> list[tuple[Sequence[str], slice]]:
    """Each sentence with its neighbours, and which of these words are its own.

    Source: Schweter and Akbik 2020 (FLERT), arXiv:2011.06993; here only in prediction.

    Args:
        sentences: words of sentences that follow each other.
        context: number of sentences before, and of those after; 0 for each by itself.
    """
    if not context:
        return [(words, slice(None)) for words in sentences]
    rows: list[tuple[Sequence[str], slice]] = []
    for place, own_words in enumerate(sentences):
        first = max(place - context, 0)
        before = sum(map(len, sentences[first:place]))
        all_words = [word for words in sentences[first : place + context + 1] for word in words]
        rows.append((all_words, slice(before, before + len(own_words))))
    return rows
