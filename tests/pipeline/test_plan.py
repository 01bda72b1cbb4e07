import dataclasses
import logging
from dataclasses import replace
from typing import get_args

import pytest

from nerbert.commands import options as options_module
from nerbert.errors import UserError
from nerbert.storage.places import Place
from pipeline import plan as planning
from pipeline.execution.executor import with_absolute_paths
from pipeline.plan import MANIFEST, make_plan
from pipeline.runs import corpus as running
from pipeline.settings import DECIDED, CorpusSettings, deciding
from tests.helpers.runs import DEMO


def plan_of(tmp_path, **options):
    options = {"dump": str(DEMO), "output": str(tmp_path / "out"), **options}
    return make_plan(CorpusSettings(**options))


def digests(tmp_path, **options):
    plan = plan_of(tmp_path, **options)
    folders = plan.documents, plan.entities, plan.examples, plan.corpus
    return [folder.fingerprint for folder in folders]


def test_a_plan_writes_nothing(tmp_path):
    plan = plan_of(tmp_path)
    assert not (tmp_path / "out").exists()
    assert (plan.language, plan.sentence_model, len(plan.units)) == ("en", "dump", 1)
    assert plan.parts == (Place(tmp_path / "out" / "documents" / "part-00000.parquet"),)


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"list_items": True}, 0),
        ({"infobox": False}, 1),
        ({"min_entities": 3}, 2),
        ({"keep_untyped": True}, 2),
        ({"categories": "coarse4"}, 2),
        ({"validation_share": 0.2}, 2),
        ({"drop_entity": "3:0.1"}, 2),
        ({"alpha": 0.3}, 3),
        ({"balance": "none"}, 3),
        ({"workers": 3}, 4),
        ({"max_set_aside": 0.5}, 4),
        ({"stage": "extract"}, 4),
    ],
    ids=str,
)
def test_an_option_changes_its_stage_and_the_later_ones(tmp_path, options, first):
    before, after = digests(tmp_path), digests(tmp_path, **options)
    assert before[:first] == after[:first]
    assert not set(before[first:]) & set(after[first:])


def another(entry, tmp_path):
    """Another value of an option: of a path, a file that can be read."""
    if entry.name in ("types", "exclude"):
        contents = {
            "exclude": "Ulm B-LOC\n",
            "types": "<http://dbpedia.org/resource/Ulm> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://dbpedia.org/ontology/City> .\n",
        }
        path = tmp_path / f"{entry.name}.nt"
        path.write_text(contents[entry.name])
        return (Place(path),)
    if entry.kind is bool:
        return not entry.default
    if choices := get_args(entry.kind):
        return next(one for one in choices if one not in (entry.default, None))
    if entry.name in ("drop_entity", "categories", "columns"):
        return {"drop_entity": "3:0.1", "categories": "coarse4", "columns": "word=2,tag=3"}[
            entry.name
        ]
    least = entry.default or 0
    return least + 0.05 if entry.kind is float else least + 1


OTHERS = {
    "ontology",
    "infobox_mapping",
    "page_props",
    "langlinks",
    "min_entities",
    "sentence_model",
}
"""Options that other tests change: they need large files."""


@pytest.mark.parametrize(
    ("entry", "first"),
    [(e, n) for n, what in enumerate(DECIDED) for e in deciding(what) if e.name not in OTHERS],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_every_option_changes_what_it_decides(tmp_path, entry, first):
    """No list of names by hand: an option that says what it decides is in that fingerprint."""
    value = another(entry, tmp_path)
    before, after = digests(tmp_path), digests(tmp_path, **{entry.name: value})
    same = [one == other for one, other in zip(before, after, strict=True)]
    assert same == [number < first for number in range(4)]


def test_a_new_option_needs_no_list(tmp_path, monkeypatch):
    """It decides `resolve`, or the sentences of a domain, by its declaration alone."""
    usual = options_module.options_of

    def more(*kinds):
        found = usual(*kinds)
        return [
            *found,
            *(
                replace(e, name="stage", facts={**e.facts, "decides": "resolve"})
                for e in found
                if e.name == "stage"
            ),
        ]

    before = digests(tmp_path), digests(tmp_path, stage="resolve")
    assert before[0] == before[1]
    monkeypatch.setattr(options_module, "options_of", more)
    after = digests(tmp_path), digests(tmp_path, stage="resolve")
    assert [one == other for one, other in zip(*after, strict=True)] == [True, False, False, False]


def test_a_raised_version_makes_a_stage_and_the_later_ones_again(tmp_path, monkeypatch):
    before = digests(tmp_path)
    monkeypatch.setitem(planning.VERSIONS, "resolve", 99)
    after = digests(tmp_path)
    assert before[0] == after[0]
    assert not set(before[1:]) & set(after[1:])


def test_a_copy_under_another_name_is_the_same_input(tmp_path):
    copy = tmp_path / "renamed.xml"
    copy.write_bytes(DEMO.read_bytes())
    assert digests(tmp_path) == digests(tmp_path, dump=str(copy))
    copy.write_bytes(DEMO.read_bytes().replace(b"Einstein", b"Zweistein"))
    assert digests(tmp_path)[0] != digests(tmp_path, dump=str(copy))[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dump": "no/such.xml"}, "--dump no/such.xml: no such file; give a path, a glob or a"),
        ({"types": "no.nt"}, "--types no.nt: no such file; check the path"),
        ({"ontology": "no.owl"}, "--ontology no.owl: no such file"),
        ({"exclude": "no.txt"}, "--exclude no.txt: no such file"),
        ({"categories": "no.tsv"}, "--categories: "),
    ],
)
def test_wrong_inputs(tmp_path, options, message):
    with pytest.raises(UserError) as error:
        plan_of(tmp_path, **options)
    assert str(error.value).startswith(message)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_dump_or_another_program_is_refused(tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty, and no run made it"):
        plan_of(tmp_path)
    (output / "thesis.txt").unlink()
    other = tmp_path / "other.xml"
    other.write_bytes(DEMO.read_bytes().replace(b"Einstein", b"Zweistein"))
    plan_of(tmp_path, dump=str(other)).documents.prepare()
    with pytest.raises(UserError, match=r"made from another dump \(other\.xml\)"):
        plan_of(tmp_path)
    assert (output / "documents" / "stage.json").is_file()


@pytest.mark.parametrize("manifest", ['{"name": "app", "start_url": "/"}', "[]", "{"])
def test_a_manifest_of_another_program_does_not_make_a_folder_ours(tmp_path, manifest):
    output = tmp_path / "out"
    (output / "documents").mkdir(parents=True)
    (output / "documents" / "thesis.tex").write_text("mine")
    (output / MANIFEST).write_text(manifest)
    with pytest.raises(UserError, match="not empty, and no run made it"):
        plan_of(tmp_path)
    assert (output / MANIFEST).read_text() == manifest


def test_stages_run_once_and_only_when_something_changed(tmp_path, caplog):
    caplog.set_level(logging.INFO, "nerbert")
    settings = CorpusSettings(dump=str(DEMO), output=str(tmp_path / "out"), workers=1)

    def told(**options):
        caplog.clear()
        report = running.run(dataclasses.replace(settings, **options))
        ran = [line.split(":")[0] for line in caplog.messages if "done in" in line]
        return ran, report

    assert told(stage="extract") == (["extract"], None)
    ran, first = told(min_entities=2)
    assert ran == ["resolve", "corpus"]
    ran, again = told(min_entities=2)
    assert (ran, again) == ([], first)
    assert told(min_entities=2, alpha=0.5)[0] == ["corpus"]
    assert told(min_entities=2, infobox=False)[0] == ["resolve", "corpus"]
    manifest = Place(tmp_path / "out" / MANIFEST).read_json()
    assert manifest["settings"]["balance"]["alpha"] == 0.7
    complete = {name for name, state in manifest["stages"].items() if state["complete"]}
    assert complete == {"documents", "entities", "examples", "corpus"}


def test_dataflow_does_not_see_this_disk(tmp_path):
    settings = CorpusSettings(dump=str(DEMO), output="gs://bucket/out")
    with pytest.raises(UserError, match=f"--dump {DEMO}: Dataflow's workers do not see this disk"):
        with_absolute_paths(settings, True)
    relative = CorpusSettings(dump="a.xml", output="out", page_props=("t.sql",))
    absolute = with_absolute_paths(relative, False)
    assert absolute.dump == (Place("a.xml").absolute(),)
    assert absolute.page_props == (Place("t.sql").absolute(),)
