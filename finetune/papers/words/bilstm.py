"""Models without pre-training: a BiLSTM over words and their spelling, and the words alone.

Source: Lample et al. 2016, arXiv:1603.01360, sections 2 and 4 (sizes, dropout, rare words); Liu et
al. 2021 (CrossNER), arXiv:2012.04373, section 4.1, with the sizes of its released code.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from transformers import (
    AutoConfig,
    AutoModelForTokenClassification,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import TokenClassifierOutput

from finetune.papers.words.encoder import FrozenEncoder, loaded
from finetune.papers.words.options import BILSTM, WORDS, word_options
from finetune.papers.words.vocabulary import BOUNDARY, PAD, VectorFiles, Vocabulary, tokenizer_of
from finetune.papers.words.words import WordVectors, description, spelled
from finetune.settings import FitSettings
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.schemes import MARK
from nerbert.text.tags import LabelSet

if TYPE_CHECKING:
    from pretrain.training.features import PieceFeatures


class BiLstmConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """Sizes of the layers."""

    model_type = "nerbert-bilstm"
    keys_to_ignore_at_inference = ["words"]  # noqa: RUF012

    def __init__(
        self,
        characters: int = 2,
        words: int = 1,
        grams: int = 0,
        spelling: str = "lstm",
        word_size: int = 100,
        character_size: int = 25,
        gram_size: int = 100,
        layers: int = 1,
        hidden_size: int = 200,
        dropout: float = 0.5,
        state_dropout: float | None = None,
        boundary_id: int = 2,
        encoder: str = "",
        encoder_size: int = 0,
        encoder_digest: str = "",
        letters: str = "",
        strange: str = "",
        **kwargs: Any,
    ) -> None:
        """Takes sizes, and arguments of `PretrainedConfig`.

        Args:
            characters: number of characters.
            words: number of words, with one for unknown ones.
            grams: number of n-grams.
            spelling: "lstm", "cnn", "ngrams" or "none".
            word_size: size of the words' vectors.
            character_size: size of the characters' vectors, and of their LSTM in each direction.
            gram_size: size of the n-grams' vectors.
            layers: layers of the BiLSTM; 0 for none: the states are the words' vectors.
            hidden_size: size of the states of a word, of both directions.
            dropout: share of numbers that are dropped before each layer.
            state_dropout: share of numbers that are dropped after the BiLSTM; None for `dropout`.
            boundary_id: id of the boundary.
            encoder: name of a frozen encoder whose states stand beside the words' vectors; empty
                for none.
            encoder_size: size of its states.
            encoder_digest: digest of its weights.
            letters: what it reads for each id from `boundary_id` on.
            strange: what it reads for characters that are neither in train sentences nor in its
                vocabulary.
            kwargs: arguments of `PretrainedConfig`.
        """
        super().__init__(**kwargs)
        self.characters, self.words, self.grams = characters, words, grams
        self.spelling, self.word_size = spelling, word_size
        self.character_size, self.gram_size = character_size, gram_size
        self.layers, self.hidden_size = layers, hidden_size
        self.dropout, self.boundary_id = dropout, boundary_id
        self.state_dropout = dropout if state_dropout is None else state_dropout
        self.encoder, self.encoder_size = encoder, encoder_size
        self.encoder_digest = encoder_digest
        self.letters, self.strange = letters, strange
        self.num_hidden_layers = 0  # layers with attention, for counting FLOPs


@dataclass
class WordOutput(TokenClassifierOutput):
    """Scores, and the row of each word among the words' vectors, 0 elsewhere (batch, length)."""

    words: Tensor | None = None


class BiLstm(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Scores the tags of each word, at the boundary after its characters.

    With a CRF on top it is the BiLSTM-CRF.
    """

    config_class = BiLstmConfig
    main_input_name = "input_ids"

    def __init__(self, config: BiLstmConfig) -> None:
        """Initialises all weights at random."""
        super().__init__(config)
        self.vectors = WordVectors(config)
        self._encoders: list[FrozenEncoder] = []  # not a part of the weights
        self.dropout = nn.Dropout(config.dropout)
        self.state_dropout = nn.Dropout(config.state_dropout)
        self.word_lstm = (
            nn.LSTM(
                self.vectors.size + config.encoder_size,
                config.hidden_size // 2,
                config.layers,
                batch_first=True,
                dropout=config.dropout if config.layers > 1 else 0.0,
                bidirectional=True,
            )
            if config.layers
            else None
        )
        self.classifier: nn.Module = nn.Linear(config.hidden_size, int(config.num_labels or 0))
        self.post_init()  # type: ignore[no-untyped-call]

    def while_training(self, train: PieceFeatures) -> AbstractContextManager[None]:
        """Trains only the vectors that train sentences use."""
        # It loads the features of sentences, which predictions do not need.
        from finetune.papers.words.seen import only_seen

        return only_seen(self, train)

    def _init_weights(self, module: nn.Module) -> None:
        """Keeps torch's initialisation."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: Any) -> WordOutput:
        """Scores (batch, length, tags), zero except at boundaries.

        Args:
            input_ids: ids of boundaries and characters (batch, length).
            attention_mask: 0 at padding, else 1 (batch, length).
        """
        starts = input_ids.eq(self.config.boundary_id) & attention_mask.bool()
        rows = torch.zeros_like(input_ids)
        if not starts.any():
            weight = self.vectors.word_embeddings.weight
            empty = weight.new_zeros(*input_ids.shape, self.config.hidden_size)
            return WordOutput(logits=torch.zeros_like(self.classifier(empty)), words=rows)
        words = spelled(input_ids, attention_mask, starts)
        vectors = self.vectors(words)
        if self.config.encoder:
            states = self._encoded(words, starts.sum(1))
            vectors = torch.cat([vectors, states.to(vectors.dtype)], 1)
        scores = self.classifier(self._states(vectors, starts.sum(1)))
        logits = scores.new_zeros(*input_ids.shape, scores.shape[1])
        return WordOutput(
            logits=logits.index_put((starts,), scores),
            words=rows.index_put((starts,), self.vectors.rows(words)),
        )

    def _encoded(self, words: Tensor, lengths: Tensor) -> Tensor:
        """States of all words of a batch by the frozen encoder (words, size)."""
        if not self._encoders:
            self._encoders.append(loaded(self.config.encoder, self.config.encoder_digest))
        letters = ["", self.config.strange, *self.config.letters]  # ids 0 and 1: padding, unknown
        spellings = ["".join(letters[i] for i in row[1:] if i) for row in words.tolist()]
        ends = lengths.cumsum(0).tolist()
        starts = [0, *ends[:-1]]
        texts = [spellings[start:end] for start, end in zip(starts, ends, strict=True)]
        return self._encoders[0](texts, words.device)

    def _states(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States of all words of a batch (words, hidden size)."""
        if self.word_lstm is None:
            return vectors
        full = lengths > 0
        rows = pad_sequence(self.dropout(vectors).split(lengths[full].tolist()), batch_first=True)
        packed = pack_padded_sequence(rows, lengths[full].cpu(), True, enforce_sorted=False)
        states = pad_packed_sequence(self.word_lstm(packed)[0], batch_first=True)[0]
        inside = torch.arange(states.shape[1], device=states.device) < lengths[full].unsqueeze(1)
        output: Tensor = self.state_dropout(states[inside])
        return output


def build(
    base: str, rows: Sequence[Sentence], labels: LabelSet, settings: FitSettings
) -> tuple[PreTrainedTokenizerFast, BiLstm]:
    """Makes the tokenizer and a new model for train sentences.

    Args:
        base: `BILSTM` or `WORDS`.
        rows: train sentences.
        labels: labels of the head.
        settings: settings with the sizes, and with files of vectors.

    Raises:
        UserError: a file of vectors cannot be read, or there is no such encoder.
    """
    options = word_options(settings)
    files = VectorFiles.read(map(Place, options.vectors))
    encoder = FrozenEncoder(options.word_encoder) if options.word_encoder else None
    words = [word for row in rows for word in row.tokens]
    words += [word for name in labels.categories for word in description(name)]
    letters, strange = encoder.letters() if encoder else ([], "")
    vocabulary = Vocabulary.of(words, files, options.spelling == "ngrams", letters)
    names = dict(enumerate(labels.tags))
    config = BiLstmConfig(
        len(vocabulary.ids),
        len(vocabulary.words) + 1,
        len(vocabulary.grams),
        options.spelling,
        word_size=_size(files.words, options.word_size),
        gram_size=_size(files.grams, 100),
        layers=options.word_layers if base == BILSTM else 0,
        hidden_size=options.word_hidden,
        dropout=options.word_dropout,
        state_dropout=options.state_dropout,
        boundary_id=vocabulary.ids[BOUNDARY],
        num_labels=len(names),
        id2label=names,
        tagging_scheme=MARK,
        label2id={name: place for place, name in names.items()},
        pad_token_id=vocabulary.ids[PAD],
    )
    if encoder:
        config.encoder, config.encoder_size = options.word_encoder, encoder.size
        config.encoder_digest = encoder.digest
        config.strange, config.letters = strange, "".join([*vocabulary.ids][config.boundary_id :])
    if base == WORDS:
        config.hidden_size = WordVectors(config).size + config.encoder_size
    model = BiLstm(config)
    model._encoders = [encoder] if encoder else []
    vocabulary.fill(model.vectors, options.forget_rare)
    return tokenizer_of(vocabulary.ids), model


def _size(vectors: dict[str, Any], otherwise: int) -> int:
    return len(next(iter(vectors.values()), range(otherwise)))


AutoConfig.register(BiLstmConfig.model_type, BiLstmConfig)
AutoModelForTokenClassification.register(BiLstmConfig, BiLstm)
