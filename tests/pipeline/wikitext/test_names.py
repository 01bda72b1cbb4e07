import pytest

from pipeline.wikitext.english import is_adjective, is_ambiguous, is_demonym, without_possessive
from pipeline.wikitext.lexicon import is_installed
from pipeline.wikitext.names import (
    NO_ENTITY,
    NO_PLACE,
    SURE,
    doubt,
    has_common_word,
    is_name,
    title_at_end,
)


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("tennis", "Tennis", False),
        ("at the time", "1990s", False),
        ("American citizen", "Citizenship of the United States", False),
        ("French capital", "Paris", False),
        ("Paris", "Paris", True),
        ("Homo sapiens", "Homo sapiens", True),
        ("homo sapiens", "Homo sapiens", False),
        ("Albanian language", "Albanian language", True),
        ("Mercury", "Mercury (planet)", True),
        ("Sea lion", "Sea lion (animal)", True),
        ("iPhone", "IPhone", True),
        ("eBay", "EBay", True),
        ("d'Alembert", "Jean le Rond d'Alembert", True),
        ("al-Qaeda", "Al-Qaeda", True),
        ("de Gaulle", "Charles de Gaulle", True),
        ("van der Waals", "Johannes Diderik van der Waals", True),
        ("de facto", "De facto", False),
        ("the Hague", "The Hague", True),
        ("of the Bulge", "Battle of the Bulge", True),
        ("Battle of the Bulge", "Battle of the Bulge", True),
        ("1990s", "1990s", False),
        ("1999", "1999", False),
        ("May 5", "May 5", False),
        ("1984", "1984 (novel)", True),
        ("4′33″", "4′33″", True),
        ("2004", "Orange Revolution", False),
        ("2013–2014", "Orange Revolution", False),
        ("43", "Technetium", False),
        ("2001", "2001: A Space Odyssey", True),
        ("2012", "2012 (film)", True),
        ("1992", "1992 Davis Cup", False),
        ("1960", "U.S. presidential election, 1960", False),
        ("東京", "東京", True),
        ("пивом", "Пиво", False),
        ("Київ", "Київ", True),
        ("القاهرة", "القاهرة", True),
        ("'", "Apostrophe", False),
        ("", "Nothing", False),
    ],
)
def test_is_name(text, title, expected):
    assert is_name(text, title, "uk") is expected


@pytest.mark.parametrize(
    ("text", "title", "language", "expected"),
    [
        ("American", "United States", "en", True),
        ("French", "France", "en", True),
        ("Dutch", "Netherlands", "en", True),
        ("Greeks", "Greece", "en", True),
        ("Soviet", "USSR", "en", True),
        ("Soviet", "Soviet Union", "en", True),
        ("Russian", "Russian Empire", "en", True),
        ("Israelis", "Israel", "en", True),
        ("Korean", "Korean language", "en", False),
        ("Japan", "Empire of Japan", "en", False),
        ("Milan", "Milan", "en", False),
        ("Milan", "Milan", "it", False),
        ("U.S.", "United States", "en", False),
        ("Peking", "Beijing", "en", False),
        ("American", "United States", "fr", False),
        ("South American", "South America", "en", True),
        ("North Korean", "North Korea", "en", True),
        ("Eastern Europeans", "Eastern Europe", "en", True),
        ("South Sudan", "South Sudan", "en", False),
        ("Safavids", "Safavid dynasty", "en", True),
        ("Netherlands", "Netherlands", "en", False),
        ("Netherlands", "The Netherlands in music", "en", False),
        ("West Bengal", "West Bengal", "en", False),
    ],
)
def test_is_demonym(text, title, language, expected):
    assert is_demonym(text, title, language) is expected


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("Albanian", "Albania", True),
        ("Greek", "Greece", True),
        ("Greek", "Greek (poem)", False),
        ("Korean", "Korean language", True),
        ("Ulm", "Ulm, Montana", False),
    ],
)
def test_is_ambiguous(text, title, expected):
    assert is_ambiguous(text, title, "en") is expected


@pytest.mark.parametrize(
    "title",
    [
        "25 серпня",
        "8 de abril",
        "1er janvier",
        "3. maj",
        "24 tháng 3",
        "25 Αυγούστου",
        "25-a de aŭgusto",
        "XX століття",
        "XVIIIe siècle",
        "X століття до н. е.",
    ],
)
def test_days_and_centuries_are_no_names(title):
    assert not is_name(title, title, "fr")
    assert not is_name(title.split()[0], title, "fr")


@pytest.mark.parametrize(
    "text",
    [
        "1980s",
        "1980-х",
        "1980-ті",
        "1980-е годы",
        "1980er",
        "1980er Jahre",
        "1980-talet",
        "1980'erne",
        "1980. aastad",
        "1956年",
        "10月3日",
        "紀元前1世紀",
        "1990年代",
        "20세기",
        "明治4年",
        "平成元年",
    ],
)
def test_decades_and_dates_of_east_asia_are_no_names(text):
    assert not is_name(text, f"{text} in music", "uk")


@pytest.mark.parametrize(
    ("text", "title", "language", "expected"),
    [
        ("mer Noire", "Mer Noire", "fr", True),
        ("lac du Bourget", "Lac du Bourget (France)", "fr", True),
        ("sông Hương", "Sông Hương", "vi", True),
        ("mer Noire", "Mer de Marmara", "fr", False),
        ("histoire", "Histoire", "fr", False),
        ("van Gogh", "Van Gogh", "nl", False),
        ("iPhone", "IPhone", "fr", False),
        ("history of Japan", "History of Japan", "en", False),
        ("deutsche Wiedervereinigung", "Deutsche Wiedervereinigung", "de", False),
    ],
)
def test_names_that_begin_with_a_common_noun(text, title, language, expected):
    assert has_common_word(text, title, language) is expected
    if expected:
        assert is_name(text, title, language)
        assert doubt(text, title, language) == NO_ENTITY


@pytest.mark.parametrize(
    ("text", "title", "language", "expected"),
    [
        ("Чорного моря", "Чорне море", "uk", True),
        ("Daugpiļs nūvodā", "Daugpiļs nūvods", "ltg", True),
        ("Teist maailmasõda", "Teine maailmasõda (sündmus)", "et", True),
        ("корінних народів України", "Корінні народи України", "uk", True),
        ("Чорного озера", "Чорне море", "uk", False),
        ("Чорного моря на півдні", "Чорне море", "uk", False),
        ("American citizens", "American citizen", "en", False),
        ("Keplerschen gesetze", "Keplersche gesetze", "de", False),
    ],
)
def test_other_cases_of_titles_that_have_a_common_noun(text, title, language, expected):
    assert is_name(text, title, language) is expected


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("principauté de Monaco", "Monaco", "Monaco"),
        ("province of León", "León (province)", ""),
        ("đảo An Bang", "An Bang", "An Bang"),
        ("le Monaco", "Monaco", ""),
        ("Principauté de Monaco", "Monaco", ""),
        ("jeu de tennis", "tennis", ""),
        ("pré-Monaco", "Monaco", ""),
        ("Monaco", "Monaco", ""),
    ],
)
def test_a_title_at_the_end_of_a_text(text, title, expected):
    assert title_at_end(text, title) == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Різдво", "25 грудня"),  # the link calls it by a name
        ("12 uomini arrabbiati", "12 uomini arrabbiati"),
        ("12 Monkeys", "12 Monkeys"),
        ("32 août", "32 août"),
        ("I love you", "I love you"),
        ("X", "X"),
        ("Louis XIV", "Louis XIV"),
        ("1900 House", "1900 House"),
        ("20世紀少年", "20世紀少年"),
        ("少年", "少年"),
    ],
)
def test_other_names_with_numbers(text, title):
    assert is_name(text, title, "it")


@pytest.mark.parametrize(
    ("text", "title", "language", "expected"),
    [
        ("French", "France", "en", NO_PLACE),
        ("GDP", "Gross domestic product", "en", NO_ENTITY),
        ("Turing Machine", "Turing machine (computing)", "en", NO_ENTITY),
        ("Lincoln", "Abraham Lincoln (captain)", "en", SURE),
        ("Guerre froide", "Guerre froide", "fr", SURE),
        ("Futsal", "Futsal", "en", SURE),
    ],
)
def test_what_speaks_against_a_name(text, title, language, expected):
    assert doubt(text, title, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("夏目漱石", SURE),
        ("東京大学", SURE),
        ("Unicode", SURE),
        ("数学", NO_ENTITY),
        ("プログラミング言語", NO_ENTITY),
    ],
)
def test_japanese_names_have_a_proper_noun(text, expected):
    if not is_installed():
        pytest.skip("the extra `ja` is not installed")
    assert doubt(text, text, "ja", lexicon=True) == expected
    assert doubt(text, text, "ja") == SURE


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("Німецький", "Німеччина", NO_PLACE),
        ("Києва", "Київ", SURE),  # the page never has it in lower case
        ("Німеччина", "Німеччина", SURE),
        ("США", "Сполучені Штати Америки", SURE),
    ],
)
def test_adjectives_are_no_names_of_places(text, title, expected):
    page = {"німецький", "німеччина", "сша"}
    assert doubt(text, title, "uk", plain=page.__contains__) == expected


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("Germany's", "Germany", "Germany"),
        ("London’s", "Greater London", "London"),
        ("McDonald's", "McDonald's", "McDonald's"),
        ("Sotheby’s", "Sotheby's (company)", "Sotheby’s"),
        ("'s", "'s-Hertogenbosch", "'s"),
        ("Zapateros'", "Zapatero", "Zapateros'"),
    ],
)
def test_possessives(text, title, expected):
    assert without_possessive(text, title, "en") == expected
    assert without_possessive(text, title, "nl") == text


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("German-born", "Germany", True),
        ("Spanish-language", "Spanish language", True),
        ("Windows-based", "Microsoft Windows", True),
        ("Unix-like", "Unix-like", False),
        ("Ban Ki-moon", "Ban Ki-moon", False),
        ("Kim Jong-un", "Kim Jong Un", False),
        ("Austria-Hungary", "Austria-Hungary", False),
        ("Berlin", "Berlin", False),
    ],
)
def test_adjectives_made_with_a_hyphen(text, title, expected):
    assert is_adjective(text, title, "en") is expected
    assert not is_adjective(text, title, "hu")
