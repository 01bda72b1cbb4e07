"""T-NER's published tables: each row is in the paper, and comes beside ours where it belongs."""

import re

import pytest

from finetune.evaluation.published import published, tner_in_domain, tner_models, tner_row

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


@pytest.fixture(scope="module")
def paper(shared):
    (path,) = (shared.parent / "papers").glob("000_*.txt")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "model"), TABLES)
def test_rows_are_those_of_the_paper(paper, kind, model):
    for name, row in published()["tner"][kind][model].items():
        start = name.partition("/")[2] if kind == "strict" else NAMES.get(name, name)
        numbers = " ".join(rf"{value:.1f}" for value in row)
        pattern = re.escape(f"{start} {numbers}").replace(r"\.0\ ", r"(?:\.0)?\ ")
        assert re.search(rf"^{pattern}$", paper, re.MULTILINE), (name, numbers)


def test_in_domain_scores_are_those_of_the_paper(paper):
    titles = {"conll2003": "CoNLL 2003", "wnut17": "WNUT 2017", "sec_filings": "FIN"}
    titles |= {"jnlpba": "BioNLP 2004", "bc5cdr": "BioCreative V", "ontonotes5": "OntoNotes5"}
    titles |= {"mit_restaurant": "MIT Restaurant", "mit_movie": "MIT Movie"}
    one, other = (published()["tner"]["in-domain"][model] for model in tner_models())
    assert len(one) == len(other) == 14
    for name, score in one.items():
        title = titles.get(name, name.replace("wikiann", "WikiAnn"))
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
