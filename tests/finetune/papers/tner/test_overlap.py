import json

import pytest

from finetune.papers.tner.overlap import matrix, top_words
from tests.helpers.domain import write_sentences
from tests.helpers.runs import call
from tests.helpers.toy import write_set


def test_top_words_and_matrix():
    texts = [["The", "band", "band", "plays", "1999", "."], ["Song", "song", "of", "Band"]]
    words = top_words(texts, 2, frozenset({"the", "of"}))
    assert words == {"band", "song"}
    assert top_words(texts, 9, frozenset()) == {"the", "band", "plays", "song", "of"}
    found = matrix([{"a", "b", "c", "d"}, {"a", "x"}, set()])
    assert found.tolist() == [[100, 50, 0], [50, 100, 0], [0, 0, 0]]


def test_as_command(tmp_path, capsys):
    toy, corpus = write_set(tmp_path / "toy"), write_sentences(tmp_path / "corpus")
    (tmp_path / "stop.txt").write_text("lived\nin\n")
    flags = [
        "--data",
        toy,
        toy,
        corpus,
        "--stop-words",
        tmp_path / "stop.txt",
        "--output",
        tmp_path / "out",
    ]
    assert call("overlap", *flags) == 0
    out = capsys.readouterr().out
    assert f"| {toy} | 100.0 |" in out
    report = json.loads((tmp_path / "out" / "overlap.json").read_text())
    assert report["words"][str(corpus)] == 16
    assert report["per_cent"][-1][0] == 0
    assert (tmp_path / "out" / "overlap.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--data", "none"], "none"),
        (["--data", "x", "--words", "0"], "--words 0: give 1 or more"),
        (["--data", "x", "--stop-words", "none.txt"], "--stop-words none.txt"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, flags, message):
    assert call("overlap", *flags, "--output", tmp_path / "out") == 2
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 1
    assert message in err[0]
