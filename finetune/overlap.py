r"""How many of their most frequent words data sets and domain corpora share, in per cent.

python -m finetune.overlap --data 'crossner/*' conll2003-crossner --output overlap
python -m finetune.overlap --data politics-corpus music-corpus ai-corpus --output overlap
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from finetune import flags, plots
from finetune.runs import write_json
from finetune.sets import SPLITS, expand, sentences
from finetune.tables import markdown
from pipeline.errors import UserError
from pipeline.tokens import word_spans
from pretrain import commandline

FLAGS: dict[str, dict[str, Any]] = {
    "--data": {"nargs": "+", "required": True, "metavar": "SET",
               "help": "sets (names, patterns, folders), or folders of `run_pipeline.py domain`"},
    "--words": {"type": int, "default": 5000, "metavar": "N",
                "help": "most frequent words of each (default: %(default)s)"},
    "--stop-words": {"metavar": "FILE",
                     "help": "one a line (default: scikit-learn's, English)"},
    "--data-root": flags.DATA["--data-root"],
    "--output": {**flags.OUTPUT["--output"], "default": "overlap"},
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.overlap", __doc__, FLAGS)


def token_lists(name: str) -> Iterator[Sequence[str]]:
    """Tokens of every sentence: of a domain corpus, or of all splits of a set.

    Raises:
        UserError: there is neither.
    """
    parts = sorted((Path(name) / "sentences").glob("part-*.parquet"))
    for part in parts:
        for batch in pq.ParquetFile(part).iter_batches(columns=["text"]):
            for text in batch.column("text").to_pylist():
                yield [text[start:end] for start, end in word_spans(text)]
    if not parts:
        for split in SPLITS:
            yield from (row.tokens for row in sentences(name, split, needed=split == "train"))


def top_words(texts: Iterable[Sequence[str]], size: int, stop_words: frozenset[str]) -> set[str]:
    """The most frequent words with a letter, in lower case; ties by the alphabet.

    Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, figure 1.

    Args:
        texts: tokens of each.
        size: how many words.
        stop_words: that do not count.
    """
    counts = Counter(token.casefold() for tokens in texts for token in tokens)
    words = [word for word in counts
             if word not in stop_words and any(c.isalpha() for c in word)]  # fmt: skip
    return set(sorted(words, key=lambda word: (-counts[word], word))[:size])


def matrix(vocabularies: Sequence[set[str]]) -> npt.NDArray[np.float64]:
    """Words that two share, in per cent of the smaller one's, shape (sets, sets)."""
    return np.array([
        [100 * len(one & other) / max(1, min(len(one), len(other))) for other in vocabularies]
        for one in vocabularies
    ])  # fmt: skip


def _stop_words(path: str | None) -> frozenset[str]:
    if path is None:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # slow to load

        return frozenset(ENGLISH_STOP_WORDS) | {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m"}
    try:
        return frozenset(Path(path).read_text(encoding="utf-8").casefold().split())
    except OSError as error:
        raise UserError(f"--stop-words {path}: {error.strerror}; give a text file") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    flags.use_data_root(options)
    return commandline.run(lambda: _compare(options), options.output)


def _compare(options: argparse.Namespace) -> None:
    if options.words < 1:
        raise UserError(f"--words {options.words}: give 1 or more")
    stop_words = _stop_words(options.stop_words)
    names = expand(options.data)
    found = [top_words(token_lists(name), options.words, stop_words) for name in names]
    values = matrix(found)
    output = Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    rows = [["", *names], *([name, *(f"{value:.1f}" for value in row)]
                            for name, row in zip(names, values, strict=True))]  # fmt: skip
    title = f"Shared words of the {options.words:,} most frequent, in per cent"
    text = "\n".join([f"{title}.", "", *markdown(rows)]) + "\n"
    (output / "overlap.md").write_text(text, encoding="utf-8")
    write_json(output / "overlap.json", {
        "words": {name: len(words) for name, words in zip(names, found, strict=True)},
        "per_cent": values.tolist(),
    })  # fmt: skip
    picture = plots.heat_map(values, names, names, title, "", "")
    (output / "overlap.png").write_bytes(picture)
    print(text, end="")


if __name__ == "__main__":
    sys.exit(main())
