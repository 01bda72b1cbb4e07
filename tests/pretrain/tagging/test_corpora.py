"""Several corpora as one, against the sentences of each."""

import json

import pytest

from finetune.use.labelled import Labelled
from nerbert.text.columns import Sentence
from nerbert.text.corpus import Corpus
from pretrain.settings import PretrainSettings
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT, run

corpora = lazy("pretrain.tagging.corpora")
formats = lazy("finetune.use.formats")

WORDS = {"City": ["Ulm", "am", "See"], "River": ["Aa"], "Person": ["Ada", "Byron"]}


def write(folder, types, count=45):
    rows = []
    for number in range(count):
        tokens, tags = ["so", "near"][: number % 3], ["O", "O"][: number % 3]
        for name in types[number % len(types) :]:
            tokens += [*WORDS[name], "."]
            tags += [f"B-{name}", *[f"I-{name}"] * (len(WORDS[name]) - 1), "O"]
        rows.append(Labelled.of_sentence(Sentence(tokens, tags)))
    formats.write_corpus(rows, folder)
    (folder / "report.json").write_text(json.dumps({"language": folder.name, "dumps": ["x.bz2"]}))
    return str(folder)


@pytest.fixture
def folders(tmp_path):
    return [
        write(tmp_path / "de", ["City", "Person"]),
        write(tmp_path / "en", ["River", "City", "Person"]),
        write(tmp_path / "uk", ["Person"], 25),
    ]


def test_labels_and_rows_are_those_of_each(folders, tmp_path):
    settings = PretrainSettings(
        corpus=tuple(folders), output="x", cache_dir=str(tmp_path / "cache"), mask_unlinked=True
    )
    both = corpora.Corpora(settings)
    assert both.labels.categories == ("City", "Person", "River")
    assert (both.facts("language"), both.facts("dumps")) == (["de", "en", "uk"], ["x.bz2"])
    assert both.only is None
    for split in ("train", "validation"):
        rows = both.rows(split)
        tags = both.labels.tags
        found = [[tags[both.new_labels[i]] for i in row] for row in rows["ner_tags"]]
        expected = [row for folder in folders for row in Corpus.open(folder).sentences(split)]
        assert rows["tokens"] == [row.tokens for row in expected]
        assert found == [row.tags for row in expected]
    fewer = corpora.Corpora(PretrainSettings(**{**vars(settings), "train_examples": 5}))
    assert fewer.rows("train")["tokens"] == [
        row.tokens for f in folders for row in list(Corpus.open(f).sentences("train"))[:5]
    ]
    alone = [
        corpora.Corpora(PretrainSettings(**{**vars(settings), "corpus": (f,)})) for f in folders
    ]
    assert alone[0].fingerprint == Corpus.open(folders[0]).fingerprint
    assert len({one.fingerprint for one in (both, *alone)}) == 4


def test_a_run_on_two_and_what_the_card_says(folders, tmp_path):
    flags = ("--corpus", *folders[:2], "--output", tmp_path / "run", "--recipe", "open-debug")
    steps = ("--max-steps", 8, "--eval-steps", 4, "--save-steps", 4)
    environment = {"HF_HOME": str(tmp_path / "huggingface"), "HF_HUB_OFFLINE": "1"}
    code, _, err = run(*flags, *steps, cwd=ROOT, name="pretrain", environment=environment)
    assert code == 0, err
    assert f"{2 * 43} sentences" in err
    card = (tmp_path / "run" / "README.md").read_text()
    assert card.startswith("---\nlanguage: [de, en]\n")
    assert "--types poet city" in card
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert list(config["open_types"]) == ["city", "person", "river"]
