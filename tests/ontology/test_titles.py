import pytest

from ontology.titles import normal_title, resource_title, title_key, title_keys


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
    ("iri", "title"),
    [
        ("http://dbpedia.org/resource/Andre_Agassi", "Andre Agassi"),
        ("http://dbpedia.org/resource/%22Heroes%22_(album)", '"Heroes" (album)'),
        ('http://dbpedia.org/resource/"Heroes"_(album)', '"Heroes" (album)'),
        ("http://uk.dbpedia.org/resource/Київ", "Київ"),
        ("http://uk.dbpedia.org/resource/%D0%9A%D0%B8%D1%97%D0%B2", "Київ"),
        ("https://dbpedia.org/resource/A/B", "A/B"),
        ("http://dbpedia.org/ontology/City", None),
        ("http://www.wikidata.org/entity/Q1", None),
    ],
)
def test_resource_title(iri, title):
    assert resource_title(iri) == title


def test_keys_are_distinct():
    names = [f"Title {i}" for i in range(10_000)]
    keys = title_keys(names)
    assert len(set(keys.tolist())) == len(names)
    assert keys[17] == title_key(names[17])
