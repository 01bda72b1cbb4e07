"""Nothing is lost: damaged input, failing pages, dying workers, full disks, two runs at once."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.corpus import load_corpus
from nerbert.text.sentences import SentenceModel
from pipeline.documents import rows, unit_documents
from pipeline.documents.report import total
from pipeline.dump import units
from pipeline.dump.pages import Page
from pipeline.dump.units import Damage
from pipeline.examples.selector import Selector
from tests.helpers import corrupt
from tests.helpers.runs import DEMO, assert_same_bytes, run, start

GOOD = [corrupt.page(number) for number in range(corrupt.PAGES)]


def read(path):
    source = units.inspect(Place(path))
    found = [item for unit in units.cut([source]) for item in units.read_unit(unit)]
    kept = [item.page_id for item in found if isinstance(item, Page)]
    return kept, [item for item in found if not isinstance(item, Page)]


@pytest.mark.parametrize("seed", range(25))
def test_flipped_bytes_cost_only_their_stream(tmp_path, seed):
    draw = random.Random(seed)
    data, starts = corrupt.multistream(GOOD)
    stream = draw.randrange(1, len(starts) - 1)
    path = tmp_path / "enwiki.xml.bz2"
    # Behind the header: without it, a stream is not even known to begin there.
    path.write_bytes(corrupt.flipped(data, draw, starts[stream] + 14, starts[stream + 1], times=3))
    kept, bad = read(path)
    lost = set(range((stream - 1) * corrupt.PER_STREAM, stream * corrupt.PER_STREAM))
    assert [n for n in range(corrupt.PAGES) if n not in lost] == [n for n in kept if n not in lost]
    assert kept == sorted(set(kept))
    if not lost <= set(kept):
        assert any(isinstance(item, Damage) and item.reason == "corrupt" for item in bad)


@pytest.mark.parametrize("seed", range(12))
def test_cut_file_keeps_what_is_whole(tmp_path, seed):
    data, starts = corrupt.multistream(GOOD)
    length = random.Random(seed).randrange(starts[2], starts[-2])
    path = tmp_path / "enwiki.xml.bz2"
    path.write_bytes(data[:length])
    kept, bad = read(path)
    whole = (sum(start <= length for start in starts) - 2) * corrupt.PER_STREAM
    assert kept == list(range(len(kept)))  # the last stream may lack nothing but its check sum
    assert whole <= len(kept) <= whole + corrupt.PER_STREAM
    assert all(isinstance(item, Damage) and item.reason == "truncated" for item in bad)


@pytest.mark.parametrize("name", corrupt.bad_pages())
@pytest.mark.parametrize("packed", [True, False])
def test_bad_page_between_good_ones(tmp_path, name, packed):
    bad, reason = corrupt.bad_pages()[name]
    pages = [*GOOD[:60], bad, *GOOD[61:]]
    path = tmp_path / ("enwiki.xml.bz2" if packed else "enwiki.xml")
    xml = corrupt.HEAD.encode() + b"".join(pages) + b"</mediawiki>\n"
    path.write_bytes(corrupt.multistream(pages)[0] if packed else xml)
    report, kept = documents_of(path, tmp_path / "out")
    assert [n for n in kept if n != 60] == [n for n in range(corrupt.PAGES) if n != 60]
    assert report["set_aside"] == ({reason: 1} if reason else {})
    assert report["pages"]["read"] == corrupt.PAGES
    assert (
        sum(n for kind, n in report["pages"].items() if kind != "read")
        + sum(report["set_aside"].values())
        == report["pages"]["read"]
    )


def documents_of(path, folder):
    source = units.inspect(Place(path))
    reports, kept = [], []
    for unit in units.cut([source]):
        part = Place(folder / unit.part)
        reports.append(unit_documents.write_documents(unit, part, SentenceModel("x")))
        kept += [n for batch in parts.read_batches(part) for n in batch["page_id"].to_pylist()]
    return total(reports), kept


def test_unexpected_exception_sets_one_page_aside(tmp_path, monkeypatch):
    render = unit_documents.document

    def failing(page, *arguments, **options):
        if page.page_id in (7, 99):
            raise ZeroDivisionError("boom")
        return render(page, *arguments, **options)

    monkeypatch.setattr(unit_documents, "document", failing)
    path = tmp_path / "enwiki.xml.bz2"
    path.write_bytes(corrupt.multistream(GOOD)[0])
    report, kept = documents_of(path, tmp_path / "out")
    assert kept == [n for n in range(corrupt.PAGES) if n not in (7, 99)]
    assert report["set_aside"] == {"error-ZeroDivisionError": 2}
    quarantine = "".join(p.read_text() for p in (tmp_path / "out" / "quarantine").iterdir())
    lines = [json.loads(line) for line in quarantine.splitlines()]
    assert [line["page_id"] for line in lines] == [7, 99]
    assert lines[0]["detail"] == "boom"


@pytest.mark.parametrize("how", ["sleep", "expression"])
def test_a_page_that_takes_too_long_is_set_aside(tmp_path, monkeypatch, how):
    document = unit_documents.document

    def slow(page, *args, **kwargs):
        if page.page_id == 7:
            time.sleep(60) if how == "sleep" else re.match("(a|a)*b", "a" * 60)
        return document(page, *args, **kwargs)

    monkeypatch.setattr(unit_documents, "document", slow)
    monkeypatch.setattr(rows, "PAGE_SECONDS", 0.2)
    path = tmp_path / "enwiki.xml.bz2"
    path.write_bytes(corrupt.multistream(GOOD)[0])
    report, kept = documents_of(path, tmp_path / "out")
    assert kept == [n for n in range(corrupt.PAGES) if n != 7]
    assert report["set_aside"] == {"too-slow": 1}
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_slow_page_among_others_is_left_out_of_the_corpus(demo, monkeypatch, tmp_path):
    """As in extract, in every stage: its sentences are counted, those of the others are kept."""
    select = Selector.select

    def slow(self, batch, counts):
        if "Albert Einstein" in batch.column("title").to_pylist():
            time.sleep(5)
        return select(self, batch, counts)

    _, out, _ = demo
    assert "dropped" in out
    monkeypatch.setattr(Selector, "select", slow)
    monkeypatch.setattr(rows, "PAGE_SECONDS", 0.3)
    code, out, err = run("--output", "out", "--workers", "1", cwd=tmp_path)
    assert code == 0, err
    report = json.loads((tmp_path / "out" / "corpus" / "report.json").read_text())
    usual = json.loads((demo[0] / "corpus" / "report.json").read_text())
    counts, before = (one["funnel"]["sentences"] for one in (report, usual))
    assert 0 < counts["dropped"]["too-slow"] < 30
    assert counts["in"] == before["in"]
    titles = set(load_corpus(tmp_path / "out").table("train").column("title").to_pylist())
    others = set(load_corpus(demo[0]).table("train").column("title").to_pylist())
    assert others - titles == {"Albert Einstein"}


def test_pages_without_prose_or_text(tmp_path):
    text = b'<text xml:space="preserve">A [[town]]'
    bad = {
        10: GOOD[10].replace(b"<text ", b"<model>json</model><text "),
        20: GOOD[20].replace(b"<text ", b"<model>wikitext</model><text "),
        30: GOOD[30].split(b"<text")[0] + b'<text deleted="deleted" /></revision></page>',
        40: GOOD[40].split(b"<text")[0] + b'<text bytes="99" id="7" /></revision></page>',
        50: GOOD[50].split(b"<text")[0] + b'<text bytes="0" /></revision></page>',
        60: GOOD[60].replace(text, b'<text bytes="99">A [[town]]'),
        70: GOOD[70].replace(b"<revision>", b"<revision>" + b"<a>" * 99 + b"</a>" * 99),
    }
    path = tmp_path / "enwiki.xml.bz2"
    pages = [bad.get(number, page) for number, page in enumerate(GOOD)]
    path.write_bytes(corrupt.multistream(pages)[0])
    report, kept = documents_of(path, tmp_path / "out")
    assert kept == [n for n in range(corrupt.PAGES) if n not in (10, 30, 40, 70)]
    assert report["set_aside"] == {"no-text": 2, "broken-xml": 1}
    assert report["pages"]["other-content"] == 1


def test_too_many_bad_pages_fail_the_run(tmp_path):
    dump = tmp_path / "enwiki.xml.bz2"
    bad = corrupt.page(60, "a\x07b")
    dump.write_bytes(corrupt.multistream([*GOOD[:60], bad, bad, *GOOD[62:]])[0])
    arguments = ("--dump", dump, "--output", "out", "--stage", "extract")
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 2
    assert "2 of 120 pages were set aside (2 control-character)" in err.splitlines()[-1]
    assert "--max-set-aside" in err.splitlines()[-1]
    code, _, err = run(*arguments, "--max-set-aside", "0.02", cwd=tmp_path)
    assert code == 0
    assert "extract: up to date" in err


def test_a_lost_stream_counts_as_pages_that_are_set_aside(tmp_path):
    dump = tmp_path / "enwiki.xml.bz2"
    data, starts = corrupt.multistream(GOOD)
    damaged = bytearray(data)
    damaged[starts[3] + 2] ^= 1  # the header: nobody knows that a stream begins here
    dump.write_bytes(damaged)
    arguments = ("--dump", dump, "--output", "out", "--min-entities", "1", "--max-set-aside")
    code, _, err = run(*arguments, "0.01", cwd=tmp_path)
    assert code == 2
    last = err.splitlines()[-1]
    assert "of 120 pages were set aside (8 lost where the dump is corrupt, by estimate)" in last
    code, out, err = run(*arguments, "0.1", cwd=tmp_path)
    assert code == 1, err
    assert "No train example" in err
    assert (
        "damage                8 pages lost, by estimate, where the dump is corrupt (1 times" in out
    )
    report = json.loads((tmp_path / "out" / "corpus" / "report.json").read_text())
    pages = report["funnel"]["pages"]
    assert pages["read"] == corrupt.PAGES - corrupt.PER_STREAM
    assert pages["damage"] == {"bytes": starts[4] - starts[3], "corrupt": 1}
    card = (tmp_path / "out" / "corpus" / "README.md").read_text()
    assert "Of the dump, some 8 pages are lost where it is corrupt." in card


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_dump_that_was_cut_between_pages_says_so(tmp_path, packed):
    path = tmp_path / ("enwiki.xml.bz2" if packed else "enwiki.xml")
    data, starts = corrupt.multistream(GOOD)
    xml = corrupt.HEAD.encode() + b"".join(GOOD)
    path.write_bytes(data[: starts[5]] if packed else xml)
    kept, bad = read(path)
    assert kept == list(range(len(kept)))
    assert [item.reason for item in bad] == ["truncated"]
    assert "no </mediawiki>" in bad[0].detail
    arguments = ("--dump", path, "--output", "out", "--stage", "extract", "--max-set-aside", "0")
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 2
    assert "1 or more behind the end of truncated files" in err.splitlines()[-1]
    code, out, err = run(*arguments[:4], "--min-entities", "1", cwd=tmp_path)
    assert code == 1, err
    assert "No train example" in err
    assert "damage                1 files of the dump without their end: pages are missing" in out
    card = (tmp_path / "out" / "corpus" / "README.md").read_text()
    assert "Of the dump, the end is missing." in card


def test_pages_without_a_root_are_not_truncated(tmp_path):
    path = tmp_path / "pages.xml"
    path.write_bytes(b"".join(GOOD))
    assert read(path) == (list(range(corrupt.PAGES)), [])


@pytest.mark.parametrize("tag", [b"<page >", b'<page xml:id="7">', b"<page\n>"])
@pytest.mark.parametrize("end", [b"</page>", b"</page >", b"</page\n>"])
def test_tags_with_spaces_and_attributes(tmp_path, tag, end):
    path = tmp_path / "enwiki.xml"
    odd = GOOD[1].replace(b"<page>", tag).replace(b"</page>", end)
    xml = corrupt.HEAD.encode() + GOOD[0] + odd + b"<pages/>" + GOOD[2] + b"</mediawiki>"
    path.write_bytes(xml)
    assert read(path) == ([0, 1, 2], [])


def test_titles_never_become_file_names(tmp_path):
    titles = ["../../evil", "/etc/passwd", "a/b", "..", "CON", "x" * 250, "-rf"]
    pages = [corrupt.page(n, title=title) for n, title in enumerate(titles)]
    dump = tmp_path / "enwiki.xml"
    dump.write_bytes(corrupt.HEAD.encode() + b"".join(pages))
    code, _, err = run("--dump", dump, "--output", "out", cwd=tmp_path)
    assert code == 1, err
    assert "No train example" in err
    names = {p.name for p in tmp_path.rglob("*")}
    assert not any("evil" in name or name in titles for name in names)


def test_second_run_on_the_same_output_is_refused(tmp_path):
    first = start("--dump", DEMO, "--output", "out", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "documents").exists():  # it has the lock
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(first.pid, signal.SIGSTOP)  # the first waits while the second tries
    try:
        code, out, err = run("--dump", DEMO, "--output", "out", cwd=tmp_path)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "out: another run is writing here; wait for its end, or choose another --output"
    ]
    assert first.communicate(timeout=120)[0]
    assert first.returncode == 0


@pytest.fixture(scope="module")
def several_units(tmp_path_factory):
    """A dump of random words, which is cut into several units."""
    draw = random.Random(5)
    pages = [
        corrupt.page(n, " ".join(f"w{draw.getrandbits(40):x}" for _ in range(9000)) + ".")
        for n in range(24)
    ]
    dump = tmp_path_factory.mktemp("units") / "enwiki.xml.bz2"
    dump.write_bytes(corrupt.multistream(pages)[0])
    return dump


@pytest.fixture(scope="module")
def undisturbed(several_units):
    """The outputs of a run on it."""
    folder = several_units.parent
    _, _, err = run("--dump", several_units, "--output", "out", cwd=folder)
    assert "No train example in out: give" in err  # the pages have no class
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_full_disk_is_one_line_and_the_run_goes_on_elsewhere(
    small_disk, several_units, undisturbed, tmp_path, workers
):
    arguments = ("--dump", several_units, "--output", "small/out", "--workers", workers)
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 1
    assert err.splitlines()[-1].startswith("small/out: No space left on device; check space")
    assert "Traceback" not in err
    assert not list((tmp_path / "small").rglob(".*.tmp"))
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    _, _, err = run(*arguments, cwd=tmp_path)
    assert "No train example" in err
    assert_same_bytes(tmp_path / "small" / "out", undisturbed)


def test_read_only_output_is_one_line(small_disk, tmp_path):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, _, err = run("--dump", DEMO, "--output", "small/out", cwd=tmp_path)
    assert code == 1
    assert len(err.splitlines()) == 1
    assert "small/out: Read-only file system" in err


@pytest.mark.slow
def test_killed_worker_is_one_line_and_the_run_goes_on(several_units, undisturbed, tmp_path):
    arguments = ("--dump", several_units, "--output", "out", "--workers", 2)
    process = start(*arguments, cwd=tmp_path)
    worker = wait_for_worker(process.pid)
    os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "A worker process ended with code" in err.splitlines()[-1]
    assert "Traceback" not in err
    _, _, err = run(*arguments, cwd=tmp_path)
    assert "No train example" in err
    assert_same_bytes(tmp_path / "out", undisturbed)


def wait_for_worker(parent):
    """Process id of one of the workers of a run."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := children(parent):
            return found[0]
        time.sleep(0.02)
    raise AssertionError("no worker has begun")


def children(pid):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True
    )
    return [int(line) for line in listed.stdout.split()]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_is_one_line(tmp_path, workers):
    process = start("--dump", DEMO, "--output", "out", "--workers", workers, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "documents" / "stage.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "Stopped. Run the same command again to continue out."
    assert "Traceback" not in err


COMMAND = ("--dump", DEMO, "--min-entities", "2", "--workers", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    code, _, err = run(*COMMAND, "--output", "out", cwd=folder)
    assert code == 0, err
    return folder / "out"


@pytest.mark.parametrize(
    "lost",
    [
        *("corpus/train", "documents/part-00000.parquet", "entities/keys.npy"),
        pytest.param("documents/words.json", marks=pytest.mark.slow),
        pytest.param("examples/dictionary.arrow", marks=pytest.mark.slow),
        "examples/frequent/reports/part-00000.json",
    ],
)
def test_lost_outputs_are_made_again(finished, tmp_path, lost):
    shutil.copytree(finished, tmp_path / "again")
    path = tmp_path / "again" / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    code, _, err = run(*COMMAND, "--output", "again", cwd=tmp_path)
    assert code == 0, err
    assert "are missing or have another size; they are made again" in err
    assert_same_bytes(finished, tmp_path / "again")


@pytest.mark.parametrize("name", ["documents/reports/part-00000.json", "corpus/stage.json"])
def test_empty_files_after_a_power_cut_are_made_again(finished, tmp_path, name):
    shutil.copytree(finished, tmp_path / "again")
    (tmp_path / "again" / name).write_bytes(b"")
    code, _, err = run(*COMMAND, "--output", "again", cwd=tmp_path)
    assert code == 0, err
    assert_same_bytes(finished, tmp_path / "again")


def test_a_file_of_the_user_is_not_removed(finished, tmp_path):
    command = (*COMMAND, "--output", "out")
    shutil.copytree(finished, tmp_path / "out")
    thesis = tmp_path / "out" / "corpus" / "thesis.tex"
    thesis.write_text("mine")
    code, _, err = run(*command, "--alpha", "0.5", cwd=tmp_path)
    assert code == 2
    assert "corpus/thesis.tex: changed since a run wrote it" in err
    assert thesis.read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["documents", "entities"])
def test_an_output_that_is_removed_while_the_run_writes(finished, tmp_path, name):
    process = start(*COMMAND, "--output", "out", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "examples" / "stage.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    shutil.rmtree(tmp_path / "out" / name)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (1, 2)
    last = err.splitlines()[-1]
    assert f"out/{name}" in last
    assert last.endswith("run the same command again")
    code, _, err = run(*COMMAND, "--output", "out", cwd=tmp_path)
    assert code == 0, err
    assert_same_bytes(tmp_path / "out", finished)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stage"),
    [("enwiki.xml.bz2", "extract"), pytest.param("types.nt", "resolve", marks=pytest.mark.slow)],
)
def test_an_input_that_changes_while_it_is_read(several_units, tmp_path, name, stage):
    """Whatever was read of it is made again, also if the file is then as it was before."""
    dump = shutil.copy(several_units, tmp_path)
    types = tmp_path / "types.nt"
    types.write_text(
        "<http://dbpedia.org/resource/X> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        "<http://dbpedia.org/ontology/City> .\n"
    )
    arguments = ("--dump", dump, "--types", types, "--stage", stage, "--output", "out")
    before = (tmp_path / name).read_bytes()
    process = start(*arguments, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob("documents/reports/*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    (tmp_path / name).write_bytes(before + b"\n")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    last = f"{tmp_path / name}: changed while the run read it; run the same command again"
    assert err.splitlines()[-1] == last
    (tmp_path / name).write_bytes(before)
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 0, err
    # The documents are not made from the types.
    assert ("extract: up to date" in err) == (name == "types.nt")
    assert f"{stage}: done" in err
    run(*arguments[:-1], "undisturbed", cwd=tmp_path)
    assert_same_bytes(tmp_path / "out", tmp_path / "undisturbed")
