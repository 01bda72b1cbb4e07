import pytest

from nerbert.text.columns import read_columns

TEXT = (
    "\ufeff# text = one\n-DOCSTART- -X- O O\n\nIMGID:7\n1\tNew York\tB-LOC\n2\tis\tO\n\n"
    "Bonn NN I-NP I-LOC\r\n. . O O\r\n\n\n# O\n"
)


def test_oddities(tmp_path):
    path = tmp_path / "set.conll"
    path.write_text(TEXT, encoding="utf-8", newline="")
    found = [(s.tokens, s.tags) for s in read_columns(str(path))]
    assert found == [
        (["New York", "is"], ["B-LOC", "O"]),
        (["Bonn", "."], ["I-LOC", "O"]),
        (["#"], ["O"]),
    ]


def test_file_without_tags(tmp_path):
    path = tmp_path / "set.txt"
    path.write_text("just words\nand more\n")
    with pytest.raises(ValueError, match=r"set\.txt"):
        list(read_columns(str(path)))
