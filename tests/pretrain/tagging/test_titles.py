"""Titles of typed pages as names of classes, against loops; and in a run."""

import bz2
import json
from collections import Counter

import pytest

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.tags import LabelSet, tags_to_spans
from ontology.classes import ClassTree
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT, run

titles = lazy("pretrain.tagging.titles")

PAGES = {
    "Angela_Merkel": ["Person", "Politician"],
    "Low_(album)": ["Album"],
    "Both": ["Artist", "Politician"],  # neither is deeper
    "A_b_c_d_e_f_g_h_i": ["City"],  # too long
    "Ulm": ["http://www.w3.org/2002/07/owl#Thing", "City"],
    "%22Heroes%22": ["Album"],
    "Race": ["RaceHorse"],  # an older name of a class
    "Strange": ["NoClass"],
}


def triple(title, name, host="dbpedia.org"):
    iri = name if ":" in name else f"http://dbpedia.org/ontology/{name}"
    kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    return f"<http://{host}/resource/{title}> <{kind}> <{iri}> .\n"


@pytest.fixture
def types(tmp_path):
    path = tmp_path / "types.nt.bz2"
    lines = [triple(title, name) for title, names in PAGES.items() for name in names]
    lines.insert(3, triple("Berlin", "City", "de.dbpedia.org"))
    path.write_bytes(bz2.compress("".join(lines).encode()))
    return Place(path)


def test_names_are_titles_of_the_deepest_class(types, caplog):
    caplog.set_level("INFO", "nerbert")
    found = titles.names_of_classes([types], ["en"], ClassTree.shipped())
    assert found == {
        "Album": [['"', "Heroes", '"'], ["Low"]],
        "City": [["Ulm"]],
        "Horse": [["Race"]],
        "Politician": [["Angela", "Merkel"]],
    }
    assert "5 typed pages in 4 classes" in caplog.text
    assert "2 of several classes or none, 1 of more than 8 words" in caplog.text
    german = titles.names_of_classes([types], ["de"], ClassTree.shipped())
    assert german == {"City": [["Berlin"]]}
    with pytest.raises(UserError, match="no title of language fr"):
        titles.names_of_classes([types], ["fr"], ClassTree.shipped())


def test_of_many_titles_some_are_kept(types, monkeypatch):
    everything = titles.names_of_classes([types], ["en"], ClassTree.shipped())
    monkeypatch.setattr("pretrain.tagging.titles._MOST_TITLES", 4)
    found = titles.names_of_classes([types], ["en"], ClassTree.shipped())
    assert 1 <= sum(map(len, found.values())) <= 4
    assert all(set(map(tuple, rows)) <= set(map(tuple, everything[c])) for c, rows in found.items())


def test_lists_are_of_these_names_and_common_classes_are_seen_less_than_they_are_common():
    names = {"A": [["a", "one"], ["a", "two"]] * 50, "B": [["b"]]}
    lists = titles.lists_of_names(names, 6001)
    assert len(lists) == 3000
    assert lists == titles.lists_of_names(names, 6001)
    spans = [span for row in lists for span in tags_to_spans(row.tags)]
    shares = Counter(name for _, _, name in spans)
    assert shares["A"] / shares["B"] == pytest.approx(10, rel=0.15)
    assert {len(tags_to_spans(row.tags)) for row in lists} == {1, 2, 3, 4, 5, 6}
    for row in lists:
        for first, end, name in tags_to_spans(row.tags):
            assert row.tokens[first:end] in names[name]
        outside = {w for w, tag in zip(row.tokens, row.tags, strict=True) if tag == "O"}
        assert outside <= {",", ";", "and", "."}


def test_a_run_learns_classes_that_no_link_has(demo, types, tmp_path):
    flags = ("--corpus", demo[0] / "corpus", "--recipe", "open-debug", "--max-steps", 20)
    more = ("--eval-steps", 10, "--save-steps", 10, "--output", tmp_path / "run")
    environment = {"HF_HOME": str(tmp_path / "huggingface"), "HF_HUB_OFFLINE": "1"}

    def train(*others):
        return run(*flags, *more, *others, cwd=ROOT, name="pretrain", environment=environment)

    code, _, err = train("--types", types)
    assert code == 0, err
    assert "names of 5 typed pages in 4 classes" in err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert {"horse", "album", "politician"} <= set(config["open_types"])
    code, _, err = train()
    assert (code, "made with other corpus" in err) == (2, True)
    checkpoint = tmp_path / "run" / "checkpoint-10"
    code, _, err = train("--types", types, "--resume-from-checkpoint", checkpoint)
    assert code == 0, err
    code, _, err = train("--types", types, "--head", "closed")
    assert (code, "only --head open learns from it" in err) == (2, True)


def test_rows_of_lists_have_the_columns_of_the_corpus():
    datasets = pytest.importorskip("datasets")
    labels = LabelSet(("ENTITY", "A"))
    like = datasets.Dataset.from_dict(
        {"id": ["1"], "tokens": [["x"]], "ner_tags": [[0]]},
        datasets.Features(
            {
                "id": datasets.Value("string"),
                "tokens": datasets.Sequence(datasets.Value("string")),
                "ner_tags": datasets.Sequence(datasets.Value("int32")),
            }
        ),
    )
    lists = titles.lists_of_names({"A": [["a", "b"]]}, 8)
    ids = {tag: number for number, tag in enumerate(labels.tags)}
    rows = titles.as_rows(lists, ids, like)
    assert rows.features == like.features
    assert [[labels.tags[n] for n in row] for row in rows["ner_tags"]] == [r.tags for r in lists]
    assert len(set(rows["id"])) == 4
