"""What wings and other packages may add to fine-tuning: heads, and models without pre-training.

A module of another package that describes its heads may import this one, but not the settings,
which get the options of all heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from nerbert.seams import described, foreign, load


@dataclass(frozen=True)
class HeadEntry:
    """A row of the table of heads, in a file `seams.toml` or at an entry point.

    Attributes:
        head: "module:class", a subclass of `finetune.heads.head.Head`; it loads torch.
        help: what it is, for `--help`; empty if `nerbert train` does not make it.
        options: "module:class" of the options that only it reads; empty for none.
    """

    head: str
    help: str = ""
    options: str = ""


@dataclass(frozen=True)
class ModelEntry:
    """A row of the table of models without pre-training.

    Attributes:
        build: "module:function"; it takes name, train sentences, labels and settings, and returns
            tokenizer and model. Its module registers the architecture with transformers. If the
            model has a method `while_training`, the training is in the block of what it returns.
        help: how it is used, for `--help`.
        options: "module:class" of the options that only it reads; empty for none.
    """

    build: str
    help: str = ""
    options: str = ""


@cache
def heads() -> dict[str, HeadEntry]:
    """Value of `tag_head` in a config, and of --head -> its row."""
    return described("heads", HeadEntry) | foreign("heads", HeadEntry)


@cache
def models() -> dict[str, ModelEntry]:
    """Name of a model without pre-training -> its row."""
    return described("models", ModelEntry) | foreign("models", ModelEntry)


def options_of_parts() -> Iterator[type]:
    """The options classes that heads and models bring."""
    rows: list[HeadEntry | ModelEntry] = [*heads().values(), *models().values()]
    for place in dict.fromkeys(row.options for row in rows if row.options):
        yield load(place)
