"""The commands of docs/from-nothing.md, word for word, against a local server with real files."""

import bz2
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.helpers.mirror import CUT, served
from tests.helpers.tables import write_table

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "from-nothing.md").read_text(encoding="utf-8")
DATE = "20250201"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def rows(name):
    """Rows of a table in `benchmarks/data`, written by hand."""
    text = (ROOT / "benchmarks" / "data" / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if line[0] != "#"]


def commands():
    """The commands of the page's first block, but for the installation."""
    block = re.search(r"\n\n((?:    .*\n)+)", PAGE)[1].replace("\\\n", " ")
    lines = [line.strip() for line in block.splitlines()]
    assert lines[0].startswith("pip install")
    return lines[1:]


def fill(mirror, folder, shared):
    """The Latgalian wiki, tables with the rows of its most linked pages, and DBpedia's files."""
    pages = [row[1:] for row in rows("pages.tsv") if row[0] == "ltg"]
    props = [(int(page), "wikibase_item", item, None) for page, item, _ in pages if item != "-"]
    links = [(int(page), "en", title) for page, _, title in pages]
    write_table(folder / "props.sql.gz", "page_props", props, wiki="ltgwiki")
    write_table(folder / "links.sql.gz", "langlinks", links, wiki="ltgwiki")
    start = f"ltgwiki-{DATE}"
    dump = (shared / "dumps" / "ltgwiki-20170901-pages-articles.xml.bz2").read_bytes()
    jobs = {
        "articlesmultistreamdump": {
            f"{start}-pages-articles-multistream.xml.bz2": dump,
            f"{start}-pages-articles-multistream-index.txt.bz2": b"",
        },
        "pagepropstable": {f"{start}-page_props.sql.gz": (folder / "props.sql.gz").read_bytes()},
        "langlinkstable": {f"{start}-langlinks.sql.gz": (folder / "links.sql.gz").read_bytes()},
    }
    mirror.add_dump("ltgwiki", DATE, jobs)
    english = (shared / "dbpedia" / "instance_types_en_joie.nt.bz2").read_bytes()
    mirror.add_release(
        "mappings/instance-types",
        "2022.12.01",
        {"instance-types_lang=en_specific.ttl.bz2": english},
    )
    items = "".join(
        f"<http://wikidata.dbpedia.org/resource/{item}> {TYPE} <http://dbpedia.org/ontology/{name}> .\n"
        for name, found in rows("items.tsv")
        for item in found.split()
    )
    mirror.add_release(
        "wikidata/instance-types",
        "2022.12.01",
        {"instance-types_specific.ttl.bz2": bz2.compress(items.encode())},
    )
    mirror.files["/mappings/Mapping_en.xml"] = b"<mediawiki/>"
    mirror.files["/ontology.owl"] = b"<rdf/>"
    return f"/ltgwiki/{DATE}/{start}"


@pytest.mark.slow
def test_word_for_word(tmp_path, shared):
    told = []
    with served() as mirror:
        start = fill(mirror, tmp_path, shared)
        mirror.faults[f"{start}-pages-articles-multistream.xml.bz2"] = [CUT, 503, CUT]
        good = mirror.files[f"{start}-langlinks.sql.gz"]
        mirror.files[f"{start}-langlinks.sql.gz"] = good[:-1] + b"?"
        for number, line in enumerate(commands()):
            # The page's own words, but for the server.
            line = line.replace("nerbert ", f"{sys.executable} -m nerbert ", 1)
            line += f" --mirror {mirror.url}" if " fetch " in line else ""

            def run(line=line):
                return subprocess.run(
                    line, shell=True, cwd=tmp_path, capture_output=True, text=True
                )

            done = run()
            if number == 0:
                assert done.returncode == 1
                assert "langlinks.sql.gz: checksum mismatch after two downloads" in done.stderr
                assert not list((tmp_path / "ltg-dump").glob("*langlinks*"))
                mirror.files[f"{start}-langlinks.sql.gz"] = good
                done = run()
            assert done.returncode == 0, done.stderr
            told.append(done.stdout + done.stderr)
    assert "instance-types_lang=ltg_specific.ttl.bz2: DBpedia has no such file, left out" in told[1]
    assert "47.7 % of the others with a class" in told[2]
    corpus = tmp_path / "ltg-corpus" / "corpus" / "train"
    qids = {q for row in pq.read_table(corpus).to_pylist() for q in row["qids"] if q}
    assert {"Q211", "Q46", "Q159"} <= qids
    assert (tmp_path / "audit.html").stat().st_size > 10_000
