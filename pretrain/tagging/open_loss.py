"""How an open head is trained: mentions, and their types among candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from ontology.categories import ENTITY
from ontology.classes import ClassTree, spaced
from pretrain.tagging.open_head import name_vectors, person_cost, types_of
from pretrain.tagging.open_teacher import Teacher
from pretrain.tagging.open_types import TAGS, Types, person_costs
from pretrain.training.subwords import IGNORED

_CHAIN = 0.45
"""Probability of each class of a chain to be a candidate."""
_KEPT = 0.9
"""Probability of a gold class to be a candidate: without it, none of the others is right."""
_KINDS = 0.2
"""Share of the batches whose candidates are kinds: person, organisation, place, work, ..."""
_SYNONYMS = {"place": ("location",), "organisation": ("organization",)}
"""Other English names of classes."""
_OTHERS = 8
"""Candidates at random, at most; half as many more stand beside a gold class in the ontology."""
_INSIDE = 1.0
"""Taken from the score of I: names of links have fewer words than those of other texts, for
countries and cities are linked most. Else "Trilateral Commission" ends before "Commission"."""
_OTHER_LANGUAGE = 0.5
"""Probability that a candidate class has one of its names in another language than English."""
_TAUGHT = 0.7
"""What a teacher counts, and the labels the rest."""
_PHRASE, _PHRASES = 0.5, 12
"""Probability that one of the phrases of a mention is a candidate, and phrases at random."""


class OpenLoss:
    """The loss of an open head; all types are candidates.

    Attributes:
        inside: taken from the score of I in training, so that the score itself becomes larger.
    """

    inside = 0.0
    _teacher: Teacher | None = None

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        names: Sequence[str | None],
    ) -> None:
        """Takes the types.

        Args:
            model: model with an open head.
            tokenizer: its tokenizer.
            names: name of each type in words, by number; None for mentions of none of the others.
        """
        self._model, self._tokenizer = model, tokenizer
        self.names = [name for name in names if name is not None]
        self._order = sorted(range(len(names)), key=lambda number: names[number] is None)
        self._types: Types | None = None

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """The loss of a batch; see `pretrain.training.subwords.token_loss`.

        Args:
            outputs: output of the model, with `logits` (batch, length, 3 + size).
            labels: label ids (batch, length), `IGNORED` for sub-words without one.
            num_items_in_batch: number of labelled sub-words of the step.
        """
        self._types = None
        logits = outputs.logits.float()
        tag_scores, vectors = logits[..., :TAGS], logits[..., TAGS:]
        n_labelled = labels.ne(IGNORED).sum().clamp(min=1)
        items = n_labelled if num_items_in_batch is None else num_items_in_batch
        # Devices wait for the gradients of all weights, also if a batch has no typed mention.
        head: Any = self._model.get_submodule("classifier")
        total = 0.0 * torch.stack([weight.sum() for weight in head.parameters()]).sum()
        number = (labels - 1).div(2, rounding_mode="floor").clamp(min=0)
        typed = (labels > 0) & self._has_types(number)
        types: Tensor | None = None
        names: list[str] = []
        if typed.any():
            gold, place = torch.unique(number[typed], return_inverse=True)
            names, right = self.candidates(gold.tolist())
            name_table = name_vectors(self._model, self._tokenizer, names)
            types = head.scores(vectors, name_table)
            tag_scores = head.tag_scores(tag_scores, types)
            chances = (types[typed] - self._costs(names, name_table)).log_softmax(-1)
            is_wrong = ~right.to(chances.device)[place]
            kinds = -chances.masked_fill(is_wrong, -torch.inf).logsumexp(-1)
            # As much as the tags, however few mentions there are.
            total = total + kinds.mean() * n_labelled
        tag_scores = tag_scores - tag_scores.new_tensor([0.0, 0.0, self.inside])
        tags = torch.where(labels > 0, 2 - labels % 2, labels)
        total = total + functional.cross_entropy(
            tag_scores.reshape(-1, TAGS), tags.view(-1), ignore_index=IGNORED, reduction="sum"
        )
        total = self._with_teacher(total, tag_scores, tags, types, names)
        return total / torch.as_tensor(items, device=total.device).clamp(min=1)

    def _with_teacher(
        self,
        total: Tensor,
        tag_scores: Tensor,
        tags: Tensor,
        types: Tensor | None,
        names: Sequence[str],
    ) -> Tensor:
        """The loss of a batch by its labels, and by a teacher if there is one that has read it."""
        answer = self._teacher.answer() if self._teacher else None
        if self._teacher is None or answer is None or types is None:
            return total
        by_teacher = self._teacher.loss(answer, tag_scores, tags, types, names, self.inside)
        return (1 - _TAUGHT) * total + _TAUGHT * by_teacher

    def _costs(self, words: Sequence[str], names: Tensor) -> Tensor:
        """What is taken from the scores of types; see `open_types.person_costs`."""
        vectors = names.detach().float().cpu().numpy()
        costs = person_costs(words, vectors, person_cost(self._model))
        return torch.from_numpy(costs).to(names.device)

    def _has_types(self, numbers: Tensor) -> Tensor:
        """Whether it is known what each mention is, by the number of its type."""
        return torch.ones_like(numbers, dtype=torch.bool)

    def candidates(self, gold: Sequence[int]) -> tuple[list[str], Tensor]:
        """Candidates for the types of a batch.

        Args:
            gold: the types, by number.

        Returns:
            The names of the candidates; for each type which of them are right, or that none is,
            shape (gold, candidates + 1).
        """
        right = torch.zeros(len(gold), len(self.names) + 1, dtype=torch.bool)
        for row, number in enumerate(gold):
            right[row, min(self._order.index(number), len(self.names))] = True
        return self.names, right

    @torch.no_grad()
    def best(self, logits: Tensor, labels: Any) -> Tensor:
        """Label ids at first sub-words (batch, length)."""
        gold = labels[0] if isinstance(labels, tuple | list) else labels
        if self._types is None:
            has_untyped = len(self.names) < len(self._order)
            self._types = types_of(self._model, self._tokenizer, self.names, has_untyped)
        tags = torch.zeros_like(gold)
        for row, first in enumerate(gold.ne(IGNORED)):
            best_tags, _ = self._types.decode(logits[row][first].float().cpu().numpy())
            ids = [tag and 2 * self._order[(tag - 1) // 2] + 2 - tag % 2 for tag in best_tags]
            tags[row, first] = torch.tensor(ids, dtype=gold.dtype, device=gold.device)
        return tags


class ChainLoss(OpenLoss):
    """The loss of an open head on a corpus of links, with candidates that are drawn.

    Attributes:
        phrases: all phrases of mentions.
    """

    inside = _INSIDE

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        categories: Sequence[str],
        tree: ClassTree,
        chains: float,
        phrase_sets: Sequence[Sequence[str]] = ((),),
        other_names: Mapping[str, Sequence[str]] | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        """Prepares the candidates.

        Args:
            model: model with an open head.
            tokenizer: its tokenizer.
            categories: categories of the corpus, by number.
            tree: the classes.
            chains: share of the batches whose candidates are classes of whole chains; in the
                others they are the gold classes.
            phrase_sets: lists of phrases of mentions; see `pretrain.training.phrase_sets`.
            other_names: names of classes in the languages of the corpus, beside the English ones.
            teacher: has read each batch when its loss is computed; None to learn labels only.
        """
        words = [None if name == ENTITY else spaced(name) for name in categories]
        super().__init__(model, tokenizer, words)
        self._is_typed = torch.tensor([name is not None for name in words])
        self._chains, self._teacher = chains, teacher
        # The deepest class first: it is the right one.
        self._lines = [
            [spaced(c) for c in sorted(line, key=lambda c: (-tree.depth(c), c))]
            for line in (
                [] if name == ENTITY else [name, *tree.ancestors(name)] for name in categories
            )
        ]
        self._own = [[] if name == ENTITY else [spaced(name)] for name in categories]
        kinds = {tree.kind(name) for name in categories}
        self._all_kinds = sorted(spaced(kind) for kind in kinds if kind)
        classes = sorted({name for line in self._lines for name in line})
        by_words = {spaced(name): name for name in tree.names}
        parents = {name: set(tree.parents(by_words[name])) for name in classes}
        self._classes = classes
        above = {parent for of_class in parents.values() for parent in of_class}
        self._has_subclasses = {name for name in classes if by_words[name] in above}
        self._siblings = {
            name: [
                sibling
                for sibling in classes
                if sibling != name and parents[sibling] & parents[name]
            ]
            for name in classes
        }
        self._phrase_sets = [list(phrases) for phrases in phrase_sets]
        self.phrases = sorted({name for phrases in phrase_sets for name in phrases})
        self._other_names = {spaced(name): words for name, words in (other_names or {}).items()}

    def _costs(self, words: Sequence[str], names: Tensor) -> Tensor:
        # None: "person" is drawn with kinds of persons, and is wrong beside the right one.
        return names.new_zeros(len(words) + 1)

    def _has_types(self, numbers: Tensor) -> Tensor:
        # Not that of links without class: it may be any.
        size = len(self._own)
        return self._is_typed.to(numbers.device)[numbers % size] | (numbers >= size)

    def candidates(self, gold: Sequence[int]) -> tuple[list[str], Tensor]:
        """Draws candidates.

        Right are the phrases of a mention, and of its chain the deepest class; beside a phrase,
        which says more ("computer scientist"), only one without subclasses, not "person". In some
        batches all are kinds, and these are right.
        """
        mentions = [divmod(number, len(self._own))[::-1] for number in gold]
        by_kind = self._all_kinds and float(torch.rand(())) < _KINDS
        names = self._drawn_kinds(mentions) if by_kind else self._drawn_names(mentions)
        in_text = {name: self._in_any_language(name) for name in sorted(names)}
        chosen_ones = sorted(set(in_text.values()))
        place = {name: row for row, name in enumerate(chosen_ones)}
        right = torch.zeros(len(gold), len(place) + 1, dtype=torch.bool)
        for row, (category, phrase_set) in enumerate(mentions):
            deepest = [name for name in self._lines[category] if name in in_text][:1]
            phrases = [name for name in self._phrase_sets[phrase_set] if name in in_text]
            if phrases and self._has_subclasses.intersection(deepest):
                deepest = []
            fitting = {in_text[name] for name in (*deepest, *phrases)}
            right[row, [place[name] for name in fitting] or [len(place)]] = True
        return chosen_ones, right

    def _drawn_names(self, mentions: Sequence[tuple[int, int]]) -> set[str]:
        """Candidates for mentions, by category and set of phrases: theirs, and others."""
        names: set[str] = set()
        by_chain = float(torch.rand(())) < self._chains
        for category, phrase_set in mentions:
            line = self._lines[category] if by_chain else self._own[category]
            chance = _CHAIN if by_chain else _KEPT
            names.update(name for name in line if float(torch.rand(())) < chance)
            if not line or float(torch.rand(())) < _PHRASE:
                names.update(self._drawn_phrase(phrase_set))
        owned = [name for category, _ in mentions for name in self._own[category]]
        beside = [sibling for name in owned for sibling in self._siblings[name]]
        sources = (beside, _OTHERS // 2), (self._classes, _OTHERS), (self.phrases, _PHRASES)
        for source, count in sources:
            picks = torch.randint(len(source), (count,)).tolist() if source else ()
            names.update(source[number] for number in picks)
        return names

    def _drawn_kinds(self, mentions: Sequence[tuple[int, int]]) -> set[str]:
        """Some kinds, as people look for these and nothing else, and phrases instead of classes."""
        order = torch.randperm(len(self._all_kinds)).tolist()
        names = {
            self._all_kinds[number] for number in order[: int(torch.randint(len(order), ())) + 1]
        }
        for category, phrase_set in mentions:
            if not self._own[category]:
                names.update(self._drawn_phrase(phrase_set))
        return names

    def _drawn_phrase(self, phrase_set: int) -> list[str]:
        """One of some phrases, if there are any."""
        phrases = self._phrase_sets[phrase_set]
        return [phrases[int(torch.randint(len(phrases), ()))]] if phrases else []

    def _in_any_language(self, name: str) -> str:
        """A class by its usual English name or, as often, by another one of the languages."""
        names: list[str] = [*self._other_names.get(name, ()), *_SYNONYMS.get(name, ())]
        if not names or float(torch.rand(())) >= _OTHER_LANGUAGE:
            return name
        return names[int(torch.randint(len(names), ()))]
