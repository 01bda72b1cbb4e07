"""Reports results as tables, plots and a JSON file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from finetune.data.registry import known_set
from finetune.data.views import NONE
from finetune.experiments.runs import SCORING, ResultStore, main_f1
from finetune.scoring import metrics, plots
from finetune.scoring.results import Results, average_by_seed, average_of_means
from finetune.scoring.tables import cent, markdown, published_rows, shown_names, sizes_table, spread
from finetune.settings import ALL
from nerbert.storage.places import Place
from nerbert.text import overlap

Result = dict[str, Any]

_NO_F1 = {"f1": 0.0}
_OTHER_ROWS = {
    "without_misc": "without misc",
    "own_words": "without misc, types in the set's language",
}
"""Scores that a result may have beside its own -> what their rows are called."""
_SCORES = ("conlleval F1", "macro F1", "span F1", "shared-label span F1", "T-NER span F1")


class Report:
    """The report of `nerbert evaluate`."""

    def __init__(
        self,
        results: Sequence[Result],
        store: ResultStore,
        corpus: Place | None = None,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        """Takes the results of one regime.

        Args:
            results: results of `ResultStore.result`, at least one.
            store: the store, which has the predictions.
            corpus: training corpus in which test sentences are searched; None for none.
            missing: sets of a group that could not be run -> why.

        Raises:
            UserError: there is no such corpus.
        """
        self._results = list(results)
        self._store, self._missing = store, dict(missing or {})
        self._sets = _values(results, "data")
        self._models = _values(results, "model")
        self._named = {**shown_names(self._models), **shown_names(self._sets)}
        self._shots = _values(results, "shots")
        self._f1 = Results({**row, "value": main_f1(row)} for row in results)
        self._hits: dict[str, dict[int, str]] | None = None
        if corpus is not None:
            tokens = [self._test(name) for name in self._sets]
            self._hits = dict(zip(self._sets, overlap.find(corpus, tokens), strict=True))
            for row in self._results:
                row["without_contaminated"] = self._without(row)

    def _of(self, **values: str) -> list[Result]:
        """The results with these values."""
        return [row for row in self._results if all(row[k] == v for k, v in values.items())]

    def _test(self, name: str) -> Sequence[Sequence[str]]:
        """The test sentences of a set."""
        return self._store.predictions(self._of(data=name)[0]["key"]).tokens

    def _without(self, row: Result) -> dict[str, float]:
        """Strict scores on the test sentences that are not in the corpus."""
        assert self._hits is not None
        predictions, hits = self._store.predictions(row["key"]), self._hits[row["data"]]
        clean = [number for number in range(len(predictions.gold)) if number not in hits]
        gold, guess = (
            [side[n] for n in clean] for side in (predictions.gold, predictions.predicted)
        )
        return metrics.seqeval_scores(gold, guess)[0].to_json()

    def table(self) -> str:
        """Tables of F1 by model and set, or by model and shots; and of contamination."""
        lines = [self._title(), ""]
        if len(self._shots) == 1:
            average = ("average", average_of_means) if len(self._sets) > 1 else None
            rows = self._f1.pivot(
                "model", "data", "model", self._models, self._sets, self._named, average
            )
            for scores, title in _OTHER_ROWS.items():
                scored = [row for row in self._results if scores in row]
                cells = Results({**row, "value": row[scores]["f1"]} for row in scored).pivot(
                    "model", "data", "", _values(scored, "model"), self._sets, self._named, average
                )
                rows += [[f"{name}, {title}", *f1s] for name, *f1s in cells[1:]]
            if self._shots == [ALL]:
                rows += self._published(self._sets, int(average is not None))
            lines += [*markdown(rows), ""]
        else:
            for name in self._sets:
                title = f"{self._named[name]}, train sentences"
                rows = self._f1.where(data=name).pivot(
                    "model", "shots", title, self._models, self._shots, self._named
                )
                if ALL in self._shots:
                    rows += [
                        [title, *(score if shots == ALL else "-" for shots in self._shots)]
                        for title, score in self._published([name])
                    ]
                lines += [*markdown(rows), ""]
            if len(self._sets) > 1:
                lines += [*markdown(self._averages()), ""]
        lines += [f"{name}: not run: {reason}" for name, reason in self._missing.items()]
        lines += [f"{name}: {note}" for name in self._sets if (note := self._note(name))]
        if self._hits is not None:
            lines += ["", *self._contamination()]
        return "\n".join(lines).rstrip("\n") + "\n"

    def _averages(self) -> list[list[str]]:
        """F1 by model and shots, as the average of the sets; "-" where a set has fewer seeds."""
        rows = [[f"average of {len(self._sets)} sets, train sentences", *self._shots]]
        for model in self._models:
            averages = []
            for shots in self._shots:
                cells = self._f1.where(shots=shots).cells("model", "data", self._sets, model)
                is_whole = len(set(map(len, cells))) == 1
                averages.append(average_by_seed(cells) if is_whole else "-")
            rows.append([self._named[model], *averages])
        if ALL in self._shots:
            rows += [
                [name, *(average if shots == ALL else "-" for shots in self._shots)]
                for name, *_, average in self._published(self._sets, 1)
                if average != "-"
            ]
        return rows

    def _published(self, sets: Sequence[str], averages: int = 0) -> list[list[str]]:
        """Rows of the papers' tables, if they have one of the sets, and the averages."""
        if self._of(setting="zero-shot") and self._results[0]["source"]:
            return []
        names = [self._store.sets.identity(name) for name in sets]
        published = published_rows(self._results[0]["setting"], names)
        return [
            [title, *("-" if value is None else f"{value:.2f}" for value in row)]
            for title, values in published.items()
            if any(row := values[: len(names) + averages])
        ]

    def _note(self, name: str) -> str:
        """Differences of a set from the paper's, and whether the last weights were kept."""
        named_set = known_set(name)
        parts = [named_set.note] if named_set is not None and named_set.note else []
        new = {row["model"]: row.get("new_types") for row in self._of(data=name)}
        parts += [
            f"{model} was not trained on {', '.join(types)}"
            for model, types in new.items()
            if types
        ]
        if all(row.get("dev_sentences") == 0 for row in self._of(data=name)):
            parts.append("no dev sentences, so the weights of the last step are kept")
        return "; ".join(parts)

    def _title(self) -> str:
        first = self._results[0]
        view, seeds = first["view"], len({row["settings"]["seed"] for row in self._results})
        parts = [f"{SCORING[first['settings']['scoring']]} in per cent"]
        parts += [f"mean and deviation of {seeds} seeds"] if seeds > 1 else []
        parts += [f"regime `{first['setting']}`"]
        parts += [f"source {' + '.join(first['source'])}"] if first["source"] else []
        parts += [f"labels {view['label_map']}"] if view["label_map"] != NONE else []
        parts += ["lower case"] if view["lowercase"] else []
        return ", ".join(parts) + "."

    def _contamination(self) -> list[str]:
        assert self._hits is not None
        rows = [["set", "test sentences", "equal", "13-gram", "model", "F1", "F1 without them"]]
        for name in self._sets:
            kinds = Counter(self._hits[name].values())
            facts = [
                self._named[name],
                *map(str, (len(self._test(name)), kinds["equal"], kinds["13-gram"])),
            ]
            for model in self._models:
                results = self._of(model=model, data=name)
                clean = [row["without_contaminated"]["f1"] for row in results]
                f1 = spread(self._f1.where(model=model, data=name).values)
                rows.append([*facts, self._named[model], f1, spread(clean)])
        return markdown(rows)

    def details(self) -> str:
        """Tables of all runs, and for each set of the types and the errors."""
        sizes = sizes_table(self._store.sets.sizes(self._sets))
        lines = ["## Sets", "", *sizes, "", "## Runs", "", *markdown(self._runs()), ""]
        for name in self._sets:
            lines += [f"## {name}", "", "F1 and number of test mentions of each type.", ""]
            lines += markdown(self._types(name))
            lines += ["", "Numbers of mentions by kind of error, mean over seeds.", ""]
            lines += [*markdown(self._errors(name)), ""]
        return "\n".join(lines)

    def _runs(self) -> list[list[str]]:
        rows = [
            [
                "model",
                "set",
                "train sentences",
                "seed",
                "precision",
                "recall",
                "F1",
                "95 % interval",
                *_SCORES,
                "seconds",
            ]
        ]
        for row in self._results:
            strict = row["strict"]
            other_scores = (
                row["conlleval"]["f1"],
                row["macro_f1"],
                row["span_f1"],
                row["shared_label_span_f1"],
                row["tner_span_f1"],
            )
            rows.append(
                [
                    self._named[row["model"]],
                    self._named[row["data"]],
                    str(row["train_sentences"]),
                    str(row["settings"]["seed"]),
                    cent(strict["precision"]),
                    cent(strict["recall"]),
                    cent(strict["f1"]),
                    " - ".join(map(cent, row["intervals"]["micro_95"])),
                    *map(cent, other_scores),
                    f"{row['seconds']:.0f}",
                ]
            )
        return rows

    def _types(self, name: str) -> list[list[str]]:
        runs = self._f1.where(data=name, shots=self._shots[-1])
        gold = Counter[str]()
        for row in runs:
            gold |= Counter({kind: int(s["gold"]) for kind, s in row["per_type"].items()})
        kinds = sorted({kind for row in runs for kind in row["per_type"]})
        f1 = runs.by("type", lambda row: {k: row["per_type"].get(k, _NO_F1)["f1"] for k in kinds})
        rows = f1.pivot("type", "model", "type", kinds, self._models, self._named)
        counts = ["mentions", *(str(gold[kind]) for kind in kinds)]
        return [[row[0], count, *row[1:]] for row, count in zip(rows, counts, strict=True)]

    def _errors(self, name: str) -> list[list[str]]:
        counts = self._f1.where(data=name, shots=self._shots[-1]).by("kind", lambda r: r["errors"])
        kinds, mean_count = list(self._results[0]["errors"]), lambda cell, *_: f"{mean(cell):.0f}"
        named = self._named
        return counts.pivot("model", "kind", "model", self._models, kinds, named, text=mean_count)

    def write(self, output: Path) -> None:
        """Writes `report.json`, `report.md` and plots to a folder."""
        output.mkdir(parents=True, exist_ok=True)
        text = f"{self.table()}\n{self.details()}"
        (output / "report.md").write_text(text, encoding="utf-8")
        Place(output / "report.json").write_json(
            {
                "runs": self._results,
                "sets": {name: self._facts(name) for name in self._sets},
                "contaminated": self._hits,
            }
        )
        for name in self._sets:
            short = file_name(name)
            for number, model in enumerate(self._models, start=1):
                results = self._of(model=model, data=name, shots=self._shots[-1])
                table = _summed([row["confusion"] for row in results])
                picture = plots.confusion(table, f"{name}: {plots.short(model)}")
                (output / f"confusion-{short}-{number}.png").write_bytes(picture)
            if len(self._shots) > 1:
                (output / f"shots-{short}.png").write_bytes(self._curves(name))

    def _facts(self, name: str) -> dict[str, Any]:
        """Citation and licence of a set, and digests of its sentences."""
        named_set = known_set(name)
        facts = (
            {}
            if named_set is None
            else {"citation": named_set.citation, "licence": named_set.licence}
        )
        return {**facts, "sha256_of_sentences": self._store.set_fingerprint(name)}

    def _curves(self, name: str) -> bytes:
        lines = self._f1.where(data=name).curves("model", "train_sentences")
        scoring = SCORING[self._results[0]["settings"]["scoring"]].partition(" (")[0]
        return plots.curves(
            lines, name, "train sentences", f"{scoring}, %", gain=len(self._models) > 1
        )


def file_name(name: str) -> str:
    """The name of a set as part of a file's name."""
    return name.strip("/").replace("/", "-").replace(":", "-")


def _values(results: Sequence[Result], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in results))


def _summed(tables: Sequence[dict[str, dict[str, int]]]) -> dict[str, Counter[str]]:
    total: dict[str, Counter[str]] = {}
    for table in tables:
        for gold, row in table.items():
            total.setdefault(gold, Counter()).update(row)
    return total
