"""Pages in another language than the wiki's."""

from __future__ import annotations

from pipeline.documents.extract import sampled_texts
from pipeline.dump import units
from pipeline.dump.streams import find_dumps
from pipeline.language import CommonWords

ENGLISH = "the king of the land was in the house and it was a day of the week for all of them "
FRENCH = "le roi de la terre est dans la maison et la reine est avec lui pour le jour de fête "


def test_another_language():
    common = CommonWords.train([ENGLISH * 5] * 20)
    assert common.is_other_language(FRENCH * 5)
    assert not common.is_other_language(ENGLISH * 5)
    assert not common.is_other_language(FRENCH), "too short for a decision"
    assert not common.is_other_language("")


def test_no_texts():
    common = CommonWords.train([])
    assert not common.is_other_language(FRENCH * 5)


def test_json_round_trip():
    common = CommonWords.train([ENGLISH * 5])
    assert CommonWords.from_json(common.to_json()) == common


def texts_of(shared, pattern, language=None):
    (path,) = find_dumps([str(shared / "dumps" / pattern)])
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
    assert all("Deutschland" in text for text in found)
