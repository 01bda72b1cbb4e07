"""What a run did, in numbers: the funnel, categories before and after each step, contamination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ontology.categories import ENTITY
from ontology.labels import LabelSet
from pipeline import card, files, parts
from pipeline.balance import exponent, sampling_weights
from pipeline.config import BalanceSettings, SelectSettings, as_dict
from pipeline.corpus import COLUMNS, SPLITS, Selection
from pipeline.filters import REASONS

Statistics = dict[str, Any]


@dataclass(frozen=True)
class CardFacts:
    """What the report and the card say of where a corpus comes from."""

    language: str
    dumps: tuple[str, ...]
    pages: Mapping[str, int]
    set_aside: Mapping[str, int]
    types: tuple[str, ...]
    types_files: Sequence[Mapping[str, Any]]
    sentence_model: str


def selection_counts(selection: Selection) -> Statistics:
    """A selection as JSON-ready counts."""
    return {
        "sentences_in": selection.seen_sentences, "mentions_in": selection.seen_mentions,
        "anchors_outside": selection.outside,
        "dropped_sentences": dict(selection.drops.sentences),
        "dropped_mentions": dict(selection.drops.mentions),
        "sentences": {split: selection.sentences[split] for split in SPLITS},
        "tokens": {split: selection.tokens[split] for split in SPLITS},
        "mentions": {split: selection.mentions[split] for split in SPLITS},
        "by_category": {split: dict(counts) for split, counts in selection.by_category.items()},
        "with_category": {split: dict(counts) for split, counts in selection.with_category.items()},
        "contamination": selection.contamination,
    }  # fmt: skip


def sum_selections(reports: Sequence[parts.Report]) -> Statistics:
    """Sums of the counts of all parts, in their order."""
    summed = selection_counts(Selection())
    for report in reports:
        _add(summed, {key: report[key] for key in summed})
    for key in ("dropped_sentences", "dropped_mentions"):
        summed[key] = {reason: summed[key][reason] for reason in REASONS if reason in summed[key]}
    return summed


def sum_balanced(reports: Sequence[parts.Report]) -> Statistics:
    """Sums of the counts of all parts; `most_copies` is their maximum."""
    summed: Statistics = {"examples": 0, "tokens": 0, "left_out": 0, "mentions": {}}
    for report in reports:
        _add(summed, {key: report[key] for key in summed})
    most = max((report["most_copies"] for report in reports), default=0)
    return {**summed, "most_copies": most}


def _add(total: Statistics, counts: Statistics) -> None:
    for key, value in counts.items():
        if isinstance(value, dict):
            _add(total.setdefault(key, {}), value)
        else:
            total[key] = total[key] + value if key in total else value


def full_report(
    statistics: Statistics,
    balanced: Statistics,
    select: SelectSettings,
    balance: BalanceSettings,
    facts: CardFacts,
) -> Statistics:
    """What `report.json` holds; see docs/data-format.md."""
    selected = statistics["selected"]
    train = selected["by_category"]["train"]
    return {
        "language": facts.language,
        "dumps": list(facts.dumps),
        "sentence_model": facts.sentence_model,
        "settings": {"select": _named(as_dict(select)), "balance": as_dict(balance)},
        "funnel": _funnel(selected, balanced, facts),
        "coverage": _coverage(statistics["anchors"], facts),
        "categories": _categories(statistics, balanced, balance.alpha),
        "balance": {
            "mode": statistics["weights"]["mode"],
            "alpha": balance.alpha,
            "exponent": _rounded(exponent(train, balanced["mentions"])),
        },
        "contamination": _contamination(selected["contamination"], select.exclude),
    }


def _funnel(selected: Statistics, balanced: Statistics, facts: CardFacts) -> Statistics:
    return {
        "pages": {**facts.pages, "set_aside": dict(facts.set_aside)},
        "sentences": {
            "in": selected["sentences_in"],
            "dropped": selected["dropped_sentences"],
            "out": selected["sentences"],
        },
        "mentions": {
            "in": selected["mentions_in"],
            "dropped": selected["dropped_mentions"],
            "out": selected["mentions"],
            "outside_sentences": selected["anchors_outside"],
        },
        "tokens_before_balancing": selected["tokens"],
        "train_after_balancing": {
            "examples": balanced["examples"],
            "tokens": balanced["tokens"],
            "mentions": sum(balanced["mentions"].values()),
            "examples_left_out": balanced["left_out"],
            "most_copies": balanced["most_copies"],
        },
    }


def _coverage(anchors: Mapping[str, int], facts: CardFacts) -> Statistics:
    typed, total = anchors["dbpedia"] + anchors["infobox"], sum(anchors.values())
    return {
        "anchors": dict(anchors),
        "typed_share": round(typed / total, 4) if total else None,
        "types_files": list(facts.types_files),
    }


def _categories(statistics: Statistics, balanced: Statistics, alpha: float) -> Statistics:
    """The categories that were given up, and for each that was kept its counts after each step."""
    by_split = statistics["selected"]["by_category"]
    present = {name: count for name, count in by_split["train"].items() if count}
    targets = sampling_weights(present, alpha) if present else {}
    kept, entities = statistics["kept"], statistics["entities"]
    given_up = {name: n for name, n in entities.items() if n and name not in set(kept)}
    table = {
        name: {
            "entities": entities.get(name, 0),
            "mentions": statistics["mentions"].get(name, 0),
            "in_sentences_with_category": statistics["with_category"].get(name, 0),
            "train": by_split["train"].get(name, 0),
            "validation": by_split["validation"].get(name, 0),
            "train_balanced": balanced["mentions"].get(name, 0),
            "target_share": round(targets.get(name, 0.0), 6),
        }
        for name in kept
    }
    return {
        "kept": len(kept) - 1,
        "given_up": given_up,
        "frequent": statistics["frequent"],
        "table": table,
    }


def _named(settings: Statistics) -> Statistics:
    """Settings with files by name: a report does not depend on where files lie."""
    settings["exclude"] = distinct_names(settings["exclude"])
    settings["categories"] = distinct_names([settings["categories"]])[0]
    return settings


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Names of files, with as many of their folders as it takes to tell them apart.

    >>> distinct_names(["/data/ai/test.txt", "/data/music/test.txt"])
    ['ai/test.txt', 'music/test.txt']
    """
    pieces = [path.replace("\\", "/").split("/") for path in paths]
    for length in range(1, max(map(len, pieces), default=1) + 1):
        names = ["/".join(piece[-length:]) for piece in pieces]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _contamination(hits: Sequence[Sequence[Any]], exclude: Sequence[str]) -> Statistics:
    names = distinct_names(exclude)
    by_file = {name: {"equal": 0, "13-gram": 0} for name in names}
    for _, kind, file, _ in hits:
        by_file[names[file]][kind] += 1
    listed = [
        {"id": example, "kind": kind, "file": names[file], "sentence": sentence}
        for example, kind, file, sentence in hits
    ]
    return {"files": by_file, "hits": listed}


def write_presentation(folder: str, full: Statistics, labels: LabelSet, facts: CardFacts) -> None:
    """Writes the plots and the dataset card of a corpus."""
    from pipeline import plots  # matplotlib is slow to load, and only needed here

    table = full["categories"]["table"]
    before = {name: row["train"] for name, row in table.items()}
    after = {name: row["train_balanced"] for name, row in table.items()}
    files.write_bytes(files.join(folder, "categories.png"), plots.categories(before, after))
    files.write_bytes(files.join(folder, "funnel.png"), plots.funnel(full["funnel"]))
    columns = [(field.name, _type_name(field.type)) for field in COLUMNS]
    text = card.dataset_card(full, labels, columns, facts.types)
    files.write_bytes(files.join(folder, "README.md"), text.encode("utf-8"))


def _type_name(kind: pa.DataType) -> str:
    return f"list<{kind.value_type}>" if pa.types.is_list(kind) else str(kind)


def summary(full: Statistics) -> str:
    """The closing lines of a run: what came in, what went and why, what came out."""
    funnel = full["funnel"]
    pages, sentences, train = funnel["pages"], funnel["sentences"], funnel["train_after_balancing"]
    aside = sum(pages["set_aside"].values())
    lines = [
        f"pages      {pages.get('read', 0):>12,} read: {pages.get('article', 0):,} articles, "
        f"{pages.get('redirect', 0):,} redirects, {pages.get('category', 0):,} categories, "
        f"{pages.get('other-namespace', 0):,} of other namespaces, {aside:,} set aside",
        f"anchors    {sum(full['coverage']['anchors'].values()):>12,}, "
        f"{100 * (full['coverage']['typed_share'] or 0):.1f} % with a class",
        f"sentences  {sentences['in']:>12,}",
        *(f"  dropped  {count:>12,} {reason}" for reason, count in sentences["dropped"].items()),
        f"train      {sentences['out']['train']:>12,} -> {train['examples']:,} balanced "
        f"({full['balance']['mode']}, alpha {full['balance']['alpha']:g}, achieved exponent "
        f"{full['balance']['exponent'] if full['balance']['exponent'] is not None else 'n/a'})",
        f"validation {sentences['out']['validation']:>12,}",
        f"categories {full['categories']['kept']:>12,} and {ENTITY}",
    ]
    if not sentences["out"]["train"]:
        lines.append("No train example: give --types or --infobox-mapping of this language, or a "
                     "lower --min-entities.")  # fmt: skip
    return "\n".join(lines)
