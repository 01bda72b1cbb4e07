"""Sentences that several pages have: one example stays, in one split; all others are counted."""

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nerbert.storage.places import Place
from pipeline.examples import boilerplate as module
from pipeline.examples.rows import DIGESTS
from tests.helpers.runs import assert_same_bytes, examples, run

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
)
SAME = "This place lies in [[Rome]] near the river."


def page(number, text):
    return (
        f"<page><title>Place {number}</title><ns>0</ns><id>{number}</id><revision><id>{number}</id>"
        f"<timestamp>2024-01-01T00:00:00Z</timestamp><text>{text}</text></revision></page>\n"
    )


def dumps(folder):
    """Two files; of the pages with a repeated sentence every third has it twice."""
    city = "{{Infobox settlement}} Rome is a city. [[Rome]] is old and it is large."
    texts = {1: city.replace("Rome is a", "'''Rome''' is a")}
    for number in range(2, 60):
        own = f"The place {number} is not far from [[Rome]] by road."
        same = [SAME] * (1 + (number % 3 == 0)) * (number % 4 > 0)
        texts[number] = "\n\n".join([own, *same, own.replace("road", "train")])
    titles = {1: "Rome"}
    for name, numbers in (("a.xml", range(1, 30)), ("b.xml", range(30, 60))):
        body = "".join(
            page(n, texts[n]).replace(
                f"Place {n}</title>", f"{titles.get(n, f'Place {n}')}</title>"
            )
            for n in numbers
        )
        (folder / name).write_text(HEAD + body + "</mediawiki>\n", encoding="utf-8")
    return [folder / "a.xml", folder / "b.xml"]


def corpus(cwd, *flags):
    arguments = ["--output", "out", "--min-entities", 1, "--mentions", "links", *flags]
    code, printed, err = run("--dump", *dumps(cwd), *arguments, cwd=cwd)
    assert code == 0, err
    return cwd / "out", printed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The outputs of a run in one process, and what it printed."""
    return corpus(tmp_path_factory.mktemp("whole"), "--workers", "1")


def test_one_example_of_each_sentence(whole):
    output, printed = whole
    funnel = json.loads((output / "corpus" / "report.json").read_text())["funnel"]
    rows = [
        row for split in ("train", "validation") for row in examples(output / "examples", split)
    ]
    times = Counter(tuple(row["tokens"]) for row in rows)
    assert max(times.values()) == 1
    kept = [
        row
        for row in rows
        if row["tokens"] == SAME[:-1].replace("[[Rome]]", "Rome").split() + ["."]
    ]
    assert [row["page_id"] for row in kept] == [2]  # the smallest id that has it
    with_it = sum(number % 4 > 0 for number in range(2, 60))
    assert funnel["sentences"]["dropped"]["boilerplate"] == with_it - 1
    assert f"{with_it - 1:,} boilerplate" in " ".join(printed.split())
    for what in ("sentences", "mentions"):
        counts = funnel[what]
        assert counts["in"] == sum(counts["dropped"].values()) + sum(counts["out"].values())
    table = json.loads((output / "corpus" / "report.json").read_text())["categories"]["table"]
    by_split = Counter(
        split
        for split in ("train", "validation")
        for row in examples(output / "examples", split)
        for tag in row["ner_tags"]
        if tag % 2
    )
    assert {s: sum(row[s] for row in table.values()) for s in by_split} == by_split
    assert by_split.total() == sum(funnel["mentions"]["out"].values())
    tokens = sum(len(row["tokens"]) for row in rows)
    assert tokens == sum(funnel["tokens_before_balancing"].values())


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--workers", "2"], ["--runner", "DirectRunner"]])
def test_same_bytes_in_other_processes(whole, tmp_path, flags):
    assert_same_bytes(whole[0], corpus(tmp_path, *flags)[0])


@pytest.mark.slow
def test_killed_between_old_and_new_part(whole, tmp_path):
    """As a kill leaves it: the report of a part is empty, and one of its splits is the old one."""
    again, _ = corpus(tmp_path)
    (again / "examples" / "reports" / "part-00001.json").write_text("null\n")
    (again / "examples" / "train" / "part-00001.parquet").write_bytes(b"torn")
    for folder in ("examples", "corpus"):
        state = json.loads((again / folder / "stage.json").read_text())
        state = {key: value for key, value in state.items() if key != "sizes"}
        (again / folder / "stage.json").write_text(json.dumps({**state, "complete": False}))
    corpus(tmp_path)
    assert_same_bytes(whole[0], again)


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_against_all_pairs(tmp_path, monkeypatch, at_once):
    """Brute force: of each digest only the row of the smallest page stays."""
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    random = np.random.default_rng(at_once)
    names = [f"part-{number:05d}.parquet" for number in range(4)]
    plan = SimpleNamespace(
        parts=[Place(tmp_path / "documents" / name) for name in names],
        examples=SimpleNamespace(path=Place(tmp_path / "examples")),
    )
    (tmp_path / "examples" / "digests").mkdir(parents=True)
    every = []
    values = np.append(random.integers(0, 1 << 64, 20, np.uint64), np.uint64([0, (1 << 64) - 1]))
    for number, name in enumerate(names):
        digests = random.choice(values, 30 * (number != 2))
        pages = random.permutation(30)[: len(digests)] + 30 * random.integers(0, 3, len(digests))
        table = pa.table([digests, pages, np.zeros(len(digests), np.int32)], schema=DIGESTS)
        pq.write_table(table, tmp_path / "examples" / "digests" / name)
        every += [
            (int(d), int(p), number, row)
            for row, (d, p) in enumerate(zip(digests, pages, strict=True))
        ]
    first = {d: min(row for row in every if row[0] == d) for d, *_ in every}
    expected = {}
    for entry in every:
        if first[entry[0]] != entry:
            expected.setdefault(names[entry[2]], []).append(entry[3])
    found = module.boilerplate(plan, len(every))
    assert {name: rows.tolist() for name, rows in found.items()} == expected
    assert Place(plan.parts[2]).name not in found
