"""Coach: finds mentions without types, then compares each with the descriptions of the types.

Source: Liu et al. 2020, ACL, arXiv:2004.11727, section 2; sizes of the released code of CrossNER
(github.com/zliucr/CrossNER), which has no template regularisation, and trains in separate steps
(`finetune.papers.words.trainers.SeparateTrainer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from transformers import PreTrainedModel

from finetune.heads.crf import tag_crf
from finetune.papers.words.options import WordOptions, word_options
from finetune.papers.words.states import MODULE, StateHead, Words, types_of
from finetune.papers.words.trainers import SeparateTrainer
from finetune.papers.words.words import description
from finetune.settings import FitSettings
from nerbert.errors import UserError
from pretrain.training.features import PieceFeatures
from pretrain.training.models import tag_names
from pretrain.training.trainer import TaggingTrainer

_BIO = ("O", "B", "I")
_WRONG = 2  # templates with wrong types, beside the right one

Span = tuple[int, int, int]
"""Text, first word, and one after the last word."""


class Coach(nn.Module):
    """A BiLSTM-CRF over O, B, I, and a comparison of mentions with types."""

    keeps_float32 = True
    descriptions: Tensor
    ends: Tensor
    steps: Tensor

    def __init__(
        self,
        size: int,
        names: Sequence[str],
        lengths: Sequence[int],
        layers: int = 2,
        hidden: int = 512,
        dropout: float = 0.5,
        state_dropout: float | None = None,
        template_weight: float = 0.0,
        template_steps: int = 0,
    ) -> None:
        """Initialises the weights at random, and the descriptions with zeros.

        Args:
            size: size of the words' vectors, an even number.
            names: all tags; O is the first.
            lengths: number of words of the description of each type.
            layers: layers of the BiLSTM.
            hidden: size of its states, of both directions.
            dropout: share of numbers that are dropped before each layer.
            state_dropout: share that is dropped after the last layer; None for `dropout`.
            template_weight: weight of wrong templates; 0 for no template regularisation.
            template_steps: steps before the states of sentences follow the templates, too.
        """
        super().__init__()
        self.tags = len(names)
        self._weight, self._first = template_weight, template_steps
        self.part: Literal["both", "mentions", "types"] = "both"  # that `forward` gives the loss of
        self.dropout = nn.Dropout(dropout)
        self.state_dropout = nn.Dropout(dropout if state_dropout is None else state_dropout)
        self.lstm = _lstm(size, hidden // 2, layers, dropout if layers > 1 else 0.0)
        self.linear = nn.Linear(hidden, len(_BIO))
        self.crf = tag_crf(_BIO)
        self.mention_lstm = _lstm(hidden, size // 2)
        # The vectors of all descriptions, one after the other, and the end of each.
        self.register_buffer("descriptions", torch.zeros(sum(lengths), size))
        ends = torch.tensor(list(lengths)).cumsum(0)
        self.register_buffer("ends", ends, persistent=False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        if template_weight:
            self.template_lstm = _lstm(size, hidden // 2, layers, dropout if layers > 1 else 0.0)
            self.look_at_template = nn.Linear(hidden, 1, bias=False)
            self.look_at_text = nn.Linear(hidden, 1, bias=False)

    def forward(self, words: Words) -> Tensor:
        """Sum of the losses of O, B, I, of the types of gold mentions, and of templates."""
        hidden, emissions = self._read(words.states, words.mask)
        bio = torch.where(words.tags > 0, 2 - words.tags % 2, 0)
        total: Tensor = hidden.new_zeros(())
        if self.part != "types":
            total = total - self.crf(emissions, bio, words.mask).sum()
        spans = spans_of(bio, words.mask)
        if spans and self.part != "mentions":
            firsts = torch.tensor([(row, first) for row, first, _ in spans]).T
            types = (words.tags[firsts[0], firsts[1]] + 1) // 2 - 1
            scores = self._compare(hidden, spans)
            total = total + functional.cross_entropy(scores, types, reduction="sum")
            if self._weight:
                total = total + self._templates(words, hidden, spans, types.tolist())
        if self.training and self.part != "types":
            self.steps += 1
        return total

    def _read(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states (texts, words, hidden), and scores of O, B and I."""
        hidden = self.state_dropout(_run(self.lstm, self.dropout(states), mask))
        return hidden, self.linear(hidden)

    def _compare(self, hidden: Tensor, spans: Sequence[Span]) -> Tensor:
        """Products of each mention's state with the description of each type (spans, types)."""
        inner = pad_sequence([hidden[row, first:end] for row, first, end in spans], True)
        lengths = torch.tensor([end - first for _, first, end in spans])
        mask = torch.arange(inner.shape[1]) < lengths.unsqueeze(1)
        vectors = _run(self.mention_lstm, inner, mask.to(inner.device)).sum(1)
        return vectors @ self._by_type(self.descriptions).T

    def _by_type(self, vectors: Tensor) -> Tensor:
        """Sum of the vectors of each description (types, size)."""
        sums = functional.pad(vectors.cumsum(0), (0, 0, 1, 0))[self.ends]
        return sums.diff(dim=0, prepend=sums.new_zeros(1, sums.shape[1]))

    def _templates(
        self, words: Words, hidden: Tensor, spans: Sequence[Span], types: Sequence[int]
    ) -> Tensor:
        """Squared distances of texts to their right templates, less those to wrong ones."""
        texts = sorted({row for row, _, _ in spans})
        mask = words.mask[texts]
        text_vectors = _pooled(self.look_at_text, hidden[texts], mask)
        total = text_vectors.new_zeros(())
        for shift in range(1 + min(_WRONG, len(self.ends) - 1)):
            shifted = [(kind + shift) % len(self.ends) for kind in types]
            rows = [self._template(words, text, spans, shifted) for text in texts]
            lengths = torch.tensor([len(row) for row in rows], device=mask.device)
            states = pad_sequence(rows, True)
            inside = torch.arange(states.shape[1], device=mask.device) < lengths.unsqueeze(1)
            vectors = _run(self.template_lstm, self.dropout(states), inside)
            template = _pooled(self.look_at_template, vectors, inside)
            weight = 1.0 if shift == 0 else -self._weight
            total = total + weight * _distance(template, text_vectors.detach())
            if self.steps >= self._first:
                total = total + weight * _distance(text_vectors, template.detach())
        return total

    def _template(
        self, words: Words, text: int, spans: Sequence[Span], types: Sequence[int]
    ) -> Tensor:
        """Vectors of a text whose mentions are replaced by descriptions of types."""
        parts, done = [], 0
        for (row, first, end), kind in zip(spans, types, strict=True):
            if row == text:
                start = int(self.ends[kind - 1]) if kind else 0
                parts += [words.states[text, done:first]]
                parts += [self.descriptions[start : int(self.ends[kind])]]
                done = end
        return torch.cat([*parts, words.states[text, done : int(words.mask[text].sum())]])

    def tag(self, states: Tensor, mask: Tensor) -> tuple[list[list[int]], Tensor]:
        """Tags of the words, and probabilities of all tags (texts, words, tags).

        The probability of a tag is that of its O, B or I by the CRF, times that of its type; the
        types of words outside of mentions are equally likely.
        """
        hidden, emissions = self._read(states, mask)
        paths, marginals = self.crf.decode(emissions, mask), self.crf.marginals(emissions, mask)
        bio = pad_sequence([torch.tensor(path) for path in paths], True).to(mask.device)
        spans = spans_of(bio, mask)
        kinds = torch.full((*mask.shape, len(self.ends)), 1 / len(self.ends), device=mask.device)
        if spans:
            chances = self._compare(hidden, spans).softmax(1)
            for (row, first, end), chance in zip(spans, chances, strict=True):
                kinds[row, first:end] = chance
        typed = marginals[..., 1:].unsqueeze(2) * kinds.unsqueeze(3)
        all_chances = torch.cat([marginals[..., :1], typed.flatten(2)], 2)
        best = kinds.argmax(2)
        tags = torch.where(bio > 0, 2 * best + bio, 0)
        return [row[: len(path)] for row, path in zip(tags.tolist(), paths, strict=True)], (
            all_chances
        )


def spans_of(bio: Tensor, mask: Tensor) -> list[Span]:
    """The mentions of tags O (0), B (1) and I (2), in order.

    Args:
        bio: tags (texts, words).
        mask: whether there is a word (texts, words).
    """
    spans = []
    for row, (tags, length) in enumerate(zip(bio.tolist(), mask.sum(1).tolist(), strict=True)):
        begins = [place for place in range(length) if tags[place] == 1]
        for first in begins:
            end = first + 1
            while end < length and tags[end] == 2:
                end += 1
            spans.append((row, first, end))
    return spans


def _lstm(size: int, hidden: int, layers: int = 1, dropout: float = 0.0) -> nn.LSTM:
    return nn.LSTM(size, hidden, layers, batch_first=True, dropout=dropout, bidirectional=True)


def _run(lstm: nn.LSTM, states: Tensor, mask: Tensor) -> Tensor:
    """Outputs of an LSTM (texts, words, hidden), zero at padding."""
    lengths = mask.sum(1).cpu()
    packed: Any = pack_padded_sequence(states, lengths, True, enforce_sorted=False)
    output: Tensor = pad_packed_sequence(lstm(packed)[0], True, total_length=states.shape[1])[0]
    return output


def _pooled(look: nn.Linear, states: Tensor, mask: Tensor) -> Tensor:
    """Mean of the states of each text, weighted by attention (texts, hidden)."""
    scores = look(states).squeeze(2).masked_fill(~mask, float("-inf"))
    output: Tensor = (scores.softmax(1).unsqueeze(2) * states).sum(1)
    return output


def _distance(first: Tensor, second: Tensor) -> Tensor:
    """Sum over texts of the mean squared differences."""
    return functional.mse_loss(first, second, reduction="none").mean(1).sum()


class CoachHead(StateHead):
    """Coach as the head of the words' vectors."""

    name = "coach"
    module = Coach

    @classmethod
    def sizes(
        cls, model: PreTrainedModel, options: WordOptions, domains: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        cls.check_words(model)
        if options.word_encoder:
            raise UserError("--word-encoder: coach describes types by words alone; leave it out")
        return {
            "lengths": [len(description(name)) for name in types_of(tag_names(model))],
            "layers": options.word_layers,
            "state_dropout": options.state_dropout,
            "template_weight": options.template_weight,
            "template_steps": options.template_steps,
        }

    @classmethod
    def fill(cls, model: PreTrainedModel, tokenizer: Any) -> None:
        head: Any = model.get_submodule(MODULE)
        head.descriptions.copy_(_described(model, tokenizer))

    def trainer(
        self, train: PieceFeatures, settings: FitSettings, kinds: Sequence[int]
    ) -> tuple[type[TaggingTrainer], int, dict[str, Any]]:
        kind, pieces, arguments = super().trainer(train, settings, kinds)
        options = word_options(settings)
        return SeparateTrainer if options.separate_steps else kind, pieces, arguments


@torch.no_grad()
def _described(model: Any, tokenizer: Any) -> Tensor:
    """Vectors of the words of all descriptions, one after the other (words, size)."""
    words = [word for name in types_of(tag_names(model)) for word in description(name)]
    encodings = tokenizer([[word] for word in words], is_split_into_words=True).encodings
    rows = pad_sequence([torch.tensor(entry.ids) for entry in encodings], batch_first=True)
    training = model.training
    vectors: Tensor = model.eval().vectors(rows)
    model.train(training)
    return vectors
