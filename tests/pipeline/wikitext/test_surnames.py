import pytest

from pipeline.wikitext.surnames import double_surname, surname_of


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("Ulysses S. Grant", "Ulysses S. Grant", "Grant"),
        ("Ulysses Grant's", "Ulysses S. Grant", "Grant"),
        ("Martin Luther King, Jr.", "Martin Luther King, Jr.", "King"),
        ("Charles de Gaulle", "Charles de Gaulle", "Gaulle"),
        ("Alexander II of Russia", "Alexander II of Russia", ""),
        ("Karl der Große", "Karl der Große", ""),
        ("Leader of the Labour Party", "John Smith", ""),
        ("Jean le Rond d'Alembert", "Jean le Rond d'Alembert", "d'Alembert"),
        ("Anne, Queen of Great Britain", "Anne, Queen of Great Britain", ""),
        ("Arthur Wellesley, 1st Duke of Wellington", "Arthur Wellesley", "Wellesley"),
        ("Plato", "Plato", ""),
        ("アルベルト・アインシュタイン", "アルベルト・アインシュタイン", "アインシュタイン"),
        ("キング・オブ・ロックンロール", "エルヴィス・プレスリー", ""),
        ("Пушкин, Александр Сергеевич", "Пушкин, Александр Сергеевич", "Пушкин"),
        ("Шевченко Тарас Григорович", "Шевченко Тарас Григорович", "Шевченко"),
        ("Тарас Григорович Шевченко", "Шевченко Тарас Григорович", "Шевченко"),
        ("Тарас Шевченко", "Шевченко Тарас Григорович", "Шевченко"),
        ("Тарас Григорович", "Шевченко Тарас Григорович", ""),
        ("Віктор Янукович", "Віктор Янукович", "Янукович"),
        ("Карл Іванович Міхалевич", "Карл Іванович Міхалевич", "Міхалевич"),
    ],
)
def test_surname(name, title, expected):
    assert surname_of(name, title, "uk") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Gabriel García Márquez", "García Márquez"),
        ("Ralph Vaughan Williams", "Vaughan Williams"),
        ("Martin Van Buren", "Van Buren"),
        ("Ludwig van Beethoven", ""),
        ("Ulysses S. Grant", ""),
        ("Aldous Huxley", ""),
    ],
)
def test_two_surnames(name, expected):
    assert double_surname(name, name.split()[-1]) == expected


def test_hungarian_names_end_with_the_given_name():
    assert surname_of("Bartók Béla", "Bartók Béla", "hu") == ""
