import pyarrow as pa
import pytest

from ontology.titles import normal_title, resource, title_keys


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("foo_bar", "Foo bar"),
        ("  _foo   bar_ ", "Foo bar"),
        ("éclair", "Éclair"),
        ("e\u0301clair", "Éclair"),
        ("ßtest", "ßtest"),
        ("თბილისი", "თბილისი"),
        ("foo\u00a0bar\u200e", "Foo bar"),
        ("iPhone", "IPhone"),
        ("", ""),
    ],
)
def test_normal_title(written, normal):
    assert normal_title(written) == normal
    assert normal_title(normal) == normal


def test_case_sensitive_wiki_keeps_first_letter():
    assert normal_title("iPhone", first_letter=False) == "iPhone"


@pytest.mark.parametrize(
    ("iri", "title"),  # in English, or with a language
    [
        ("http://dbpedia.org/resource/Andre_Agassi", "Andre Agassi"),
        ("http://dbpedia.org/resource/%22Heroes%22_(album)", '"Heroes" (album)'),
        ('http://dbpedia.org/resource/"Heroes"_(album)', '"Heroes" (album)'),
        ("http://uk.dbpedia.org/resource/Київ", ("uk", "Київ")),
        ("http://uk.dbpedia.org/resource/%D0%9A%D0%B8%D1%97%D0%B2", ("uk", "Київ")),
        ("https://dbpedia.org/resource/A/B", "A/B"),
        ("http://dbpedia.org/ontology/City", None),
        ("http://www.wikidata.org/entity/Q1", None),
    ],
)
def test_resource(iri, title):
    assert resource(iri) == (("en", title) if isinstance(title, str) else title)


def test_keys_are_distinct():
    names = [f"Title {i}" for i in range(10_000)]
    keys = title_keys(names)
    assert len(set(keys.tolist())) == len(names)
    assert keys[17] == title_keys([names[17]])[0]


def murmur(data):
    """MurmurHash64A, seed 0, one byte string at a time."""
    multiplier, mask = 0xC6A4A7935BD1E995, (1 << 64) - 1
    value = len(data) * multiplier & mask
    whole = len(data) // 8 * 8
    for start in range(0, whole, 8):
        word = int.from_bytes(data[start : start + 8], "little") * multiplier & mask
        word ^= word >> 47
        value = (value ^ word * multiplier & mask) * multiplier & mask
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 47) * multiplier & mask
    return value ^ value >> 47


def test_keys_are_murmur_hashes():
    titles = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "Zürich (Stadt)", "東京", "x" * 1000]
    titles += [f"Title {n}" * (n % 7) for n in range(40_000)]
    keys = title_keys(titles)
    assert keys.tolist() == [murmur(title.encode()) for title in titles]
    column = pa.array([*titles, None])
    assert title_keys(column.slice(3, 20)).tolist() == keys[3:23].tolist()
    assert title_keys(column)[-1] == keys[0]
    assert len(title_keys([])) == 0
