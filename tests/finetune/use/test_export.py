"""Exports, read back by the tool that each is for."""

import dataclasses
import json
import os
import pickle
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from finetune.data import conll
from finetune.tagger.entities import Entity
from finetune.use import formats, gliner
from finetune.use.labelled import Labelled
from nerbert.commands.table import main
from nerbert.errors import UserError
from nerbert.seams import parts
from nerbert.text.columns import Sentence
from nerbert.text.corpus import load_corpus
from nerbert.text.tags import tags_to_spans
from tests.helpers.lazy import lazy
from tests.helpers.toy import rows, write_set

onnx = lazy("finetune.tagger.onnx")
onnx_file = lazy("finetune.use.onnx_file")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")

TEXT = "  Ada Byron\tlived in  Ulm. Emmy Noether lived\u00a0in Rom \n"
SENTENCE = Sentence(["Ada", "Byron", "in", "Ulm"], ["B-person", "I-person", "O", "B-city"])


@pytest.fixture(scope="module")
def toy_set(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("sets") / "toy")


@pytest.fixture(scope="module")
def labelled(fitted):
    (found,) = fitted.predictions([TEXT])
    assert len(found.entities) == 4
    return [Labelled.of_sentence(SENTENCE), Labelled.of_prediction(TEXT, found)]


def test_spacy_reads_the_doc_bin(labelled, tmp_path):
    spacy = pytest.importorskip("spacy")
    assert formats.write_spacy(labelled, tmp_path / "x.spacy") == 2
    docs = spacy.tokens.DocBin().from_disk(tmp_path / "x.spacy").get_docs(spacy.blank("en").vocab)
    for row, doc in zip(labelled, docs, strict=True):
        assert doc.text == row.text
        found = [(span.start_char, span.end_char, span.label_) for span in doc.ents]
        assert found == [(one.start, one.end, one.type) for one in row.entities]


def test_mentions_inside_of_mentions(tmp_path):
    spacy = pytest.importorskip("spacy")
    sentence = Sentence("at Ulm University in Rom".split(), "O B-school I-school O B-city".split())
    row = Labelled.of_sentence(sentence, inner=[(1, 2, "city")])
    gliner.write_gliner([row], tmp_path / "x.json")
    (example,) = json.loads((tmp_path / "x.json").read_text())
    assert example["ner"] == [[1, 1, "city"], [1, 2, "school"], [4, 4, "city"]]
    formats.write_spacy([row], tmp_path / "x.spacy")
    (doc,) = spacy.tokens.DocBin().from_disk(tmp_path / "x.spacy").get_docs(spacy.blank("en").vocab)
    assert [(str(span), span.label_) for span in doc.ents] == [
        ("Ulm University", "school"),
        ("Rom", "city"),
    ]
    assert [str(span) for span in doc.spans["sc"]] == ["Ulm", "Ulm University", "Rom"]


def test_weak_labels_are_a_corpus(labelled, fitted, tmp_path):
    """Words of mentions with a small score have no label; texts without words no example."""
    (found,) = fitted.predictions([TEXT])
    middle = sorted(one.score for one in found.entities)[2]
    weak = Labelled.of_prediction(TEXT, found, middle)
    assert [one.score >= middle for one in weak.entities] == [True, True]
    empty = Labelled("", [], [], [], True, [])
    rows = [weak, empty, *labelled * 12]
    assert formats.write_corpus(rows, tmp_path / "weak") == 25
    corpus = load_corpus(tmp_path / "weak")
    assert sorted(corpus.labels.categories) == ["city", "person"]
    assert [sum(corpus.rows[split]) for split in ("train", "validation")] == [24, 1]
    read = list(corpus.sentences("train"))
    assert [row.tags for row in read[:3]] == [weak.tags, SENTENCE.tags, labelled[1].tags]
    first = corpus.table("train").slice(0, 1).to_pylist()[0]
    assert first["id"] == "1"
    places = [(first["token_starts"][n], w) for n, w in enumerate(first["tokens"])]
    assert all(TEXT[start : start + len(word)] == word for start, word in places)
    lost = [one for one in found.entities if one.score < middle]
    masked = [
        start for (start, _), is_lost in zip(places, first["unlinked"], strict=True) if is_lost
    ]
    assert len(lost) == 2
    assert all(any(one.start <= start < one.end for one in lost) for start in masked)
    assert {one.start for one in lost} <= set(masked)
    none = Labelled.of_prediction(TEXT, found, 1.0)
    with pytest.raises(UserError, match="no mention in 1 texts; give other --types"):
        formats.write_corpus([none], tmp_path / "none")
    with pytest.raises(UserError, match="no corpus"):
        load_corpus(tmp_path / "none")


@pytest.mark.parametrize("token", ["a\tb", "a\n", "\r", "-DOCSTART-", ""])
def test_tokens_that_a_format_cannot_hold(token, tmp_path):
    given = [Sentence([word, "Ulm"], ["O", "B-x"]) for word in ("in", token)]
    rows = list(map(Labelled.of_sentence, given))
    refusing = formats.write_conll if token else formats.write_spacy
    with pytest.raises(UserError) as error:
        refusing(rows, tmp_path / "out")
    assert str(error.value).startswith(f"text 2: the token {token!r} cannot ")
    assert str(error.value).endswith("; choose --format jsonl")
    assert not (tmp_path / "out").exists()
    others = [write for write in parts("exports").values() if write is not refusing]
    assert [write(rows, tmp_path / f"out{n}") for n, write in enumerate(others)] == [2] * 5


def test_conll_and_json_lines_are_sets(labelled, tmp_path):
    assert formats.write_conll(labelled, tmp_path / "x.txt") == 2
    found = conll.read(tmp_path / "x.txt")
    assert [(row.tokens, row.tags) for row in found] == [(row.tokens, row.tags) for row in labelled]
    assert formats.write_jsonl(labelled, tmp_path / "x.jsonl") == 2
    found = conll.read(tmp_path / "x.jsonl")
    for row, one in zip(found, labelled, strict=True):
        texts = [" ".join(row.tokens[start:end]) for start, end, _ in tags_to_spans(row.tags)]
        assert texts == [entity.text for entity in one.entities]


PEER = """
import json, sys
from gliner.data_processing.processor import UniEncoderSpanProcessor
rows = json.load(open(sys.argv[1]))
from gliner.data_processing import WordsSplitter
from gliner.config import UniEncoderSpanConfig
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
one = UniEncoderSpanProcessor(UniEncoderSpanConfig(), tokenizer, WordsSplitter("whitespace"))
for row in rows:
    found = one.preprocess_example(
        row["tokenized_text"], row["ner"], {"person": 1, "city": 2})
    label = found["span_label"]
    spans = found["span_idx"][label > 0].tolist()
    print(json.dumps(sorted([*span, int(kind)] for span, kind in zip(spans, label[label > 0]))))
"""


def peer(code, *arguments):
    """Runs code in the environment of other tools, which NERBERT_PEERS names."""
    python = os.environ.get("NERBERT_PEERS")
    if python is None:
        pytest.skip("NERBERT_PEERS: a Python with gliner and label-studio-sdk")
    done = subprocess.run(
        [python, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gliner_rows(labelled, tmp_path):
    assert gliner.write_gliner(labelled, tmp_path / "x.json") == 2
    found = json.loads((tmp_path / "x.json").read_text())
    assert found[0] == {
        "tokenized_text": ["Ada", "Byron", "in", "Ulm"],
        "ner": [[0, 1, "person"], [3, 3, "city"]],
    }
    for row, one in zip(found, labelled, strict=True):
        words = row["tokenized_text"]
        texts = [" ".join(words[first : last + 1]) for first, last, _ in row["ner"]]
        assert texts == [entity.text for entity in one.entities]


def test_gliner_learns_nothing_false(tmp_path):
    """No name of unknown type is a negative, no class that a mention has by its chain either."""
    city = Sentence("Ada lived in Ulm".split(), ["B-Person", "O", "O", "B-City"])
    link = Sentence("Ada wrote Notes".split(), ["B-Person", "O", "B-ENTITY"])
    place = Sentence("Europe and Asia".split(), ["B-PopulatedPlace", "O", "B-PopulatedPlace"])
    party = Sentence("The CDU".split(), ["O", "B-PoliticalParty"])
    rows = [
        Labelled.of_sentence(city),
        Labelled.of_sentence(link),
        Labelled.of_sentence(city, unlinked=[False, True, False, False]),
        *[Labelled.of_sentence(row) for row in (place, party, city) * 20],
    ]
    assert gliner.write_gliner(rows, tmp_path / "x.json") == 61
    found = json.loads((tmp_path / "x.json").read_text())
    kinds = {name for row in found for *_, name in row["ner"]}
    assert kinds == {"person", "city", "populated place", "political party"}
    drawn = set()
    for row in found:
        own = {name for *_, name in row["ner"]}
        drawn |= {(name, other) for name in own for other in row.get("ner_negatives", ())}
    assert ("populated place", "person") in drawn
    assert ("city", "political party") in drawn
    assert not drawn & {("city", "populated place"), ("populated place", "city")}
    assert all(name != other for name, other in drawn)
    gliner.write_gliner(rows, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "x.json").read_bytes()


def test_a_corpus_for_gliner(demo, tmp_path, capsys):
    corpus = demo[0] / "corpus"
    flags = ["export", "--format", "gliner", "--data", str(corpus), "--output"]
    assert main([*flags, str(tmp_path / "x.json")]) == 0
    rows = json.loads((tmp_path / "x.json").read_text())
    left_out = sum(load_corpus(corpus).rows["train"]) - len(rows)
    assert f": {len(rows):,} texts, {left_out:,} with names of unknown type left out" in (
        capsys.readouterr().out
    )
    assert len(rows) > 50
    assert not {"ENTITY", "entity"} & {name for row in rows for *_, name in row["ner"]}


@pytest.mark.slow
def test_gliner_reads_them(labelled, base, tmp_path):
    gliner.write_gliner(labelled, tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text())
    kinds = {"person": 1, "city": 2}
    out = [json.loads(line) for line in peer(PEER, tmp_path / "x.json", base).splitlines()]
    assert out == [sorted([a, b, kinds[kind]] for a, b, kind in row["ner"]) for row in rows]


STUDIO = """
import sys
from label_studio_sdk.converter import Converter
Converter(sys.argv[2], sys.argv[3], output_tags=None).convert_to_conll2003(
    sys.argv[1], sys.argv[3], is_dir=False)
"""


def test_label_studio_tasks(labelled, tmp_path):
    assert formats.write_label_studio(labelled, tmp_path / "x.json") == 2
    tasks = json.loads((tmp_path / "x.json").read_text())
    assert [set(task) for task in tasks] == [
        {"id", "data", "annotations"},
        {"id", "data", "predictions"},
    ]
    view = ElementTree.parse(tmp_path / "x.xml").getroot()
    names = {one.get("value") for one in view.iter("Label")}
    (control,) = view.iter("Labels")
    for task, row in zip(tasks, labelled, strict=True):
        (source,) = (task[kind] for kind in task if kind not in ("id", "data"))
        for region, entity in zip(source[0]["result"], row.entities, strict=True):
            value = region["value"]
            assert task["data"]["text"][value["start"] : value["end"]] == value["text"]
            assert value["labels"] == [entity.type]
            assert set(value["labels"]) <= names
            assert (region["from_name"], region["to_name"]) == (
                control.get("name"),
                control.get("toName"),
            )


@pytest.mark.slow
def test_label_studio_reads_them(labelled, tmp_path):
    rows = [labelled[0], Labelled.of_sentence(SENTENCE)]
    formats.write_label_studio(rows, tmp_path / "x.json")
    peer(STUDIO, tmp_path / "x.json", tmp_path / "x.xml", tmp_path / "out")
    lines = (tmp_path / "out" / "result.conll").read_text().splitlines()
    found = [
        (line.split()[0], line.split()[-1]) for line in lines if line and "DOCSTART" not in line
    ]
    assert found == list(zip(SENTENCE.tokens, SENTENCE.tags, strict=True)) * 2


def test_the_command_for_sets_and_texts(saved, toy_set, tmp_path, capsys):
    output = tmp_path / "x.jsonl"
    flags = ["export", "--format", "jsonl", "--output", str(output)]
    assert main([*flags, "--data", str(toy_set), "--part", "test"]) == 0
    assert capsys.readouterr().out == f"{output}: 12 texts\n"
    assert main([*flags, "--data", str(toy_set)]) == 2
    assert "--output" in capsys.readouterr().err
    output.unlink()
    (tmp_path / "in.txt").write_text("Ada Byron lived in Ulm\n")
    assert main([*flags, "--model", saved, "--input", str(tmp_path / "in.txt")]) == 0
    row = json.loads(output.read_text())
    assert [entity["text"] for entity in row["entities"]] == ["Ada Byron", "Ulm"]
    for wrong in (["--model", saved], ["--data", "x", "--input", "y"]):
        assert main([*flags[:3], *wrong]) == 2
        assert "give --data SET, or --model with --input FILE" in capsys.readouterr().err


def test_a_corpus(demo, tmp_path, capsys):
    folder, _, _ = demo
    output = tmp_path / "x.txt"
    flags = ["--data", str(folder / "corpus"), "--part", "dev", "--output", str(output)]
    assert main(["export", "--format", "conll", *flags]) == 0
    assert len(conll.read(output)) > 5


def test_label_studio_has_all_types_of_the_tagger(saved, tmp_path):
    """People give a mention a type that the tagger has not found in these texts."""
    (tmp_path / "x.txt").write_text("Nothing here\n")
    flags = ["--model", saved, "--input", tmp_path / "x.txt", "--output", tmp_path / "x.json"]
    assert main(["export", "--format", "label-studio", *map(str, flags)]) == 0
    view = ElementTree.parse(tmp_path / "x.xml")
    labels = [label.get("value") for label in view.iter("Label")]
    assert labels == sorted(tagger.Tagger.load(saved).types) != []


def test_files_of_yours_are_left_alone(saved, toy_set, tmp_path, capsys):
    (tmp_path / "x.xml").write_text("mine")
    flags = ["export", "--format", "label-studio", "--data", str(toy_set)]
    assert main([*flags, "--output", str(tmp_path / "x.json")]) == 2
    assert f"{tmp_path / 'x.xml'} is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x.xml"]
    folder = shutil.copytree(saved, tmp_path / "tagger")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_text("mine")
    assert main(["export", "--format", "onnx", "--model", str(folder)]) == 2
    assert "model.onnx: no run made it; move it away first" in capsys.readouterr().err
    assert (folder / "onnx" / "model.onnx").read_text() == "mine"
    shutil.rmtree(folder / "onnx")
    (tmp_path / "elsewhere").mkdir()
    (folder / "onnx").symlink_to(tmp_path / "elsewhere")
    assert main(["export", "--format", "onnx", "--model", str(folder)]) == 2
    assert "onnx: not a folder of ours; move it away" in capsys.readouterr().err
    (tmp_path / "lost.txt").symlink_to(tmp_path / "nowhere")
    for command in (["export", "--format", "conll", "--data"], ["predict", "Ulm", "--model"]):
        given = str(toy_set) if command[0] == "export" else str(saved)
        assert main([*command, given, "--output", str(tmp_path / "lost.txt")]) == 2
        assert "is there already; choose another name" in capsys.readouterr().err
    assert (tmp_path / "lost.txt").is_symlink()


def test_what_lies_beside_an_export_is_left_alone(exported, tmp_path, capsys):
    folder = shutil.copytree(exported, tmp_path / "tagger")
    (folder / "onnx" / "notes.txt").write_text("mine")
    (folder / "onnx.tmp").mkdir()
    (folder / "onnx.tmp" / "notes.txt").write_text("mine")
    assert main(["export", "--format", "onnx", "--model", str(folder)]) == 2
    assert "notes.txt: no run made it; move it away first" in capsys.readouterr().err
    (folder / "onnx" / "notes.txt").unlink()
    assert main(["export", "--format", "onnx", "--model", str(folder)]) == 0
    assert (folder / "onnx.tmp" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("flags", [("--types", "city"), ("--min-score", "0.5")])
def test_flags_of_a_tagger_need_texts(flags, toy_set, tmp_path, capsys):
    """They would change nothing, and nobody would notice."""
    where = ("--format", "conll", "--data", str(toy_set), "--output", str(tmp_path / "x"))
    assert main(["export", *where, *flags]) == 2
    assert "only for --model with --input FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("--format onnx --model x --output y", "--output: the files lie in the checkpoint"),
        ("--format int8 --model x --data y", "--data: the files lie in the checkpoint"),
        ("--format jsonl --data x --output -", "--output -: this format is a file; name one"),
    ],
)
def test_outputs_that_would_not_be_there(flags, problem, capsys):
    assert main(["export", *flags.split()]) == 2
    assert problem in capsys.readouterr().err


def test_a_file_appears_whole_or_not_at_all(labelled, tmp_path):
    def broken():
        yield labelled[0]
        raise RuntimeError

    for writer in parts("exports").values():
        with pytest.raises(RuntimeError):
            writer(broken(), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def exported(fitted, tmp_path_factory):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    folder = tmp_path_factory.mktemp("onnx") / "tagger"
    fitted.save(folder)
    assert main(["export", "--format", "int8", "--model", str(folder)]) == 0
    return folder


def test_onnx_says_what_torch_says(exported, capsys):
    texts = [" ".join(row.tokens) for row in rows(30)] + ["", "x", "Ulm " * 300]
    by = {
        backend: tagger.Tagger.load(exported, backend=backend, device="cpu").predictions(
            texts, probabilities=True
        )
        for backend in ("torch", "onnx", "int8", "auto")
    }
    for one, other, auto in zip(by["torch"], by["onnx"], by["auto"], strict=True):
        assert one.tags == other.tags == auto.tags
        assert np.abs(one.probabilities - other.probabilities).max(initial=0) < 1e-4
    pairs = [
        tags
        for one, other in zip(by["torch"], by["int8"], strict=True)
        for tags in zip(one.tags, other.tags, strict=True)
    ]
    assert sum(one == other for one, other in pairs) > 0.9 * len(pairs)


def test_onnx_of_other_weights_is_not_used(exported, tmp_path, fitted, capsys):
    folder = tmp_path / "tagger"
    shutil.copytree(exported, folder)
    path, facts = onnx.beside(str(folder), "onnx")
    assert (path, facts.tags) == (folder / "onnx" / "model.onnx", fitted.tags)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    assert onnx.beside(str(folder), "onnx") is None
    code = main(["predict", "--model", str(folder), "--backend", "onnx", "Ulm"])
    assert code == 2
    assert "no model.onnx of these weights; run nerbert export --format onnx" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["config.json", "onnx/tokenizer.json"])
def test_onnx_of_other_tags_or_sub_words_is_not_used(exported, tmp_path, name):
    shutil.copytree(exported, tmp_path / "tagger")
    path = tmp_path / "tagger" / name
    path.write_bytes(path.read_bytes() + b" ")
    assert onnx.beside(str(tmp_path / "tagger"), "onnx") is None


def test_onnx_needs_neither_torch_nor_transformers(exported):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers', 'datasets'])); "
        "from nerbert.commands.table import main; "
        "raise SystemExit(main(sys.argv[1:]))"
    )
    arguments = ["predict", "--model", str(exported), "--device", "cpu", TEXT]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["entities"]
    assert found == [
        dataclasses.asdict(entity) | {"score": round(entity.score, 4)}
        for entity in tagger.Tagger.load(exported, backend="onnx", device="cpu").predict(TEXT)
    ]


def test_the_model_and_a_copy_of_a_tagger_by_onnx(exported, tmp_path, fitted):
    loaded = tagger.Tagger.load(exported, backend="onnx", device="cpu")
    loaded.save(tmp_path / "copy")
    again = tagger.Tagger.load(tmp_path / "copy", device="cpu")
    assert again.predict(TEXT) == fitted.predict(TEXT)
    assert loaded.model.config.id2label == fitted.model.config.id2label


@pytest.mark.parametrize("content", [None, b"torn"])
def test_a_torn_file_is_not_used(exported, tmp_path, capsys, content):
    shutil.copytree(exported, tmp_path / "tagger")
    path = tmp_path / "tagger" / "onnx" / "model.onnx"
    path.unlink() if content is None else path.write_bytes(content)
    arguments = ["predict", "--model", str(tmp_path / "tagger"), "Ulm"]
    assert main([*arguments, "--backend", "onnx"]) == 2
    assert "no model.onnx of these weights; run nerbert export" in capsys.readouterr().err
    assert main(arguments) == 0  # by torch


def test_edited_facts_are_not_used(exported, tmp_path):
    """Other tags, or no sub-words, in export.json would give other entities, or a traceback."""
    shutil.copytree(exported, tmp_path / "tagger")
    path = tmp_path / "tagger" / "onnx" / "export.json"
    record = json.loads(path.read_text())
    for key, value in (
        ("tags", record["tagger"]["tags"][::-1]),
        ("max_subwords", 0),
        ("pad", "x"),
        ("head", None),
        ("mention_scores", {"slope": -1}),
    ):
        path.write_text(json.dumps({**record, "tagger": {**record["tagger"], key: value}}))
        assert onnx.beside(str(tmp_path / "tagger"), "onnx") is None
        loaded = tagger.Tagger.load(tmp_path / "tagger", device="cpu")
        assert loaded.predict(TEXT) == tagger.Tagger.load(exported, backend="torch").predict(TEXT)
    path.write_text(json.dumps({**record, "digest": 5}))
    assert onnx.beside(str(tmp_path / "tagger"), "onnx") is None


def test_a_machine_without_onnx_runtime_uses_torch(exported, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    flags = ["predict", "--model", str(exported), "--device", "cpu", TEXT]
    assert main(flags) == 0
    assert len(json.loads(capsys.readouterr().out)["entities"]) == 4
    assert main([*flags, "--backend", "onnx"]) == 2
    assert "onnxruntime is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_taggers_can_be_pickled(exported, backend):
    """For pools of processes, joblib and spaCy's `to_pickle`."""
    loaded = tagger.Tagger.load(exported, backend=backend, device="cpu")
    again = pickle.loads(pickle.dumps(loaded))
    assert again.predict(TEXT) == loaded.predict(TEXT)
    assert again.min_score == loaded.min_score


def test_predict_uses_the_file(exported, capsys, monkeypatch):
    used = []
    before = onnx.OnnxModel.__call__
    monkeypatch.setattr(
        "finetune.tagger.onnx.OnnxModel.__call__",
        lambda self, *a, **k: used.append(1) or before(self, *a, **k),
    )
    assert main(["predict", "--model", str(exported), "--device", "cpu", TEXT]) == 0
    assert used
    found = json.loads(capsys.readouterr().out)
    assert len(found["entities"]) == 4


def test_mentions_of_sentences_have_offsets():
    row = Labelled.of_sentence(SENTENCE)
    assert row.text == "Ada Byron in Ulm"
    assert row.entities == [
        Entity(0, 9, "person", 1.0, "Ada Byron"),
        Entity(13, 16, "city", 1.0, "Ulm"),
    ]


def test_sentences_of_a_corpus_keep_their_text(demo, tmp_path):
    """As the dump has it: 'Padua.', not 'Padua .'; by the documents that the run kept."""
    out = tmp_path / "demo.jsonl"
    corpus = demo[0] / "corpus"
    assert main(["export", "--format", "jsonl", "--data", str(corpus), "--output", str(out)]) == 0
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    parts = [pq.read_table(path) for path in (demo[0] / "documents").glob("part-*.parquet")]
    texts = {row["page_id"]: row["text"] for part in parts for row in part.to_pylist()}
    rows_here = load_corpus(corpus).table("train").to_pylist()
    assert len(written) == len(rows_here) > 100
    for one, row in zip(written, rows_here, strict=True):
        whole = texts[row["page_id"]][row["start"] : row["end"]]
        assert one["text"] == whole
        assert all(whole[e["start"] : e["end"]] == e["text"] for e in one["entities"])
