"""Runs `nerbert export`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from finetune.data.sets import DataSets
from finetune.use.formats import interface, write_label_studio
from finetune.use.labelled import Labelled
from finetune.use.options import ExportOptions
from finetune.use.predict import read_texts
from nerbert.errors import UserError
from nerbert.seams import parts
from nerbert.text.corpus import Corpus

_BATCH = 1024


def export(options: ExportOptions) -> str:
    """Writes what is asked for; returns a summary.

    Raises:
        UserError: an option is missing or too many, or a model, set or file cannot be read.
    """
    if options.input is None and (options.types or options.min_score):
        raise UserError(
            "--types and --min-score: only for --model with --input FILE; leave them out"
        )
    if options.format in ("onnx", "int8"):
        for flag in ("data", "input", "output"):
            if getattr(options, flag) is not None:
                raise UserError(f"--{flag}: the files lie in the checkpoint; leave it out")
        return _onnx(options)
    if (options.data is None) == (options.input is None):
        raise UserError(f"--format {options.format}: give --data SET, or --model with --input FILE")
    if options.output is None:
        raise UserError("--output is missing: file to write")
    if options.output == "-":
        raise UserError("--output -: this format is a file; name one")
    path = Path(options.output)
    outputs = [path, interface(path)] if options.format == "label-studio" else [path]
    if present := [output_path for output_path in outputs if os.path.lexists(output_path)]:
        raise UserError(f"{present[0]} is there already; choose another name", options.output)
    types: dict[str, None] = {}  # of the tagger, also those that it finds nowhere
    numbers = count()
    rows = (row for row, _ in zip(_rows(options, types), numbers, strict=False))
    if options.format == "label-studio":
        written = write_label_studio(rows, path, types)
    else:
        written = parts("exports")[options.format](rows, path)
    left_out = next(numbers) - written
    return f"{path}: {written:,} texts" + (
        f", {left_out:,} with names of unknown type left out" if left_out else ""
    )


def _rows(options: ExportOptions, types: dict[str, None]) -> Iterator[Labelled]:
    if options.data is not None:
        if Path(options.data, "labels.json").is_file():
            part = {"dev": "validation"}.get(options.part, options.part)
            for placed in Corpus.open(options.data).placed(part):
                yield Labelled.of_sentence(*placed)
            return
        rows = DataSets.of_options(options).sentences(options.data, options.part)
        yield from map(Labelled.of_sentence, rows)
        return
    if options.model is None or options.input is None:
        raise UserError("--input: name the --model that labels these texts")
    texts = list(filter(str.strip, read_texts(options.input)))
    # These load torch, which takes seconds; errors in the input are reported before.
    from finetune.tagger.tagger import Tagger
    from nerbert.commands.process import quiet_libraries

    quiet_libraries()
    tagger = Tagger.load(
        options.model, device=options.device, half=options.half, backend=options.backend
    )
    if options.types:
        tagger.use_types(options.types)
    types.update(dict.fromkeys(tagger.types))
    tagger.min_score = 0.0  # the labels say which mentions are doubtful
    for first in range(0, len(texts), _BATCH):
        batch = texts[first : first + _BATCH]
        for text, prediction in zip(batch, tagger.predictions(batch), strict=True):
            yield Labelled.of_prediction(text, prediction, options.min_score)


def _onnx(options: ExportOptions) -> str:
    if options.model is None:
        raise UserError(f"--format {options.format}: name the --model")
    # These load torch, which takes seconds.
    from finetune.tagger.onnx import FOLDER, NAMES
    from finetune.tagger.shipped import folder_of
    from finetune.use.onnx_file import export_onnx
    from nerbert.commands.process import quiet_libraries

    quiet_libraries()
    kinds = ("onnx",) if options.format == "onnx" else ("onnx", "int8")
    folder = folder_of(options.model)
    differences = export_onnx(folder, kinds)
    return "\n".join(
        f"{Path(folder) / FOLDER / NAMES[kind]}: on {difference.words} words of test texts "
        f"{difference.other_tags} other tags than torch, probabilities differ by at most "
        f"{difference.largest:.1e}"
        for kind, difference in differences.items()
    )
