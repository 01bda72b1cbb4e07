import pytest

from nerbert.storage.places import Place
from nerbert.text.columns import read_columns
from nerbert.text.schemes import Scheme, scheme_of

TEXT = "\ufeff# text = one\n-DOCSTART- -X- O O\n\nIMGID:7\nNew\tB-LOC\nYork\tI-LOC\n\n"
TEXT += "Bonn NN I-NP I-LOC\r\n. . O O\r\n\n\n# O\n"


def read(tmp_path, content):
    path = tmp_path / "set.conll"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [(s.tokens, s.tags) for s in read_columns(Place(path))]


def test_oddities(tmp_path):
    assert read(tmp_path, TEXT) == [
        (["New", "York"], ["B-LOC", "I-LOC"]),
        (["Bonn", "."], ["B-LOC", "O"]),
        (["#"], ["O"]),
    ]


@pytest.mark.parametrize("start", [0, 1])
def test_a_column_that_counts_tokens_is_ignored(tmp_path, start):
    lines = [f"{place + start}\t{word}\tO\n" for place, word in enumerate("in 1 of 20".split())]
    found = read(tmp_path, "".join(lines) + "\n" + f"{start}\tNew York\tB-LOC\n")
    assert found == [(["in", "1", "of", "20"], ["O"] * 4), (["New York"], ["B-LOC"])]


def test_numbers_are_tokens_in_tables_with_tabs(tmp_path):
    rows = ["SOCCER\tNN\tO", "1996-08-30\tCD\tO", "\n3\tCD\tO", "1\tCD\tO", "England\tNNP\tI-LOC"]
    tokens = [token for tokens, _ in read(tmp_path, "\n".join(rows)) for token in tokens]
    assert tokens == ["SOCCER", "1996-08-30", "3", "1", "England"]


def test_a_wrong_number_in_an_index_is_no_token(tmp_path):
    lines = [f"{n + 1}\tw{n}\tO" for n in range(40)]
    lines[7] = "x\tw7\tO"
    with pytest.raises(ValueError, match=r"set\.conll: line 8: begins with 'x', but the first col"):
        read(tmp_path, "\n".join(lines))


def test_bmes(tmp_path):
    tags = ["B-LOC", "M-LOC", "E-LOC", "O", "S-PER"]
    ((tokens, found),) = read(tmp_path, "".join(f"w{n} {t}\n" for n, t in enumerate(tags)))
    assert (len(tokens), found) == (5, ["B-LOC", "I-LOC", "I-LOC", "O", "B-PER"])
    assert scheme_of([tags]) == Scheme("BMES", 0)


def test_a_type_of_several_words_behind_a_tab(tmp_path):
    assert read(tmp_path, "Ulm\tB-creative work\n") == [(["Ulm"], ["B-creative work"])]


@pytest.mark.parametrize("line", ["Ulm\t", "Ulm", "tag x y", "Ulm B-", "Ulm I", "Ulm 1", "Ulm _"])
def test_a_line_that_is_no_token_is_an_error_with_its_number(tmp_path, line):
    with pytest.raises(ValueError, match=rf"line 3: '{line.strip()}' is no token with a tag"):
        read(tmp_path, f"In O\nof O\n{line}\nis O\n")


@pytest.mark.parametrize("line", ["Ulm LOC", "Ulm I", "Ulm 0", "Ulm B-", "a b c"])
def test_a_tag_of_another_form_than_the_others_is_an_error(tmp_path, line):
    with pytest.raises(
        ValueError, match=rf"set\.conll: line 3: '{line}' is no token with a tag \(ta"
    ):
        read(tmp_path, f"In O\nBern B-LOC\n{line}\nis O\n")


def test_one_bad_byte_does_not_make_a_file_latin_1(tmp_path):
    good = "Más O\nN B-LOC\n".encode()
    with pytest.raises(ValueError, match=r"line 3: no UTF-8, as 1 other lines are; repair"):
        read(tmp_path, good + b"caf\xe9 O\n")
    assert read(tmp_path, b"caf\xe9 O\nM\xe1s O\n") == [(["caf\xe9", "M\xe1s"], ["O", "O"])]


def test_a_file_without_tokens(tmp_path):
    with pytest.raises(ValueError, match=r"set\.conll: no line with a token and a tag"):
        read(tmp_path, "# only a comment\n\n")


@pytest.mark.parametrize(
    ("line", "told"), [("O", "'O'"), ("B-LOC", "'B-LOC'"), ("a\tX", "'a"), ("a", "'a'")]
)
def test_a_line_needs_a_token_and_a_tag(tmp_path, line, told):
    """A tag alone has no token, and the last of several columns must be a tag."""
    with pytest.raises(ValueError, match=rf"line 2: {told}.* is no token with a tag"):
        read(tmp_path, f"Ulm\tB-LOC\n{line}\nis\tO\n")
    assert read(tmp_path, "Ulm\tB-LOC\nis\tO\n") == [(["Ulm", "is"], ["B-LOC", "O"])]


def ontonotes(words, names):
    """A sentence in the columns of CoNLL-2012, with three predicates."""
    rows = [
        f"bc/x/00/x_0000   0   {n}   {word}   NN   (TOP*   -   -   -   A   {name}   *   (V*)   *   -"
        for n, (word, name) in enumerate(zip(words, names, strict=True))
    ]
    return "\n".join(rows) + "\n\n"


def test_files_of_ontonotes(tmp_path):
    content = "#begin document (bc/x/00/x_0000); part 000\n"
    content += ontonotes(
        ["The", "West", "Bank", "O", "in", "2005", "Mr.", "Bush"],
        ["(GPE*", "*", "*)", "(ORG)", "*", "(DATE)", "*", "(PERSON)"],
    )
    content += "#end document\n#begin document (bc/x/00/x_0000); part 001\n"
    content += ontonotes(["-LRB-", "EU", "-RRB-"], ["*", "(WORK_OF_ART)", "*"]) + "#end document\n"
    assert read(tmp_path, content) == [
        (
            ["The", "West", "Bank", "O", "in", "2005", "Mr.", "Bush"],
            ["B-GPE", "I-GPE", "I-GPE", "B-ORG", "O", "B-DATE", "O", "B-PERSON"],
        ),
        (["-LRB-", "EU", "-RRB-"], ["O", "B-WORK_OF_ART", "O"]),
    ]


@pytest.mark.parametrize(
    ("names", "line"), [(["*", "*)"], 3), (["(A*", "(B)"], 3), (["(A*", "*"], 4), (["*", "A"], 3)]
)
def test_wrong_brackets_of_ontonotes(tmp_path, names, line):
    good = ontonotes(["well"], ["(A)"])
    content = "#begin document (x); part 000\n" + ontonotes(["a", "b"], names) + good
    with pytest.raises(ValueError, match=rf"set\.conll: line {line}: column 11 must be"):
        read(tmp_path, content)
