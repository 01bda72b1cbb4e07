"""Whole runs on real slices of six Wikipedias. Slow: pytest -m slow."""

import json

import pyarrow.parquet as pq
import pytest
from runs import check_example, examples, run

SLICES = {
    "en-2016": ("enwiki-latest-*", None, 206),
    "uk": ("ukwiki-*multistream.xml.bz2", "uk", 532),
    "ja": ("jawiki-*", "ja", 238),
    "ltg": ("ltgwiki-*", None, 2004),
    "vi-truncated": ("viwiki-*", None, 971),
    "en-2009": ("enwiki-2009*", None, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLICES)
def test_slice(shared, tmp_path, name):
    pattern, mapping, n_pages = SLICES[name]
    types = sorted((shared / "dbpedia").glob("*.nt.bz2"))
    arguments = ["--dump", shared / "dumps" / pattern, "--output", "out", "--min-entities", 2,
                 "--types", *types]  # fmt: skip
    if mapping:
        path = shared / "dbpedia" / "mappings" / f"Mapping_{mapping}.xml.xz"
        arguments += ["--infobox-mapping", path]
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 0, err
    corpus = tmp_path / "out" / "corpus"
    tags = json.loads((corpus / "labels.json").read_text())["tags"]
    funnel = json.loads((corpus / "report.json").read_text())["funnel"]
    pages = funnel["pages"]
    kinds = ("article", "redirect", "category", "other-namespace")
    assert pages["read"] == n_pages
    assert pages["read"] == sum(pages.get(k, 0) for k in kinds) + sum(pages["set_aside"].values())
    for what in ("sentences", "mentions"):
        counts = funnel[what]
        assert counts["in"] == sum(counts["dropped"].values()) + sum(counts["out"].values())
    documents = {row["page_id"]: row for path in (tmp_path / "out" / "documents").glob("*.parquet")
                 for row in pq.read_table(path).to_pylist()}  # fmt: skip
    checked = 0
    for folder in (tmp_path / "out" / "examples", corpus):
        for split in ("train", "validation"):
            for row in examples(folder, split):
                check_example(row, documents[row["page_id"]], tags)
                checked += 1
    assert checked > 20
