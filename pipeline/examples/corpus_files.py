"""What the corpus stage makes of all parts together: weights, labels, report, plots, card."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nerbert.commands.options import options_of
from nerbert.reports import filled
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.sentences import SENTENCES
from nerbert.text.tags import LabelSet
from ontology.categories import ENTITY
from pipeline.documents.extract import model_path
from pipeline.examples import balance
from pipeline.examples.counts import BalanceReport, SelectionReport, Statistics
from pipeline.examples.make_report import corpus_report
from pipeline.examples.report import CategoryRow, CorpusReport, table_facts
from pipeline.examples.rows import COLUMNS
from pipeline.plan import Plan
from pipeline.settings import CorpusSettings


def example_part(plan: Plan, source: Place, split: str) -> Place:
    """Path of the examples of a part of documents, before balancing."""
    return plan.examples.path / split / source.name


def digests_part(plan: Plan, source: Place) -> Place:
    """Path of the digests of the examples of a part of documents."""
    return plan.examples.path / "digests" / source.name


def balancing_weights(
    plan: Plan, statistics: Statistics, selected: SelectionReport, sources: Sequence[Place]
) -> balance.Weights:
    """Decides how often train examples are repeated."""
    tags = (
        batch.column("ner_tags")
        for source in sources
        for batch in parts.read_batches(example_part(plan, source, "train"), ["ner_tags"])
    )
    support = {name: statistics.support(name) for name in statistics.categories}
    return weights_of(plan.settings.decide("balance"), support, selected, tags)


def weights_of(
    settings: Mapping[str, Any],
    support: Mapping[str, float],
    selected: SelectionReport,
    tags: Iterable[pa.ListArray],
) -> balance.Weights:
    """Decides how often train examples are repeated.

    Args:
        settings: the options of balancing.
        support: category -> share of its mentions whose page several sources know.
        selected: counts of the examples.
        tags: label ids of the train examples, which only `calibrated` reads.
    """
    fewest, least = int(settings["every_sentence"]), settings["min_support"]
    alpha = settings["alpha"]
    once = np.array([name != ENTITY and share < least for name, share in support.items()])
    mentions = selected.by_category["train"]
    if settings["balance"] == "none" or not any(mentions.values()):
        return balance.Weights("none", ())
    if settings["balance"] == "category-first":
        n_sentences = selected.sentences["train"]
        holding = selected.with_category["train"]
        copies = balance.category_first(list(support), mentions, holding, n_sentences, alpha)
        copies[once] = np.minimum(copies[once], 1)
        return balance.Weights("category-first", tuple(copies.tolist()), least=fewest)
    category_counts, times = balance.signatures(tags, len(support))
    logs, scale, _ = balance.calibrate(category_counts, times, len(support), alpha)
    logs[once] = np.minimum(logs[once], -scale)
    return balance.Weights("calibrated", tuple(logs.tolist()), scale, fewest)


def write_presentation(plan: Plan, statistics: Statistics, balanced: BalanceReport) -> None:
    """Writes labels, report, plots and dataset card."""
    from pipeline.examples import plots  # loads matplotlib, which only this step needs

    def write(name: str, content: bytes) -> None:
        (plan.corpus.path / name).write_bytes(content)

    labels = LabelSet(tuple(statistics.categories))
    write(SENTENCES, model_path(plan).read_bytes())
    report = corpus_report(plan, statistics, balanced)
    (plan.corpus.path / "labels.json").write_json(labels.to_json())
    (plan.corpus.path / "report.json").write_json(report.to_json())
    rows = report.categories.table
    before: dict[str, Any] = {name: row.train for name, row in rows.items()}
    after: dict[str, Any] = {name: row.train_balanced for name, row in rows.items()}
    n_more = len(report.dumps) - 1
    title = f"{report.language}: {report.dumps[0]}" + (f" and {n_more:,} more" if n_more else "")
    write("categories.png", plots.categories(before, after, title))
    write("funnel.png", plots.funnel(report.funnel, title))
    types = plan.entities.state["made_from"]["types_files"]
    sizes = {
        split: sum((plan.corpus.path / split).listing().values())
        for split, count in report.funnel.sentences.out.items()
        if count
    }
    example = _first_example(plan.corpus.path / "train", labels)
    card = dataset_card(report, labels, types, sizes, example, command_of(plan.settings))
    write("README.md", card.encode("utf-8"))


def _first_example(folder: Place, labels: LabelSet) -> str:
    """The first train example as words and tags; empty if there is none."""
    for path in sorted(folder.files()):
        for batch in parts.read_batches(path, ["tokens", "ner_tags"], rows=1):
            (row,) = batch.to_pylist()
            tags = (labels.tags[tag] for tag in row["ner_tags"])
            return " ".join(f"{w}/{tag}" for w, tag in zip(row["tokens"], tags, strict=True))
    return ""


def command_of(settings: CorpusSettings) -> str:
    """The command of a run: its options that are no defaults, and files by their names."""
    words = ["nerbert", "corpus"]
    for entry in options_of(CorpusSettings):
        value = getattr(settings, entry.name)
        decides = entry.name == "dump" or entry.facts["decides"]
        if not decides or value == entry.default:
            continue
        if isinstance(value, bool):
            words.append(entry.flags[0] if value else f"--no-{entry.flags[0][2:]}")
        elif entry.name == "drop_entity":
            words += [entry.flags[0], ",".join(f"{count}:{p:g}" for count, p in value)]
        else:
            values = value if isinstance(value, tuple) else [value]
            words += [entry.flags[0], *(Place(str(each)).name for each in values)]
    return shlex.join(words)


_PLAIN = re.compile(r"[A-Za-z][\w-]*")


def dataset_card(
    report: CorpusReport,
    labels: LabelSet,
    types: Sequence[str],
    sizes: Mapping[str, int],
    example: str,
    command: str,
) -> str:
    """Text of the card.

    Args:
        report: report of the corpus.
        labels: labels of the corpus.
        types: names of DBpedia's files of instance types; empty if none were used.
        sizes: bytes of the Parquet files of each split with examples.
        example: an example, as text.
        command: the command of the run.
    """
    funnel, exponent = report.funnel, report.balance.exponent
    balanced, out = funnel.train_after_balancing, funnel.sentences.out
    table = sorted(report.categories.table.items(), key=lambda row: (-row[1].train, row[0]))
    examples = {"train": balanced.examples, "validation": out["validation"]}
    return filled(
        "pipeline.examples",
        language=report.language,
        example=example,
        command=command,
        voters=_lines(map(_voter_row, report.coverage.voters)),
        header=card_header(examples, COLUMNS, labels),
        dumps=", ".join(report.dumps),
        types=", ".join(types) or "infoboxes of the dump",
        tables="".join(f" {fact}." for fact in table_facts(report.coverage.tables).values()),
        sentence_model=report.sentence_model,
        damage=_damage(funnel.pages),
        sources=", ".join(f"{n:,} {name}" for name, n in funnel.mentions.sources.items() if n),
        train_balanced=f"{balanced.examples:,}",
        mentions_balanced=f"{balanced.mentions:,}",
        train=f"{out['train']:,}",
        mentions_train=f"{funnel.mentions.out['train']:,}",
        tokens_balanced=f"{balanced.tokens:,}",
        train_size=_size(sizes.get("train", 0)),
        validation_size=_size(sizes.get("validation", 0)),
        **{f"tokens_{name}": f"{n:,}" for name, n in funnel.tokens_before_balancing.items()},
        n_categories=f"{len(labels.categories):,}",
        validation=f"{out['validation']:,}",
        mentions_validation=f"{funnel.mentions.out['validation']:,}",
        mode=report.balance.mode,
        alpha=f"{report.balance.alpha:g}",
        exponent="not defined" if exponent is None else exponent,
        n_tags=len(labels.tags),
        dropped=_lines(f"| {r} | {n:,} |" for r, n in funnel.sentences.dropped.items()),
        categories=_lines(_category_row(name, row) for name, row in table),
    )


def _size(count: int) -> str:
    """Bytes as text."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"


def _damage(pages: Mapping[str, Any]) -> str:
    lost, aside = pages["lost"], sum(pages["set_aside"].values())
    lines = [f"{aside:,} pages could not be read"] if aside else []
    if lost:
        lines.append(f"some {lost:,} pages are lost where it is corrupt")
    if pages["damage"].get("truncated"):
        lines.append("the end is missing")
    return f" Of the dump, {' and '.join(lines)}." if lines else ""


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"\n{line}" for line in lines)


def _voter_row(voter: Mapping[str, Any]) -> str:
    agreed, compared = voter["agreed"], voter["compared"]
    share = f"{agreed / compared:.1%} of {compared:,}" if compared else "not compared"
    return f"| {voter['name']} | {voter['entities']:,} | {share} |"


def _category_row(name: str, row: CategoryRow) -> str:
    cells = (row.entities, row.train, row.train_balanced, row.validation)
    return f"| {_cell(name)} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"


def _cell(name: str) -> str:
    """A name in a table of Markdown: files of instance types may hold any characters."""
    printable = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in name)
    return printable.replace("|", "\\|")


def card_header(examples: Mapping[str, int], columns: pa.Schema, labels: LabelSet) -> str:
    """Lines of the head of a card: the files of each split, and the columns, for `datasets`."""
    features = (_feature(field.name, _type_name(field.type), labels) for field in columns)
    return "\n".join(
        [
            "configs:",
            "- config_name: default",
            "  data_files:",
            *_data_files(examples),
            "dataset_info:",
            "  features:",
            *(line for lines in features for line in lines),
        ]
    )


def _data_files(examples: Mapping[str, int]) -> list[str]:
    """Lines about the splits with examples; `datasets` fails on a split without files."""
    splits = [split for split, count in examples.items() if count]
    return [
        line
        for split in splits
        for line in (f"  - split: {split}", f"    path: {split}/part-*.parquet")
    ]


def _feature(name: str, kind: str, labels: LabelSet) -> list[str]:
    """Lines about a column. Without them `datasets` would not know the names of the labels."""
    if name == "ner_tags":
        tags = [f"          '{index}': {_scalar(tag)}" for index, tag in enumerate(labels.tags)]
        return [f"  - name: {name}", "    sequence:", "      class_label:", "        names:", *tags]
    inner = kind[5:-1] if kind.startswith("list<") else kind
    if inner.startswith("struct<"):
        parts_of_it = inner.removeprefix("struct<").removesuffix(">").split(", ")
        pairs = [part.split(": ") for part in parts_of_it]
        fields = [f"    - name: {part}\n      dtype: {dtype}" for part, dtype in pairs]
        return [f"  - name: {name}", "    list:", *fields]
    if inner.startswith("list<"):
        value = inner[5:-1]
        return [f"  - name: {name}", "    sequence:", f"      sequence: {value}"]
    return [f"  - name: {name}", f"    {'dtype' if inner == kind else 'sequence'}: {inner}"]


def _scalar(text: str) -> str:
    """A text in YAML, in quotes unless it is plain."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    return "float32" if pa.types.is_float32(kind) else str(kind)  # as `datasets` calls it
