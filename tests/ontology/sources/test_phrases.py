import random
from collections import Counter

import pytest

from ontology.sources.phrases import NounPhrases, Vocabulary

SENTENCES = """
be | Якуб Колас | Яку́б Ко́лас (1882) — беларускі пісьменнік, паэт і перакладчык. | беларускі пісьменнік
bg | Рила | Рила е планина в Югозападна България. | планина
ca | Josep Pla | Josep Pla i Casadevall (Palafrugell, 1897) fou un escriptor i periodista català. | escriptor
cs | Vltava | Vltava je nejdelší řeka v Česku. | nejdelší řeka
de | Marie Curie | Marie Curie (geborene Skłodowska) war eine US-amerikanische Physikerin und Chemikerin. | Physikerin
de | Hund | Der Hund ist eine Art der Raubtiere. | Raubtiere
el | Γιώργος Σεφέρης | Ο Γιώργος Σεφέρης (1900) ήταν σπουδαίος ποιητής και διπλωμάτης. | σπουδαίος ποιητής
en | Backpropagation | Backpropagation is a machine learning algorithm that trains networks. | machine learning algorithm
en | Akira Kurosawa | Akira Kurosawa was a Japanese film director and painter. | film director, painter
en | Lacon | Lacon is a species of beetle in the family Elateridae. | beetle
en | Ama | Ama is a 1991 British film directed by Kwesi Owusu. | film
en | Paris | Paris is the capital and most populous city of France. | capital, populous city
en | John Smith | John Smith was an English stage and film actor. | film actor
en | Bond | James Bond is one of the names of spies. |
en | Rome | In history, Rome was ruled by kings. |
en | First Bank | The First Bank is a historic commercial building at 10 Main Street. | commercial building
en | Offa | Offa was a king of Mercia known for a dyke. | king
en | Widerøe | Widerøe is a regional airline operating in Norway. | regional airline
en | Ulm | In the north there is a village. |
es | Ebro | El Ebro es un río de España. | río
fr | Loire | La Loire est un fleuve français long de 1 006 km. | fleuve français long
id | Bandung | Bandung adalah kota yang besar. | kota
it | Dario Fo | Dario Fo (Sangiano, 1926) è stato un drammaturgo italiano, attore e pittore. | drammaturgo italiano
nl | Maas | De Maas is een rivier in Europa. | rivier
pl | Wisła | Wisła – rzeka w Polsce. | rzeka
pt | Douro | O Douro é um rio da Península Ibérica. | rio
ru | Казань | Каза́нь — крупный город в России. | крупный город
sv | Vättern | Vättern är en sjö i Sverige. | sjö
uk | Канів | Ка́нів — старовинне місто обласного значення у Черкаській області. | старовинне місто обласного значення
uk | Perl | Perl — високорівнева, інтерпретована мова. |
uk | Блог | Блог — це вебсайт. | вебсайт
uk | Поетка | Поетка — українська письменниця, акторка. | українська письменниця
vi | Canada | Canada, còn gọi là Gia Nã Đại, là quốc gia. | quốc gia
vi | Cornhole | Cornhole, còn được gọi là corn toss hay bean bag, là một trò chơi. | trò chơi
vi | Thăng Long | Thăng Long là tên gọi cũ của thành phố Hà Nội. |
vi | Nha Trang | Nha Trang là một thành phố ven biển và là trung tâm. | thành phố ven biển
"""


@pytest.mark.parametrize("line", SENTENCES.strip().splitlines())
def test_what_a_first_sentence_says(line):
    language, title, sentence, expected = (cell.strip() for cell in line.split("|"))
    phrases = NounPhrases.shipped(language).of_sentence(title, sentence)
    assert ", ".join(phrases) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("city in Texas, United States", ["city"]),
        ("American computer scientist (born 1950)", ["computer scientist"]),
        ("Town in Lower Saxony", ["town"]),
        ("Species of beetle", ["beetle"]),
        ("1999 studio album by Moby", ["studio album"]),
        ("actor, director and producer", ["actor", "director", "producer"]),
        ("none", ["none"]),
        ("", []),
        ("  ", []),
        ("42", []),
        ("(", []),
        ("Germany", ["germany"]),
        ("German", []),
    ],
)
def test_descriptions(text, expected):
    assert NounPhrases.shipped("en").of_description(text) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("1966 United States Senate election in Minnesota", ["election"]),
        ("2017 Denver Broncos season", ["season"]),
        ("1999 attacks", ["attacks"]),
        ("San Francisco cable car system", ["cable car system"]),
        ("Roe v. Wade", []),
        ("Ali vs Frazier", []),
        ("Homo sapiens", []),
        ("Machine learning", []),
        ("Battle of Vistula river", []),
        ("Rio Grande (film)", []),
        ("1984", []),
        ("", []),
    ],
)
def test_the_end_of_a_title(title, expected):
    assert NounPhrases.shipped("en").of_title(title) == expected
    assert NounPhrases.shipped("de").of_title(title) == []


def test_a_language_without_rules_has_no_phrases():
    for language in ("xx", "", "ja"):
        rules = NounPhrases.shipped(language)
        assert rules.of_sentence("Ulm", "Ulm is a city in Germany.") == []


def test_adjectives_in_front_and_genitives_behind():
    rules = NounPhrases.shipped("uk")
    vocabulary = Vocabulary(rules)
    for phrase in ["місто"] * 3 + ["місто обласного значення"] * 3 + ["старовинне місто"] * 3:
        vocabulary.count([phrase])
    assert vocabulary.select(["старовинне місто обласного значення"]) == [
        "старовинне місто",
        "місто",
    ]


def test_the_vocabulary_by_brute_force():
    rules, draw = NounPhrases.shipped("en"), random.Random(0)
    words = "debut studio album film rock band".split()
    pages = [
        [" ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(draw.randint(0, 2))]
        for _ in range(60)
    ]
    vocabulary = Vocabulary(rules)
    for page in pages:
        vocabulary.count(page)
    whole = Counter(page[0] for page in pages if len(page) == 1)
    for page in pages:
        expected = set()
        for phrase in page:
            parts = phrase.split()
            for start in range(len(parts)):
                end = " ".join(parts[start:])
                owners = sum(
                    any(f" {other}".endswith(f" {end}") for other in others) for others in pages
                )
                if owners >= 3 and whole[end] >= 2:
                    expected.add(end)
        assert set(vocabulary.select(page)) == expected
