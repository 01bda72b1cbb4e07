"""What a tagger does with texts: it tags words, and finds mentions of its types, or of any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from finetune.heads.windows import BATCH, Floats, Forward, LinearHead, WordTagger
from finetune.scoring.calibration import AS_THEY_ARE, Calibration
from finetune.settings import NAMES, FitSettings
from finetune.tagger.entities import Entities, Prediction, Text, entities_of
from finetune.tagger.texts import TextSplitter, beside, checked_texts
from nerbert.commands.process import quiet_libraries
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet, tags_to_spans
from nerbert.text.tokens import Span
from ontology.classes import spaced

if TYPE_CHECKING:  # these load torch, which a tagger by ONNX Runtime does not need
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from finetune.tagger.models import Head
    from pretrain.tagging.open_head import Types


OPEN_MIN_SCORE = 0.35
"""Smallest score of a mention that an open head finds; see docs/pretraining.md."""


class Predictor:
    """A model with its head: `tag`, `predict`, `predictions`, `use_types`."""

    def __init__(self, base: str, settings: FitSettings) -> None:
        """Describes a model; nothing is loaded yet.

        Args:
            base: its name on the hub, or its folder.
            settings: its settings.
        """
        self.base, self.settings = base, settings
        self._words: WordTagger | None = None
        self._tags: list[str] = []
        self._head: LinearHead | Head | Types = LinearHead()
        self._names: dict[str, Tensor] = {}  # vectors of types' names, if the head is open
        self._model: PreTrainedModel | None = None
        self._tokenizer: PreTrainedTokenizerFast | None = None
        self.splitter = TextSplitter()
        self.calibration = AS_THEY_ARE
        self.min_score = 0.0

    def _set(self, model: Any, tokenizer: Any, forward: Forward | None = None) -> None:
        # These load torch.
        from finetune.tagger.models import head_of, word_tagger
        from pretrain.training.models import longest_input, tag_names

        self._model, self._tokenizer, self._names = model, tokenizer, {}
        if self.is_open:
            self.use_types(model.config.open_types)
        else:
            self._tags, self._head = tag_names(model), head_of(model)
        limit = self.settings.max_subwords or longest_input(model)
        attend = self.settings.attend_padding
        batch_size = self.settings.batch_size if attend else BATCH
        self._words = word_tagger(
            model, tokenizer, limit, batch_size, forward=forward, attend=attend
        )
        self._find_splitter()
        found = getattr(model.config, "mention_scores", None)
        if found or not self.is_open:
            self._use(Calibration(**(found or {})))

    @property
    def is_open(self) -> bool:
        """Whether it takes any types, by their names."""
        if self._model is None:
            return False
        # It loads torch.
        from pretrain.tagging.open_head import is_open

        return is_open(self._model)

    def use_types(self, types: Sequence[str] | Mapping[str, str]) -> None:
        """Finds mentions of these types from now on; for open heads.

        `min_score` becomes `OPEN_MIN_SCORE`; set it to 0 for all that is found.

        Args:
            types: names in words, such as "political party"; or name of each type -> in words.

        Raises:
            UserError: the tagger has another head, or there is no type.
        """
        # It loads torch.
        from pretrain.tagging.open_head import Types

        if not self.is_open:
            raise UserError(
                f"--types: {self.base} has its own types; give a model of nerbert pretrain --head "
                "open"
            )
        if not types or len(set(types)) < len(types):
            raise UserError("--types: give at least one type, and none twice")
        words = list(types.values() if isinstance(types, Mapping) else map(spaced, types))
        self._head = Types.of(self.model, self.tokenizer, words, known=self._names)
        self._tags = LabelSet(tuple(types)).tags
        self._use(Calibration(min_score=OPEN_MIN_SCORE))

    def _find_splitter(self) -> None:
        if self.base not in NAMES:
            self.splitter = TextSplitter.beside(self.base)

    @property
    def model(self) -> PreTrainedModel:
        """The model of transformers; it is loaded now if ONNX Runtime computes in its place."""
        return self._pair()[0]

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of transformers; see `model`."""
        return self._pair()[1]

    def _pair(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        if self._model is None and self._words is not None:
            self._model, self._tokenizer = loaded(self.base)
        if self._model is None or self._tokenizer is None:
            raise RuntimeError("the tagger is not trained: call fit, or Tagger.load")
        return self._model, self._tokenizer

    @property
    def tags(self) -> list[str]:
        """The tags that the tagger has, by label id."""
        return list(self._tags)

    @property
    def types(self) -> list[str]:
        """The types that the tagger has, or looks for."""
        return list(dict.fromkeys(tag[2:] for tag in self._tags if tag != "O"))

    def tag(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """Tags the words of each text; with `context` in the settings, texts are neighbours.

        These are the best tags; those of an open head are of mentions of at least `min_score`.

        Raises:
            RuntimeError: the tagger is neither fitted nor loaded.
        """
        if self.is_open:
            return [list(one.tags) for one in self.predictions(texts)]
        return [
            [self._tags[index] for index in self._head.decode(logits)[0]]
            for logits in self._logits([texts])
        ]

    def _logits(self, groups: Iterable[Sequence[Sequence[str]]]) -> list[Floats]:
        """Scores of the words of sentences, which are given in groups of neighbours."""
        if self._words is None:
            raise RuntimeError("the tagger is not trained: call fit, or Tagger.load")
        rows = [row for group in groups for row in beside(group, self.settings.context)]
        logits = self._words.logits([words for words, _ in rows])
        return [scores[own] for scores, (_, own) in zip(logits, rows, strict=True)]

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a list of strings, too
        self, texts: str, split: bool = True, types: Sequence[str] = (), overlapping: bool = False
    ) -> Entities: ...

    @overload
    def predict(
        self,
        texts: Iterable[Text],
        split: bool = True,
        types: Sequence[str] = (),
        overlapping: bool = False,
    ) -> list[Entities]: ...

    def predict(
        self,
        texts: str | Iterable[Text],
        split: bool = True,
        types: Sequence[str] = (),
        overlapping: bool = False,
    ) -> Entities | list[Entities]:
        """Finds the mentions in each text, in order; of a single text, its mentions.

        Mentions with a score below `min_score` are left out. It is 0, or what `calibrate` found; of
        open heads `OPEN_MIN_SCORE`.

        Args:
            texts: texts of any length, whose mentions have offsets in characters; or lists of
                tokens, each one a sentence, whose mentions have offsets in tokens.
            split: whether texts are parted into sentences, each of which is tagged by itself.
            types: if the head is open, the types that are looked for in these texts; otherwise
                those of `use_types`.
            overlapping: see `predictions`.

        Raises:
            UserError: a text is something else.
        """
        before = self._head, self._tags, self.calibration, self.min_score
        if types:
            self.use_types(types)
        try:
            found = self.predictions(texts, split, overlapping=overlapping)
            entities = [one.entities for one in found]
        finally:
            self._head, self._tags, self.calibration, self.min_score = before
        return entities[0] if isinstance(texts, str) else entities

    def predictions(
        self,
        texts: str | Iterable[Text],
        split: bool = True,
        probabilities: bool = False,
        overlapping: bool = False,
    ) -> list[Prediction]:
        """Words, tags and mentions of each text; see `predict`.

        Args:
            texts: texts, or lists of tokens.
            split: whether texts are parted into sentences.
            probabilities: whether the probabilities of all tags are kept.
            overlapping: whether a mention has an entity of each type that fits better than none,
                such as person and politician; for open heads. The tags are those of the best one.

        Raises:
            UserError: a text is something else, or the types of this tagger exclude each other.
        """
        if overlapping and not self.is_open:
            raise UserError(f"--overlapping: {self.base} has one type for a mention; leave it out")
        texts = checked_texts(texts)
        spans = [
            self.splitter.words(text, split)
            if isinstance(text, str)
            else [[(place, place + 1) for place in range(len(text))]]
            for text in texts
        ]
        groups = [
            [
                [text[first:end] if isinstance(text, str) else text[first] for first, end in words]
                for words in sentences
            ]
            for text, sentences in zip(texts, spans, strict=True)
        ]
        words = [sentence for group in groups for sentence in group]
        # Lists of tokens are neighbours, as the sentences of a text are.
        alone = all(isinstance(text, str) for text in texts)
        tagged = zip(words, self._logits(groups if alone else [words]), strict=True)
        found = []
        for text, sentences in zip(texts, spans, strict=True):
            own = [next(tagged) for _ in sentences]
            prediction = self._prediction(text, sentences, own, probabilities)
            found.append(self._with_all_types(prediction, own) if overlapping else prediction)
        return found

    def _with_all_types(
        self, prediction: Prediction, sentences: Sequence[tuple[list[str], Floats]]
    ) -> Prediction:
        """A prediction with an entity of each type that fits a mention, the best one first."""
        head: Any = self._head
        entities = iter(prediction.entities)
        every = []
        place = 0
        for words, logits in sentences:
            for first, end, _ in tags_to_spans(prediction.tags[place : place + len(words)]):
                best = next(entities)
                chances = head.fitting(logits, first, end)
                others = [
                    replace(best, type=self.types[kind], score=chance)
                    for kind, chance in sorted(chances.items(), key=lambda pair: -pair[1])
                    if self.types[kind] != best.type and chance >= self.min_score
                ]
                every += [best, *others]
            place += len(words)
        return replace(prediction, entities=Entities(every, prediction.entities.text))

    def _prediction(
        self,
        text: str | Sequence[str],
        spans: Sequence[Sequence[Span]],
        sentences: Sequence[tuple[list[str], Floats]],
        probabilities: bool,
    ) -> Prediction:
        """Puts the sentences of a text together: places of words, words, and scores of tags."""
        decoded = [self._head.decode(logits) for _, logits in sentences]
        places = [span for sentence in spans for span in sentence]
        tags = [self._tags[index] for best, _ in decoded for index in best]
        scores = [score for _, chances in decoded for score in chances]
        rows = None
        if probabilities:
            per_sentence = [self._head.probabilities(logits) for _, logits in sentences]
            rows = np.concatenate([np.empty((0, len(self._tags)), np.float32), *per_sentence])
        words = [word for words, _ in sentences for word in words]
        entities = entities_of(places, tags, scores, text, self.calibration)
        return Prediction(words, places, tags, scores, entities, rows).at_least(self.min_score)

    def judged(self, rows: Sequence[Sentence]) -> tuple[list[float], list[bool]]:
        """Score of each mention of at least `min_score` in sentences, and whether it is right."""
        scores, is_right = [], []
        predicted = self.predictions([row.tokens for row in rows])
        for row, one in zip(rows, predicted, strict=True):
            gold = set(tags_to_spans(row.tags))
            scores += [entity.score for entity in one.entities]
            is_right += [(one.start, one.end, one.type) in gold for one in one.entities]
        return scores, is_right

    def _use(self, calibration: Calibration) -> None:
        self.calibration, self.min_score = calibration, calibration.min_score


def loaded(folder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Loads model and tokenizer of a checkpoint."""
    # These load torch.
    from finetune.tagger.models import load_with_head
    from pretrain.training.checkpoints import check_vocabulary
    from pretrain.training.tokenizer import load_tokenizer

    quiet_libraries()
    model, tokenizer = load_with_head(folder), load_tokenizer(folder)
    check_vocabulary(model, tokenizer, folder)
    return model, tokenizer
