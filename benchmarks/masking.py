"""Time for masking a batch, compared with a step of masked language modelling on it.

python -m benchmarks.masking                       BERT-base's size, random weights, 8 x 512
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

from pretrain.mlm.blocks import Block
from pretrain.mlm.model import Masker, hidden_only, span_mask

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = 28_996
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def seconds(work: Callable[[], object], times: int) -> float:
    """Mean time of some calls, after a first one as warm-up."""
    work()
    start = time.perf_counter()
    for _ in range(times):
        work()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def steps(options: argparse.Namespace, batch: dict[str, torch.Tensor]) -> dict[str, float]:
    """Times of a training step whose head scores all positions, or the masked ones only."""
    config = BertConfig(
        vocab_size=VOCABULARY,
        num_hidden_layers=options.layers,
        hidden_size=options.hidden,
        num_attention_heads=options.hidden // 64,
        intermediate_size=4 * options.hidden,
    )
    model = BertForMaskedLM(config).to(DEVICE)
    batch = {name: values.to(DEVICE) for name, values in batch.items()}
    hidden = batch["labels"].ne(-100)

    def whole() -> None:
        model(**batch).loss.backward()

    def part() -> None:
        with hidden_only(model, hidden):
            model(**{**batch, "labels": batch["labels"][hidden]}).loss.backward()

    return {
        "all positions": seconds(whole, options.repeat),
        "masked positions": seconds(part, options.repeat),
    }


def main() -> None:
    """Prints the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (
        ("layers", 12),
        ("hidden", 768),
        ("batch", 8),
        ("length", 512),
        ("repeat", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    words = [*SPECIAL, *(f"w{number}" for number in range(VOCABULARY - len(SPECIAL)))]
    tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    draw = np.random.default_rng(0)
    shape = options.batch, options.length
    blocks = [Block((0, row), ids) for row, ids in enumerate(draw.integers(5, VOCABULARY, shape))]
    maskers = {name: Masker(tokenizer, name, 0.15, 0) for name in ("token", "span")}
    drawn = draw.random(shape) < 0.15
    times = {
        name: seconds(lambda masker=masker: masker(blocks), 10 * options.repeat)
        for name, masker in maskers.items()
    }
    times["span_mask alone"] = seconds(lambda: span_mask(drawn), 10 * options.repeat)
    found = steps(options, maskers["span"](blocks))
    for name, taken in found.items():
        print(f"step, head on {name:18} {1e3 * taken:9.2f} ms on {DEVICE}")
    for name, taken in times.items():
        share = taken / found["masked positions"]
        print(f"masking, {name:23} {1e3 * taken:9.2f} ms, {share:.3%} of the step")


if __name__ == "__main__":
    main()
