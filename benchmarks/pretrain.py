"""Speed of the training, the utilisation of the device, and the speed of the loader.

    python -m benchmarks.pretrain --corpus CORPUS [--base-model DIR] [--workers 1] [--steps 8]

The model has random weights: BERT-base on a GPU, a small one on CPU. A step has 960 full pieces of
128 sub-words. The loader makes the batches of CORPUS, with the tokenizer of --base-model, or with
one made from the corpus.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from datasets import disable_progress_bars
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForTokenClassification, PrinterCallback

from nerbert.storage.places import Place
from nerbert.text.corpus import Corpus
from pretrain.settings import TINY, PretrainSettings
from pretrain.training import tiny
from pretrain.training.arguments import spread, training_arguments
from pretrain.training.features import Collator, Feature, PieceFeatures, load_split
from pretrain.training.models import load_tokenizer
from pretrain.training.pieces import count_subwords
from pretrain.training.trainer import LengthBatches, TaggingTrainer

SUBWORDS, BATCH, TAGS = 128, 960, 631
SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
ON_GPU = torch.cuda.is_available()


class RandomPieces(PieceFeatures):
    """Full pieces of random sub-words and tags."""

    def __init__(self, pieces: int, vocabulary: int) -> None:
        self._pieces_made = pieces
        self._vocabulary = vocabulary

    @property
    def lengths(self) -> np.ndarray:
        return np.full(self._pieces_made, SUBWORDS, np.int32)

    def __len__(self) -> int:
        return self._pieces_made

    def __getitems__(self, indices: Sequence[int]) -> list[Feature]:
        draw = np.random.default_rng(indices[0])
        ids = draw.integers(1000, self._vocabulary, (len(indices), SUBWORDS))
        tags = draw.integers(0, TAGS, ids.shape)
        names = np.zeros(SUBWORDS, bool)
        return [Feature(*row, names) for row in zip(indices, ids, tags, strict=True)]


def train(steps: int, micro_batch: int, flags: Sequence[str]) -> dict[str, float]:
    """Rates of training the model with random weights."""
    config = BertConfig(vocab_size=28996, num_labels=TAGS, **({} if ON_GPU else SMALL))
    with tempfile.TemporaryDirectory() as folder:
        training = {
            "max_steps": steps,
            "logging_steps": 1,
            "eval_strategy": "no",
            "save_strategy": "no",
            "load_best_model_at_end": False,
            "per_device_train_batch_size": micro_batch,
        }
        settings = PretrainSettings(
            corpus=(), output=Place(folder), batch_size=BATCH, training=training
        )
        args, _ = training_arguments(settings, flags)
        pieces = RandomPieces(BATCH * steps, config.vocab_size)
        spread(args, BATCH, len(pieces))
        trainer = TaggingTrainer(
            model=BertForTokenClassification(config),
            args=args,
            batch_size=BATCH,
            data_collator=Collator(0),
            train_dataset=pieces,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        logs = [line for line in trainer.state.log_history if "subwords_per_s" in line]
    rates = {"subwords_per_s": trainer.throughput.totals()["subwords_per_s"]}
    if "mfu" in logs[-1]:
        rates["mfu"] = float(np.mean([line["mfu"] for line in logs[1:]]))
    return rates


def bare(steps: int, micro_batch: int) -> float:
    """Sub-words a second of a plain loop of PyTorch: the same model, AdamW, and nothing else."""
    device = "cuda" if ON_GPU else "cpu"
    config = BertConfig(vocab_size=28996, num_labels=TAGS, **({} if ON_GPU else SMALL))
    model = BertForTokenClassification(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=ON_GPU)
    start = 0.0
    for step in range(steps + 2):
        if step == 2:  # the first ones allocate
            _wait()
            start = time.perf_counter()
        for _ in range(BATCH // micro_batch):
            ids = torch.randint(1000, config.vocab_size, (micro_batch, SUBWORDS), device=device)
            tags = torch.randint(0, TAGS, ids.shape, device=device)
            with torch.autocast(device, torch.bfloat16, enabled=ON_GPU):
                loss = model(input_ids=ids, labels=tags).loss
            (loss * micro_batch / BATCH).backward()
        optimizer.step()
        optimizer.zero_grad()
    _wait()
    return BATCH * SUBWORDS * steps / (time.perf_counter() - start)


def _wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def load(corpus_folder: str, base_model: str, workers: int, passes: int) -> dict[str, float]:
    """Rates and padding of the loader over a corpus."""
    corpus = Corpus.open(corpus_folder)
    with tempfile.TemporaryDirectory() as folder:
        rows = load_split(corpus, "train", cache_dir=folder)
        if base_model == TINY:
            base_model = f"{folder}/tiny"
            tiny.build(rows, Path(base_model))
        tokenizer = load_tokenizer(base_model)
        start = time.perf_counter()
        pieces = count_subwords(rows, tokenizer, SUBWORDS, len(corpus.labels.tags), corpus_folder)
        rates = {"measured_per_s": len(rows) / (time.perf_counter() - start)}
        features = PieceFeatures(rows, pieces, tokenizer, np.arange(len(corpus.labels.tags)))
        return {**rates, **_load(features, workers, passes)}


def _load(features: PieceFeatures, workers: int, passes: int) -> dict[str, float]:
    batches = LengthBatches(features.lengths, 96 if len(features) < 50 * BATCH else BATCH)
    loader = DataLoader(
        features, batch_sampler=batches, collate_fn=Collator(0), num_workers=workers
    )
    seen = subwords = padded = 0
    start = time.perf_counter()
    for _ in range(passes):
        for batch in loader:
            seen += len(batch["input_ids"])
            subwords += int(batch["attention_mask"].sum())
            padded += batch["attention_mask"].numel()
    elapsed_s = time.perf_counter() - start
    return {
        "pieces_per_s": seen / elapsed_s,
        "subwords_per_s": subwords / elapsed_s,
        "padding": 1 - subwords / padded,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the rates and writes them as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--base-model", default=TINY, help="whose tokenizer the loader uses")
    parser.add_argument("--workers", type=int, default=12 if ON_GPU else 1)
    parser.add_argument("--passes", type=int, default=5, help="of the loader over the corpus")
    parser.add_argument("--steps", type=int, default=40 if ON_GPU else 4)
    parser.add_argument("--micro-batch", type=int, default=BATCH if ON_GPU else 60)
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options, flags = parser.parse_known_args(argv)
    logging.disable(logging.WARNING)
    disable_progress_bars()
    model = train(options.steps, options.micro_batch, flags)
    model["bare_per_s"] = bare(options.steps, options.micro_batch)
    loader = load(options.corpus, options.base_model, options.workers, options.passes)
    device = torch.cuda.get_device_name() if ON_GPU else "CPU"
    name = "BERT-base" if ON_GPU else "4 layers of 256"
    utilisation = f", MFU {model['mfu']:.1%}" if "mfu" in model else ""
    print(
        f"model    {name} on {device}, {BATCH} x {SUBWORDS} a step: "
        f"{model['subwords_per_s']:,.0f} sub-words/s{utilisation}"
    )
    print(
        f"bare     the same model in a plain loop, not compiled: {model['bare_per_s']:,.0f} "
        f"sub-words/s; ours is {model['subwords_per_s'] / model['bare_per_s']:.2f} times that"
    )
    print(f"measure  {loader['measured_per_s']:,.0f} sentences/s, first time only, one process")
    print(
        f"loader   {options.workers} worker(s): {loader['pieces_per_s']:,.0f} pieces/s, "
        f"{loader['subwords_per_s']:,.0f} sub-words/s, padding {loader['padding']:.1%}; "
        f"{loader['subwords_per_s'] / model['subwords_per_s']:.1f} times the model"
    )
    if options.json:
        rows = {"device": device, "model": model, "loader": loader}
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
