"""One fine-tuning with its scores, kept in files, so that what was run is not run again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from finetune import conll, sets
from finetune.config import FitSettings
from finetune.labelmaps import View
from pipeline.errors import UserError

_LOGGER = logging.getLogger("nerbert")
ALL = "all"
"""Number of shots that stands for the whole train split."""


@dataclass(frozen=True)
class Run:
    """One cell of a table.

    Attributes:
        model: name or folder.
        data: set that it is scored on.
        setting: of `finetune.config.SETTINGS`.
        source: sets that are learnt before, or beside, the target.
        shots: train sentences: a number, a percentage as "25%", or "all".
        view: how the sets are read.
        settings: of the fine-tuning, its seed among them.
    """

    model: str
    data: str
    settings: FitSettings
    setting: str = "target"
    source: tuple[str, ...] = ()
    shots: str = ALL
    view: View = field(default_factory=View)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {**asdict(self), "source": list(self.source)}

    @property
    def key(self) -> str:
        """Digest of everything that decides the result: settings, model, data, label map."""
        content = {**self.to_json(), "contents": [
            model_fingerprint(self.model), map_text(self.view),
            *(set_fingerprint(name) for name in (self.data, *self.source)),
        ]}  # fmt: skip
        digest = blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8)
        return digest.hexdigest()


@cache
def set_fingerprint(name: str) -> dict[str, str]:
    """`finetune.sets.fingerprint`, once a process."""
    return sets.fingerprint(name)


@cache
def model_fingerprint(model: str) -> str:
    """Digest of a folder's configuration, tokenizer and weights; a name on the hub as it is."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = blake2b(digest_size=16)
    for path in sorted(folder.glob("*")):
        if path.suffix in (".json", ".safetensors", ".bin", ".txt", ".model"):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()


def map_text(view: View) -> str:
    """What a user's label map says; the shipped ones go by their name."""
    path = Path(view.label_map)
    return path.read_text(encoding="utf-8") if path.is_file() else view.label_map


def shots_of(text: str, sentences: int) -> int:
    """Number of sentences: "10", "25%" of them (at least one), "all".

    Raises:
        UserError: the text is none of these.
    """
    if text == ALL:
        return sentences
    try:
        if text.endswith("%"):
            share = float(text[:-1])
            if not 0 < share <= 100:
                raise ValueError
            return max(1, round(sentences * share / 100))
        if int(text) < 1:
            raise ValueError
        return min(int(text), sentences)
    except ValueError:
        raise UserError(f"--shots {text}: give numbers, percentages such as 25%, or all") from None


class Kept:
    """Results in a folder: `KEY.json` has the scores, `KEY.conll` token, gold, predicted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def result(self, run: Run, make: Callable[[Run], tuple[dict[str, Any], Predictions]],
               where: str = "") -> dict[str, Any]:  # fmt: skip
        """The result of a run, made if it is not there.

        Args:
            run: that is asked for.
            make: makes scores and predictions.
            where: said in the log.
        """
        path = self._folder / f"{run.key}.json"
        if not path.is_file():
            scores, predictions = make(run)
            self._folder.mkdir(parents=True, exist_ok=True)
            predictions.write(path.with_suffix(".conll"))
            result = {"key": run.key, **run.to_json(), **scores}
            write_json(path, result)
            _LOGGER.info("%s%s on %s, %s sentences, seed %d: F1 %.4f in %.0f s", where, run.model,
                         run.data, run.shots, run.settings.seed, scores["strict"]["f1"],
                         scores["seconds"])  # fmt: skip
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def has(self, run: Run) -> bool:
        """Whether the result is there."""
        return (self._folder / f"{run.key}.json").is_file()

    def predictions(self, key: str) -> Predictions:
        """Gold and predicted tags of a result."""
        return Predictions.read(self._folder / f"{key}.conll")


@dataclass(frozen=True)
class Predictions:
    """Tokens, gold and predicted tags of a test set."""

    tokens: Sequence[Sequence[str]]
    gold: Sequence[Sequence[str]]
    predicted: Sequence[Sequence[str]]

    def write(self, path: Path) -> None:
        """Lines of `token TAB gold TAB predicted`, as conlleval takes them."""
        rows = zip(self.tokens, self.gold, self.predicted, strict=True)
        text = "\n".join(
            "".join("\t".join(word) + "\n" for word in zip(*row, strict=True)) for row in rows
        )
        path.write_text(text, encoding="utf-8", newline="\n")

    @classmethod
    def read(cls, path: Path) -> Predictions:
        """What `write` wrote."""
        blocks = path.read_text(encoding="utf-8").removesuffix("\n").split("\n\n")
        rows = [[tuple(line.split("\t")) for line in block.split("\n")] for block in blocks]
        columns = [[[word[place] for word in row] for row in rows] for place in range(3)]
        return cls(*columns)


def write_json(path: Path, value: Any) -> None:
    """Writes under another name first: a killed process leaves no half file."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_view(view: View, data: sets.Data, split: str, needed: bool = True) -> list[conll.Sentence]:
    """The sentences of a split, read in a view."""
    return view.of(sets.sentences(data, split, needed))
