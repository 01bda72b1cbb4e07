"""A tiny BERT whose vocabulary is made from the corpus: the whole chain with nothing downloaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertConfig, BertModel, BertTokenizer

VOCABULARY = 8000
"""Sub-words, the characters included."""

LAYERS, HIDDEN, HEADS = 2, 128, 2
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SAMPLE = 200_000  # examples that the vocabulary is made from
_BATCH = 1000
_CHARACTERS = 1000  # most frequent ones that are sub-words of their own


def wordpiece_vocabulary(
    texts: Callable[[], Iterable[str]], size: int = VOCABULARY
) -> dict[str, int]:
    """A cased WordPiece vocabulary, the same for the same texts.

    The trainer numbers the characters inside words in the order of a hash map, and breaks ties by
    number. Numbered beforehand, as special tokens, they stay in their order.

    Args:
        texts: gives the texts; called twice.
        size: of the vocabulary.

    Returns:
        Sub-word -> id.
    """
    counts = Counter(character for text in texts() for character in text if not character.isspace())
    frequent = sorted(sorted(counts, key=lambda c: (-counts[c], c))[:_CHARACTERS])
    pinned = [*_SPECIAL, *frequent, *(f"##{character}" for character in frequent)]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(size, len(pinned)), special_tokens=pinned, show_progress=False,
        initial_alphabet=frequent, limit_alphabet=len(frequent),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer.get_vocab()


def build(corpus: Dataset, folder: Path, vocabulary: int = VOCABULARY) -> None:
    """Writes a randomly initialised model and its tokenizer.

    Args:
        corpus: rows with `tokens`, or with `text`.
        folder: that is written.
        vocabulary: sub-words, the characters included.
    """
    column = "tokens" if "tokens" in corpus.column_names else "text"
    rows = corpus.select(range(min(len(corpus), _SAMPLE))).select_columns(column)

    def texts() -> Iterator[str]:
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH][column]
            yield from (row if isinstance(row, str) else " ".join(row) for row in batch)

    tokenizer = BertTokenizer(vocab=wordpiece_vocabulary(texts, vocabulary), do_lower_case=False)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=4 * HIDDEN,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    BertModel(config).save_pretrained(folder)
