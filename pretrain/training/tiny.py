"""A tiny BERT with a vocabulary from the corpus, to run all steps without a download."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertConfig, BertModel, BertTokenizer

from pretrain.settings import TINY

VOCABULARY = 8000
"""Number of sub-words, including single characters."""

LAYERS, HIDDEN, HEADS = 2, 128, 2
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SAMPLE = 200_000  # number of examples that the vocabulary is made from
_BATCH = 1000
_CHARACTERS = 1000  # number of most frequent characters that are sub-words


def wordpiece_vocabulary(
    texts: Callable[[], Iterable[str]], size: int = VOCABULARY
) -> dict[str, int]:
    """Makes a cased WordPiece vocabulary; the same texts always give the same vocabulary.

    The trainer of `tokenizers` numbers characters in the order of a hash map, and breaks ties by
    number. So they are numbered before, as special tokens.

    Args:
        texts: returns the texts; called twice.
        size: size of the vocabulary.

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
        vocab_size=max(size, len(pinned)),
        special_tokens=pinned,
        show_progress=False,
        initial_alphabet=frequent,
        limit_alphabet=len(frequent),
    )
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer.get_vocab()


def build(corpus: Dataset, folder: Path, vocabulary: int = VOCABULARY) -> None:
    """Writes a randomly initialised model and its tokenizer.

    Args:
        corpus: rows with `tokens` or `text`.
        folder: output folder.
        vocabulary: number of sub-words, including single characters.
    """
    column = "tokens" if "tokens" in corpus.column_names else "text"
    rows = corpus.select(range(min(len(corpus), _SAMPLE))).select_columns(column)

    def texts() -> Iterator[str]:
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH][column]
            yield from (row if isinstance(row, str) else " ".join(row) for row in batch)

    tokenizer = BertTokenizer(vocab=wordpiece_vocabulary(texts, vocabulary), do_lower_case=False)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * HIDDEN,
    )
    tokenizer.save_pretrained(folder)
    BertModel(config).save_pretrained(folder)


def base_model(name: str, folder: Path, corpus: Callable[[], Dataset], renew: bool = False) -> str:
    """Name or folder of a base model; `tiny` is made if it does not exist.

    Args:
        name: name of the base model.
        folder: folder of the tiny model.
        corpus: returns the rows that its vocabulary is made from.
        renew: whether to replace a tiny model that a failed run left.
    """
    if name != TINY:
        return name
    if renew or not (folder / "model.safetensors").is_file():
        build(corpus(), folder)
    return str(folder)
