"""The two stages of DualNER: multitask on the source, then dual teaching; each can go on."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PrinterCallback, TrainingArguments, set_seed

from finetune import metrics
from finetune.conll import Sentence
from finetune.dual_config import DualSettings, Variant
from finetune.dual_data import DualData
from finetune.dual_loss import entities, gold_loss, pseudo_loss, regularisation, self_loss
from finetune.heads import head_of, packed
from finetune.prediction import WordTagger
from finetune.span_head import labels_of
from finetune.tagger import features
from pretrain import checkpoints, tagging
from pretrain.data import PIECES, UNLINKED, Collator, PieceFeatures

_BEST = "best.safetensors"
_STATE = "best.json"
_TEACHER_BATCH = 64

State = dict[str, Tensor]


@dataclass
class Best:
    """The best weights so far, by the mean dev F1 of all languages: the teacher.

    Attributes:
        f1: their score; below 0 before the first evaluation.
        state: the weights.
        steps: after which a better student took their place.
    """

    f1: float
    state: State
    steps: list[int]

    @classmethod
    def of(cls, model: PreTrainedModel, f1: float = -1.0) -> Best:
        """A model's weights."""
        state = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
        return cls(f1, state, [])

    def save(self, folder: Path) -> None:
        """Writes it beside a checkpoint."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.state, folder / _BEST)
        (folder / _STATE).write_text(json.dumps({"f1": self.f1, "steps": self.steps}))

    @classmethod
    def load(cls, folder: Path) -> Best:
        """What `save` wrote."""
        facts = json.loads((folder / _STATE).read_text())
        return cls(facts["f1"], load_file(folder / _BEST), facts["steps"])


class DualTrainer(tagging.TaggingTrainer):
    """Trains three heads on gold labels, and on what a teacher says; a better student takes over.

    Source: Zeng et al. 2022 (DualNER), section 2.2.
    """

    train_dataset: PieceFeatures

    def __init__(
        self, model: PreTrainedModel, variant: Variant, data: DualData, best: Best,
        settings: DualSettings, second: bool, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Takes what the Trainer takes, by name.

        Args:
            model: student.
            variant: what it learns from.
            data: the rows of the train pieces are the labelled ones, then the unlabelled ones.
            best: weights that a better student takes the place of.
            settings: of the training.
            second: whether this is the second stage, with a teacher.
            kwargs: of TaggingTrainer.
        """
        super().__init__(model=model, **kwargs)
        self.best, self._variant, self._data, self._settings = best, variant, data, settings
        self._pseudo: list[Tensor] = []
        rows = torch.from_numpy(self.train_dataset.rows.astype(np.int64))
        numbers = [0] * len(data.labelled) + [number for number, _ in data.unlabelled]
        self._languages = torch.tensor(numbers)[rows]
        self._labelled = rows < len(data.labelled)
        self._teacher = copy.deepcopy(model) if second else None
        self._weight = settings.regularisation if second and variant.regularised else 0.0
        if second:
            self._renew()

    def _renew(self) -> None:
        """The best weights teach: what they say of every piece."""
        assert self._teacher is not None
        self._teacher.load_state_dict(self.best.state)
        self._pseudo = list(self._said(self._teacher.to(self.args.device)))  # type: ignore[arg-type]

    @torch.inference_mode()
    def _said(self, teacher: PreTrainedModel) -> Iterator[Tensor]:
        """For each piece tags, starts and ends (3, words), or scores (words, width), by number."""
        teacher.eval()  # type: ignore[no-untyped-call]
        order = np.argsort(self.train_dataset.lengths, kind="stable")
        said: dict[int, Tensor] = {}
        tags = len(tagging.tag_names(teacher))
        for first in range(0, len(order), _TEACHER_BATCH):
            numbers = order[first : first + _TEACHER_BATCH].tolist()
            collate: Any = self.data_collator
            batch = collate([self.train_dataset[number] for number in numbers])
            batch = {name: value.to(teacher.device) for name, value in batch.items()}
            inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
            scores, _, mask = packed(teacher(**inputs).logits.float(), batch["labels"])
            labels = torch.stack(labels_of(_quiet(scores, mask), tags), dim=1)
            for row, number in enumerate(numbers):
                words = int(mask[row].sum())
                kept = scores[row, :words] if self._variant.pseudo == "self" else (
                    labels[row, :, :words].to(torch.int16))  # fmt: skip
                said[number] = kept.cpu().clone()
        yield from (said[number] for number in range(len(order)))

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:  # fmt: skip
        """The objective of the variant, per word of the optimiser step."""
        numbers = inputs[PIECES].cpu()
        labels = inputs["labels"]
        outputs = model(**{name: value for name, value in inputs.items()
                           if name not in (PIECES, UNLINKED, "labels")})  # fmt: skip
        scores, tags, mask = packed(outputs.logits.float(), labels)
        gold = mask & self._labelled[numbers].to(mask.device).unsqueeze(1)
        total = gold_loss(scores, tags.where(gold, 0), gold, self._variant.gold)
        if self._pseudo:
            total = total + self._taught(scores, mask, numbers)
        items = mask.sum() if num_items_in_batch is None else num_items_in_batch
        loss = total / torch.as_tensor(items, device=total.device).clamp(min=1)
        if self._weight:
            hidden, _, _ = packed(_seen(model), labels)
            found = entities(scores, hidden.float(), mask,
                             self._languages[numbers].to(mask.device))  # fmt: skip
            loss = loss + self._weight * regularisation(*found) / (
                self.args.gradient_accumulation_steps
            )
        return (loss, outputs) if return_outputs else loss

    def _taught(self, scores: Tensor, mask: Tensor, numbers: Tensor) -> Tensor:
        """Loss of what the teacher says of the pieces."""
        said = [self._pseudo[number] for number in numbers.tolist()]
        if self._variant.pseudo == "self":
            teacher = torch.nn.utils.rnn.pad_sequence(said, batch_first=True)
            return self_loss(scores, teacher.to(scores.device), mask)
        rows = torch.nn.utils.rnn.pad_sequence([row.T for row in said], batch_first=True)
        tags, starts, ends = rows.long().to(scores.device).unbind(-1)
        return pseudo_loss(scores, (tags, starts, ends), mask)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Strict F1 on the dev set of each language, and their mean; the best is the teacher."""
        found = scores_by_language(
            self.model, self.processing_class, self._data.dev, self._settings.max_subwords
        )
        scores = {f"eval_f1_{name}": score.f1 for name, score in found.items()}
        scores["eval_f1"] = mean(scores.values())
        self.log(dict(scores))
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, scores
        )
        if scores["eval_f1"] > self.best.f1:
            steps = [*self.best.steps, self.state.global_step]
            assert isinstance(self.model, PreTrainedModel)
            self.best = Best.of(self.model, scores["eval_f1"])
            self.best.steps = steps
            if self._teacher is not None:
                self._renew()
        self.throughput.start()
        return scores

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Writes the teacher first: a checkpoint counts once the Trainer's own state is there."""
        step = self.state.global_step
        self.best.save(Path(str(self.args.output_dir)) / f"checkpoint-{step}")
        super()._save_checkpoint(model, trial)


def _quiet(scores: Tensor, mask: Tensor) -> Tensor:
    """The scores, all 0 beside the words, where the first of each head then wins."""
    return scores * mask.unsqueeze(-1)


def _seen(model: Any) -> Tensor:
    """What the heads saw last."""
    seen = getattr(model, "module", model).classifier.seen
    assert seen is not None
    return seen  # type: ignore[no-any-return]


def scores_by_language(
    model: Any, tokenizer: Any, sets: Mapping[str, Sequence[Sentence]], max_subwords: int
) -> dict[str, metrics.Scores]:
    """Strict scores on the sentences of each language."""
    words, head = WordTagger(model, tokenizer, max_subwords), head_of(model)
    names = tagging.tag_names(model)
    found = {}
    for language, rows in sets.items():
        logits = words.logits([row.tokens for row in rows])
        tags = [[names[index] for index in head.decode(scores)[0]] for scores in logits]
        found[language] = metrics.strict_scores([row.tags for row in rows], tags)
    return found


def pieces_of(
    data: DualData, tokenizer: Any, settings: DualSettings, second: bool
) -> PieceFeatures:
    """Labelled sentences; in the second stage the unlabelled ones behind them, tagged O."""
    rows = list(data.labelled)
    if second:
        rows += [Sentence(list(words), ["O"] * len(words)) for _, words in data.unlabelled]
    return features(rows, data.labels, tokenizer, settings.max_subwords, "train")


def run_stage(
    folder: Path, model: PreTrainedModel, tokenizer: Any, variant: Variant, data: DualData,
    settings: DualSettings, seed: int, best: Best | None,
) -> tuple[Best, list[dict[str, Any]]]:  # fmt: skip
    """Trains a stage, or goes on where it stopped.

    Args:
        folder: of its checkpoints, which go when it is done.
        model: that is trained; it has the best weights in the end.
        tokenizer: of the model.
        variant: what it learns from.
        data: sentences.
        settings: of the training.
        seed: of dropout and order.
        best: the model's own weights and score in the second stage; None in the first.

    Returns:
        The best weights, and the Trainer's log.
    """
    second = best is not None
    pieces = pieces_of(data, tokenizer, settings, second)
    args = _arguments(folder, settings, pieces, seed, second)
    whole = [path for path in folder.glob("checkpoint-*") if checkpoints.is_whole(path)]
    last = max(whole, key=lambda path: int(path.name.rpartition("-")[2])) if whole else None
    start = Best.load(last) if last else best or Best.of(model)
    set_seed(seed)
    trainer = DualTrainer(
        model, variant, data, start, settings, second, args=args, train_dataset=pieces,
        eval_dataset=pieces,  # the Trainer wants one; `evaluate` takes the dev sets
        batch_size=settings.second_batch_size if second else settings.batch_size,
        processing_class=tokenizer, data_collator=Collator(int(tokenizer.pad_token_id or 0)),
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    history = [line for line in trainer.state.log_history if "eval_f1" in line]
    if not history or history[-1]["step"] != trainer.state.global_step:
        trainer.evaluate()
        history = [line for line in trainer.state.log_history if "eval_f1" in line]
    model.load_state_dict(trainer.best.state)
    return trainer.best, history


def _arguments(
    folder: Path, settings: DualSettings, pieces: PieceFeatures, seed: int, second: bool
) -> TrainingArguments:
    size = settings.second_batch_size if second else settings.batch_size
    steps = -(-len(pieces) // size) * settings.epochs
    between = min(settings.eval_steps, steps)
    device = min(settings.device_batch_size, size)
    args = TrainingArguments(
        output_dir=str(folder), seed=seed, learning_rate=settings.learning_rate, max_steps=steps,
        weight_decay=0.0, warmup_steps=min(settings.warmup_steps, steps // 10),
        lr_scheduler_type="linear", per_device_train_batch_size=device,
        eval_strategy="steps", eval_steps=between, save_strategy="steps", save_steps=between,
        save_total_limit=2, bf16=settings.bf16,
        use_cpu=settings.bf16 and not torch.cuda.is_available(),
        label_names=["labels", UNLINKED], remove_unused_columns=False, logging_strategy="epoch",
        logging_nan_inf_filter=False, disable_tqdm=True, report_to="none",
        dataloader_pin_memory=False,
    )  # fmt: skip
    share = -(-min(size, len(pieces)) // args.world_size)
    args.gradient_accumulation_steps = -(-share // device)
    return args
