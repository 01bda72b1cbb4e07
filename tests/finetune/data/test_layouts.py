"""Sets as they are published: names of files, columns, and tags that are numbers."""

import json

import pytest

from finetune.data import conll
from finetune.data.download import SetsOptions, sets_files
from finetune.data.registry import known_set
from finetune.data.sets import DataSets
from finetune.data.views import View
from finetune.experiments.runs import ResultStore, Run
from finetune.settings import FitSettings
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from tests.helpers.lazy import lazy

datasets = lazy("datasets")

IOB1 = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nUlm NNP I-NP I-LOC\n\n"
MIT = "O\tshow\nB-ACTOR\tsteven\nI-ACTOR\tseagal\nO\tO\n\nO\thi\n"
PAN_X = "en:R.H.\tB-ORG\nen:Saunders\tI-ORG\nen:12:30\tO\n\nen:;\tO\n"
INDEXED = "0\tIn\tO\n1\tRom\tB-LOC\n\n0\tUlm\tB-LOC\n"
LABELS = {"O": 0, "B-LOC": 1, "I-LOC": 2}
ROWS = '{"tokens": ["New", "York"], "tags": [1, 2]}\n\n{"tokens": ["Ulm"], "tags": [1]}\n'

LAYOUTS = {
    "CoNLL-2003": ({"eng.train": IOB1, "eng.testa": IOB1, "eng.testb": IOB1}, ["EU", "rejects"]),
    "MIT": ({"engtrain.bio": MIT, "engtest.bio": MIT}, ["show", "steven", "seagal", "O"]),
    "PAN-X": ({"train": PAN_X, "dev": PAN_X, "test": PAN_X}, ["R.H.", "Saunders", "12:30"]),
    "MultiNERD": (
        {"train_en.tsv": INDEXED, "dev_en.tsv": INDEXED, "test_en.tsv": INDEXED},
        ["In", "Rom"],
    ),
    "WikiNEuRal": (
        {"train.conllu": INDEXED, "val.conllu": INDEXED, "test.conllu": INDEXED},
        ["In", "Rom"],
    ),
    "T-NER": (
        {
            "dataset/train.json": ROWS,
            "dataset/valid.json": ROWS,
            "dataset/test.json": ROWS,
            "dataset/label.json": json.dumps(LABELS),
            "README.md": "---\ndataset_info: 1\n---\n",
            "set.py": "raise SystemExit",
        },
        ["New", "York"],
    ),
}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", LAYOUTS)
def test_folders_as_published(tmp_path, name):
    files, first = LAYOUTS[name]
    folder = write(tmp_path / "set", files)
    for split in ("train", "dev", "test"):
        rows = DataSets().sentences(folder, split, needed=split != "dev" or name != "MIT")
        assert not rows or rows[0].tokens == first
    assert DataSets().sentences(str(folder), "train")[0].tags[0][2:] in ("ORG", "LOC", "")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("conll2003", "conll2003"),
        ("mit_movie", "mit_movie"),
        ("wikineural/en", "wikineural/en"),
        ("multinerd/en", "multinerd/en"),
    ],
)
def test_named_sets(tmp_path, name, place):
    layout = {"conll2003": "CoNLL-2003", "mit_movie": "MIT", "wikineural/en": "WikiNEuRal"}
    files, first = LAYOUTS[layout.get(name, "MultiNERD")]
    names = {"engtrain.bio": "trivia10k13train.bio", "engtest.bio": "trivia10k13test.bio"}
    write(tmp_path / place, {names.get(file, file): text for file, text in files.items()})
    for split in ("train", "test"):
        assert DataSets(tmp_path).sentences(name, split)[0].tokens == first


def test_the_tag_of_the_majority_decides(tmp_path):
    (tmp_path / "a.txt").write_text("O\tO\nO\tB-X\nB-X\tB-X\n")
    assert conll.read(tmp_path / "a.txt")[0] == Sentence(["O", "O", "B-X"], ["O", "B-X", "B-X"])
    (tmp_path / "a.txt").write_text("O\tgo\nB-X\tO\nO\tto\n3\tx\n")
    with pytest.raises(UserError, match=r"a\.txt: line 4: '3.tx' is no token with a tag"):
        conll.read(tmp_path / "a.txt")


def test_prefixes_that_not_all_tokens_share_are_words(tmp_path):
    (tmp_path / "a.txt").write_text("en:EU\tB-ORG\nde:Ulm\tO\n")
    assert conll.read(tmp_path / "a.txt")[0].tokens == ["en:EU", "de:Ulm"]


def test_wrong_json_rows_name_their_place(tmp_path):
    path = tmp_path / "set.jsonl"
    good = '{"tokens": ["Ulm"], "tags": ["B-LOC"]}\n'
    for line, told in (
        ("{", "line 2: no JSON"),
        ('{"tokens": ["Ulm"], "kinds": [1]}', "line 2: neither tokens and tags, nor text and"),
        (
            '{"tokens": ["Ulm"], "tags": [1]}',
            "line 2: tags are numbers without names; save them as",
        ),
        ('{"text": "Ulm", "entities": [{"start": 1, "end": 9, "type": "x"}]}', "no token begins"),
        (r'{"tokens": ["\ud800"], "tags": ["O"]}', "line 2: .*surrogates not allowed"),
        (r'{"text": "\udfff", "entities": []}', "line 2: .*surrogates not allowed"),
    ):
        path.write_text(good + line + "\n" + good)
        with pytest.raises(UserError, match=told):
            conll.read(path)
    (tmp_path / "label2id.json").write_text('["O"]')
    path.write_text('{"tokens": ["Ulm"], "tags": [1]}')
    with pytest.raises(UserError, match=r'label2id\.json: not \{"O": 0'):
        conll.read(path)


def test_our_predictions_are_a_set(tmp_path):
    path = tmp_path / "set.jsonl"
    row = {"text": "Ada in Ulm", "entities": [{"start": 7, "end": 10, "type": "city", "score": 1}]}
    path.write_text(json.dumps(row))
    assert conll.read(path)[0] == Sentence(["Ada", "in", "Ulm"], ["O", "O", "B-city"])


def test_splits_by_name(tmp_path):
    folder = write(tmp_path / "set", {f"{year}.train.json": ROWS for year in (2020, 2021)})
    write(folder, {"label.json": json.dumps(LABELS)})
    with pytest.raises(UserError, match=r"it has no file train"):
        DataSets().sentences(folder, "train")
    sets = DataSets(splits=["train=2020.train", "test=2021.train"])
    assert len(sets.sentences(folder, "train")) == len(sets.sentences(folder, "test")) == 2
    write(folder, {"train_a.json": ROWS, "train_b.json": ROWS})
    with pytest.raises(UserError, match=r"train_a.json and train_b.json; name one, such as --spl"):
        DataSets().sentences(folder, "train")
    with pytest.raises(UserError, match=r"^final=x: give one of train, dev, test, =, and"):
        DataSets(splits=["final=x"])


def test_numbers_whose_names_lie_beside(tmp_path):
    table = datasets.Dataset.from_dict({"tokens": [["New", "York"]], "tags": [[1, 2]]})
    folder = tmp_path / "set"
    datasets.DatasetDict({"train_2020": table}).save_to_disk(str(folder))
    (folder / "label2id.json").write_text(json.dumps(LABELS))
    rows = DataSets(splits=["train=train_2020"]).sentences(folder, "train")
    assert rows == [Sentence(["New", "York"], ["B-LOC", "I-LOC"])]


def test_scripts_on_the_hub(monkeypatch, tmp_path):
    def load(*_, revision=None):
        if revision is None:
            raise RuntimeError("Dataset scripts are no longer supported, but found conll2003.py")
        return {"train": datasets.Dataset.from_dict({"tokens": [["Ulm"]], "tags": [[1]]})}

    files = "huggingface_hub.HfApi.list_repo_files"
    monkeypatch.setattr(files, lambda *_, repo_type: ["README.md", "dataset/label.json"])
    monkeypatch.setattr(
        "huggingface_hub.HfApi.hf_hub_download",
        lambda _, name, file, repo_type: str(tmp_path / file),
    )
    monkeypatch.setattr("datasets.load_dataset", load)
    with pytest.raises(
        UserError, match=r"hf:tner/conll2003: this set is a Python script, .*parquet"
    ):
        DataSets().sentences("hf:tner/conll2003", "train")
    write(tmp_path, {"dataset/label.json": json.dumps(LABELS)})
    sets = DataSets(revision="refs/convert/parquet")
    assert sets.sentences("hf:tner/conll2003", "train") == [Sentence(["Ulm"], ["B-LOC"])]
    monkeypatch.setattr(files, lambda *_, repo_type: ["README.md"])
    with pytest.raises(UserError, match="numbers without names; save them as ClassLabel, or put"):
        sets.sentences("hf:tner/conll2003", "train")

    def fails(*_, repo_type):
        raise OSError("no route")

    monkeypatch.setattr(files, fails)
    with pytest.raises(UserError, match=r"^hf:tner/conll2003: no route; is the name right, and"):
        sets.sentences("hf:tner/conll2003", "train")


def test_languages_that_a_source_has(tmp_path):
    with pytest.raises(UserError, match=r"wikineural/ja: .* has de, en, es, fr, .*; for others"):
        DataSets().sentences("wikineural/ja", "train")


def test_wikiann_in_all_languages_of_pan_x(tmp_path):
    """In the folders of XTREME, also where a folder of languages or of splits is the outer one."""
    sets = DataSets(str(tmp_path))
    with pytest.raises(UserError, match=r"wikiann/ko: .* is missing; unpack panx_dataset.zip of X"):
        sets.sentences("wikiann/ko", "train")
    with pytest.raises(UserError, match="it is not downloaded; unpack panx_dataset"):
        sets_files(SetsOptions(data=("wikiann/ko",)), None)
    text = PAN_X.replace("en:", "ko:")
    write(tmp_path, {"panx/ko/train": text, "panx/test-ko.tsv": text})
    for split in ("train", "test"):
        rows = sets.sentences("wikiann/ko", split)
        assert [row.tokens for row in rows] == [["R.H.", "Saunders", "12:30"], [";"]]
    known = known_set("wikiann/ko")
    assert (known.language, sets.exists(known, "dev")) == ("ko", False)


def test_types_of_several_sets_have_one_name(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, {"train.txt": "Ulm B-LOC\nAda B-Poet\n"})
    write(other, {"train.txt": "Rom B-Location\nEmmy B-poet\n"})
    both = DataSets(view=View("unified")).sentences([one, other], "train")
    assert [row.tags for row in both] == [["B-location", "B-poet"]] * 2
    assert DataSets().sentences(one, "train")[0].tags == ["B-LOC", "B-Poet"]


def test_two_roots_in_one_process(tmp_path):
    """Sets of the same name with other words are never the same run."""
    keys = []
    for root, word in (("a", "Ulm"), ("b", "Rom"), ("c", "Ulm"), ("a", "Ulm")):
        write(tmp_path / root / "wikigold", {"wikigold.conll.txt": f"{word} B-LOC\n"})
        store = ResultStore(tmp_path, DataSets(tmp_path / root))
        keys.append(store.key(Run("model", "wikigold", FitSettings())))
    assert keys[0] == keys[2] == keys[3] != keys[1]
