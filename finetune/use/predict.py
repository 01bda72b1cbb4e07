"""Prints predictions as JSON lines, CoNLL columns or HTML with coloured entities."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from finetune.options import PredictOptions
from finetune.tagger.entities import PAGE_END, Palette, Prediction, page_start, paragraph
from nerbert.errors import UserError

_LOGGER = logging.getLogger("nerbert")
_BATCH = 1024  # number of texts that are tagged together


def print_predictions(options: PredictOptions) -> None:
    """Tags the texts and prints their entities.

    Raises:
        UserError: there is no text, a file cannot be read, or the model is not a tagger.
    """
    texts = [*options.texts, *(read_texts(options.input) if options.input else [])]
    if not texts:
        raise UserError("no text: give texts, or --input FILE")
    # These take a second or more to load; errors in the input are reported before.
    from finetune.tagger.tagger import Tagger
    tagger = Tagger.load(
        options.model, device=options.device, half=options.half, backend=options.backend
    )
    if options.types:
        tagger.use_types(options.types)
    start = time.monotonic()
    writers: dict[str, Callable[[str, Prediction], Iterator[str]]] = {
        "jsonl": _jsonl,
        "conll": _conll,
        "html": partial(_html, Palette()),
    }
    write = writers[options.format]
    if options.format == "html":
        print(page_start(f"Entities, {options.model}"))
    for first in range(0, len(texts), _BATCH):
        batch = texts[first : first + _BATCH]
        for text, prediction in zip(batch, tagger.predictions(batch, options.split), strict=True):
            for line in write(text, prediction):
                print(line)
    if options.format == "html":
        print(PAGE_END)
    elapsed_s = time.monotonic() - start
    _LOGGER.info("texts: %d, %.1f per second", len(texts), len(texts) / elapsed_s)


def read_texts(path: str) -> list[str]:
    """The texts of a file, one per line.

    Raises:
        UserError: it cannot be read.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{error}; give a UTF-8 text file", path) from error
    return [line for line in text.split("\n") if line.strip()]


def _jsonl(text: str, prediction: Prediction) -> Iterator[str]:
    rows = [{**asdict(entity), "score": round(entity.score, 4)} for entity in prediction.entities]
    yield json.dumps({"text": text, "entities": rows}, ensure_ascii=False)


def _html(palette: Palette, text: str, prediction: Prediction) -> Iterator[str]:
    yield paragraph(text, prediction.entities, palette)


def _conll(_: str, prediction: Prediction) -> Iterator[str]:
    yield from (
        f"{word}\t{tag}" for word, tag in zip(prediction.words, prediction.tags, strict=True)
    )
    yield ""
