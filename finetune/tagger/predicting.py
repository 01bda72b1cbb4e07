"""What a tagger does with texts: it tags words, and finds mentions of its types, or of any."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from finetune.heads.windows import BATCH, Floats, Forward, WordTagger
from finetune.parts import models
from finetune.scoring.calibration import AS_THEY_ARE, Calibration
from finetune.settings import FitSettings
from finetune.tagger.decoding import NOT_TRAINED, Decoder, calibration_in, names_of_types
from finetune.tagger.entities import Entities, Prediction, Text
from finetune.tagger.shipped import folder_of
from finetune.tagger.texts import TextSplitter, beside, checked_texts
from nerbert.commands.process import quiet_libraries
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.schemes import ModelTags
from nerbert.text.tags import LabelSet, tags_to_spans

if TYPE_CHECKING:  # these load torch, which a tagger by ONNX Runtime does not need
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


_LOGGER = logging.getLogger("nerbert")


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
        self._made_decoder: Decoder | None = NOT_TRAINED
        self._trained_calibration: Calibration | None = None
        self._head: Any = None  # a `Head`, once torch is loaded
        self._model: PreTrainedModel | None = None
        self._tokenizer: PreTrainedTokenizerFast | None = None
        self.splitter = TextSplitter()

    def _set(self, model: Any, tokenizer: Any, forward: Forward | None = None) -> None:
        # These load torch.
        from finetune.heads.head import head_of
        from finetune.tagger.models import word_tagger
        from pretrain.training.models import longest_input, model_tags

        self._model, self._tokenizer, self._head = model.eval(), tokenizer, head_of(model)
        calibration = calibration_in(model.config, self.base)
        if self.is_open:
            self._use_trained_types(calibration)
        else:
            self._decoder = self._of_tags(model_tags(model), self._head, calibration)
        limit = self.settings.max_subwords or longest_input(model)
        attend = self.settings.attend_padding
        batch_size = self.settings.batch_size if attend else BATCH
        self._words = word_tagger(
            model, tokenizer, limit, batch_size, forward=forward, attend=attend
        )
        self._find_splitter()

    def _of_tags(self, tags: ModelTags, head: Any, calibration: Calibration | None) -> Decoder:
        """The decoder of a tagger with own types."""
        if not tags.is_strict:
            _LOGGER.info(
                "%s: labels of %s; mentions are those of conlleval", self.base, tags.scheme
            )
        used_calibration = calibration or AS_THEY_ARE
        return Decoder(tags.names, head, tags.decode, used_calibration, used_calibration.min_score)

    @property
    def calibration(self) -> Calibration:
        """The function from the mean score of a mention's words to the score of the mention."""
        return self._decoder.calibration

    @property
    def min_score(self) -> float:
        """Smallest score of a mention that is found."""
        return self._decoder.min_score

    @min_score.setter
    def min_score(self, value: float) -> None:
        if not 0 <= value <= 1:
            raise UserError(f"min_score {value}: give a number from 0 to 1")
        self._decoder = replace(self._decoder, min_score=value)

    @property
    def is_open(self) -> bool:
        """Whether it takes any types, by their names."""
        return self._head is not None and bool(self._head.takes_types)

    @property
    def trained_types(self) -> dict[str, str | None]:
        """The types that an open head was trained on -> in words, None for the type of all else.

        Raises:
            UserError: those in the configuration of the model have another form.
        """
        types: dict[str, str | None] = self._head.trained_types(self.base)
        return types

    def use_types(self, types: str | Sequence[str] | Mapping[str, str | None]) -> None:
        """Finds mentions of these types from now on; for open heads.

        `min_score` becomes that of open heads, 0.35; set it to 0 for all that is found.

        Args:
            types: names in words, such as "political party"; or name of each type -> in words,
                None for what is of none of the others.

        Raises:
            UserError: the tagger has another head, there is no type, or two are alike.
        """
        self._decoder = self._of_types(types)

    def _of_types(self, types: str | Sequence[str] | Mapping[str, str | None]) -> Decoder:
        """The decoder of an open head with some types."""
        if not self.is_open:
            raise UserError(
                f"--types: {self.base} has its own types; give a model of nerbert pretrain --head "
                "open"
            )
        names = names_of_types(types)
        words = [name for name in names.values() if name is not None]
        head = self._head.with_types(self._tokenizer, words, len(words) < len(names))
        calibration = Calibration(min_score=self._head.min_score)
        tags = LabelSet(tuple(names)).tags
        return Decoder(tags, head, list, calibration, calibration.min_score)

    def _use_trained_types(self, calibration: Calibration | None) -> None:
        """Finds mentions of the types of training; their hundreds of names are encoded if needed.

        Raises:
            UserError: the types in the configuration of the model have another form.
        """
        self._head.trained_types(self.base)
        self._made_decoder, self._trained_calibration = None, calibration

    @property
    def _decoder(self) -> Decoder:
        if self._made_decoder is None:
            self.use_types(self.trained_types)
            if self._trained_calibration is not None:
                self._use(self._trained_calibration)
        return self._made_decoder or NOT_TRAINED

    @_decoder.setter
    def _decoder(self, decoder: Decoder) -> None:
        self._made_decoder = decoder

    def _find_splitter(self) -> None:
        if self.base not in models():
            self.splitter = TextSplitter.beside(folder_of(self.base))

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
        return list(self._decoder.tags)

    @property
    def types(self) -> list[str]:
        """The types that the tagger has, or looks for."""
        return self._decoder.types

    def tag(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """Tags the words of each text; with `context` in the settings, texts are neighbours.

        These are the best tags; those of an open head are of mentions of at least `min_score`.

        Raises:
            RuntimeError: the tagger is neither fitted nor loaded.
        """
        if self.is_open:
            return [list(prediction.tags) for prediction in self.predictions(texts)]
        return [self._decoder.decode(logits)[0] for logits in self._logits([texts])]

    def _logits(self, groups: Iterable[Sequence[Sequence[str]]]) -> list[Floats]:
        """Scores of the words of sentences, which are given in groups of neighbours."""
        if self._words is None:
            raise RuntimeError("the tagger is not trained: call fit, or Tagger.load")
        rows = [row for group in groups for row in beside(group, self.settings.context)]
        logits = self._words.logits([words for words, _ in rows])
        return [scores[own_words] for scores, (_, own_words) in zip(logits, rows, strict=True)]

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a list of strings, too
        self,
        texts: str,
        split: bool = True,
        types: str | Sequence[str] = (),
        overlapping: bool = False,
    ) -> Entities: ...

    @overload
    def predict(
        self,
        texts: Iterable[Text],
        split: bool = True,
        types: str | Sequence[str] = (),
        overlapping: bool = False,
    ) -> list[Entities]: ...

    def predict(
        self,
        texts: str | Iterable[Text],
        split: bool = True,
        types: str | Sequence[str] = (),
        overlapping: bool = False,
    ) -> Entities | list[Entities]:
        """Finds the mentions in each text, in order; of a single text, its mentions.

        Mentions with a score below `min_score` are left out. It is 0, or what `calibrate` found; of
        open heads 0.35.

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
        # A decoder of this call: other threads may ask for other types.
        decoder = self._of_types(types) if types else self._decoder
        predictions = self._predictions(texts, decoder, split, overlapping=overlapping)
        entities = [prediction.entities for prediction in predictions]
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
        return self._predictions(texts, self._decoder, split, probabilities, overlapping)

    def _predictions(
        self,
        texts: str | Iterable[Text],
        decoder: Decoder,
        split: bool,
        probabilities: bool = False,
        overlapping: bool = False,
    ) -> list[Prediction]:
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
        predictions = []
        for text, sentences in zip(texts, spans, strict=True):
            own_sentences = [next(tagged) for _ in sentences]
            predictions.append(
                decoder.prediction(text, sentences, own_sentences, probabilities, overlapping)
            )
        return predictions

    def mention_scores(self, rows: Sequence[Sentence]) -> tuple[list[float], list[bool]]:
        """Score of each mention of at least `min_score` in sentences, and whether it is right."""
        scores, is_right = [], []
        predicted = self.predictions([row.tokens for row in rows])
        for row, prediction in zip(rows, predicted, strict=True):
            gold = set(tags_to_spans(row.tags))
            scores += [entity.score for entity in prediction.entities]
            is_right += [
                (prediction.start, prediction.end, prediction.type) in gold
                for prediction in prediction.entities
            ]
        return scores, is_right

    def _use(self, calibration: Calibration) -> None:
        self._decoder = replace(
            self._decoder, calibration=calibration, min_score=calibration.min_score
        )


def loaded(folder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Loads model and tokenizer of a checkpoint."""
    # These load torch.
    from finetune.heads.loading import load_with_head
    from pretrain.training.checkpoints import check_vocabulary
    from pretrain.training.tokenizer import load_tokenizer

    quiet_libraries()
    model, tokenizer = load_with_head(folder), load_tokenizer(folder)
    check_vocabulary(model, tokenizer, folder)
    return model, tokenizer
