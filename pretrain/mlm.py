"""One domain-adaptive pre-training, from checked settings to a checkpoint with its card."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from pipeline.errors import UserError
from pretrain import arguments, blocks, checkpoints, data, tagging, tiny
from pretrain.config import TINY, BadLossError
from pretrain.dapt import DaptSettings
from pretrain.loglines import LogLines
from pretrain.masking import Masker

_LOGGER = logging.getLogger("nerbert")
_HEADS = ("cls", "lm_head")
"""Where models keep a language-model head that is one module."""

_KIND = {"prediction_loss_only": True, "label_names": ["labels"]}


class _Finite(TrainerCallback):
    """Ends the training when its loss is no number."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            raise BadLossError(f"loss is {logs['loss']} before step {state.global_step}; lower "
                               "--learning-rate")  # fmt: skip


@contextmanager
def hidden_only(model: Any, hidden: torch.Tensor) -> Iterator[bool]:
    """Lets the language-model head see hidden positions alone: the others have no loss.

    Of a batch it is most of the work, and of the memory, to score every sub-word of the vocabulary.

    Args:
        model: with its head, or what a trainer wraps it in.
        hidden: positions, shape (batch, length).

    Yields:
        Whether it does: heads of some models are in several pieces, and see everything.
    """
    inner = getattr(model, "module", model)
    head = next((getattr(inner, name) for name in _HEADS if hasattr(inner, name)), None)
    if head is None:
        yield False
        return
    handle = head.register_forward_pre_hook(lambda _, args: (args[0][hidden], *args[1:]))
    try:
        yield True
    finally:
        handle.remove()


class _Trainer(Trainer):
    """transformers' Trainer with our card."""

    card = ""

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Mean loss of the hidden sub-words."""
        hidden = inputs["labels"].ne(data.IGNORED)
        with hidden_only(model, hidden) as alone:
            labels = inputs["labels"][hidden] if alone else inputs["labels"]
            return super().compute_loss(model, {**inputs, "labels": labels}, *args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Writes our card where transformers would write its own, before a push to the hub."""
        if self.card:
            (Path(str(self.args.output_dir)) / "README.md").write_text(self.card, encoding="utf-8")


def load_masked_lm(base_model: str, max_subwords: int, new_head: bool) -> PreTrainedModel:
    """An encoder with its language-model head.

    Args:
        base_model: name on the hub, or folder.
        max_subwords: that it must take at once.
        new_head: whether a head that the checkpoint lacks may start from random weights.

    Raises:
        UserError: there is no such model, it is no masked language model, its checkpoint has no
            head, or it takes fewer sub-words at once.
    """
    tagging.load_tokenizer(base_model)  # tells what is missing in a folder that is no model
    try:
        model: Any
        model, info = AutoModelForMaskedLM.from_pretrained(base_model, output_loading_info=True)
    except (OSError, ValueError) as error:
        kind = AutoConfig.from_pretrained(base_model).model_type
        raise UserError(
            f"--base-model {base_model}: transformers has no masked language model of type {kind}; "
            "use an encoder such as bert-base-cased"
        ) from error
    if info["missing_keys"] and not new_head:
        raise UserError(f"--base-model {base_model}: its checkpoint has no language-model head; "
                        "give --new-head to start one from random weights")  # fmt: skip
    longest = getattr(model.config, "max_position_embeddings", max_subwords)
    if longest < max_subwords:
        raise UserError(f"--max-subwords {max_subwords}: {base_model} takes {longest} or fewer")
    found: PreTrainedModel = model
    return found


def run(settings: DaptSettings, rest: Sequence[str]) -> str:
    """Trains, or goes on where the last run with these settings stopped.

    Args:
        settings: checked.
        rest: flags of TrainingArguments.

    Returns:
        What was made, in lines for people.

    Raises:
        UserError: corpus, base model, flags or output do not fit.
        BadLossError: the loss is not a finite number.
    """
    data.quiet_libraries()
    args, settings = arguments.training_arguments(settings, rest, _KIND)
    corpus = blocks.load(settings.corpus, settings.cache_dir)
    rows = blocks.rows_of(corpus, settings.level, settings.corpus)
    output = checkpoints.Output(
        Path(settings.output), settings, args, blocks.fingerprint(settings.corpus)
    )
    checkpoint = output.checkpoint()
    if args.process_index == 0:
        output.begin(domain=_domain(settings.corpus))
    set_seed(args.seed)
    with args.main_process_first(desc="corpus"):
        renew = checkpoint is None and args.process_index == 0
        base = _base(settings, corpus, renew)
        tokenizer = tagging.load_tokenizer(base)
        _check_mask(base, tokenizer)
        ids = blocks.subwords(corpus, tokenizer, arguments.processes())
    train, held = (blocks.Blocks(ids, part, tokenizer, settings.max_subwords) for part in rows)
    train.take(settings.fraction)
    set_seed(args.seed)  # a new head is the same whether the tiny model was made now or before
    new_head = settings.new_head or settings.base_model == TINY
    model = load_masked_lm(base, settings.max_subwords, new_head)
    trainer = _trainer(settings, args, model, tokenizer, train, held)
    _LOGGER.info("%s", _plan_line(settings, rows, len(train), checkpoint))
    before = _before(Path(settings.output), trainer, checkpoint)
    start = time.monotonic()
    trainer.train(resume_from_checkpoint=checkpoint)
    results = {
        "perplexity_before": round(before, 4), "perplexity": round(_perplexity(trainer), 4),
        "sentences": len(rows[0]), "held_out": len(rows[1]), "blocks": len(train),
        "subwords": train.subwords, "steps": trainer.state.global_step,
        "epochs": round(trainer.state.epoch or 0, 4),
        "train_s": round(time.monotonic() - start, 1),
    }  # fmt: skip
    trainer.save_model(settings.output, _internal_call=True)  # without a push: the card comes first
    if trainer.is_world_process_zero():
        trainer.card = _card(output.finish(results))
        trainer.create_model_card()
    if args.push_to_hub:
        trainer.push_to_hub()
    tagging.end_together(trainer)
    return (
        f"steps       {results['steps']:,} of {settings.batch_size} blocks, {results['epochs']:g} "
        f"epochs, {results['train_s']:,} s\n"
        f"perplexity  {results['perplexity_before']:,} before, {results['perplexity']:,} after, on "
        f"{results['held_out']:,} sentences held out\ncheckpoint  {settings.output}"
    )


def _plan_line(
    settings: DaptSettings, rows: tuple[blocks.Ints, blocks.Ints], size: int, checkpoint: str | None
) -> str:
    return (
        f"{len(rows[0]):,} sentences of level {settings.level}, {size:,} blocks of at most "
        f"{settings.max_subwords} sub-words, {len(rows[1]):,} sentences held out; going on from "
        f"{checkpoint or 'the start'}"
    )


def _domain(corpus: str) -> str:
    """Name of the corpus's domain, by its own report."""
    report = Path(corpus) / "report.json"
    if not report.is_file():
        return Path(corpus).name
    name: str = json.loads(report.read_text(encoding="utf-8"))["domain"]["name"]
    return name


def _base(settings: DaptSettings, corpus: Any, renew: bool) -> str:
    """Folder or name of the base model; `tiny` is made from the corpus."""
    if settings.base_model != TINY:
        return settings.base_model
    base = Path(settings.output) / "base"
    if renew or not (base / "model.safetensors").is_file():
        tiny.build(corpus, base)
    return str(base)


def _check_mask(base: str, tokenizer: PreTrainedTokenizerFast) -> None:
    if tokenizer.mask_token_id is None:
        raise UserError(f"--base-model {base}: its tokenizer has no mask; use an encoder such as "
                        "bert-base-cased")  # fmt: skip


def _trainer(
    settings: DaptSettings, args: TrainingArguments, model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast, train: blocks.Blocks, held: blocks.Blocks,
) -> _Trainer:  # fmt: skip
    """The Trainer; a step holds as many blocks as the settings say, on however many devices."""
    share = -(-settings.batch_size // args.world_size)
    args.per_device_train_batch_size = min(args.per_device_train_batch_size, share)
    args.gradient_accumulation_steps = -(-share // args.per_device_train_batch_size)
    trainer = _Trainer(
        model=model, args=args, train_dataset=train, eval_dataset=held,
        data_collator=Masker(tokenizer, settings.masking, settings.rate, args.seed),
        processing_class=tokenizer, callbacks=[LogLines(), _Finite()],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    return trainer


def _perplexity(trainer: Trainer) -> float:
    """Exponential of the mean loss on what is held out, which hides the same each time."""
    return math.exp(min(trainer.evaluate()["eval_loss"], 100.0))


def _before(folder: Path, trainer: Trainer, checkpoint: str | None) -> float:
    """Perplexity of the base model; a run that goes on has it from its first start."""
    path = folder / "before.json"
    if checkpoint is not None and path.is_file():
        found: float = json.loads(path.read_text())
        return found
    found = _perplexity(trainer)
    if trainer.is_world_process_zero():
        path.write_text(json.dumps(found))
    return found


def _card(record: dict[str, Any]) -> str:
    """Text of `templates/dapt_card.md`, filled in."""
    settings, training, results = record["settings"], record["training"], record["results"]
    base = settings["base_model"]
    own = base == TINY or Path(base).exists()
    text = (files("pretrain") / "templates" / "dapt_card.md").read_text(encoding="utf-8")
    return Template(text).substitute(
        {**settings, **results}, name=record["name"], domain=record["domain"],
        base_model_line="" if own else f"\nbase_model: {base}",
        base=Path(base).name if own else base, rate_per_cent=f"{settings['rate']:.0%}",
        learning_rate=f"{training['learning_rate']:g}", scheduler=training["lr_scheduler_type"],
        optimizer=training["optim"], seed=training["seed"],
    )  # fmt: skip
