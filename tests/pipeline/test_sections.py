"""Links to sections, and redirects to sections, have no class of the whole page."""

import json

import pytest

from pipeline.dump.pages import redirect_section, redirect_target
from pipeline.dump.site import Site
from pipeline.wikitext.names import named_target
from tests.helpers import corrupt
from tests.helpers.runs import examples, run


@pytest.mark.parametrize(
    ("text", "target", "named"),
    [
        ("Tom Fox", "The Lamps#Members", "The Lamps#Members"),
        ("the Lamps", "The Lamps#Members", "The Lamps"),
        ("SPD", "Social Party Deutschland#History", "Social Party Deutschland"),
        ("北京", "北京市#歷史", "北京市"),
        ("Tom Fox", "The Lamps", "The Lamps"),
    ],
)
def test_named_target(text, target, named):
    assert named_target(text, target) == named


def test_section_of_a_redirect():
    site = Site.for_language("de")
    for text in ("#REDIRECT [[ Ulm # Bau_werke ]]", "#WEITERLEITUNG: [[Ulm#Bau_werke|x]]"):
        assert redirect_target(text, site) == "Ulm"
        assert redirect_section(text, site).strip() == "Bau_werke"
    assert redirect_section("#REDIRECT [[Ulm]]", site) == redirect_section("Ulm#x", site) == ""


def test_reported_wiki(shared, tmp_path):
    case = json.loads((shared / "reports" / "section-links.json").read_text(encoding="utf-8"))
    pages = [corrupt.page(n, text, title) for n, (title, text) in enumerate(case["pages"], start=1)]
    xml = "".join(page.decode() if isinstance(page, bytes) else page for page in pages)
    (tmp_path / "dump.xml").write_text(f"{corrupt.HEAD}{xml}</mediawiki>\n", encoding="utf-8")
    resource, ontology = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
    kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    lines = [
        f"<{resource}{title.replace(' ', '_')}> <{kind}> <{ontology}{name}> ."
        for title, name in case["types"].items()
    ]
    (tmp_path / "types.nt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, _, err = run(
        *("--dump", "dump.xml", "--types", "types.nt", "--output", "out", "--language", "en"),
        *("--min-entities", 1, "--min-support", 0, "--validation-share", 0),
        cwd=tmp_path,
    )
    assert code == 0, err
    labels = json.loads((tmp_path / "out" / "corpus" / "labels.json").read_text())["tags"]
    found = {}
    for row in examples(tmp_path / "out" / "corpus", "train"):
        tags = [labels[tag] for tag in row["ner_tags"]]
        for target in row["targets"]:
            found.setdefault(target, set()).update(tag[2:] for tag in tags if tag[:2] == "B-")
        text = " ".join(row["tokens"])
        for name, wrong in case["not_typed"].items():
            if name in text:
                first = row["tokens"].index(name.split()[0])
                assert tags[first] == "B-ENTITY", (name, wrong)
    assert {"The Lamps#Members", "Blue Door (song)"} <= set(found)
    assert all(name in found[title] for title, name in case["typed"].items())
