"""The two stages of DualNER: multitask training on the source, then dual teaching."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from finetune.heads.crf import has_words, packed
from finetune.heads.head import head_of
from finetune.heads.windows import INPUTS
from finetune.papers.dualner import loss as losses
from finetune.papers.dualner.data import DualData
from finetune.papers.dualner.settings import NO_TEACHER, DualSettings, Method
from finetune.papers.dualner.spans import labels_of, with_hidden
from finetune.scoring import metrics
from finetune.tagger.models import word_tagger
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.tags import Scores
from pretrain.training.features import PIECES, UNLINKED, PieceFeatures
from pretrain.training.models import tag_names
from pretrain.training.trainer import TaggingTrainer

_BEST = "best.safetensors"
_STATE = "best.json"
_TEACHER_BATCH = 64

State = dict[str, Tensor]


@dataclass
class Best:
    """The best weights so far, by mean dev F1 of all languages. They are the teacher.

    Attributes:
        f1: their score; below 0 before the first evaluation.
        state: the weights.
        steps: steps after which they were replaced by better ones.
    """

    f1: float
    state: State
    steps: list[int]

    @classmethod
    def of(cls, model: PreTrainedModel, f1: float = -1.0) -> Best:
        """The current weights of a model."""
        state = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
        return cls(f1, state, [])

    def save(self, folder: Path) -> None:
        """Writes weights, score and steps to the folder of a checkpoint."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.state, folder / _BEST)
        (folder / _STATE).write_text(json.dumps({"f1": self.f1, "steps": self.steps}))

    @classmethod
    def load(cls, folder: Path) -> Best:
        """Reads what `save` wrote."""
        facts = Place(folder / _STATE).read_json()
        return cls(facts["f1"], load_file(folder / _BEST), facts["steps"])


class DualTrainer(TaggingTrainer):
    """Trains three heads on gold labels and pseudo-labels of a teacher.

    The teacher is replaced by every better student.

    Source: Zeng et al. 2022 (DualNER), section 2.2.
    """

    train_dataset: PieceFeatures

    def __init__(
        self,
        model: PreTrainedModel,
        method: Method,
        data: DualData,
        best: Best,
        settings: DualSettings,
        second: bool,
        **kwargs: Any,
    ) -> None:
        """Takes the arguments of `TaggingTrainer`, by name, and some of its own.

        Args:
            model: the student.
            method: the method.
            data: sentences; the rows of the train pieces are its labelled ones, then its unlabelled
                ones.
            best: best weights so far.
            settings: settings of the training.
            second: whether this is the second stage, with a teacher.
            kwargs: other arguments of `TaggingTrainer`.
        """
        super().__init__(model=model, **kwargs)
        self.best, self._method, self._data, self._settings = best, method, data, settings
        self._pseudo: list[Tensor] = []
        self._width = head_of(model).n_scores
        rows = torch.from_numpy(self.train_dataset.rows.astype(np.int64))
        numbers = [0] * len(data.labelled) + [number for number, _ in data.unlabelled]
        self._languages = torch.tensor(numbers)[rows]
        self._labelled = rows < len(data.labelled)
        teaches = second and method.pseudo != NO_TEACHER
        self._teacher = copy.deepcopy(model) if teaches else None
        self._weight = settings.regularisation if second and method.regularised else 0.0
        self._shape = len(tag_names(model)) // 2 + 1, int(self._languages.max()) + 1
        self._step: tuple[Tensor, Tensor, int] | None = None
        if teaches:
            self._renew()

    def _renew(self) -> None:
        """Makes the best weights the teacher, and predicts all pieces with them."""
        assert self._teacher is not None
        self._teacher.load_state_dict(self.best.state)
        self._pseudo = list(self._teacher_outputs(self._teacher.to(self.args.device)))  # type: ignore[arg-type]

    @torch.inference_mode()
    def _teacher_outputs(self, teacher: PreTrainedModel) -> Iterator[Tensor]:
        """Tags, starts and ends of each piece (3, words), or scores (words, width), in order."""
        teacher.eval()  # type: ignore[no-untyped-call]
        # By length, so that batches need little padding; the results are in the old order.
        order = np.argsort(self.train_dataset.lengths, kind="stable")
        outputs: dict[int, Tensor] = {}
        tags = len(tag_names(teacher))
        for first in range(0, len(order), _TEACHER_BATCH):
            numbers = order[first : first + _TEACHER_BATCH].tolist()
            collate: Any = self.data_collator
            batch = collate([self.train_dataset[number] for number in numbers])
            batch = {name: value.to(teacher.device) for name, value in batch.items()}
            inputs = {name: batch[name] for name in INPUTS if name in batch}
            scores, _, mask = packed(teacher(**inputs).logits.float(), batch["labels"])
            labels = torch.stack(labels_of(_mask_scores(scores, mask), tags), dim=1)
            full = has_words(batch["labels"]).tolist()
            kept_numbers = [number for number, has in zip(numbers, full, strict=True) if has]
            for row, number in enumerate(kept_numbers):
                words = int(mask[row].sum())
                columns = (
                    scores[row, :words]
                    if self._method.pseudo == "self"
                    else (labels[row, :, :words].to(torch.int16))
                )
                outputs[number] = columns.cpu().clone()
        nothing = torch.empty(0)  # of pieces without words, which the loss leaves out
        yield from (outputs.get(number, nothing) for number in range(len(order)))

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of the method, divided by the words of the optimiser step."""
        labels = inputs["labels"]
        numbers = inputs[PIECES].cpu()[has_words(labels).cpu()]
        model_inputs = {k: v for k, v in inputs.items() if k not in (PIECES, UNLINKED, "labels")}
        with with_hidden(model) if self._weight else nullcontext():
            outputs = model(**model_inputs)
        logits, tags, mask = packed(outputs.logits.float(), labels)
        scores, hidden = logits[..., : self._width], logits[..., self._width :]
        # Unlabelled pieces have labels too, all O, to mark their first sub-words.
        gold = mask & self._labelled[numbers].to(mask.device).unsqueeze(1)
        total = losses.gold_loss(scores, tags.where(gold, 0), gold, self._method.gold)
        if self._pseudo:
            total = total + self._pseudo_label_loss(scores, mask, numbers)
        items = mask.sum() if num_items_in_batch is None else num_items_in_batch
        loss = total / torch.as_tensor(items, device=total.device).clamp(min=1)
        if self._weight:
            sums = self._sums(scores, hidden, mask, numbers)
            loss = loss + self._weight * self._distance(*sums)
        # The words and the sums are those of all processes, whose gradients are averaged.
        loss = loss * self.accelerator.num_processes
        return (loss, outputs) if return_outputs else loss

    def _sums(
        self, scores: Tensor, hidden: Tensor, mask: Tensor, numbers: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sums of representations of the mentions in some pieces; see `loss.sums`."""
        languages = self._languages[numbers].to(mask.device)
        return losses.sums(*losses.entities(scores, hidden, mask, languages), self._shape)

    def _distance(self, total: Tensor, counts: Tensor) -> Tensor:
        """The regularisation over the whole step, by the sums of one of its batches.

        Its gradient is that of this batch's sums, so the batches add up to that of the step. The
        value is this batch's share, so that the log has the value of the step.
        """
        if self._step is None:
            return losses.regularisation(total, counts)
        step_total, whole_counts, batches = self._step
        distance = losses.regularisation(total + (step_total - total).detach(), whole_counts)
        return distance - distance.detach() * (1 - 1 / batches)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The batches of a step. If there are several, their mentions are summed before training.

        So the regularisation is over the step, with the memory of one batch. It costs a second
        pass forwards, with the same dropout as the first.
        """
        samples, items = super().get_batch_samples(*args, **kwargs)
        self._step = None
        if self._weight and len(samples) * self.args.world_size > 1:
            with torch.random.fork_rng(), torch.no_grad(), self.compute_loss_context_manager():
                self.model_wrapped.train()
                batch_sums = [self._sums_of(self._prepare_inputs(batch)) for batch in samples]
            step_total, counts = (
                torch.stack(part).sum(0) for part in zip(*batch_sums, strict=True)
            )
            step_total, counts = (self.accelerator.reduce(part) for part in (step_total, counts))
            self._step = step_total, counts, len(samples) * self.args.world_size
        return samples, items

    def _sums_of(self, inputs: Any) -> tuple[Tensor, Tensor]:
        """The sums of a batch; see `_sums`."""
        with with_hidden(self.model_wrapped):
            outputs = self.model_wrapped(**{key: inputs[key] for key in INPUTS if key in inputs})
        logits, _, mask = packed(outputs.logits.float(), inputs["labels"])
        numbers = inputs[PIECES].cpu()[has_words(inputs["labels"]).cpu()]
        return self._sums(logits[..., : self._width], logits[..., self._width :], mask, numbers)

    def _pseudo_label_loss(self, scores: Tensor, mask: Tensor, numbers: Tensor) -> Tensor:
        """Loss of the teacher's pseudo-labels of some pieces."""
        labels = [self._pseudo[number] for number in numbers.tolist()]
        if self._method.pseudo == "self":
            teacher = torch.nn.utils.rnn.pad_sequence(labels, batch_first=True)
            return losses.self_loss(scores, teacher.to(scores.device), mask)
        rows = torch.nn.utils.rnn.pad_sequence([row.T for row in labels], batch_first=True)
        tags, starts, ends = rows.long().to(scores.device).unbind(-1)
        return losses.pseudo_loss(scores, (tags, starts, ends), mask)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Strict F1 on the dev set of each language, and their mean; the best weights are kept."""
        by_language = scores_by_language(
            self.model, self.processing_class, self._data.dev, self._settings.max_subwords
        )
        scores = {f"eval_f1_{name}": score.f1 for name, score in by_language.items()}
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
        """Writes the teacher, then the checkpoint, which is complete with the Trainer's state."""
        step = self.state.global_step
        # First, because a checkpoint counts as whole when the Trainer's state is there.
        self.best.save(Path(str(self.args.output_dir)) / f"checkpoint-{step}")
        super()._save_checkpoint(model, trial)


def _mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    """The scores, set to 0 at padding, so that the first class of each head wins there."""
    return scores * mask.unsqueeze(-1)


def scores_by_language(
    model: Any,
    tokenizer: Any,
    sets: Mapping[str, Sequence[Sentence]],
    max_subwords: int,
    for_report: bool = False,
) -> dict[str, Scores]:
    """Strict scores on the sentences of each language; for a report seqeval computes them, too."""
    words, head = word_tagger(model, tokenizer, max_subwords), head_of(model)
    names = tag_names(model)
    by_language = {}
    for language, rows in sets.items():
        logits = words.logits([row.tokens for row in rows])
        tags = [[names[index] for index in head.decode(scores)[0]] for scores in logits]
        gold = [row.tags for row in rows]
        by_language[language] = (
            metrics.seqeval_scores(gold, tags)[0]
            if for_report
            else metrics.strict_scores(gold, tags)
        )
    return by_language
