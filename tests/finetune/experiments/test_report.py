"""Evaluation and matrices as commands, their tables, plots and what they keep."""

import json

import pytest

from finetune.data import conll
from finetune.data.sets import DataSets
from finetune.experiments.runs import Predictions
from finetune.scoring import metrics, plots
from finetune.scoring.tables import markdown, spread
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text import overlap
from tests.helpers.corpora import simple_corpus
from tests.helpers.runs import call
from tests.helpers.toy import FLAGS, rows, write_set

PNG = b"\x89PNG"


@pytest.fixture
def evaluate(capsys):
    """Runs a command in this process: torch is loaded only once."""

    def called(*command, program="evaluate"):
        code = call(program, *command)
        return code, *capsys.readouterr()

    return called


def test_tables():
    assert spread([]) == "-"
    assert spread([0.5]) == "50.00"
    assert markdown([["a", "b"], ["1", "2"]]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]


def test_shots_and_contamination(evaluate, base, tmp_path):
    folder = write_set(tmp_path / "toy")
    planted = " ".join(rows(1, 53)[0].tokens)  # a test sentence, and others equal to it
    (tmp_path / "corpus.txt").write_text(f"Something else .\n{planted}\nThe end .\n")
    code, out, err = evaluate(
        "--models",
        base,
        "--data",
        folder,
        "--seeds",
        2,
        *FLAGS,
        "--shots",
        4,
        "50%",
        "all",
        "--check-contamination",
        tmp_path / "corpus.txt",
        "--output",
        tmp_path / "report",
    )
    assert code == 0, err
    assert f"| {folder.name}, train sentences | 4 | 50% | all |" in out
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [row["train_sentences"] for row in report["runs"]] == [4, 4, 20, 20, 40, 40]
    same = [n for n, row in enumerate(rows(12, 52)) if " ".join(row.tokens) == planted]
    assert report["contaminated"][str(folder)] == {str(n): "equal" for n in same}
    left = report["runs"][-1]["without_contaminated"]["gold"]
    assert left == report["runs"][-1]["strict"]["gold"] - 2 * len(same)
    assert f"| {folder.name} | 12 | {len(same)} | 0 |" in out
    assert list(report["sets"][str(folder)]["sha256_of_sentences"]) == ["train", "dev", "test"]
    text = (tmp_path / "report" / "report.md").read_text()
    assert text.startswith(out.rstrip("\n"))
    assert text.count("| 555 |") == 3
    assert f"| {folder.name} | 2 | 40 | 12 | 12 | - |" in text
    assert "| city | 12 |" in text
    for name in ("shots", "confusion"):
        (picture,) = (tmp_path / "report").glob(f"{name}-*.png")
        assert picture.read_bytes()[:4] == PNG


def test_zero_shot_of_a_pretrained_tagger(evaluate, saved, tmp_path):
    folder = write_set(tmp_path / "toy", person="PER", city="GPE")
    (tmp_path / "map.toml").write_text('PER = ["person"]\nGPE = ["city"]\n')
    code, out, err = evaluate(
        "--model",
        saved,
        "--data",
        folder,
        "--regime",
        "zero-shot",
        "--label-map",
        tmp_path / "map.toml",
        "--output",
        tmp_path / "report",
    )
    assert code == 0, err
    (result,) = json.loads((tmp_path / "report" / "report.json").read_text())["runs"]
    assert result["strict"]["f1"] == 1
    assert result["train_sentences"] == 0
    assert "regime `zero-shot`" in out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--shots", "no"), "--shots no: give numbers, percentages such as 25%, or all"),
        (("--regime", "joint"), "--regime joint: name the --source"),
        (
            ("--regime", "zero-shot", "--shots", "5"),
            "--shots: zero-shot uses no target sentences for training",
        ),
        (("--label-map", "none.toml"), "--label-map none.toml: "),
        (("--seeds", "9"), "--seeds 9: give at most 5"),
        (("--check-contamination", "nowhere"), "--check-contamination nowhere: "),
    ],
)
def test_bad_flags_are_one_line(evaluate, saved, tmp_path, flags, message):
    folder = write_set(tmp_path / "toy")
    settings = () if "zero-shot" in flags else FLAGS
    code, out, err = evaluate(
        "--model",
        saved,
        "--data",
        folder,
        *settings,
        "--output",
        tmp_path / "report",
        "--seeds",
        1,
        *flags,
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(message)


def test_a_file_that_is_train_and_test(evaluate, base, tmp_path):
    path = write_set(tmp_path / "toy") / "train.txt"
    code, _, err = evaluate("--model", base, "--data", path)
    assert (code, err) == (
        2,
        f"--data {path}: train and test are the same; give a folder with both\n",
    )


@pytest.mark.slow
def test_matrix_goes_on_where_it_was_killed(evaluate, base, tmp_path):
    one, two = write_set(tmp_path / "one"), write_set(tmp_path / "two", person="PER", city="town")
    command = (
        "--model",
        base,
        "--data",
        one,
        two,
        "--seeds",
        1,
        *FLAGS,
        "--output",
        tmp_path / "m",
    )
    code, out, err = evaluate(*command, program="matrix")
    assert code == 0, err
    found = json.loads((tmp_path / "m" / "matrix.json").read_text())
    strict, span = (found["per_cent"][base][name] for name in ("strict", "span"))
    assert all(value > 80 for row in span for value in row)
    # Persons carry over by the unified names, cities and towns do not.
    assert all(strict[n][n] > 80 for n in range(2))
    assert all(30 < strict[n][1 - n] < 70 for n in range(2))
    assert found["per_cent"][base]["shared-label-span"][0][1] > strict[0][1]
    assert len(list((tmp_path / "m").glob("*.png"))) == 4
    assert not list((tmp_path / "m" / "rows").iterdir())
    cells = sorted((tmp_path / "m" / "cells").glob("*.json"))
    assert len(cells) == 4
    cells[0].unlink()
    cells[1].with_suffix(".conll").write_bytes(b"torn")
    code, again, err = evaluate(*command, program="matrix")
    assert (code, again) == (0, out)
    assert err.count(" -> ") == 2
    assert err.count("the result is made again") == 1


def test_contamination_by_ngrams_and_in_a_corpus(tmp_path):
    words = "one two three four five six seven eight nine ten eleven twelve thirteen".split()
    sets = [[["short", "one"], [*words, "fourteen"], words[:12]], [words[1:]]]
    (tmp_path / "x.txt").write_text(f"before {' '.join(words).upper()} after\nSHORT one\n")
    assert overlap.find(Place(tmp_path / "x.txt"), sets) == [{0: "equal", 1: "13-gram"}, {}]
    corpus = simple_corpus(tmp_path / "corpus")
    from nerbert.text.corpus import Corpus

    tokens = next(Corpus.open(str(corpus)).sentences("validation")).tokens
    assert overlap.find(Place(corpus), [[["x"], tokens]]) == [{1: "equal"}]
    with pytest.raises(UserError, match=r"labels\.json is missing"):
        overlap.find(Place(tmp_path), sets)


def test_plots_are_pictures_of_the_numbers():
    table = {"A": {"A": 3, "O": 1}, "O": {"B": 2}}
    lines = {"x": [(10, 1.0, 0.1), (20, 2.0, 0.0)], "y": [(10, 1.5, 0.1), (20, 2.5, 0.0)]}
    for make in (lambda: plots.confusion(table, "t"), lambda: plots.curves(lines, "t", "x", "y")):
        assert make() == make()
        assert make()[:4] == PNG
    assert plots.confusion(table, "t") != plots.confusion({"A": {"A": 3}}, "t")


def test_tsne_is_the_same_twice(evaluate, base, tmp_path):
    folder = write_set(tmp_path / "toy")
    pictures = []
    for number in range(2):
        path = tmp_path / f"{number}.png"
        code, out, err = evaluate(
            "--models", base, base, "--data", folder, "--output", path, program="tsne"
        )
        assert (code, out) == (0, f"{path}\n"), err
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1]
    assert pictures[0][:4] == PNG


def test_tsne_of_a_type_in_two_sets(evaluate, base, tmp_path, monkeypatch):
    found = {}
    scatter = plots.scatter
    monkeypatch.setattr(plots, "scatter", lambda panels: found.update(panels) or scatter(panels))
    folders = [write_set(tmp_path / name) for name in ("one", "two")]
    flags = ("--types", "city", "--words", "first-last", "--output", tmp_path / "x.png")
    code, _, err = evaluate("--models", base, "--data", *folders, *flags, program="tsne")
    assert code == 0, err
    ((places, names),) = found.values()
    assert places.shape == (24, 2)
    assert names == [str(folder) for folder in folders for _ in range(12)]


def test_tsne_of_predicted_entities(evaluate, fitted, tmp_path, monkeypatch):
    found = {}
    scatter = plots.scatter
    monkeypatch.setattr(plots, "scatter", lambda panels: found.update(panels) or scatter(panels))
    fitted.save(tmp_path / "tagger")
    folder = write_set(tmp_path / "one", person="human", city="town")
    flags = ("--words", "predicted", "--output", tmp_path / "x.png")
    code, _, err = evaluate(
        "--model", tmp_path / "tagger", "--data", folder, *flags, program="tsne"
    )
    assert code == 0, err
    ((_, names),) = found.values()
    rows_here = [row.tokens for row in DataSets().sentences(str(folder), "test")]
    tags = [tag for row in fitted.tag(rows_here) for tag in row]
    assert names == [tag[2:] for tag in tags if tag.startswith("B-")]
    assert set(names) == {"person", "city"}  # the tagger's types, not those of the set


def test_few_sentences_are_trained_for_a_while(evaluate, base, tmp_path):
    """Ten sentences are one step of an epoch; with no score yet, patience must not end it."""
    folder = write_set(tmp_path / "toy")
    flags = ("--recipe", "crossner-paper", "--epochs", 2, "--least-steps", 80, "--patience", 2)
    flags = (*flags, "--stop-after", 60, "--learning-rate", "1e-7", "--max-subwords", 32)
    output = ("--shots", 10, "--seeds", 1, "--output", tmp_path / "out")
    code, _, err = evaluate("--models", base, "--data", folder, *flags, *output)
    assert code == 0, err
    (row,) = json.loads((tmp_path / "out" / "report.json").read_text())["runs"]
    assert [entry["step"] for entry in row["history"]] == list(range(7, 71, 7))


def test_scores_and_shots_as_the_released_code(evaluate, base, tmp_path):
    folder = write_set(tmp_path / "toy")
    flags = ("--recipe", "crossner-code", "--least-steps", 14, "--epochs", 1, "--seeds", 1)
    output = ("--max-subwords", 32, "--shots", 4, "--output", tmp_path / "out")
    code, out, err = evaluate("--models", base, "--data", folder, *flags, *output)
    assert code == 0, err
    assert out.startswith("F1 (conlleval over all sentences as one, as the released code")
    (row,) = json.loads((tmp_path / "out" / "report.json").read_text())["runs"]
    kept = Predictions.read(tmp_path / "out" / "runs" / f"{row['key']}.conll")
    sides = [[tag for tags in side for tag in tags] for side in (kept.gold, kept.predicted)]
    whole = metrics.conlleval_scores([sides[0]], [sides[1]])
    assert row["crossner"]["f1"] == whole.f1
    assert row["train_sentences"] == 4


def test_what_a_group_lacks_and_a_training_without_dev(evaluate, base, tmp_path, monkeypatch):
    for name in ("train.tsv", "devel.tsv", "test.tsv"):
        (tmp_path / "bionlp13cg").mkdir(exist_ok=True)
        conll.write(rows(12, person="Simple_chemical"), str(tmp_path / "bionlp13cg" / name))
    conll.write(rows(3, 60, person="Simple_chemical"), str(tmp_path / "bionlp13cg" / "test.tsv"))
    flags = ("--data-root", tmp_path, *FLAGS, "--seeds", 1, "--output", tmp_path / "out")
    code, out, err = evaluate("--models", base, "--data", "nerbert11", *flags)
    assert code == 0, err
    assert sum(": not run: " in line for line in out.splitlines()) == 10
    assert "| BERT, published (NER-BERT, table 2) | 78.05 |" in out
    few = ("--data", "nerbert/bionlp13cg", "--shots", 4, "all")
    assert (
        "| BERT, published (NER-BERT, table 2) | - | 78.05 |"
        in evaluate("--models", base, *few, *flags)[1]
    )
    folder = write_set(tmp_path / "toy")
    (folder / "valid.txt").unlink()
    code, out, err = evaluate("--models", base, "--data", folder, *flags[2:])
    assert code == 0, err
    assert f"{folder}: no dev sentences, so the weights of the last step are kept" in out
    code, _, err = evaluate("--models", base, "--data", "nerbert11", "--data-root", tmp_path / "x")
    assert code == 2
    assert "crossner/politics/train.txt is missing" in err


def test_a_confusion_matrix_of_many_types_is_small():
    table = {f"T{n}": {f"T{n}": n + 1, f"T{n + 1}": 1, "O": 1} for n in range(315)}
    table["O"] = {"T3": 5, "T314": 7}
    small = plots._frequent(table)
    others = plots._OTHERS
    assert len(small) == plots._MOST_TYPES + 2
    assert {"T314", others, "O"} <= small.keys()
    assert sum(sum(row.values()) for row in small.values()) == sum(
        sum(row.values()) for row in table.values()
    )
    assert small["O"] == {others: 5, "T314": 7}
    assert small[others][others] == sum(
        count
        for gold, row in table.items()
        for name, count in row.items()
        if gold not in small and name not in small
    )
    assert len(plots.confusion(table, "t")) < 2_000_000
    few = {f"T{n}": {f"T{n}": 1} for n in range(40)}
    assert plots._frequent(few) == few
