"""Prints predictions as coloured text, JSON lines, CSV, CoNLL columns or HTML."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from finetune.options import SHIPPED
from finetune.settings import FitSettings
from finetune.tagger.entities import (
    PAGE_END,
    Entity,
    Palette,
    Prediction,
    bracketed,
    page_start,
    paragraph,
)
from finetune.tagger.shipped import checkpoint_of
from finetune.use.options import PredictOptions
from nerbert.errors import UserError

if TYPE_CHECKING:
    from finetune.use.linking import Linker

_LOGGER = logging.getLogger("nerbert")
_LONGEST_TYPE = 6
"""Words of a name of a type."""
Write = Callable[[int, str, Prediction], Iterable[str]]
"""The lines of a text, by its number."""


def print_predictions(options: PredictOptions) -> None:
    """Tags the texts and prints their entities.

    Raises:
        UserError: there is no text, a file cannot be read or is there already, or the model is not
            a tagger.
    """
    if options.output == "-":
        options = replace(options, output=None)
    if options.output is not None and os.path.lexists(options.output):
        raise UserError("is there already; choose another name", options.output)
    if options.texts and options.input:
        raise UserError(f"--input {options.input}: there are texts, too; give one or the other")
    if options.link is not None and options.format not in ("auto", "jsonl", "csv", "tsv"):
        raise UserError(f"--link: --format {options.format} has no place for it; give jsonl")
    texts = _texts(options)
    linker = None
    if options.link is not None:
        from finetune.use.linking import Linker  # and pyarrow

        linker = Linker.open(options.link)
    # These take a second or more to load; errors in the input are reported before.
    from finetune.tagger.tagger import Tagger

    folder = options.model
    if options.encoder is not None:
        if folder not in SHIPPED:
            raise UserError(f"--encoder: only {', '.join(SHIPPED)} take one; leave it out", folder)
        folder = checkpoint_of(folder, options.encoder)
    tagger = Tagger.load(
        folder, FitSettings(context=options.context), options.device, options.half, options.backend
    )
    if options.types:
        tagger.use_types(options.types)
    if options.min_score is not None:
        tagger.min_score = options.min_score
    with ExitStack() as stack:
        out: TextIO = sys.stdout
        if options.output is not None:
            # What is stopped leaves no half of a file.
            file = stack.enter_context(options.output.atomic_write())
            out = io.TextIOWrapper(file, "utf-8", newline="\n")
            stack.callback(out.detach)
        write = _writer(options, out, linker)
        if options.format == "html":
            print(page_start(f"Entities, {options.model}"), file=out)
        start, count = time.monotonic(), 0
        while batch := list(islice(texts, options.batch_size)):
            predicted = tagger.predictions(batch, options.split, overlapping=options.overlapping)
            for text, prediction in zip(batch, predicted, strict=True):
                count += 1
                for line in write(count, text, prediction):
                    print(line, file=out)
        if options.format == "html":
            print(PAGE_END, file=out)
    elapsed_s = time.monotonic() - start
    _LOGGER.info("texts: %d, %.1f per second", count, count / elapsed_s)


def _texts(options: PredictOptions) -> Iterator[str]:
    """The texts that are given, and those of the file or the pipe.

    Raises:
        UserError: there is none, or the file cannot be read.
    """
    texts = list(options.texts)
    if not texts and not options.input and options.types and _is_text(options.types[-1]):
        raise UserError(f"--types: {options.types[-1]!r} looks like a text; write -- before it")
    pipe = "-" if not texts and sys.stdin and not sys.stdin.isatty() else None
    if path := options.input or pipe:
        texts += read_texts(path)
    if not any(text.strip() for text in texts):
        hint = "; a text after --types needs -- before it" if options.types else ""
        raise UserError(f"no text: give texts, --input FILE, or a pipe{hint}")
    return iter(texts)


def _is_text(name: str) -> bool:
    """Whether a name of a type is a sentence, which `--types` took for one of its values."""
    return name.rstrip().endswith((".", "!", "?")) or len(name.split()) > _LONGEST_TYPE


def read_texts(path: str) -> list[str]:
    """The texts of a file, one per line; empty lines are empty texts.

    Lines end with LF or CRLF, those of old Macs with CR; a CR inside of a line is a part of it.

    Raises:
        UserError: it cannot be read.
    """
    try:
        content = _stdin_bytes() if path == "-" else Path(path).read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{error}; give a UTF-8 text file", path) from error
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _stdin_bytes() -> bytes:
    # Notebooks and tests put a stream of text in its place.
    binary = getattr(sys.stdin, "buffer", None)
    return binary.read() if binary is not None else sys.stdin.read().encode()


def _writer(options: PredictOptions, out: TextIO, linker: Linker | None) -> Write:
    """The function that makes the lines of a text; the header of a table is written at once."""
    kind = options.format
    if kind == "auto":
        kind = "text" if out.isatty() and linker is None else "jsonl"
    if kind in ("csv", "tsv"):
        cells = partial(_cells, "," if kind == "csv" else "\t")
        columns = [field.name for field in fields(Entity)]
        columns += linker.columns if linker else ()
        print(cells([["id", *columns]]), end="", file=out)
        return partial(_rows, cells, columns, linker)
    simple: dict[str, Write] = {"jsonl": partial(_jsonl, linker), "conll": _conll}
    colored = out.isatty() and "NO_COLOR" not in os.environ
    return simple.get(kind) or partial(_text if kind == "text" else _html, Palette(), colored)


def _facts(prediction: Prediction, linker: Linker | None) -> list[dict[str, Any]]:
    """The entities of a text, with what they lead to."""
    rows = [{**asdict(entity), "score": round(entity.score, 4)} for entity in prediction.entities]
    if linker is not None:
        for row, link in zip(rows, linker.links([row["text"] for row in rows]), strict=True):
            row |= asdict(link) if link else dict.fromkeys(linker.columns)
    return rows


def _jsonl(linker: Linker | None, number: int, text: str, prediction: Prediction) -> Iterator[str]:
    rows = _facts(prediction, linker)
    yield json.dumps({"id": number, "text": text, "entities": rows}, ensure_ascii=False)


def _cells(separator: str, rows: Iterable[Iterable[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def _rows(
    cells: Callable[[Iterable[Iterable[object]]], str],
    columns: Sequence[str],
    linker: Linker | None,
    number: int,
    _: str,
    prediction: Prediction,
) -> Iterator[str]:
    for row in _facts(prediction, linker):
        yield cells([[number, *(row[name] for name in columns)]]).removesuffix("\n")


_COLORS = range(41, 47)  # backgrounds of a terminal: red, green, yellow, blue, magenta, cyan


def _text(
    palette: Palette, colored: bool, _: int, text: str, prediction: Prediction
) -> Iterator[str]:
    """The text with its types behind the entities: [Dante Writer] was born in [Florence City]."""
    entities = _by_span(prediction.entities)

    def colors(entity: Entity) -> str:
        color = _COLORS[palette.place(entity.type) % len(_COLORS)]
        return f"\x1b[30;{color}m {entity.text} \x1b[1m{entity.type} \x1b[0m"

    yield "".join(bracketed(text, entities, colors) if colored else bracketed(text, entities))


def _by_span(entities: Sequence[Entity]) -> list[Entity]:
    """One entity for each span, with all types that `--overlapping` found there."""
    spans: dict[tuple[int, int], Entity] = {}
    for entity in entities:
        first = spans.setdefault((entity.start, entity.end), entity)
        if first is not entity:
            spans[entity.start, entity.end] = replace(first, type=f"{first.type}, {entity.type}")
    return list(spans.values())


def _html(
    palette: Palette, _colored: bool, _: int, text: str, prediction: Prediction
) -> Iterator[str]:
    yield paragraph(text, _by_span(prediction.entities), palette)


def _conll(_number: int, _text: str, prediction: Prediction) -> Iterator[str]:
    yield from (
        f"{word}\t{tag}" for word, tag in zip(prediction.words, prediction.tags, strict=True)
    )
    yield ""
