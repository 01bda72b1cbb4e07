"""A BiLSTM over words and their characters: the baseline without pre-training.

Its tokenizer turns a word into a boundary and its characters. The boundary has the tag, like the
first sub-word in an encoder, so all other code is the same for both.

Source: Lample et al. 2016, arXiv:1603.01360, sections 2 and 4 (sizes, dropout, rare words).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
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

from nerbert.errors import UserError
from nerbert.files import open_decompressed
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet

NAME = "bilstm"
"""Name of the model for --models."""

_BOUNDARY, _PAD, _UNKNOWN = "▁", "[PAD]", "[UNK]"
_PRIME = 1_000_003


class BiLstmConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """Sizes of the layers."""

    model_type = "nerbert-bilstm"

    def __init__(
        self,
        characters: int = 2,
        words: int = 1,
        word_size: int = 100,
        character_size: int = 25,
        hidden_size: int = 200,
        dropout: float = 0.5,
        boundary_id: int = 2,
        **kwargs: Any,
    ) -> None:
        """Takes numbers of characters and words, sizes, and arguments of `PretrainedConfig`."""
        super().__init__(**kwargs)
        self.characters, self.words = characters, words
        self.word_size, self.character_size = word_size, character_size
        self.hidden_size, self.dropout, self.boundary_id = hidden_size, dropout, boundary_id
        self.num_hidden_layers = 0  # layers with attention, for counting FLOPs


class BiLstm(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Scores the tags of each word, at its boundary. With a CRF it is the BiLSTM-CRF."""

    config_class = BiLstmConfig
    main_input_name = "input_ids"
    digests: Tensor
    rare: Tensor
    lower: Tensor

    def __init__(self, config: BiLstmConfig) -> None:
        """Initialises all weights at random."""
        super().__init__(config)
        self.character_embeddings = nn.Embedding(config.characters, config.character_size)
        self.word_embeddings = nn.Embedding(config.words, config.word_size)
        self.character_lstm = nn.LSTM(
            config.character_size, config.character_size, batch_first=True, bidirectional=True
        )
        self.word_lstm = nn.LSTM(
            config.word_size + 2 * config.character_size,
            config.hidden_size // 2,
            batch_first=True,
            bidirectional=True,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.hidden_size, int(config.num_labels or 0))
        # Row r > 0 of the word embeddings belongs to the r-th digest, row 0 to all other words.
        self.register_buffer("digests", torch.zeros(config.words - 1, dtype=torch.int64))
        self.register_buffer("rare", torch.zeros(config.words, dtype=torch.bool))
        self.register_buffer("lower", torch.arange(config.characters))
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Keeps torch's initialisation."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: Any) -> TokenClassifierOutput:
        """Logits (batch, length, tags), zero except at boundaries.

        Args:
            input_ids: ids of boundaries and characters (batch, length).
            attention_mask: 0 at padding, else 1 (batch, length).
        """
        starts = input_ids.eq(self.config.boundary_id) & attention_mask.bool()
        lengths = starts.sum(1)
        logits = self.classifier.weight.new_zeros(*input_ids.shape, self.classifier.out_features)
        if not lengths.sum():
            return TokenClassifierOutput(logits=logits)
        words = _words(input_ids, attention_mask, starts)
        vectors = self.dropout(torch.cat([self._word_vectors(words), self._spelling(words)], 1))
        full = lengths > 0
        rows = pad_sequence(vectors.split(lengths[full].tolist()), batch_first=True)
        packed = pack_padded_sequence(rows, lengths[full].cpu(), True, enforce_sorted=False)
        states = pad_packed_sequence(self.word_lstm(packed)[0], batch_first=True)[0]
        inside = torch.arange(states.shape[1], device=states.device) < lengths[full].unsqueeze(1)
        scores = self.classifier(self.dropout(states[inside]))
        return TokenClassifierOutput(logits=logits.index_put((starts,), scores.to(logits.dtype)))

    def _spelling(self, words: Tensor) -> Tensor:
        """Last states of the LSTM over the characters of each word (words, 2 * size)."""
        lengths = words.ne(0).sum(1).cpu()
        embedded = self.character_embeddings(words)
        packed = pack_padded_sequence(embedded, lengths, True, enforce_sorted=False)
        _, (states, _) = self.character_lstm(packed)
        return torch.cat([states[0], states[1]], 1)

    def _word_vectors(self, words: Tensor) -> Tensor:
        """Embedding of each word in lower case; in training, half of the rare words are unknown."""
        found = digests(self.lower[words])
        places = torch.searchsorted(self.digests, found).clamp(max=max(len(self.digests) - 1, 0))
        known = self.digests[places] == found if len(self.digests) else found.ne(found)
        rows = torch.where(known, places + 1, 0)
        if self.training:
            forget = self.rare[rows] & (torch.rand(rows.shape, device=rows.device) < 0.5)
            rows = rows.masked_fill(forget, 0)
        vectors: Tensor = self.word_embeddings(rows)
        return vectors


def _words(input_ids: Tensor, attention_mask: Tensor, starts: Tensor) -> Tensor:
    """Boundary and characters of each word of a batch (words, longest), padded with 0."""
    ids = input_ids[attention_mask.bool()]
    first = starts[attention_mask.bool()]
    ids, first = ids[first.cumsum(0) > 0], first[first.cumsum(0) > 0]
    number = first.cumsum(0) - 1
    begins = first.nonzero().squeeze(1)
    place = torch.arange(len(ids), device=ids.device) - begins[number]
    words = ids.new_zeros(len(begins), int(place.max()) + 1)
    words[number, place] = ids
    return words


def digests(words: Tensor) -> Tensor:
    """A digest of each row of character ids (words,), which does not depend on padding."""
    powers = torch.ones(words.shape[1], dtype=torch.int64, device=words.device)
    for place in range(1, len(powers)):
        powers[place] = powers[place - 1] * _PRIME  # modulo 2**64
    return (words * powers).sum(1)


def build(
    rows: Sequence[Sentence], labels: LabelSet, vectors: str = ""
) -> tuple[PreTrainedTokenizerFast, BiLstm]:
    """Makes the tokenizer and a new model for train sentences.

    Args:
        rows: train sentences.
        labels: labels of the head.
        vectors: text file of word vectors, `word number number ...`; empty for random ones.

    Raises:
        UserError: the file of vectors cannot be read.
    """
    counts = Counter(word.lower() for row in rows for word in row.tokens)
    given = _read_vectors(vectors) if vectors else {}
    vocabulary = sorted({*counts, *given})
    seen = sorted({character for row in rows for word in row.tokens for character in word})
    characters = sorted({*seen, *"".join(seen).lower(), *"".join(seen).upper()} - {_BOUNDARY})
    ids = {name: place for place, name in enumerate([_PAD, _UNKNOWN, _BOUNDARY, *characters])}
    names = dict(enumerate(labels.tags))
    config = BiLstmConfig(
        len(ids),
        len(vocabulary) + 1,
        len(next(iter(given.values()), [0.0] * 100)),
        boundary_id=ids[_BOUNDARY],
        num_labels=len(names),
        id2label=names,
        label2id={name: place for place, name in names.items()},
        pad_token_id=ids[_PAD],
    )
    model = BiLstm(config)
    model.lower.copy_(torch.tensor([ids.get(name.lower(), place) for name, place in ids.items()]))
    _fill_words(model, vocabulary, counts, given, ids)
    return _tokenizer(ids), model


@torch.no_grad()
def _fill_words(
    model: BiLstm,
    vocabulary: Sequence[str],
    counts: Counter[str],
    given: dict[str, list[float]],
    ids: dict[str, int],
) -> None:
    unknown = ids[_UNKNOWN]
    spelled = [
        torch.tensor([ids[_BOUNDARY], *(ids.get(c, unknown) for c in word)]) for word in vocabulary
    ]
    found, order = digests(pad_sequence(spelled, batch_first=True)).sort()
    model.digests.copy_(found)
    for row, index in enumerate(order.tolist(), start=1):
        word = vocabulary[index]
        model.rare[row] = counts[word] == 1 and word not in given
        if word in given:
            model.word_embeddings.weight[row] = torch.tensor(given[word])


def _tokenizer(ids: dict[str, int]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(_BOUNDARY, prepend_scheme="always", split=False),
            pre_tokenizers.Split("", "isolated"),
        ]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token=_PAD, unk_token=_UNKNOWN, model_max_length=1 << 20
    )


def _read_vectors(path: str) -> dict[str, list[float]]:
    try:
        with open_decompressed(path) as file:
            return dict(_vectors(line.decode("utf-8") for line in file))
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"--vectors {path}: {error}; lines of `word number number ...`") from error


def _vectors(lines: Iterable[str]) -> Iterable[tuple[str, list[float]]]:
    size = 0
    for number, line in enumerate(lines, start=1):
        word, *values = line.rstrip().split(" ")
        if number == 1 and len(values) == 1:
            continue  # first line of word2vec's format: number of words, and size
        if size and len(values) != size:
            raise ValueError(f"line {number}: {len(values)} numbers instead of {size}")
        size = len(values)
        yield word.lower(), [float(value) for value in values]


AutoConfig.register(BiLstmConfig.model_type, BiLstmConfig)
AutoModelForTokenClassification.register(BiLstmConfig, BiLstm)
