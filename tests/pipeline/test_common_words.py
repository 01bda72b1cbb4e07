"""Pages in another language than the wiki's."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase

from nerbert.storage.places import Place
from pipeline.documents.rows import articles
from pipeline.documents.sample import sampled_texts
from pipeline.dump import units
from pipeline.dump.streams import find_dumps
from pipeline.language import CommonWords
from pipeline.wikitext.render import render

ENGLISH = "the king of the land was in the house and it was a day of the week for all of them "
FRENCH = "le roi de la terre est dans la maison et la reine est avec lui pour le jour de fête "


def test_another_language():
    common = CommonWords.train([ENGLISH * 5] * 20)
    assert common.is_other_language(FRENCH * 5)
    assert not common.is_other_language(ENGLISH * 5)
    assert not common.is_other_language(FRENCH), "too short for a decision"
    assert not common.is_other_language("")


def test_too_few_texts():
    """Of two pages none is the usual one: a German dump of two lost its page Berlin."""
    for texts in ([], [ENGLISH * 5], [ENGLISH * 5] * 9):
        assert not CommonWords.train(texts).is_other_language(FRENCH * 5)


def test_many_and_long_pages_in_another_language():
    """They are in the sample, too, and make neither the words nor the bound theirs."""
    usual = ["x".join(pair) for pair in product(ascii_lowercase[:20], repeat=2)]  # a vocabulary
    own = [ENGLISH * 2 + " ".join(usual[number % 4 :: 4]) for number in range(40)]
    common = CommonWords.train([*own, *[FRENCH * 100] * 8])
    assert common.is_other_language(FRENCH * 5)
    assert not common.is_other_language(ENGLISH * 5)


def test_names_and_numbers_say_nothing():
    names = "Anna Ulm 1867, Karl Jena (1902), Emmy Bonn 12; " * 9
    common = CommonWords.train([ENGLISH * 5 + names] * 20)
    assert not common.is_other_language(ENGLISH * 3 + names * 3)
    assert common.is_other_language(FRENCH * 3 + names * 3)


def test_json_round_trip():
    common = CommonWords.train([ENGLISH * 5])
    assert CommonWords.from_json(common.to_json()) == common
    with_lexicon = CommonWords.train([ENGLISH * 5], "ja", has_lexicon=True)
    assert CommonWords.from_json(with_lexicon.to_json()) == with_lexicon != common


def texts_of(shared, pattern, language=None):
    (path,) = find_dumps([Place(shared / "dumps" / pattern)])
    return sampled_texts(units.cut([units.inspect(path, language)]), seed=0)


def test_wikis_against_each_other(shared):
    """Every page of one wiki is in another language than the other wikis."""
    texts = {
        "ltg": texts_of(shared, "ltgwiki*"),
        "ja": texts_of(shared, "jawiki*"),
        "vi": texts_of(shared, "viwiki*"),
        "fr": texts_of(shared, "frwiki-2023*", "fr"),
    }
    for code, own in texts.items():
        common = CommonWords.train(own)
        assert sum(map(common.is_other_language, own)) <= 0.01 * len(own)
        for other, pages in texts.items():
            long = [page for page in pages if len(page) > 1000]
            if other != code:
                assert all(map(common.is_other_language, long)), (code, other)


def test_the_german_page_of_the_latgalian_wiki(shared):
    texts = texts_of(shared, "ltgwiki*")
    common = CommonWords.train(texts)
    found = [text for text in texts if common.is_other_language(text)]
    assert all("Deutschland" in text or "Bangkok" in text for text in found)  # German, Latvian


def test_pages_in_german_among_english_ones(shared):
    """Four articles, and none of the lists, whose words are mostly names."""
    names = ["2008-2024-misc-samples", "2014-mathosphere", "2015-comparisons", "201903-environment"]
    dumps = [Place(shared / "dumps" / "more" / f"enwiki-{name}.xml.bz2") for name in names]
    cut = units.cut([units.inspect(path) for path in find_dumps(dumps)])
    common = CommonWords.train(sampled_texts(cut, seed=0))
    found = {
        page.title
        for page in articles(cut)
        if common.is_other_language(render(page.wikitext, cut[0].site).text)
    }
    assert found == {"Lernspiel", "Daniel Caspary", "Americium", "Mamo Wolde"}
