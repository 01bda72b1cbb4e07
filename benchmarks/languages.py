r"""Shares of links with a class, before and after Wikidata ids, English titles and their types.

    python -m benchmarks.languages --dumps uk=ukwiki-*.xml.bz2 ltg=ltgwiki-*.xml.bz2 \
        --types instance_types_en_*.nt.bz2 --work DIR

The rows of page_props and langlinks are those of `benchmarks/data/pages.tsv`, the most linked
pages of the slices, by hand. The types of Wikidata's ids are those of `items.tsv`. `--types` are
DBpedia's types of English pages, which apply through the English titles.
"""

from __future__ import annotations

import argparse
import bz2
import csv
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ontology.classes import NAMESPACE
from ontology.entity_table import EntityTable
from pipeline.dump.streams import find_dumps
from pipeline.runs.corpus import build_corpus
from pipeline.wikitext.names import NO_ENTITY

DATA = Path(__file__).parent / "data"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
TABLES = {
    "page_props": ("pp_page", "pp_propname", "pp_value", "pp_sortkey"),
    "langlinks": ("ll_from", "ll_lang", "ll_title"),
}


def rows(name: str) -> list[list[str]]:
    """Rows of a table in `benchmarks/data`."""
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file, delimiter="\t") if not row[0].startswith("#")]


def write_tables(work: Path, language: str) -> dict[str, Any]:
    """Writes the tables of a slice and the types of items; returns the options that name them."""
    pages = [row[1:] for row in rows("pages.tsv") if row[0] == language]
    values = {
        "page_props": [f"({page},'wikibase_item','{item}',NULL)" for page, item, _ in pages],
        "langlinks": [f"({page},'en','{_quoted(title)}')" for page, _, title in pages],
    }
    values["page_props"] = [value for value in values["page_props"] if "'-'" not in value]
    options: dict[str, Any] = {}
    for table, lines in values.items():
        if not lines:
            continue
        path = work / f"{language}wiki-{table}.sql"
        columns = ",\n".join(f"  `{name}` varbinary(255)" for name in TABLES[table])
        head = f"CREATE TABLE `{table}` (\n{columns}\n);\n"
        text = f"{head}INSERT INTO `{table}` VALUES {','.join(lines)};\n-- Dump completed\n"
        path.write_text(text, encoding="utf-8")
        options[table] = str(path)
    lines = [
        f"<http://wikidata.dbpedia.org/resource/{item}> {TYPE} <{NAMESPACE}{name}> .\n"
        for name, items in rows("items.tsv")
        for item in items.split()
    ]
    path = work / "instance-types_specific.ttl.bz2"
    path.write_bytes(bz2.compress("".join(lines).encode()))
    return {**options, "items": str(path)}


def _quoted(title: str) -> str:
    return title.replace("\\", "\\\\").replace("'", "\\'")


def shares(output: Path) -> tuple[str, str, EntityTable, dict[int, str]]:
    """Shares of name links with a class: of all, and of those to articles of the slice."""
    table = EntityTable.open(output / "entities")
    parts = sorted((output / "documents").glob("part-*.parquet"))
    columns = ["page_id", "namespace", "title", "redirect", "anchors"]
    pages = [row for part in parts for row in pq.read_table(part, columns=columns).to_pylist()]
    articles = {p["page_id"]: p["title"] for p in pages if not p["namespace"] and not p["redirect"]}
    there = set(table.lookup(sorted(articles.values())).tolist())
    anchors = [a for page in pages for a in page["anchors"] or [] if a["name"]]
    linked = table.lookup([a["target"] for a in anchors]).tolist()
    has_class = [entity >= 0 and table.classes[entity] >= 0 for entity in linked]
    # What the corpus drops if its page has no class is no name.
    is_name = [t or a["doubt"] != NO_ENTITY for t, a in zip(has_class, anchors, strict=True)]
    names = [entity for entity, kept in zip(linked, is_name, strict=True) if kept]
    found = [entity for entity in names if entity >= 0]
    typed = [entity for entity in found if table.classes[entity] >= 0]
    inside = [entity for entity in found if entity in there]
    inside_typed = [entity for entity in inside if table.classes[entity] >= 0]
    return (
        f"{100 * len(typed) / len(names):.1f} % of {len(names):,}",
        f"{100 * len(inside_typed) / max(len(inside), 1):.1f} % of {len(inside):,}",
        table,
        articles,
    )


def main() -> None:
    """Prints a line for each slice."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dumps", nargs="+", required=True, metavar="LANGUAGE=PATH")
    parser.add_argument("--types", nargs="+", required=True)
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print(
        "| slice | all links, before | after | links to its articles, before | after | ids right |"
    )
    print("|---|---|---|---|---|---|")
    for pair in options.dumps:
        language, _, path = pair.partition("=")
        given = {"dump": find_dumps([path]), "language": language, "stage": "resolve"}
        tables = write_tables(options.work, language)
        items = tables.pop("items")
        before, after = options.work / language, options.work / f"{language}-after"
        build_corpus(output=str(before), **given)
        types = [*options.types, *([] if language == "en" else [items])]
        build_corpus(output=str(after), types=types, **given, **tables)
        one, two = shares(before), shares(after)
        wanted = [row[1:3] for row in rows("pages.tsv") if row[0] == language and row[2] != "-"]
        right = sum(two[2].qid_of(two[3][int(page)]) == item for page, item in wanted)
        print(
            f"| {language} | {one[0]} | {two[0]} | {one[1]} | {two[1]} | {right} of {len(wanted)} |"
        )


if __name__ == "__main__":
    main()
