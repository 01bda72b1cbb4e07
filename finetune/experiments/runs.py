"""Runs of fine-tuning, and a store of their results, so that no run is repeated."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from finetune.data.sets import DataSets
from finetune.data.views import View
from finetune.settings import ALL, FitSettings, Regime
from finetune.tagger.shipped import folder_of
from nerbert import __version__
from nerbert.commands.options import options_of
from nerbert.digests import short_key
from nerbert.errors import UserError
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from nerbert.storage.records import seal, sealed

_LOGGER = logging.getLogger("nerbert")


@dataclass(frozen=True)
class Run:
    """One fine-tuning and evaluation.

    Attributes:
        model: name or folder of the model.
        data: target set, on which the model is scored.
        settings: settings of the fine-tuning, with its seed.
        regime: how source and target are combined.
        source: source sets.
        shots: train sentences: a number, a percentage such as "25%", or "all".
        view: changes of types and words.
    """

    model: str
    data: str
    settings: FitSettings
    regime: Regime = "target"
    source: tuple[str, ...] = ()
    shots: str = ALL
    view: View = field(default_factory=View)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values. The regime is named `setting`, as in the results of older runs."""
        values = {**asdict(self), "source": list(self.source), "setting": self.regime}
        del values["regime"]
        return values


@dataclass(frozen=True)
class Predictions:
    """Tokens, gold tags and predicted tags of a test set."""

    tokens: Sequence[Sequence[str]]
    gold: Sequence[Sequence[str]]
    predicted: Sequence[Sequence[str]]

    def write(self, path: Path) -> None:
        """Writes lines `token TAB gold TAB predicted`, the format of conlleval."""
        rows = zip(self.tokens, self.gold, self.predicted, strict=True)
        text = "\n".join(
            "".join("\t".join(word) + "\n" for word in zip(*row, strict=True)) for row in rows
        )
        Place(path).write_bytes(text.encode())

    @classmethod
    def read(cls, path: Path) -> Predictions:
        """Reads a file that `write` wrote."""
        blocks = path.read_text(encoding="utf-8").removesuffix("\n").split("\n\n")
        rows = [[tuple(line.split("\t")) for line in block.split("\n")] for block in blocks]
        columns = [[[word[place] for word in row] for row in rows] for place in range(3)]
        return cls(*columns)


Make = Callable[[Run], tuple[dict[str, Any], Predictions]]
"""Function that does a run: returns its scores and predictions."""


class ResultStore:
    """Results in a folder: `KEY.json` has the scores, `KEY.conll` the predictions.

    The key is a digest of everything that decides a result: settings, and the contents of model,
    sets and label map.
    """

    def __init__(self, folder: Path, sets: DataSets) -> None:
        """Takes the folder of the results, and the data sets."""
        self._folder, self.sets = folder, sets
        # Contents are read once per command, because that takes long for large models.
        self.set_fingerprint = cache(sets.fingerprint)
        self._model_fingerprint = cache(model_fingerprint)
        self._file_fingerprint = cache(_file_fingerprint)

    def key(self, run: Run) -> str:
        """Digest of everything that decides the result of a run."""
        content = {
            **run.to_json(),
            "nerbert": __version__,
            "contents": [
                self._model_fingerprint(run.model),
                run.view.text,
                *(self.set_fingerprint(name) for name in (run.data, *run.source)),
            ],
        }
        for entry in options_of(type(run.settings)):
            value, kind = getattr(run.settings, entry.name), entry.facts["path"]
            if value and kind == "model":
                content[entry.name] = self._model_fingerprint(value)
            elif value and kind == "content":
                content[entry.name] = [self._file_fingerprint(path, entry.name) for path in value]
        return short_key(json.dumps(content, sort_keys=True))

    def result(
        self, run: Run, make: Make, where: str = "", countdown: Callable[[], str] = str
    ) -> dict[str, Any]:
        """The result of a run; the run is done if there is no result yet.

        Args:
            run: the run.
            make: does the run.
            where: start of the log line.
            countdown: counts the run, and returns what the log line says of those that are left.
        """
        key = self.key(run)
        path = self._folder / f"{key}.json"
        done = self._stored(path)
        if done is None:
            scores, predictions = make(run)
            self._folder.mkdir(parents=True, exist_ok=True)
            predictions.write(path.with_suffix(".conll"))
            result = {"key": key, **run.to_json(), **scores}
            seal(Place(path), result, [f"{key}.conll"])
            _LOGGER.info(
                "%s%s on %s, %s sentences, seed %d: F1 %.4f in %.0f s%s",
                where,
                run.model,
                run.data,
                run.shots,
                run.settings.seed,
                main_f1({**run.to_json(), **scores}),
                scores["seconds"],
                f"; {remaining}" if (remaining := countdown()) else "",
            )
            done = self._stored(path)
            assert done is not None
        return done

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """The runs that have no result yet."""
        paths = ((run, self._folder / f"{self.key(run)}.json") for run in runs)
        return [run for run, path in paths if self._stored(path, log=False) is None]

    def _stored(self, path: Path, log: bool = True) -> dict[str, Any] | None:
        """The result in a file; None if there is none, or a power cut has left a part of it."""
        result = sealed(Place(path), log)
        is_whole = (
            result and result.get("key") == path.stem and path.with_suffix(".conll").is_file()
        )
        return result if is_whole else None

    def predictions(self, key: str) -> Predictions:
        """The predictions of a result, by its key."""
        return Predictions.read(self._folder / f"{key}.conll")


SCORING = {
    "strict": "F1 (seqeval strict, IOB2)",
    "crossner": "F1 (conlleval over all sentences as one, as the released code of CrossNER)",
}
"""Value of the setting `scoring` -> title of the score."""


def main_f1(result: Mapping[str, Any]) -> float:
    """F1 that a result reports first; see the setting `scoring`."""
    f1: float = result[result["settings"]["scoring"]]["f1"]
    return f1


def _file_fingerprint(path: str, flag: str) -> list[tuple[int, str]]:
    """Identity of a file, or of the parts in a folder.

    Raises:
        UserError: there is no such file.
    """
    paths = sorted(Path(path).rglob("part-*.parquet")) if Path(path).is_dir() else [Path(path)]
    try:
        return [Identities().of(Place(file)) for file in paths]
    except OSError as error:
        raise UserError(
            f"--{flag.replace('_', '-')} {path}: {error.strerror}; check the path"
        ) from None


def made_from(base_model: str, sets: DataSets, names: Sequence[str]) -> dict[str, Any]:
    """The inputs of a training: names, and digests of their contents.

    Args:
        base_model: name or folder of the model.
        sets: data sets.
        names: names of the sets.
    """
    return {
        "base_model": base_model,
        "model": model_fingerprint(base_model),
        "data": {name: sets.fingerprint(name) for name in names},
        "label_map": sets.view.text,
        "lowercase": sets.view.lowercase,
        "nerbert": __version__,
    }


_MODEL_SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")
_NO_MODEL = {"training_args.bin", "pretrain.json", "training.json", "metrics.json"}
"""Records beside a model: a command that is run again may write them anew."""


def model_fingerprint(model: str) -> str:
    """Digest of configuration, tokenizer and weights in a folder; for other names, the name."""
    folder = Path(folder_of(model))
    if not folder.is_dir():
        return model
    digest = blake2b(digest_size=16)
    for path in sorted(folder.glob("*")):
        if path.suffix in _MODEL_SUFFIXES and path.name not in _NO_MODEL:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()
