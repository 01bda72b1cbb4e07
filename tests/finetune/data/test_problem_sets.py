"""Sets and checkpoints after public bug reports: read right, or refused with the place."""

import json
import runpy
import sys
from itertools import count

import pytest

from finetune.data import conll
from finetune.data.sets import DataSets
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import tags_to_spans
from tests.helpers.lazy import lazy
from tests.helpers.runs import run

datasets = lazy("datasets")

WORDS = "Ada Byron left New York".split()


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("PER PER O LOC LOC", "IO"),
        ("person-writer person-writer O place-GPE place-GPE", "IO"),
        ("I-PER I-PER O I-LOC I-LOC", "IOB1"),
        ("B_PER I_PER O B_LOC I_LOC", "IOB2"),
        ("b-per i-per o b-loc i-loc", "IOB2"),
        ("PER-B PER-I O LOC-B LOC-I", "IOB2"),
        ("B-PER E-PER O B-LOC E-LOC", "IOBES"),
        ("B-PER L-PER O B-LOC L-LOC", "BILOU"),
        ("B-PER E-PER O M-LOC E-LOC", "BMES"),
        ("B-a-b I-a-b O B-c-d I-c-d", "IOB2"),
    ],
)
def test_all_readers_know_all_schemes(tmp_path, tags, scheme):
    """Columns, JSON, saved folders, and sentences from Python: one reader of tags."""
    tags = tags.split()
    pairs = list(zip(WORDS, tags, strict=True))
    (tmp_path / "set.txt").write_text("".join(f"{word} {tag}\n" for word, tag in pairs))
    (tmp_path / "set.jsonl").write_text(json.dumps({"tokens": WORDS, "tags": tags}))
    table = datasets.Dataset.from_dict({"words": [WORDS], "ner": [tags]})
    datasets.DatasetDict({"train": table}).save_to_disk(str(tmp_path / "hub"))
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=sorted(set(tags)))),
        }
    )
    table = datasets.Dataset.from_dict({"tokens": [WORDS], "ner_tags": [tags]}, features)
    datasets.DatasetDict({"train": table}).save_to_disk(str(tmp_path / "labels"))
    names = {tag: number for number, tag in enumerate(sorted(set(tags)))}
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "label2id.json").write_text(json.dumps(names))
    rows = json.dumps([{"tokens": WORDS, "tags": [names[tag] for tag in tags]}])
    (tmp_path / "numbers" / "train.json").write_text(rows)
    found = conll.read(tmp_path / "set.txt")
    kinds = [tag.strip("-_")[2:] if scheme != "IO" else tag for tag in tags]
    kinds = [tag[:-2] for tag in tags] if tags[0].endswith("-B") else kinds
    assert found.scheme.name == scheme
    spans = [(0, 2, kinds[0]), (3, 5, kinds[3])]
    assert tags_to_spans(found[0].tags) == spans
    for name in ("set.jsonl", "hub", "labels", "numbers"):
        assert DataSets().sentences(tmp_path / name, "train") == list(found), name
    rows = [{"tokens": WORDS, "tags": tags}]
    assert DataSets().sentences(rows, "train") == list(found)
    assert DataSets().sentences([Sentence(WORDS, tags)], "train") == list(found)


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ("B I O O O", "tag 'B': it has no type"),
        ("B-PER I-PER O LOC O", "tag 'LOC': it has no prefix, but 'B-LOC' has one"),
        ("B-PER I-PER O 1 O", "tag '1': it has no type"),
        ("PER PER NONE LOC LOC", "tag 'PER': no prefix such as B-, and no tag is O"),
        ("NN NN VB NN NN", "tag 'NN': no prefix such as B-, and no tag is O"),
        ("B-PER I-PER O _ _", "tag '_': it has no type"),
    ],
)
def test_other_tags_are_refused_with_their_place(tmp_path, tags, told):
    """The bad sentence is between good ones, where the set has any."""
    good = "" if "no tag is O" in told else "in O\nUlm B-LOC\n\n"
    tags, bad = tags.split(), ""
    bad = "".join(f"{word} {tag}\n" for word, tag in zip(WORDS, tags, strict=True))
    if told.startswith("tag 'B'"):
        good = "in O\n\n"
    (tmp_path / "set.txt").write_text(f"{good}{bad}\n{good}")
    with pytest.raises(UserError, match=rf"set\.txt: line \d: .*{told}"):
        conll.read(tmp_path / "set.txt")
    rows = [{"tokens": ["in"], "tags": ["O"]}] * bool(good) + [{"tokens": WORDS, "tags": tags}]
    if told.endswith("has one"):
        rows[0] = {"tokens": ["in", "Ulm"], "tags": ["O", "B-LOC"]}
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match=rf"set\.jsonl: line {len(rows)}: {told}"):
        conll.read(tmp_path / "set.jsonl")
    with pytest.raises(UserError, match=rf"sentence {len(rows) - 1}: {told}"):
        DataSets().sentences(rows, "train")


@pytest.mark.parametrize("tag", [None, True, 1.5, [0, 1, "person"], {}])
def test_tags_that_are_no_texts(tmp_path, tag):
    (tmp_path / "set.jsonl").write_text(json.dumps({"tokens": ["Ulm"], "tags": [tag]}))
    with pytest.raises(UserError, match=r"line 1: tag .* is no text such as B-PER"):
        conll.read(tmp_path / "set.jsonl")


CONLL2003 = "EU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nUlm NNP B-NP I-LOC\nis VBZ I-VP O\n"
LAYERS = "1\tDer\tO\tO\n2\tFC\tB-ORG\tO\n3\tUlm\tI-ORG\tB-LOC\n\n1\tBern\tB-LOC\tO\n"


def test_two_columns_of_tags_ask_which(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_text(LAYERS)
    with pytest.raises(
        UserError, match=r"columns 3 and 4 both hold tags; say which, such as --col"
    ):
        conll.read(path)
    assert conll.read(path, "word=2,tag=3")[0].tags == ["O", "B-ORG", "I-ORG"]
    assert conll.read(path, "word=2,tag=4")[0].tags == ["O", "O", "B-LOC"]
    path.write_text(LAYERS.replace("B-LOC", "O"))  # a nested layer without mentions
    with pytest.raises(UserError, match=r"columns 3 and 4 both hold tags"):
        conll.read(path)
    path.write_text(LAYERS.replace("B-", "").replace("I-", ""))  # types without prefixes
    with pytest.raises(UserError, match=r"columns 3 and 4 both hold tags"):
        conll.read(path)
    path.write_text(CONLL2003)  # phrases are no entities
    assert conll.read(path)[0].tags == ["B-ORG", "O"]
    rows = {"tokens": ["FC", "Ulm"], "ner_tags": ["B-ORG", "I-ORG"], "tags": ["O", "B-LOC"]}
    (tmp_path / "set.jsonl").write_text(json.dumps(rows))
    with pytest.raises(UserError, match="line 1: ner_tags and tags both hold tags; say which"):
        conll.read(tmp_path / "set.jsonl")
    assert conll.read(tmp_path / "set.jsonl", "word=tokens,tag=tags")[0].tags == ["O", "B-LOC"]
    table = datasets.Dataset.from_dict({name: [row] for name, row in rows.items()})
    datasets.DatasetDict({"train": table}).save_to_disk(str(tmp_path / "hub"))
    with pytest.raises(UserError, match="hub: ner_tags and tags both hold tags; say which"):
        DataSets().sentences(tmp_path / "hub", "train")
    sets = DataSets(columns="word=tokens,tag=tags")
    assert sets.sentences(tmp_path / "hub", "train")[0].tags == ["O", "B-LOC"]


@pytest.mark.parametrize(
    "first",
    ["1 2 3 4", "0-2 3-7 0-3 4-6", "s1 s1 s2 s2", "d.7 d.7 e.8 e.8", "Page Page Other Other"],
    ids=["document", "ranges", "sentences", "documents", "titles"],
)
def test_columns_of_numbers_or_ids_are_no_words(tmp_path, first):
    cells = zip(first.split(), "In Bern Ulm is".split(), "O B-LOC B-LOC O".split(), strict=True)
    lines = ["\t".join(row) for row in cells]
    path = tmp_path / "set.tsv"
    path.write_text("\n".join([*lines[:2], "", *lines[2:], ""]))
    with pytest.raises(UserError, match=r"set\.tsv: the words are numbers or ids .*--columns"):
        conll.read(path)
    assert [row.tokens for row in conll.read(path, "word=2,tag=3")] == [
        ["In", "Bern"],
        ["Ulm", "is"],
    ]
    index = SentenceIndex.of_files([Place(path)], "word=2,tag=3")
    assert list(index.hits("In Bern")) == [("equal", 0, 0)]


def test_columns_by_name(tmp_path):
    path = tmp_path / "set.tsv"
    for header in ("# global.columns = ID FORM NER", "ID\tFORM\tNER"):
        path.write_text(f"{header}\n# text = In O\n1\tIn\tO\n2\tBern\tB-LOC\n")
        found = conll.read(path, "word=FORM,tag=NER")
        assert list(found) == [Sentence(["In", "Bern"], ["O", "B-LOC"])]
        with pytest.raises(UserError, match=r"no column 'TAG'; the first line has ID, FORM, NER"):
            conll.read(path, "word=FORM,tag=TAG")
    for wrong in ("2,3", "word=2", "word=2,tag=2", "word=0,tag=1"):
        with pytest.raises(UserError, match="write word=2,tag=3: two columns, by number from 1"):
            conll.read(path, wrong)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_line_ends(tmp_path, end):
    path = tmp_path / "set.txt"
    path.write_bytes(f"New\tB-LOC{end}York\tI-LOC{end}{end}Bern\tB-LOC{end}".encode())
    assert [row.tokens for row in conll.read(path)] == [["New", "York"], ["Bern"]]


@pytest.mark.parametrize(
    "comment",
    ["# sent_id = B-0001", "# text = vitamin O", "#\tdoc\tI-95", "# text = O", "# O", "# newdoc"],
)
@pytest.mark.parametrize("between", [" ", "\t"])
def test_comments_are_no_tokens(tmp_path, comment, between):
    rows = [("Bern", "NNP", "B-LOC"), ("is", "VB", "O")]
    if comment.startswith("#\t"):
        rows = [(word, tag) for word, _, tag in rows]
    sentence = "".join(between.join(row) + "\n" for row in rows)
    (tmp_path / "set.txt").write_text(f"{comment}\n{sentence}\n{comment}\n{sentence}")
    assert [row.tokens for row in conll.read(tmp_path / "set.txt")] == [["Bern", "is"]] * 2


def test_a_hash_may_be_a_token(tmp_path):
    (tmp_path / "set.txt").write_text("#\tO\n#ulm\tB-LOC\n# 1\tO\n")
    assert conll.read(tmp_path / "set.txt")[0].tokens == ["#", "#ulm", "# 1"]


def test_sets_of_reports(shared):
    folder = shared / "reports" / "sets"
    refused = {}
    for name, expected in json.loads((folder / "expected.json").read_text()).items():
        try:
            rows = conll.read(folder / name)
        except UserError as error:
            refused[name] = str(error)
            continue
        if spans := expected.get("spans"):
            found = [[list(span) for span in tags_to_spans(row.tags)] for row in rows]
            assert found == spans, name
        else:
            assert [row.tokens for row in rows] == expected["tokens"], name
    assert all(error.startswith(str(folder / name)) for name, error in refused.items())
    assert {*refused} == {
        "index-of-document.tsv",
        "no-types.jsonl",
        "offsets.tsv",
        "two-layers.tsv",
    }


def test_exclude_reads_the_columns_that_are_asked_for(demo, tmp_path):
    """Words of an index column would find no sentence of the corpus."""
    folder, _, _ = demo
    rows = DataSets().sentences(folder / "corpus", "dev")[:3]
    number, blocks = count(), []
    for row in rows:
        blocks.append("".join(f"{next(number)}\t{word}\tO\n" for word in row.tokens))
    path = tmp_path / "index.tsv"
    path.write_text("\n".join(blocks))
    command = ["--output", tmp_path / "out", "--exclude", path]
    code, _, err = run(*command, cwd=tmp_path)
    assert code == 2
    assert f"--exclude {path}: the words are numbers or ids" in err
    code, _, err = run(*command, "--columns", "word=2,tag=3", cwd=tmp_path)
    assert code == 0, err
    report = json.loads((tmp_path / "out" / "corpus" / "report.json").read_text())
    assert report["contamination"]["files"]["index.tsv"]["equal"] == len(rows)


@pytest.mark.parametrize("case", [0, 1])
def test_checkpoints_of_reports(shared, tmp_path, case, monkeypatch):
    """Labels of IOB1, also where O is not the first, give what transformers' pipeline gives."""
    reports = shared / "reports"
    one = json.loads((reports / "checkpoints.json").read_text())[case]
    arguments = ["word_tagger.py", Place(tmp_path / "m"), one["words"], *one["labels"]]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(reports / "word_tagger.py"))
    code, out, _ = run("--model", tmp_path / "m", one["text"], cwd=tmp_path, name="predict")
    assert code == 0
    found = [[entity["type"], entity["text"]] for entity in json.loads(out)["entities"]]
    assert found == one["entities"]
