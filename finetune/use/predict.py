"""Prints predictions as JSON lines, CoNLL columns or HTML."""

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
from finetune.tagger.texts import Prediction
from finetune.use import html
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
    # These load torch, which takes seconds; errors in the input are reported before.
    from finetune.tagger.tagger import Tagger
    from pretrain.training.logs import quiet_libraries

    quiet_libraries()
    tagger = Tagger.load(
        options.model, device=options.device, half=options.half, backend=options.backend
    )
    start = time.monotonic()
    writers: dict[str, Callable[[str, Prediction], Iterator[str]]] = {
        "jsonl": _jsonl,
        "conll": _conll,
        "html": partial(_html, html.Palette()),
    }
    write = writers[options.format]
    if options.format == "html":
        print(html.page_start(f"Entities, {options.model}"))
    for first in range(0, len(texts), _BATCH):
        batch = texts[first : first + _BATCH]
        for text, prediction in zip(batch, tagger.predictions(batch, options.split), strict=True):
            for line in write(text, prediction):
                print(line)
    if options.format == "html":
        print(html.PAGE_END)
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


def _html(palette: html.Palette, text: str, prediction: Prediction) -> Iterator[str]:
    yield html.paragraph(text, prediction.entities, palette)


def _conll(_: str, prediction: Prediction) -> Iterator[str]:
    yield from (
        f"{word}\t{tag}" for word, tag in zip(prediction.words, prediction.tags, strict=True)
    )
    yield ""
