"""A new type is learnt without forgetting the old ones."""

import json

import pytest

from finetune.data import conll
from finetune.scoring.metrics import seqeval_scores
from finetune.tagger.old_types import OldTypes
from nerbert.commands.table import main
from nerbert.text.columns import Sentence
from tests.helpers.lazy import lazy
from tests.helpers.toy import FLAGS, QUICK, rows

tagger = lazy("finetune.tagger.tagger")


class Says:
    """A tagger that says the same of every sentence."""

    def __init__(self, *tags):
        self._tags = list(tags)

    def tag(self, texts):
        return [self._tags[: len(text)] for text in texts]


@pytest.mark.parametrize(
    ("of_set", "of_old", "joined"),
    [
        ("O O O O", "B-A I-A O B-B", "B-A I-A O B-B"),
        ("O B-N O O", "B-A I-A O B-B", "O B-N O B-B"),  # the set counts where both speak
        ("B-N O O O", "B-N O B-N B-A", "B-N O O B-A"),  # and of its types alone
        ("B-N I-N O O", "O O B-A I-A", "B-N I-N B-A I-A"),
        ("O O O B-N", "B-A B-A B-A B-A", "B-A B-A B-A B-N"),
    ],
)
def test_the_set_counts_first(of_set, of_old, joined):
    row = Sentence(list("wxyz"), of_set.split())
    old = OldTypes.of(Says(*of_old.split()), [row, Sentence(["v"], ["B-N"])])
    assert old.added([row]) == [Sentence(list("wxyz"), joined.split())]
    assert old.scored([of_old.split()])[0] == [t if t[2:] == "N" else "O" for t in of_old.split()]


def with_times(found):
    """The sentences, labelled with times only."""
    return [
        Sentence(r.tokens, ["B-time" if w == "years" else "O" for w in r.tokens]) for r in found
    ]


def test_both_are_known_afterwards(fitted, tmp_path, capsys):
    fitted.save(tmp_path / "old")
    folder = tmp_path / "times"
    folder.mkdir()
    for name, start, count in (("train", 0, 40), ("valid", 40, 12), ("test", 52, 12)):
        conll.write(with_times(rows(count, start)), str(folder / f"{name}.txt"))
    common = ["train", "--base-model", tmp_path / "old", "--data", folder, *FLAGS]
    keep = ["--keep-old", tmp_path / "old"]
    for output, more in (("forgets", []), ("keeps", keep)):
        assert main(list(map(str, [*common, *more, "--output", tmp_path / output]))) == 0
    test = rows(12, 60)

    def f1(output, gold, types):
        found = tagger.Tagger.load(tmp_path / output).tag([row.tokens for row in test])
        kept = [[tag if tag[2:] in types else "O" for tag in row] for row in found]
        return seqeval_scores([row.tags for row in gold], kept)[0].f1

    assert f1("forgets", test, {"person", "city"}) == 0
    assert f1("keeps", test, {"person", "city"}) > 0.9
    assert f1("keeps", with_times(test), {"time"}) > 0.9
    # Mentions of old types are not wrong: the test split says nothing of them.
    assert (
        json.loads((tmp_path / "keeps" / "metrics.json").read_text())["test"]["strict"]["f1"] > 0.9
    )
    # Without the old tagger it is another training, and the other way round.
    weights = (tmp_path / "keeps" / "model.safetensors").read_bytes()
    assert main(list(map(str, [*common, "--output", tmp_path / "keeps"]))) == 2
    assert "keeps: made with " in capsys.readouterr().err
    assert main(list(map(str, [*common, *keep, "--output", tmp_path / "forgets"]))) == 2
    assert "forgets: made with " in capsys.readouterr().err
    assert (tmp_path / "keeps" / "model.safetensors").read_bytes() == weights


def test_rows_of_old_types_without_an_example_stay(base, tmp_path, capsys):
    """A type that the old tagger finds nowhere in the new sentences is named, and stays."""
    rivers = [Sentence(["The", "Rhine", "flows"], ["O", "B-river", "O"])] * 12
    old = tagger.Tagger(base, QUICK).fit([*rows(40), *rivers], rows(12, 40))
    old.save(tmp_path / "old")
    folder = tmp_path / "times"
    folder.mkdir()
    for name, start, count in (("train", 0, 16), ("valid", 16, 4), ("test", 20, 4)):
        conll.write(with_times(rows(count, start)), str(folder / f"{name}.txt"))
    flags = ["--data", folder, "--keep-old", tmp_path / "old", *FLAGS, "--epochs", 2]
    whole = ["train", "--base-model", tmp_path / "old", *flags, "--output", tmp_path / "both"]
    assert main(list(map(str, whole))) == 0
    told = "1 old types have no example in these sentences, and {}: river"
    assert told.format("may be forgotten") in capsys.readouterr().err
    assert tagger.Tagger.load(tmp_path / "both").types == ["city", "person", "river", "time"]
    metrics = json.loads((tmp_path / "both" / "metrics.json").read_text())
    assert metrics["old_types_without_example"] == ["river"]
    assert (
        main(list(map(str, ["train", "--base-model", base, *flags, "--output", tmp_path / "new"])))
        == 0
    )
    lost = told.format("are lost; give the old tagger as --base-model")
    assert lost in capsys.readouterr().err
    assert tagger.Tagger.load(tmp_path / "new").types == ["city", "person", "time"]
