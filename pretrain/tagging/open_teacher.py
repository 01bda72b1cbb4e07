"""A teacher of an open head: a tagger, mostly a larger one, whose scores are learnt beside labels.

Links mark some of the mentions of a text, and with some of their names. A tagger that was trained
on links finds more mentions, and says of each name how well it fits (distillation, Hinton et al.
2015, "Distilling the Knowledge in a Neural Network").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedTokenizerFast, TrainingArguments

from nerbert.errors import UserError
from pretrain.tagging.open_head import NAME, add_open_head, name_vectors
from pretrain.tagging.open_types import TAGS
from pretrain.training.checkpoints import add_head
from pretrain.training.features import UNLINKED
from pretrain.training.letter_cases import takes_cases
from pretrain.training.models import load_tagger
from pretrain.training.subwords import IGNORED
from pretrain.training.tokenizer import load_config, load_tokenizer

_TRIED = "Caf\u00e9 McDonald's, Zürich; 中国 in 1914 (e.g. TESTING re-reading)"
_SURE = 0.3
"""Smallest probability of a mention, by the teacher, whose types are learnt from it."""


class Answer(NamedTuple):
    """What a teacher says of the words of a batch.

    Attributes:
        asked: its first sub-words, shape (batch, length).
        scores: scores and vectors of the teacher there, shape (words, 3 + size).
    """

    asked: Tensor
    scores: Tensor


class Teacher:
    """A tagger with an open head, whose scores another one learns."""

    def __init__(
        self, folder: str, tokenizer: PreTrainedTokenizerFast, args: TrainingArguments
    ) -> None:
        """Loads the teacher.

        Args:
            folder: folder, or name on the hub.
            tokenizer: tokenizer of the pupil, which has to make the same sub-words.
            args: arguments of the Trainer; the teacher computes in as many bits as the pupil.

        Raises:
            UserError: it has no open head, makes other sub-words, or is told the case of words
                where the pupil is not.
        """
        if getattr(load_config(folder), "tag_head", None) != NAME:
            raise UserError("a tagger without an open head teaches no types", folder)
        self._model = load_tagger(folder, ["classifier."])
        add_head(self._model, NAME, "classifier", add_open_head, folder)
        self._model.eval()  # type: ignore[no-untyped-call]
        self._model.requires_grad_(False)
        self._tokenizer = load_tokenizer(folder)
        self._ids = _teachers_ids(tokenizer, self._tokenizer, folder)
        self._takes_cases = takes_cases(self._tokenizer)
        if self._takes_cases and not takes_cases(tokenizer):
            raise UserError("it is told the case of words, and the base model is not", folder)
        self._half = torch.bfloat16 if args.bf16 else torch.float16
        self._is_half = args.bf16 or args.fp16
        self._names: dict[str, Tensor] = {}  # vectors of names
        self._answer: Answer | None = None

    @torch.no_grad()
    def read(self, inputs: Mapping[str, Any]) -> None:
        """Reads a batch, as the pupil gets it; words that it is not told the tags of, too."""
        ids = inputs["input_ids"]
        self._model.to(ids.device)
        cases = {"token_type_ids": inputs["token_type_ids"]} if self._takes_cases else {}
        with torch.autocast(ids.device.type, self._half, enabled=self._is_half):
            logits = self._model(
                input_ids=self._ids.to(ids.device)[ids],
                attention_mask=inputs["attention_mask"],
                **cases,
            ).logits
        asked = inputs["labels"].ne(IGNORED) | inputs[UNLINKED].bool()
        self._answer = Answer(asked, logits[asked].float())

    def answer(self) -> Answer | None:
        """What it says of the batch that it has read, once; None of one that only scores."""
        answer, self._answer = self._answer, None
        return answer

    def loss(
        self,
        answer: Answer,
        tags: Tensor,
        labels: Tensor,
        types: Tensor,
        names: Sequence[str],
        inside: float,
    ) -> Tensor:
        """The cross-entropy of the pupil's tags and types to those of the teacher.

        Where a link begins and ends its label says for sure, and the teacher's tag does not count.

        Args:
            answer: what the teacher says of the batch.
            tags: scores of O, B and I of the batch by the pupil (batch, length, 3).
            labels: 0 for O, 1 for B, 2 for I, and `IGNORED` (batch, length).
            types: scores of types, and of none of them (batch, length, types + 1).
            names: names of the types, in words.
            inside: taken from the score of I in training, of both.

        Returns:
            The sum over the words, and for types as much, however few mentions there are.
        """
        asked, scores = answer
        with torch.no_grad():
            head: Any = self._model.get_submodule("classifier")
            kinds = head.scores(scores[:, TAGS:], self._vectors(names))
            parts = head.tag_scores(scores[:, :TAGS], kinds)
            chances = (parts - parts.new_tensor([0.0, 0.0, inside])).softmax(-1)
            mentions = 1 - chances[:, 0]
            mentions = mentions * mentions.gt(_SURE)
            linked = labels[asked] > 0
            chances[linked] = functional.one_hot(labels[asked][linked], TAGS).to(chances)
        of_tags = -(chances * tags[asked].log_softmax(-1)).sum()
        of_types = -(kinds.softmax(-1) * types[asked].log_softmax(-1)).sum(-1)
        mean = (of_types * mentions).sum() / mentions.sum().clamp(min=1e-6)
        total: Tensor = of_tags + mean * len(scores)
        return total

    def _vectors(self, names: Sequence[str]) -> Tensor:
        new = [name for name in names if name not in self._names]
        if new:
            vectors = name_vectors(self._model, self._tokenizer, new).float()
            self._names.update(zip(new, vectors, strict=True))
        return torch.stack([self._names[name] for name in names])


def _teachers_ids(
    pupil: PreTrainedTokenizerFast, teacher: PreTrainedTokenizerFast, folder: str
) -> Tensor:
    """The teacher's id of each sub-word of the pupil, shape (sub-words,).

    Raises:
        UserError: the sub-words are others.
    """
    vocabulary = teacher.get_vocab()
    special = {
        getattr(pupil, f"{role}_token"): getattr(teacher, f"{role}_token")
        for role in ("cls", "sep", "pad", "unk", "mask", "bos", "eos")
    }
    ids = {
        number: vocabulary.get(special.get(token) or token)
        for token, number in pupil.get_vocab().items()
    }
    tried = pupil(_TRIED)["input_ids"]
    if None in ids.values() or [ids[number] for number in tried] != teacher(_TRIED)["input_ids"]:
        raise UserError(
            "it makes other sub-words than the base model; give one whose vocabulary is the same",
            folder,
        )
    return torch.tensor([ids.get(number) or 0 for number in range(len(pupil))])
