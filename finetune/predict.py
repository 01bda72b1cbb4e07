r"""Tags entities in texts, with character offsets.

    python -m finetune.predict --model MODEL 'Dante was born in Florence.'
    python -m finetune.predict --model MODEL --input texts.txt --format conll > tagged.txt
    python -m finetune.predict --model MODEL --input texts.txt --format html > tagged.html

Prints JSON lines: {"text": ..., "entities": [{"start", "end", "type", "score", "text"}, ...]}.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finetune import html
from pipeline.errors import UserError
from pretrain import commandline

if TYPE_CHECKING:
    from finetune.tagger import Tagger

_LOGGER = logging.getLogger("nerbert")
_BATCH = 256  # texts that are tagged together

FLAGS: dict[str, dict[str, Any]] = {
    "texts": {"nargs": "*", "metavar": "TEXT", "help": "texts to tag"},
    "--model": {"required": True, "metavar": "DIR", "help": "a fine-tuned or pre-trained tagger"},
    "--input": {"metavar": "FILE", "help": "a text a line; - for standard input"},
    "--format": {"choices": ("jsonl", "conll", "html"), "default": "jsonl",
                 "help": "default: jsonl"},
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.predict", __doc__, FLAGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    return commandline.run(lambda: _predict(options))


def _predict(options: argparse.Namespace) -> None:
    texts = list(options.texts) + (_lines(options.input) if options.input else [])
    if not texts:
        raise UserError("no text: give texts, or --input FILE")
    from finetune.tagger import Tagger  # loads torch, which takes seconds
    from pretrain.data import quiet_libraries

    quiet_libraries()
    tagger = Tagger.load(options.model)
    start = time.monotonic()
    write = {"jsonl": _jsonl, "conll": _conll, "html": _html}[options.format]
    if options.format == "html":
        print(html.page_start(f"Entities, {options.model}"))
    for first in range(0, len(texts), _BATCH):
        for line in write(tagger, texts[first : first + _BATCH]):
            print(line)
    if options.format == "html":
        print(html.PAGE_END)
    elapsed_s = time.monotonic() - start
    _LOGGER.info("%d texts, %.1f a second", len(texts), len(texts) / elapsed_s)


def _lines(path: str) -> list[str]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--input {path}: {error}; give a UTF-8 text file") from error
    return [line for line in text.split("\n") if line.strip()]


def _jsonl(tagger: Tagger, texts: Sequence[str]) -> Iterator[str]:
    for text, entities in zip(texts, tagger.predict(texts), strict=True):
        rows = [{**asdict(entity), "score": round(entity.score, 4)} for entity in entities]
        row = {"text": text, "entities": rows}
        yield json.dumps(row, ensure_ascii=False)


def _html(tagger: Tagger, texts: Sequence[str]) -> Iterator[str]:
    for text, entities in zip(texts, tagger.predict(texts), strict=True):
        yield html.paragraph(text, entities)


def _conll(tagger: Tagger, texts: Sequence[str]) -> Iterator[str]:
    from finetune.tagger import words_of

    words = [words_of(text) for text in texts]
    for found, tags in zip(words, tagger.tag(words), strict=True):
        yield from (f"{word}\t{tag}" for word, tag in zip(found, tags, strict=True))
        yield ""


if __name__ == "__main__":
    sys.exit(main())
