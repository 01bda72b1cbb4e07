"""`nerbert domain` as a user starts it."""

import json

import pyarrow.parquet as pq
import pytest

from finetune.data import conll
from nerbert.commands import table
from tests.helpers.domain import PAGES, write_dump
from tests.helpers.runs import assert_same_bytes, run


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wiki")
    dump = write_dump(folder / "enwiki.xml")
    code, _, err = run(
        "--dump", dump, "--output", folder / "run", "--stage", "resolve", "--workers", 1, cwd=folder
    )
    assert code == 0, err
    return folder / "run"


def domain(wiki, output, *flags):
    command = ("domain", "--documents", wiki, "--output", output, "--workers", 1, *flags)
    return table.main([str(word) for word in command])


def rows(output):
    (part,) = sorted((output / "sentences").glob("part-*.parquet"))
    return pq.read_table(part).to_pylist()


@pytest.fixture(scope="module")
def music(wiki, tmp_path_factory):
    output = tmp_path_factory.mktemp("domain") / "music"
    assert domain(wiki, output, "--domain", "music", "--depth", 2) == 0
    return output


def test_pages_levels_and_where_they_come_from(music):
    found = rows(music)
    titles = {"Ian Player", "Bob Drummer", "Aqualung Song", "Loop page"}
    assert {row["title"] for row in found} == titles
    where = {row["title"]: (row["category"], row["root"], row["depth"]) for row in found}
    assert where["Ian Player"] == ("Flute players", "Music", 2)
    assert where["Bob Drummer"] == ("Drummers", "Music", 2)  # not by the stubs, which are nearer
    assert where["Aqualung Song"] == ("Old songs", "Music", 1)  # a redirect to Songs
    by_text = {row["text"]: row for row in found}
    sang = by_text["Ian Player sang Aqualung Song with Bob Drummer in Rome Town."]
    assert (sang["entity"], sang["task"], sang["entities"], sang["tokens"]) == (True, True, 4, 12)
    one = by_text["A song by Ian Player."]
    assert (one["entity"], one["task"]) == (False, True)
    none = by_text["He was born in Nowhere."]
    assert (none["entity"], none["task"], none["entities"]) == (False, False, 0)


def test_report_counts_everything(music):
    report = json.loads((music / "report.json").read_text())
    assert report["pages"] == {"disambiguation": 1, "outside": 2, "taken": 4}
    assert report["by_depth"] == {"Music: 1": 1, "Music: 2": 3}
    found = rows(music)
    assert report["sentences"] == {"repeated": 1, "taken": len(found)}
    levels = report["levels"]
    for level in ("entity", "task"):
        assert levels[level]["tokens"] == sum(row["tokens"] for row in found if row[level])
    twice = levels["entity"]["tokens"] + 2 * levels["task"]["tokens"]
    assert levels["integrated"]["tokens"] == twice
    assert levels["integrated"]["share"] == pytest.approx(
        twice / levels["domain"]["tokens"], abs=1e-4
    )
    walked = pq.read_table(music / "wiki_categories.parquet").to_pylist()
    assert [row["name"] for row in walked if row["depth"] == 0] == ["Music"]
    assert "Music stubs" not in {row["name"] for row in walked}


def test_coverage_and_paragraphs(wiki, music, tmp_path, capsys):
    """All hyperlinks are counted, those with a class too; names without link by --mentions."""
    coverage = json.loads((music / "report.json").read_text())["coverage"]
    assert coverage == {"hyperlinks": 9, "names without link": 1, "with a class": 8}
    assert domain(wiki, tmp_path / "m", *"--domain music --depth 2 --mentions links".split()) == 0
    out = capsys.readouterr().out
    assert "table 1    4 paragraphs, 8 sentences, 58 tokens (paper 3,490,000 paragraphs," in out
    assert "9 hyperlinks, 88.89 % of them with a class (paper 63.64), and 0 names" in out
    by_text = {row["text"]: row for row in rows(tmp_path / "m")}
    sang = by_text["Ian Player sang Aqualung Song with Bob Drummer in Rome Town."]
    assert sang["entities"] == 3  # not the page itself


def test_a_domain_that_the_dump_lacks_is_one_line(wiki, tmp_path, capsys):
    assert domain(wiki, tmp_path / "x", "--domain", "politics") == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("--domain politics: no wiki category 'Politics' in the documents")
    assert err.endswith("Give wiki categories that the dump has, with --roots")


def test_annotation_is_conll_with_the_domains_types(music):
    (part,) = (music / "annotation").glob("*.conll")
    sentences = conll.read(str(part))
    tagged = [list(zip(s.tokens, s.tags, strict=True)) for s in sentences]
    assert [pair for pair in tagged[0] if pair[1].endswith("song")] == [
        ("Aqualung", "B-song"),
        ("Song", "I-song"),
    ]
    kinds = {tag[2:] for s in sentences for tag in s.tags if tag != "O"}
    assert kinds == {"song", "musicalartist", "location", "ENTITY"}
    nowhere = next(pairs for pairs in tagged if ("Nowhere", "B-ENTITY") in pairs)
    assert [tag for _, tag in nowhere if tag != "O"] == ["B-ENTITY"]  # a link without a class
    assert all(any(tag != "O" for tag in s.tags) for s in sentences)


def test_datasets_reads_the_folder(music, tmp_path):
    from datasets import load_dataset

    found = load_dataset(str(music), split="train", cache_dir=str(tmp_path))
    assert found["text"] == [row["text"] for row in rows(music)]


def test_same_bytes_twice_and_nothing_is_made_anew(wiki, music, tmp_path, capsys):
    assert domain(wiki, tmp_path / "again", "--domain", "music", "--depth", 2) == 0
    (tmp_path / "again" / "domain.json").write_bytes((music / "domain.json").read_bytes())
    assert_same_bytes(music, tmp_path / "again")
    capsys.readouterr()
    assert domain(wiki, music, "--domain", "music", "--depth", 2) == 0
    assert "sentences: up to date" in capsys.readouterr().err


def test_roots_special_classes_and_contamination(wiki, tmp_path, capsys):
    (tmp_path / "test.txt").write_text("A O\nsong O\nby O\nIan B-x\nPlayer I-x\n. O\n")
    flags = (
        "--roots",
        "Category:Songs",
        "--depth",
        0,
        "--special",
        "Song",
        "--exclude",
        tmp_path / "test.txt",
        "--entity-mentions",
        1,
    )
    assert domain(wiki, tmp_path / "songs", *flags) == 2  # its only sentence is in the set
    assert "no page of" in capsys.readouterr().err
    assert domain(wiki, tmp_path / "songs", *flags[:6], "--skip", "Flute*", "--depth", 1) == 0
    found = rows(tmp_path / "songs")
    assert {row["title"] for row in found} == {"Aqualung Song", "Loop page"}
    assert [row["task"] for row in found] == [False, False, True]
    assert "domain     3 sentences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--domain", "musik"], "--domain musik: no such domain; did you mean music?"),
        (
            ["--roots", "Musicans"],
            "no wiki category 'Musicans' in the documents; did you mean 'Music",
        ),
        ([], "--domain: give one of ai, literature"),
        (["--domain", "music", "--special", "Bannd"], "no class Bannd; did you mean Band?"),
        (["--domain", "music", "--depth", "-1"], "--depth -1: give 0 or more"),
        (["--domain", "music", "--exclude", "none.txt"], "--exclude none.txt"),
        (
            ["--domain", "music", "--runner", "DataflowRunner"],
            "Dataflow's workers do not see this disk",
        ),
        (
            ["--domain", "music", "--runner", "DataflowRunner", "--template_location", "x"],
            "a domain corpus takes two jobs",
        ),
        (["--domain", "music", "--foo"], "--foo: neither our flag nor Beam's"),
    ],
)
def test_bad_input_is_one_line(wiki, tmp_path, capsys, flags, message):
    assert domain(wiki, tmp_path / "out", *flags) == 2
    err = capsys.readouterr().err
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err


def test_documents_that_do_not_fit(wiki, tmp_path, capsys):
    assert domain(tmp_path, tmp_path / "out", "--domain", "music") == 2
    assert "has no finished documents/; make them with nerbert corpus" in capsys.readouterr().err
    assert domain(wiki, wiki, "--domain", "music") == 2
    assert "not empty, and no run made it" in capsys.readouterr().err
    dump = write_dump(tmp_path / "enwiki.xml", [page for page in PAGES if page[0] == 0])
    flags = [
        "--dump",
        str(dump),
        "--output",
        str(tmp_path / "run"),
        "--stage",
        "resolve",
        "--workers",
        "1",
    ]
    assert table.main(["corpus", *flags]) == 0
    assert domain(tmp_path / "run", tmp_path / "out", "--roots", "Drummers") == 2
    assert "hold no category pages" in capsys.readouterr().err
    assert domain(tmp_path / "run", tmp_path / "out", "--roots", "Drummers", "--depth", 0) == 0
    assert "nothing in entity, task" not in capsys.readouterr().out
