"""The published tables: each row is in the paper, and comes beside ours where it belongs."""

import re

import pytest

from finetune.data.registry import registry
from finetune.scoring.tables import (
    nerbert_rows,
    published,
    published_rows,
    tner_in_domain,
    tner_models,
    tner_row,
)

NAMES = {
    "ontonotes5": "ontonotes",
    "conll2003": "conll",
    "wnut17": "wnut",
    "wikiann/en": "wiki",
    "jnlpba": "bionlp",
    "sec_filings": "ﬁn",
    "mit_restaurant": "restaurant",
    "mit_movie": "movie",
}
TABLES = [
    (kind, model)
    for kind in ("span-cased", "span-lowercase", "strict")
    for model in ("xlm-roberta-base", "xlm-roberta-large")
]


def text_of(shared, key):
    (path,) = (shared.parent / "papers").glob(f"{key}_*.txt")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def paper(shared):
    return text_of(shared, "000")


@pytest.mark.parametrize(("kind", "model"), TABLES)
def test_rows_are_those_of_the_paper(paper, kind, model):
    for name, row in published()["tner"][kind][model].items():
        start = name.partition("/")[2] if kind == "strict" else NAMES.get(name, name)
        numbers = " ".join(rf"{value:.1f}" for value in row)
        pattern = re.escape(f"{start} {numbers}").replace(r"\.0\ ", r"(?:\.0)?\ ")
        assert re.search(rf"^{pattern}$", paper, re.MULTILINE), (name, numbers)


def test_table_6_is_that_of_the_paper(paper):
    tables = published()["tner"]
    models = ("xlm-roberta-base", "xlm-roberta-large")
    for place, name in enumerate(tables["lowercase"]):
        cells = []
        for case in ("cased", "lowercase"):
            for model in models:
                row = tables[f"strict-{case}"][model]["all"]
                cells.append(f"{row[place]:.1f}" if place < len(row) else "-")
        title = {"wikiann/en": "wiki"}.get(name, NAMES.get(name, name))
        assert f"\n{title} {' '.join(cells)}\n" in paper, name


def test_in_domain_scores_are_those_of_the_paper(paper):
    titles = {"conll2003": "CoNLL 2003", "wnut17": "WNUT 2017", "sec_filings": "FIN"}
    titles |= {"jnlpba": "BioNLP 2004", "bc5cdr": "BioCreative V", "ontonotes5": "OntoNotes5"}
    titles |= {"mit_restaurant": "MIT Restaurant", "mit_movie": "MIT Movie"}
    one, other = (published()["tner"]["in-domain"][model] for model in tner_models())
    assert len(one) == len(other) == 14
    for name, score in one.items():
        title = titles.get(
            name, name.replace("wikiann-mecab", "wikiann").replace("wikiann", "WikiAnn")
        )
        assert f"\n{title} {score} {other[name]} " in paper or (
            f"SoTA\n{title} {score} {other[name]} " in paper
        )


def test_which_numbers_come_beside_ours():
    assert tner_in_domain("xlm-roberta-base", "conll2003") == 90.8
    assert tner_in_domain("xlm-roberta-base", "conll2003-crossner") is None
    row = tner_row("tner-span", "xlm-roberta-base", "wnut17", ["conll2003", "btc"], False)
    assert row == [81.3, None, None]
    cased = published()["tner"]["cased"]
    assert tner_row("tner-span", "xlm-roberta-large", "+".join(cased), cased, False)[-1] == 81.7
    assert tner_row("tner-span", "xlm-roberta-large", "wnut17", cased, True)[-1] is None
    assert tner_row("span", "xlm-roberta-large", "wnut17", cased, False) == [None] * 8
    assert tner_row("strict", "xlm-roberta-base", "wikiann/es", ["wikiann/ru"], False)[0] == 66.5
    assert tner_row("strict", "xlm-roberta-base", "wikiann/es", ["wikiann/ru"], True)[0] is None
    # Table 6.
    lower = published()["tner"]["lowercase"]
    everything = ("xlm-roberta-base", "+".join(lower), ["wnut17", "mit_movie", "btc"], True)
    assert tner_row("strict", *everything) == [43.7, 67.8, None, None]
    assert tner_row("strict", "xlm-roberta-large", "+".join(cased), cased, False)[:2] == [
        87.8,
        90.3,
    ]


def test_rows_of_crossner_are_those_of_the_paper(shared):
    text = text_of(shared, "001")
    titles = {
        "CDLM": "Jia, Liang, and Zhang (2019)",
        "multi-cell LSTM": "Jia and Zhang (2020)",
        "multi-cell LSTM, span integrated": "+ DAPT (Span-level & Integrated)",
    }
    tables = published()["crossner"]
    count = 0
    for regime in ("target", "source-target", "joint"):
        for name, row in tables[regime].items():
            average = sum(row) / 5
            numbers = [*(rf"{value:.2f}".replace(".60", ".60?") for value in row), *[r"\d\d\.\d\d"]]
            found = re.search("\t".join(numbers), text)
            assert found, (regime, name)
            assert float(found[0].rsplit("\t", 1)[1]) == pytest.approx(average, abs=0.011)
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
            if name in titles or "(" in name:
                assert line.strip().startswith(titles.get(name, name)), name
            count += 1
    assert count == 8 + 8 + 15


def test_rows_of_nerbert_are_those_of_the_paper(shared):
    text = text_of(shared, "002")
    table = published()["nerbert"]
    for regime in ("target", "source-target"):
        for name, row in table[regime].items():
            cells = "\t".join(f"{value:.2f}" if value else "-" for value in row)
            start = name.partition(",")[0]
            assert re.search(rf"^{start}.*\t{re.escape(cells)}$", text, re.MULTILINE), name
            if row[-1]:
                assert sum(row[:-1]) / 11 == pytest.approx(row[-1], abs=0.01), name
    rows = nerbert_rows("target", ["btc", "wnut17"])
    assert rows["BERT"] == [75.61, None, None]
    assert "DAPT" not in rows
    assert nerbert_rows("target", table["sets"])["NER-BERT"][-1] == 75.06
    assert nerbert_rows("joint", table["sets"]) == {}


def test_sizes_of_sets_are_those_of_the_papers(shared):
    """All columns of NER-BERT's table 3, all rows of T-NER's table 1; and sets that we have."""
    sizes = {name: text.partition(" (") for name, text in published()["sizes"].items()}
    columns = [
        line.split("\t")[1:]
        for line in text_of(shared, "002").splitlines()
        if re.match(r"(Train|Dev|Test)\t200|(Train|Dev|Test)\t\d+\t\d+\t\d+", line)
    ]
    for name, *cells in zip(published()["nerbert"]["sets"], *columns, strict=True):
        assert sizes[name][0] == ", ".join(cells), name
    rows = re.findall(r" (\d+) ([\d,]+/[-\d,]+/[\d,]+)$", text_of(shared, "000"), re.MULTILINE)
    stated = [text for text, _, paper_name in sizes.values() if paper_name == "T-NER)"]
    assert sorted(stated) == sorted(f"{n} types; {t.replace('/', ', ')}" for n, t in rows)
    differ = set()
    for name in set(sizes) & set(registry()):
        ours = {split: f"{n:,}" for split, (n, *_) in registry()[name].counts.items()}
        numbers = sizes[name][0].rpartition("; ")[2].split(", ")
        theirs = dict(zip(("train", "dev", "test"), numbers, strict=True))
        if any(ours[split] != theirs[split] and "K" not in theirs[split] for split in ours):
            differ.add(name)
    # Each has a note that says so, but for music and CoNLL-2003, see `crossner.report.NOTES`.
    assert differ == {"crossner/music", "conll2003-crossner", "jnlpba", "bc5cdr"}


def test_rows_of_dualner_are_those_of_the_paper(shared):
    text = text_of(shared, "003")
    small, large = text.split("\nInfoXLM", 1)
    names = {"DualNER, translated text": "TRGTrans", "DualNER, gold text": "TRGGold"}
    table = published()["dualner"]
    assert len(table["languages"]) == 40
    for part, model in ((small, "xlm-roberta-base"), (large, "infoxlm-large")):
        for name, row in table[model].items():
            lines = [
                [float(cell) for cell in line.split("|")[1:] if cell.strip()]
                for line in part.splitlines()
                if line.startswith(f"{names.get(name, name)} |") and line.count("|") > 20
            ]
            assert [value for line in lines[:2] for value in line] == row, (model, name)


def test_published_zero_shot_rows_stand_beside_any_of_the_five_sets():
    rows = published_rows("zero-shot", ["crossner/ai", "crossner/music", "other"])
    assert rows["GLiNER-L (0.3B), published"] == [57.2, 69.6, None, None]
    names = published()["open"]["sets"]
    assert published_rows("zero-shot", names)["GLiNER-L (0.3B), published"][-1] == pytest.approx(
        (57.2 + 64.4 + 69.6 + 72.6 + 62.6) / 5
    )
    assert not any("GLiNER" in name for name in published_rows("target", names))
