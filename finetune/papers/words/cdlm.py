"""CDLM: one BiLSTM for two tasks and two domains, whose weights are generated from both.

Source: Jia et al. 2019, ACL, section 3: equations 1 to 4 (weights of the LSTM as product of a
tensor with the vectors of task and domain), 5 to 10 (tagging, and language models of both
directions with sampled softmax).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedModel

from finetune.data.plain import drawn_sentences
from finetune.heads.head import SOURCE, TARGET, TEXT
from finetune.papers.words.options import WordOptions, word_options
from finetune.papers.words.states import MODULE, DomainTags, StateHead, Words
from finetune.settings import FitSettings
from nerbert.text.columns import Sentence

TAGGING, READING = 0, 1
"""Tasks: named entities, and the language models."""

_SIZE = 8  # of the vectors of tasks and domains, in the paper
_SAMPLES = 50  # words of the sampled softmax, in the released code


class GeneratedLstm(nn.Module):
    """A BiLSTM whose weights are a tensor times the vectors of a domain and a task."""

    def __init__(self, size: int, hidden: int) -> None:
        """Initialises the weights at random.

        Args:
            size: size of the words' vectors.
            hidden: size of the states of one direction.
        """
        super().__init__()
        # Only its shapes and its code are used.
        self._lstm = [nn.LSTM(size, hidden, batch_first=True, bidirectional=True)]
        self.shapes = {name: value.shape for name, value in self._lstm[0].named_parameters()}
        count = sum(shape.numel() for shape in self.shapes.values())
        self.tensor = nn.Parameter(torch.empty(_SIZE, _SIZE, count))
        nn.init.uniform_(self.tensor, -(hidden**-0.5), hidden**-0.5)
        bound = math.sqrt(3 / _SIZE)
        self.tasks = nn.Parameter(torch.empty(2, _SIZE).uniform_(-bound, bound))
        self.domains = nn.Parameter(torch.empty(2, _SIZE).uniform_(-bound, bound))

    def weights(self, task: int, domain: int) -> dict[str, Tensor]:
        """The weights of the LSTM for a task and a domain, by name."""
        flat = torch.einsum("tdp,t,d->p", self.tensor, self.tasks[task], self.domains[domain])
        parts = torch.split(flat, [shape.numel() for shape in self.shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def forward(self, states: Tensor, mask: Tensor, task: int, domain: int) -> Tensor:
        """Outputs of both directions (texts, words, 2 * hidden), zero at padding."""
        lengths = mask.sum(1).cpu()
        packed: Any = pack_padded_sequence(states, lengths, True, enforce_sorted=False)
        lstm = self._lstm[0].to(states.device)
        output, _ = functional_call(lstm, self.weights(task, domain), (packed,))
        outputs: Tensor = pad_packed_sequence(output, True, total_length=states.shape[1])[0]
        return outputs


class NextWord(nn.Module):
    """Predicts words by sampled softmax: among them and some drawn words.

    Source: Jean et al. 2015, ACL, section 3; the draw is uniform over the known words.
    """

    def __init__(self, size: int, words: int, samples: int = _SAMPLES) -> None:
        """Initialises the weights with small random values.

        Args:
            size: size of the states.
            words: number of words.
            samples: number of words that are drawn; as many as `words` for all.
        """
        super().__init__()
        self.vectors = nn.Embedding(words, size)
        nn.init.uniform_(self.vectors.weight, -(size**-0.5), size**-0.5)
        self.biases = nn.Embedding(words, 1)
        nn.init.zeros_(self.biases.weight)
        self._samples = min(samples, words)

    def forward(self, states: Tensor, words: Tensor) -> Tensor:
        """Sum of the losses of the words (predictions,) after the states (predictions, size)."""
        total = self.vectors.num_embeddings
        sample = torch.randperm(total, device=words.device)[: self._samples]
        right = (states * self.vectors(words)).sum(1, keepdim=True) + self.biases(words)
        sample_scores = states @ self.vectors(sample).T + self.biases(sample).T
        # A drawn word stands for words / samples of its kind.
        sample_scores = sample_scores + math.log(total / self._samples)
        sample_scores = sample_scores.masked_fill(words.unsqueeze(1) == sample, float("-inf"))
        scores = torch.cat([right, sample_scores], 1)
        return -scores.log_softmax(1)[:, 0].sum()


class Cdlm(nn.Module):
    """Tags words with a BiLSTM that also learns the language of both domains."""

    keeps_float32 = True
    places: Tensor

    def __init__(
        self,
        size: int,
        names: Sequence[str],
        domains: Sequence[Sequence[str]],
        words: int,
        rows: int,
        hidden: int = 200,
        dropout: float = 0.5,
        target_weight: float = 1.0,
    ) -> None:
        """Initialises the weights at random.

        Args:
            size: size of the words' vectors.
            names: all tags; O is the first.
            domains: types of each domain.
            words: number of words that the language models predict.
            rows: number of the words' vectors, given ones of words that no text has included.
            hidden: size of the states, of both directions.
            dropout: share of numbers that are dropped before and after the LSTM.
            target_weight: weight of the tags of the target.
        """
        super().__init__()
        self.tags = len(names)
        self.dropout = nn.Dropout(dropout)
        self.lstm = GeneratedLstm(size, hidden // 2)
        self.domains = DomainTags(2 * (hidden // 2), names, domains, target_weight)
        self.words = NextWord(hidden // 2, words)  # of both directions, as in the released code
        # Row of a word's vector -> its number among the words that are predicted; -1 for none.
        self.register_buffer("places", torch.full((rows,), -1))

    def forward(self, words: Words) -> Tensor:
        """Sum of the losses of tags, and of half the losses of both language models."""
        total = words.states.new_zeros(())
        for domain in (TARGET, SOURCE):
            if (part := words.where(domain)) is not None:
                hidden = self._read(part.states, part.mask, TAGGING, domain)
                total = total + self.domains(hidden, part.tags, part.mask, domain)
            if (part := words.where(domain + TEXT)) is not None:
                total = total + self._language(part, domain) / 2
        return total

    def _read(self, states: Tensor, mask: Tensor, task: int, domain: int) -> Tensor:
        output: Tensor = self.dropout(self.lstm(self.dropout(states), mask, task, domain))
        return output

    def _language(self, part: Words, domain: int) -> Tensor:
        """Losses of the next word by the first direction, and of the last one by the second."""
        assert part.rows is not None  # of the words' vectors; an encoder has none
        ahead, back = self._read(part.states, part.mask, READING, domain).chunk(2, -1)
        places = self.places[part.rows]
        has_neighbour = part.mask[:, 1:]  # whether a word and the one before it are there
        total = ahead.new_zeros(())
        for states, target_places in (
            (ahead[:, :-1], places[:, 1:]),
            (back[:, 1:], places[:, :-1]),
        ):
            has_place = has_neighbour & (target_places >= 0)
            total = total + self.words(states[has_place], target_places[has_place])
        return total

    def tag(self, states: Tensor, mask: Tensor) -> tuple[list[list[int]], Tensor]:
        """Tags of the target, and probabilities of all tags (texts, words, tags)."""
        return self.domains.best(self._read(states, mask, TAGGING, TARGET), mask)


class CdlmHead(StateHead):
    """CDLM as the head of the words' vectors."""

    name = "cdlm"
    module = Cdlm

    @classmethod
    def sizes(
        cls, model: PreTrainedModel, options: WordOptions, domains: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        cls.check_words(model)
        is_seen = _has_text(model)
        numbers = {"words": int(is_seen.sum()), "rows": len(is_seen)}
        return super().sizes(model, options, domains) | numbers

    @classmethod
    def fill(cls, model: PreTrainedModel, tokenizer: Any) -> None:
        head: Any = model.get_submodule(MODULE)
        is_seen = _has_text(model)
        head.places[is_seen] = torch.arange(int(is_seen.sum()))

    @classmethod
    def train_rows(
        cls, rows: Sequence[Sentence], kinds: Sequence[int], settings: FitSettings
    ) -> tuple[list[Sentence], list[int]]:
        """Adds sentences of text to train sentences.

        Each epoch has as many of a domain as it has sentences with labels, the next ones of the
        text; see `epochs_of`. The text of the source is that of its sentences.

        Raises:
            UserError: the text of the target cannot be read.
        """
        options = word_options(settings)
        all_rows, all_kinds = list(rows), list(kinds)
        for domain in (TARGET, SOURCE):
            domain_rows = [row for row, kind in zip(rows, kinds, strict=True) if kind == domain]
            text = domain_rows
            if domain == TARGET and domain_rows and options.lm_text:
                share = -(-len(domain_rows) * settings.epochs // len(options.lm_text))
                samples = (
                    drawn_sentences(path, "--lm-text", share, settings.seed)
                    for path in options.lm_text
                )
                text = [row for sample in samples for row in sample]
            all_rows += [Sentence(row.tokens, ["O"] * len(row.tokens)) for row in text]
            all_kinds += [domain + TEXT] * len(text)
        return all_rows, all_kinds


def _has_text(model: Any) -> Tensor:
    """Whether each of the words' vectors is of a word of the train sentences (words,)."""
    is_seen: Tensor = model.vectors.seen
    return is_seen
