"""Documents of an earlier dump are taken over: the result is that of a run without them."""

import re
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from nerbert import build_corpus
from nerbert.text.sentences import SentenceModel
from pipeline.documents import unit_documents
from tests.helpers.runs import DEMO, run

PAGE = re.compile(r"  <page>.*?</page>\n", re.DOTALL)


def wikitext(text, number):
    """Another revision of a page."""
    old = text[text.index("<revision") :]
    new = re.sub(r"<id>\d+</id>", f"<id>{10**9 + number}</id>", old, count=1)
    return text[: text.index("<revision")] + new.replace(
        "</text>", "\n\nIt is in [[Bern]] now.</text>"
    )


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """The demo dump, and a later one: a page is gone, one is new, two are changed, one moved."""
    folder = tmp_path_factory.mktemp("dumps")
    text = DEMO.read_text(encoding="utf-8")
    pages = PAGE.findall(text)
    assert len(pages) > 50
    later = [page for n, page in enumerate(pages) if n != 3]
    later[10], later[20] = wikitext(later[10], 10), wikitext(later[20], 20)
    later[30] = re.sub("<title>(.*?)</title>", r"<title>\1 (moved)</title>", later[30], count=1)
    later.append(re.sub("<id>.*?</id>", "<id>999999</id>", later[5], count=1))
    head, tail = text[: text.index(pages[0])], text[text.rindex("</page>\n") + len("</page>\n") :]
    for name, part in (("earlier", pages), ("later", later)):
        (folder / f"{name}.xml").write_text(head + "".join(part) + tail, encoding="utf-8")
    foreign = head.replace(">Wikipedia</namespace>", ">Vikipedia</namespace>") + pages[0] + tail
    (folder / "foreign.xml").write_text(foreign, encoding="utf-8")
    code, _, err = run("--dump", "earlier.xml", "--output", "earlier", cwd=folder)
    assert code == 0, err
    return folder, len(pages)


def test_the_same_bytes_and_the_count(dumps):
    folder, n_pages = dumps
    later = ("--dump", "later.xml", "--workers", "1", "--min-entities", "2")
    code, fresh, err = run(*later, "--output", "fresh", cwd=folder)
    assert code == 0, err
    code, out, err = run(*later, "--output", "taken", "--previous", "earlier", cwd=folder)
    assert code == 0, err
    assert out.replace("taken", "fresh") == fresh
    taken = int(re.search(r"extract: (\d+) pages as in .*earlier, not parsed again", err)[1])
    assert n_pages - 10 < taken <= n_pages - 4
    for name in ("documents", "examples", "corpus"):
        for path in sorted((folder / "fresh" / name).rglob("*.parquet")):
            other = folder / "taken" / path.relative_to(folder / "fresh")
            assert path.read_bytes() == other.read_bytes()


def test_sentences_by_the_same_model_are_taken_over(dumps, monkeypatch):
    """Such as those of one of NLTK's models; a dump's own one is trained on its pages."""
    folder, _ = dumps
    split = []
    add_sentences = unit_documents.add_sentences
    monkeypatch.setattr(
        unit_documents, "add_sentences", lambda *given: split.append(add_sentences(*given))
    )
    options = {"dump": str(folder / "earlier.xml"), "workers": 1, "stage": "extract"}
    build_corpus(**options, output=str(folder / "same"), previous=str(folder / "earlier"))
    assert not split
    for path in sorted((folder / "earlier" / "documents").glob("part-*.parquet")):
        assert path.read_bytes() == (folder / "same" / "documents" / path.name).read_bytes()
    parts = sorted((folder / "earlier" / "documents").glob("part-*.parquet"))
    texts = [text for part in parts for text in pq.read_table(part)["text"].to_pylist()]
    path = folder / "same" / "documents" / "sentences.json"
    model = SentenceModel.from_json(path.read_bytes())
    other = replace(model.parameters, abbreviations=model.parameters.abbreviations ^ {"city"})
    path.write_text(replace(model, parameters=other).to_json())
    build_corpus(**options, output=str(folder / "other-model"), previous=str(folder / "same"))
    assert len(split) == sum("city." in text.lower() for text in texts) > 0
    for path in sorted((folder / "earlier" / "documents").glob("part-*.parquet")):
        other = folder / "other-model" / "documents" / path.name
        assert path.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("later.xml", "--list-items"), "made with another list-items; leave it out"),
        (("foreign.xml",), "made with another wiki; leave it out"),
    ],
)
def test_documents_of_another_kind_are_refused(dumps, flags, problem):
    folder, _ = dumps
    command = ("--output", "other", "--previous", "earlier", "--dump", *flags)
    code, _, err = run(*command, cwd=folder)
    assert code == 2
    assert re.match(f"--previous .*earlier: {problem}", err.splitlines()[-1]), err
    assert not (folder / "other").exists()


def test_a_run_that_is_none(dumps, tmp_path):
    folder, _ = dumps
    command = ("--dump", str(folder / "later.xml"), "--output", "x", "--previous", "none")
    code, _, err = run(*command, cwd=tmp_path)
    assert code == 2
    assert "none: has no finished documents/; name the output of an earlier run" in err


def test_a_damaged_part_of_the_earlier_run_is_one_line(dumps, tmp_path):
    """No page is set aside for it."""
    folder, _ = dumps
    shutil.copytree(folder / "earlier", tmp_path / "earlier")
    part = next((tmp_path / "earlier" / "documents").glob("part-*.parquet"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2 : -100] = bytes(len(data) - 100 - len(data) // 2)
    part.write_bytes(data)
    command = ("--dump", str(folder / "later.xml"), "--output", "x", "--previous", "earlier")
    code, _, err = run(*command, "--workers", "1", cwd=tmp_path)
    assert code != 0
    assert f"{part.name}: damaged" in err.splitlines()[-1], err
