"""Loads tokenizers, and says why a model cannot be loaded."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from tokenizers import normalizers
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerFast

from nerbert.commands.values import near
from nerbert.errors import UserError

_LOGGER = logging.getLogger("nerbert")
_TRIED = ["Dante", "was", "born"]
"""Words that tell whether a tokenizer parts pre-split words as it parts running text."""

_UNKNOWN = "\u16a0\u2603"
"""A text that no vocabulary of words has."""

NO_CODE = {"trust_remote_code": False}
"""Option of all loaders: a model with code of its own is refused, and nobody is asked."""

UNLOADABLE = (
    *(OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, ImportError),
    *(ArithmeticError, AssertionError, UnpicklingError, SafetensorError, StrictDataclassError),
)
"""What transformers raises for a folder with missing, torn or foreign files."""


def load_config(base_model: str) -> Any:
    """Loads the config of a model, and checks that loading the model runs no foreign code.

    Raises:
        UserError: there is no such model, its config names code of the hub, or its weights are
            quantised.
    """
    try:
        content, _ = PreTrainedConfig.get_config_dict(base_model, **NO_CODE)
        if any("/" in value for value in _implementations(content)):
            raise UserError(
                "its config.json names code of the hub (attn_implementation), which we do not run; "
                "remove this key",
                base_model,
            )
        if content.get("quantization_config"):
            raise UserError(
                "its weights are quantised; give the model as it was before", base_model
            )
        return AutoConfig.from_pretrained(base_model, **NO_CODE)
    except UNLOADABLE as error:
        raise no_model(base_model, error) from error


def _implementations(content: Any) -> Iterator[str]:
    """Texts in a config, at any depth, that choose the code of layers."""
    if isinstance(content, dict):
        for key, value in content.items():
            if str(key).endswith("_implementation"):
                yield from _texts(value)
            else:
                yield from _implementations(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else ():
        yield from _texts(inner)


def load_tokenizer(base_model: str) -> PreTrainedTokenizerFast:
    """Loads the fast tokenizer of a base model.

    Raises:
        UserError: there is no such model, or it has no fast tokenizer.
    """
    load_config(base_model)  # its errors say more
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(base_model, use_fast=True, **NO_CODE)
        if tokenizer.is_fast and not _parts_words(tokenizer):
            spaced: Any = AutoTokenizer.from_pretrained(
                base_model, use_fast=True, add_prefix_space=True, **NO_CODE
            )
            if not _parts_words(spaced):  # the class of the tokenizer ignores the option
                _add_prefix_space(spaced.backend_tokenizer)
            if _parts_words(spaced):
                tokenizer = spaced
            else:
                _LOGGER.warning("%s: words are other sub-words than in running text", base_model)
        tokenizer(_UNKNOWN)  # raises if there is no sub-word for it
    except Exception as error:  # those of tokenizers have no class of their own
        raise no_model(base_model, error) from error
    if not tokenizer.is_fast or tokenizer.pad_token_id is None:
        raise UserError(
            "no fast tokenizer with a padding token; use an encoder such as bert-base-cased",
            base_model,
        )
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


def _parts_words(tokenizer: Any) -> bool:
    """Whether pre-split words behind the first one become what they are in running text.

    Byte-level tokenizers see a space before a word only if they add one themselves.
    """
    try:
        split = tokenizer(_TRIED, is_split_into_words=True, add_special_tokens=False)
    except (AssertionError, ValueError):  # some refuse pre-split words without the space
        return False
    plain = tokenizer(" ".join(_TRIED), add_special_tokens=False, return_offsets_mapping=True)
    pairs = zip(plain["input_ids"], plain["offset_mapping"], strict=True)
    behind = [number for number, (_, end) in pairs if end > len(_TRIED[0])]
    words = zip(split["input_ids"], split.word_ids(), strict=True)
    return behind == [number for number, word in words if word]


def _add_prefix_space(backend: Any) -> None:
    """Makes a tokenizer add a space before each word, whatever steps split it then.

    The step that splits into bytes could add it, too, but not where an earlier step splits words:
    it would add a space to each piece (Digits or Split before ByteLevel, as in Llama 3).
    """
    space = normalizers.Prepend(" ")
    before = backend.normalizer
    backend.normalizer = space if before is None else normalizers.Sequence([space, before])


def no_model(base_model: str, error: Exception) -> UserError:
    """The error that says in one line why a model cannot be loaded, and what to do."""
    if "trust_remote_code" in str(error):
        return UserError(
            "this model needs code of its own, which we do not run (trust_remote_code=False); "
            "give a model of transformers itself",
            base_model,
        )
    path = Path(base_model)
    is_path = path.is_absolute() or path.exists() or len(path.parts) > 2
    lines = str(error).strip().split("\n")
    # The first line of an error of a config names the key, the second what is wrong with it.
    cause = lines[1] if isinstance(error, StrictDataclassError) and lines[1:] else lines[0]
    if (path / "labels.json").is_file():
        return UserError("a corpus; give a model that was trained on it", base_model)
    reason = "no such folder" if is_path and not path.exists() else cause.strip()
    folders = [entry.name for entry in path.parent.glob("*/")] if path.parent.is_dir() else []
    hint = "" if path.exists() else near(path.name, folders)
    remedy = (
        hint or "; give a model of the hub, or a folder with config.json, weights and tokenizer"
    )
    return UserError(f"{reason.rstrip('.')}{remedy}", base_model)
