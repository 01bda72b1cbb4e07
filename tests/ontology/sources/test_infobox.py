import pytest

from ontology.classes import ClassTree
from ontology.sources.infobox import InfoboxMapping, mapped_languages, resolve_redirect

XML = """<mediawiki><page><title>Mapping en:Infobox band_or_singer</title><revision><text>
{{ConditionalMapping | cases =
 {{Condition | templateProperty = members | operator = isSet | mapping = {{TemplateMapping | mapToClass = Band}} }}
 {{Condition | templateProperty = job | operator = contains | value = Singer | mapping = {{TemplateMapping | mapToClass = MusicalArtist }} }}
 {{Condition | templateProperty = job | operator = equals | value = king | mapping = {{TemplateMapping | mapToClass = Royalty }} }}
 {{Condition | operator = otherwise | mapping = {{TemplateMapping | mapToClass = Artist
   | mappings = {{PropertyMapping | templateProperty = x | ontologyProperty = y}} }} }}
}}</text></revision></page>
<page><title>Mapping en:Authority control</title><revision><text>{{TemplateMapping | mapToClass = owl:Thing}}</text></revision></page>
<page><title>Mapping en:Infobox town</title><revision><text>{{TemplateMapping | mapToClass = Town}}</text></revision></page>
<page><title>Mapping en:Town box</title><revision><text>#REDIRECT [[Mapping en:Infobox town]]</text></revision></page>
</mediawiki>"""


@pytest.fixture
def mapping(tmp_path):
    path = tmp_path / "Mapping_en.xml"
    path.write_text(XML)
    return InfoboxMapping.from_xml(str(path))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["members=A, B"], "Band"),
        (["members= ", "job=a singer"], "MusicalArtist"),
        (["job=King"], "Royalty"),
        (["job=king of x"], "Artist"),
        ([], "Artist"),
    ],
)
def test_conditions_in_order(mapping, arguments, expected):
    assert mapping.class_of([("Infobox band or singer", arguments)]) == expected


def test_first_mapped_template_decides(mapping):
    templates = [
        ("Cite web", []),
        ("Authority control", []),
        ("Infobox town", []),
        ("Infobox band or singer", []),
    ]
    assert mapping.class_of(templates) == "Town"
    assert mapping.class_of(templates[:2]) is None


def test_redirects_of_templates(mapping):
    redirects = {"Stadt": "Infobox Stadt", "Infobox Stadt": "Infobox town", "A": "B", "B": "A"}
    assert mapping.class_of([("Stadt", [])], redirects) == "Town"
    assert mapping.class_of([("Town box", [])]) == "Town"
    assert mapping.class_of([("A", [])], redirects) is None
    assert resolve_redirect("A", redirects) == "B"


def test_no_mapping_in_file(tmp_path):
    path = tmp_path / "empty.xml"
    path.write_text("<mediawiki/>")
    with pytest.raises(ValueError, match=r"empty\.xml: it has no TemplateMapping"):
        InfoboxMapping.from_xml(str(path))


@pytest.mark.parametrize("language", mapped_languages())
def test_shipped_table_is_that_of_the_export(shared, language):
    path = shared / "dbpedia" / "mappings" / f"Mapping_{language}.xml.xz"
    read = list(InfoboxMapping.from_xml(str(path)).rows())
    own = {name for name, _ in read}
    shipped = InfoboxMapping.shipped(language).rows()
    corrected = {"Бібліоінформація", "Нп"}
    found = [row for row in shipped if row[0] in own - corrected]
    assert found == [row for row in read if row[0] not in corrected]


@pytest.mark.parametrize("language", mapped_languages())
def test_shipped_classes_are_known(language):
    tree = ClassTree.shipped()
    classes = {case.class_name for _, case in InfoboxMapping.shipped(language).rows()}
    assert {name for name in classes if tree.known_name(name) is None} <= {"owl:Thing"}


def test_other_languages_have_their_own_names_and_the_english_ones():
    ukrainian = InfoboxMapping.shipped("uk")
    assert ukrainian.class_of([("Картка Країна", [])]) == "Country"
    assert ukrainian.class_of([("Infobox anatomy", [])]) == "AnatomicalStructure"
    latgalian = InfoboxMapping.shipped("ltg")
    assert latgalian.class_of([("Infoskreine Latvejis mīsts", [])]) == "City"


def test_names_in_another_case_and_templates_without_a_mapping(mapping):
    assert mapping.class_of([("Infobox Town", [])]) == "Town"
    assert mapping.class_of([("INFOBOX BAND OR SINGER", ["members=A"])]) == "Band"
    assert mapping.class_of([("Speciesbox", [])]) == "Species"
    assert mapping.class_of([("Automatic Taxobox", [])]) == "Species"
    assert "infobox town" in mapping
    assert "Infobox" not in mapping
    assert "Speciesbox" not in InfoboxMapping.empty()


def test_the_mapping_of_a_template_wins_against_ours():
    shipped = InfoboxMapping.shipped()
    assert shipped.class_of([("Taxobox", ["divisio=Bryophyta"])]) == "Moss"
    assert shipped.class_of([("Infobox Officeholder", [])]) == "Politician"
    assert shipped.class_of([("Infobox Software", [])]) == "Software"
    assert shipped.class_of([("Infobox language family", [])]) == "Language"
