import json
from dataclasses import replace

import pytest

from finetune.data import conll
from finetune.data.sets import DataSets
from finetune.data.views import View
from finetune.experiments.runs import Predictions, ResultStore, Run
from finetune.settings import shots_of
from nerbert.errors import UserError
from tests.helpers.toy import QUICK, rows, write_set

SCORES = {"strict": {"f1": 0.5}, "seconds": 1.0}
FOUND = Predictions([["a", "b"], ["c"]], [["B-A", "I-A"], ["O"]], [["B-A", "O"], ["O"]])


def test_shots():
    assert [shots_of(text, 200) for text in ("10", "25%", "0.1%", "all", "900")] == [
        10,
        50,
        1,
        200,
        200,
    ]
    for text in ("0", "-1", "0%", "101%", "few", "%"):
        with pytest.raises(UserError, match=f"--shots {text}: give numbers"):
            shots_of(text, 200)


def test_predictions_come_back(tmp_path):
    FOUND.write(tmp_path / "x.conll")
    assert Predictions.read(tmp_path / "x.conll") == FOUND
    assert (tmp_path / "x.conll").read_text() == "a\tB-A\tB-A\nb\tI-A\tO\n\nc\tO\tO\n"


def test_a_result_is_made_once_and_again_when_anything_changes(tmp_path):
    folder, model = write_set(tmp_path / "toy"), tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (tmp_path / "map.toml").write_text('a = ["city"]')
    made = []

    def make(run):
        made.append(run)
        return dict(SCORES), FOUND

    def result(run):
        # A command reads contents once: each of these is a command of its own.
        return ResultStore(tmp_path / "kept", DataSets()).result(run, make)

    run = Run(str(model), str(folder), QUICK, view=View(str(tmp_path / "map.toml")))
    first = result(run)
    assert result(run) == first
    store = ResultStore(tmp_path / "kept", DataSets())
    assert store.predictions(first["key"]) == FOUND
    assert store.key(run) == first["key"]
    assert len(made) == 1
    for name in ("training_args.bin", "pretrain.json"):  # a finished run that is run again
        (model / name).write_text("{}")
    assert result(run) == first
    result(replace(run, settings=replace(QUICK, seed=1)))
    (model / "config.json").write_text('{"changed": 1}')
    result(run)
    (tmp_path / "map.toml").write_text('b = ["city"]')
    result(run)
    conll.write(rows(3), str(folder / "train.txt"))
    result(run)
    assert len(made) == 5
    # What a killed process leaves does not count.
    path = tmp_path / "kept" / f"{ResultStore(tmp_path, DataSets()).key(run)}.json"
    path.rename(path.with_name(path.name + ".tmp"))
    result(run)
    assert len(made) == 6
    assert json.loads(path.read_text())["strict"] == SCORES["strict"]


def test_vectors_decide_a_result_by_their_content(tmp_path):
    folder, vectors = write_set(tmp_path / "toy"), tmp_path / "vectors.txt"
    run = Run("bilstm", str(folder), replace(QUICK, vectors=str(vectors)))
    keys = set()
    for text in ("a 1 2\n", "a 1 3\n", "a 1 2\n"):
        vectors.write_text(text)
        keys.add(ResultStore(tmp_path, DataSets()).key(run))
    assert len(keys) == 2
    vectors.unlink()
    with pytest.raises(UserError, match=r"--vectors .*vectors\.txt: No such file"):
        ResultStore(tmp_path, DataSets()).key(run)


@pytest.mark.parametrize("torn", ["x.json", "x.conll"])
@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}"])
def test_a_torn_result_is_made_again(tmp_path, torn, content):
    run = Run("bilstm", str(write_set(tmp_path / "toy")), QUICK)
    made = []

    def make(run):
        made.append(run)
        return dict(SCORES), FOUND

    store = ResultStore(tmp_path / "kept", DataSets())
    key = store.result(run, make)["key"]
    path = tmp_path / "kept" / torn.replace("x", key)
    path.unlink() if content is None else path.write_bytes(content)
    assert store.result(run, make)["key"] == key
    assert len(made) == 2
    assert store.predictions(key) == FOUND
