import pytest

from nerbert.text.overlap import distinct_names
from pipeline.examples.balance import exponent
from pipeline.examples.plots import categories
from pipeline.examples.report import Flow, _hint


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/b/x.txt", "/c/y.txt"], ["x.txt", "y.txt"]),
        (["/a/ai/t.txt", "/a/music/t.txt", "z"], ["ai/t.txt", "music/t.txt", "z"]),
        (["t.txt", "/a/t.txt"], ["t.txt", "a/t.txt"]),
        ([], []),
    ],
)
def test_distinct_names(paths, names):
    assert distinct_names(paths) == names


def test_exponent():
    before = {"a": 10, "b": 1000, "c": 5, "d": 0}
    after = {"a": 10**0.7 * 3, "b": 1000**0.7 * 3, "d": 4}
    assert exponent(before, after) == pytest.approx(0.7)
    assert exponent({"a": 5}, {"a": 5}) is None


def test_plot_is_the_same_png_every_time():
    counts = {f"category{i}": 1000 // (i + 1) for i in range(70)}
    assert categories(counts, counts, "en") == categories(counts, counts, "en")
    assert categories({}, {}, "en").startswith(b"\x89PNG")


def test_hint_if_most_sentences_have_no_category():
    def flow(dropped):
        return Flow(100, {"no-category": dropped}, {"train": 100 - dropped})

    (line,) = _hint(flow(73))
    assert "73 % mention nothing with a category" in line
    assert _hint(flow(50)) == _hint(Flow(0, {}, {})) == []
