import pytest

from ontology.titles import converter


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Београд", "Beograd"),
        ("Љубљана", "Ljubljana"),
        ("Његош", "Njegoš"),
        ("Џунгла", "Džungla"),
        ("Ђорђе Ћ", "Đorđe Ć"),
    ],
)
def test_serbian(one, other):
    convert = converter("sr")
    assert convert(one) == [other]
    assert convert(other) == [one]


def test_serbian_letters_without_another_form():
    assert converter("sr")("1804") == []


def test_chinese():
    pytest.importorskip("opencc", reason="the extra `zh` is not installed")
    convert = converter("zh")
    assert convert("台灣") == ["台湾", "臺灣"]
    assert convert("台湾") == ["臺灣"]
    assert convert("数学") == ["數學"]
    assert convert("數學") == ["数学"]
    assert convert("Python") == convert("人") == []


def test_other_languages_have_one_script():
    assert converter("en") is converter("uk") is None
