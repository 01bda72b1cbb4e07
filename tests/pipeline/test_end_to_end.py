"""Whole runs, as a user starts them: the demo dump, workers, resuming, bad input."""

import bz2
import gzip
import json
import logging
import lzma
import os
import pty
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from functools import partial

import pyarrow.parquet as pq
import pytest

from tests.helpers.runs import DEMO, assert_same_bytes, check_example, examples, run, start, tree

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@pytest.fixture(scope="session")
def multistream(tmp_path_factory):
    """The demo dump 24 times over, as a multistream file that is cut into several units."""

    text = DEMO.read_text(encoding="utf-8")
    head, _, rest = text.partition("  <page>")
    pages = ("  <page>" + rest).replace("</mediawiki>", "")
    streams = [head]
    for copy in range(24):
        altered = re.sub(
            r"<id>(\d+)</id>", lambda m, c=copy: f"<id>{int(m[1]) + 10_000 * c}</id>", pages
        )
        streams.append(altered)
    path = tmp_path_factory.mktemp("dump") / "enwiki-multistream.xml.bz2"
    path.write_bytes(b"".join(bz2.compress(s.encode()) for s in [*streams, "</mediawiki>\n"]))
    return path


def test_demo_has_categories_and_both_splits(demo):
    folder, out, err = demo
    labels = json.loads((folder / "corpus" / "labels.json").read_text())
    assert labels["tags"][:3] == ["O", "B-ENTITY", "I-ENTITY"]
    assert len(labels["categories"]) >= 9
    assert len(labels["tags"]) == 1 + 2 * len(labels["categories"])
    assert len(examples(folder / "corpus", "train")) > 100
    assert len(examples(folder / "corpus", "validation")) > 10
    assert "--min-entities 2" in err
    assert "pages" in out


def test_demo_accounts_for_every_page_sentence_and_mention(demo):
    report = json.loads((demo[0] / "corpus" / "report.json").read_text())
    pages = report["funnel"]["pages"]
    kinds = ("article", "redirect", "category", "other-namespace", "other-content", "duplicate")
    assert pages["read"] == sum(pages.get(k, 0) for k in kinds) + sum(pages["set_aside"].values())
    for what in ("sentences", "mentions"):
        funnel = report["funnel"][what]
        assert funnel["in"] == sum(funnel["dropped"].values()) + sum(funnel["out"].values())
    anchors = report["coverage"]["anchors"]
    mentions = sum(anchors.values()) - anchors["no-name"]
    sources = report["funnel"]["mentions"]["sources"]
    assert mentions == sources["link"]
    assert sum(sources.values()) == report["funnel"]["mentions"]["in"]


def test_demo_examples_are_sound(demo):
    folder = demo[0]
    tags = json.loads((folder / "corpus" / "labels.json").read_text())["tags"]
    documents = {
        row["page_id"]: row
        for path in (folder / "documents").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    }
    pages = {}
    for split in ("train", "validation"):
        rows = examples(folder / "corpus", split)
        pages[split] = {row["page_id"] for row in rows}
        assert len({row["id"] for row in rows}) == len(rows)
        for row in rows:
            check_example(row, documents[row["page_id"]], tags)
    assert pages["train"].isdisjoint(pages["validation"])


def test_the_lines_of_all_runs_are_kept(tmp_path):
    on_beam = ("--alpha", "0.5", "--runner", "DirectRunner")
    for code, flags in ((0, ()), (0, on_beam), (2, ("--min-support", "2"))):
        assert run("--output", "out", *flags, cwd=tmp_path)[0] == code
    assert len(logging.getLogger("nerbert").handlers) == 0
    lines = (tmp_path / "out" / "logs" / "run.log").read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO ", line) for line in lines)
    assert sum("extract: done in" in line for line in lines) == 1
    assert sum("extract: up to date" in line for line in lines) == 1
    assert sum("corpus: done in" in line for line in lines) == 2


def test_the_command_on_the_card_makes_the_corpus(demo, tmp_path):
    card = (demo[0] / "corpus" / "README.md").read_text()
    (command,) = re.findall("^    nerbert corpus (.*)$", card, re.MULTILINE)
    shutil.copy(DEMO, tmp_path)
    code, _, err = run(*shlex.split(command), "--output", "again", cwd=tmp_path)
    assert code == 0, err
    for split in ("train", "validation"):
        folders = demo[0], tmp_path / "again"
        rows, again = (examples(folder / "corpus", split) for folder in folders)
        assert rows == again
    words = " ".join(examples(demo[0] / "corpus", "train")[0]["tokens"])
    assert words in " ".join(part.rpartition("/")[0] for part in card.split())


def test_demo_loads_with_datasets(demo):
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset(str(demo[0] / "corpus"), cache_dir=str(demo[0].parent / "cache"))
    tags = json.loads((demo[0] / "corpus" / "labels.json").read_text())["tags"]
    assert set(loaded) == {"train", "validation"}
    feature = loaded["train"].features["ner_tags"].feature
    assert isinstance(feature, datasets.ClassLabel)
    assert feature.names == tags
    assert loaded["train"][0]["tokens"] == examples(demo[0] / "corpus", "train")[0]["tokens"]


def test_same_bytes_again_and_up_to_date(demo, tmp_path):
    code, _, err = run(cwd=tmp_path)
    assert code == 0, err
    assert_same_bytes(demo[0], tmp_path / "demo-corpus")
    before = {
        name: path.stat().st_mtime_ns
        for name, path in tree(tmp_path / "demo-corpus").items()
        if name != "manifest.json"
    }
    code, _, err = run(cwd=tmp_path)
    assert err.count("up to date") == 3
    after = {
        name: path.stat().st_mtime_ns
        for name, path in tree(tmp_path / "demo-corpus").items()
        if name != "manifest.json"
    }
    assert before == after


def test_changed_settings_redo_what_they_touch(demo, tmp_path):
    run(cwd=tmp_path)
    output = tmp_path / "demo-corpus"
    documents = (output / "documents" / "part-00000.parquet").stat().st_mtime_ns
    chosen = (output / "examples" / "reports" / "part-00000.json").stat().st_mtime_ns
    code, out, err = run("--balance", "calibrated", "--alpha", "0.3", cwd=tmp_path)
    assert code == 0, err
    assert "calibrated, alpha 0.3" in out
    assert err.count("up to date") == 2
    assert (output / "examples" / "reports" / "part-00000.json").stat().st_mtime_ns == chosen
    types = tmp_path / "types.nt"
    types.write_text(
        "<http://dbpedia.org/resource/Pisa> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        "<http://dbpedia.org/ontology/City> .\n"
    )
    code, _, err = run("--types", types, "--categories", "coarse4", cwd=tmp_path)
    assert code == 0, err
    assert err.count("up to date") == 1
    assert (output / "documents" / "part-00000.parquet").stat().st_mtime_ns == documents
    labels = json.loads((output / "corpus" / "labels.json").read_text())
    assert labels["categories"] == ["ENTITY", "location", "organization", "person"]
    code, _, err = run(cwd=tmp_path)
    assert code == 0, err
    shutil.rmtree(output / "types")
    assert_same_bytes(demo[0], output)


@pytest.fixture(scope="module")
def one_worker(multistream):
    """The command for a dump of several units, and its outputs with one worker."""
    command = ("--dump", multistream, "--balance", "calibrated", "--output", "out")
    code, _, err = run(*command, "--workers", 1, cwd=multistream.parent)
    assert code == 0, err
    return command, multistream.parent / "out"


def test_same_bytes_with_two_workers(one_worker, tmp_path):
    command, expected = one_worker
    code, _, err = run(*command, "--workers", 2, cwd=tmp_path)
    assert code == 0, err
    assert_same_bytes(tmp_path / "out", expected)


def test_interrupted_run_goes_on(one_worker, tmp_path):
    command, expected = one_worker
    arguments = (*command, "--workers", 2)
    for number in (signal.SIGINT, signal.SIGKILL):
        process = start(*arguments, cwd=tmp_path, start_new_session=True)
        deadline = time.monotonic() + 120
        while not (tmp_path / "out" / "documents" / "sentences.json").is_file():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
        if number == signal.SIGINT:
            assert process.returncode == 130
            assert err.splitlines()[-1] == "Stopped. Run the same command again to continue out."
            assert "Traceback" not in err
            assert not (tmp_path / "out" / "corpus").exists()
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 0, err
    assert_same_bytes(tmp_path / "out", expected)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dump", "missing.xml"], "missing.xml: no such file"),
        (["--dump", "hello.txt"], "hello.txt: no MediaWiki export"),
        (["--dump", DEMO, "--alpha", "1.5"], "--alpha 1.5: give at most 1"),
        (["--dump", DEMO, "--categories", "nope"], "unknown category set 'nope'"),
        (["--dump", DEMO, "--ontology", "hello.txt"], "--ontology hello.txt: not readable as RDF"),
        (["--dump", DEMO, "--infobox-mapping", "hello.txt"], "hello.txt: not a mappings export"),
        (["--dump", DEMO, "--types", "hello.txt"], "--types hello.txt: neither lines of triples"),
        (["--dump", DEMO, "--types", "no.nt"], "--types no.nt: no such file"),
        (
            ["--dump", DEMO, "--exclude", "hello.txt"],
            "--exclude hello.txt: line 1: 'hello' is no token",
        ),
        (["--dump", DEMO, "--sentence-model", "nltk"], "NLTK_DATA"),
        (["--dump", DEMO, "--alhpa", "0.5"], "--alhpa: no such flag; did you mean --alpha?"),
        (["--dump", DEMO, "--runner", "DaskRunner"], "DaskRunner: refused"),
        (["--dump", DEMO, "--output", "full"], "full: not empty, and no run made it"),
        (["--dump", DEMO, "--max-set-aside", "5"], "--max-set-aside 5: give at most 1"),
        (["--dump", DEMO, "--min-tokens", "0"], "--min-tokens 0: give 1 or more"),
    ],
    ids=lambda value: "_".join(map(str, value[2:] or value)) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_changes_nothing(tmp_path, arguments, said):
    (tmp_path / "hello.txt").write_text("hello\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    output = [] if "--output" in arguments else ["--output", "out"]
    code, out, err = run(*arguments, *output, cwd=tmp_path)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err
    assert not (tmp_path / "out").exists()
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["thesis.txt"]


def test_output_of_another_dump_is_refused(demo, tmp_path):
    other = tmp_path / "other.xml"
    other.write_text(DEMO.read_text().replace("Rome", "Roma"))
    code, _, err = run("--dump", other, "--output", demo[0], cwd=tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "made from another dump (demo.xml)" in err


def test_import_of_pipeline_loads_no_torch_and_no_beam():
    code = "import pipeline.examples.corpus, pipeline.documents.extract, pipeline.execution.local, sys; print({'torch', 'apache_beam'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_terminal_gets_a_progress_bar(tmp_path):
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    command = [sys.executable, str(DEMO.parents[2] / "run_pipeline.py"), "--stage", "extract"]
    done = subprocess.run(command, cwd=tmp_path, stderr=slave, stdout=subprocess.PIPE, check=True)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    assert "extract : 100%" in shown
    assert "1/1" in shown
    assert "pages/s" in shown
    assert done.stdout.decode().startswith("Done up to extract")


def test_run_that_was_killed_at_its_very_start_goes_on(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("")
    code, _, err = run("--dump", DEMO, "--output", "out", "--stage", "extract", cwd=tmp_path)
    assert code == 0, err


def test_output_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run("--dump", DEMO, "--output", "file/out", cwd=tmp_path)
    assert code != 0
    assert len(err.splitlines()) == 1
    assert "file/out" in err


def test_types_are_read_again_where_documents_are_made_again(tmp_path):
    types = tmp_path / "types.nt"
    types.write_text(
        "<http://dbpedia.org/resource/Pisa> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        "<http://dbpedia.org/ontology/City> .\n"
    )
    command = ("--types", types, "--workers", "1")
    assert run(*command, cwd=tmp_path)[0] == 0
    output = tmp_path / "demo-corpus"
    whole = {name: path.read_bytes() for name, path in tree(output).items()}
    for name in ("documents", "types"):
        shutil.rmtree(output / name)
    code, _, err = run(*command, cwd=tmp_path)
    assert code == 0, err
    assert "types: done" in err
    assert "resolve: up to date" in err
    assert {name: path.read_bytes() for name, path in tree(output).items()} == whole


@pytest.mark.parametrize("suffix", [".bz2", ".gz", ".xz"])
@pytest.mark.parametrize("change", ["truncated", "corrupt"])
@pytest.mark.parametrize("large", [True, False])
def test_damaged_types_are_one_line(tmp_path, suffix, change, large):
    pack = {".bz2": bz2.compress, ".gz": gzip.compress, ".xz": partial(lzma.compress, preset=0)}[
        suffix
    ]
    draw = random.Random(0)
    lines = (
        f"<http://dbpedia.org/resource/{draw.getrandbits(256):x}> <{RDF_TYPE}> "
        "<http://dbpedia.org/ontology/City> .\n"
        for _ in range(40_000 if large else 2_000)
    )
    data = bytearray(pack("".join(lines).encode()))
    if change == "corrupt":
        middle = len(data) // 2
        data[middle : middle + 2000] = bytes(2000)
    else:
        del data[-len(data) // 5 :]
    types = tmp_path / f"types.nt{suffix}"
    types.write_bytes(data)
    command = ("--dump", DEMO, "--output", "out", "--types", types, "--workers", "1")
    code, _, err = run(*command, cwd=tmp_path)
    assert code == 2
    assert f"types.nt{suffix}: cannot be read (" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert "extract: done" not in err  # the look at the first pages reads it, too
