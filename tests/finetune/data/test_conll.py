import json
import re
import zipfile

import pytest
from seqeval.scheme import IOB2, Entities

from finetune.data import conll
from finetune.data.registry import registry
from finetune.data.sets import DataSets
from finetune.data.split_files import checksum
from finetune.data.views import LabelMap
from nerbert.errors import UserError
from nerbert.text.tags import tags_to_spans


def n_mentions(sentences):
    return sum(len(tags_to_spans(sentence.tags)) for sentence in sentences)


def test_repairs_are_counted_and_logged(tmp_path, caplog):
    path = tmp_path / "stray.txt"
    path.write_text("a\tB-X\nb\tI-X\n\nc\tO\nd\tI-X\n\ne\tB-X\n")
    with caplog.at_level("INFO", "nerbert"):
        found = conll.read(str(path))
    assert [s.tags for s in found] == [["B-X", "I-X"], ["O", "B-X"], ["B-X"]]
    assert (found.scheme.name, found.scheme.opened, found.types) == ("IOB2", 1, ["X"])
    assert caplog.messages == [f"{path}: 1 mentions begin with I-, changed to B-"]
    conll.write(found, str(tmp_path / "out.txt"))
    again = conll.read(str(tmp_path / "out.txt"))
    assert list(again) == list(found)
    assert again.scheme.strict


def test_json_with_character_spans(tmp_path):
    path = tmp_path / "set.json"
    path.write_text(
        json.dumps(
            [
                {
                    "text": "SPRiNGSは株。",
                    "entities": [{"name": "SPRiNGS", "span": [0, 7], "type": "組織"}],
                },
                {
                    "text": "A4B 社",
                    "entities": [{"span": [1, 2], "type": "数"}, {"span": [0, 1], "type": "字"}],
                },
            ]
        )
    )
    first, second = conll.read(str(path))
    assert (first.tokens, first.tags) == (["SPRiNGS", "は", "株", "。"], ["B-組織", "O", "O", "O"])
    assert (second.tokens, second.tags) == (["A", "4", "B", "社"], ["B-字", "B-数", "O", "O"])


def test_zip_of_column_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("set/b.train", "Más N I-LOC\n\n".encode("latin-1"))
        archive.writestr("set/a.test", "x N B-LOC\ny N I-LOC\n")
        archive.writestr("set/README", "Nothing here.")
    path = str(tmp_path / "set.zip")
    assert [s.tokens for s in conll.read(path)] == [["x", "y"], ["Más"]]
    assert [s.tokens for s in conll.read(f"{path}:set/b.train")] == [["Más"]]
    with pytest.raises(UserError, match=r"set\.zip:set/c: .*c.*b\.train"):
        conll.read(f"{path}:set/c")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "no tags\n", "is no token with a tag"),
        ("a.json", "{", "a.json: "),
        ("a.json", '[{"text": "ab", "entities": []}, {"text": "ab"}]', "entry 1: neither tokens"),
        ("a.json", '[{"text": "a b", "entities": [{"span": [1, 2], "type": "X"}]}]', "entry 0"),
    ],
)
def test_bad_files_are_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        conll.read(str(tmp_path / name))


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"none\.txt"):
        conll.read(str(tmp_path / "none.txt"))


LARGE = 120_000  # bytes of a compressed file that only the slow test reads


def facts(shared, wanted):
    """Stated facts of files that the README of the data lists, and what we read."""
    readme = (shared / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"`data/(ner/\S+\.xz)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\w+)(?: with (\d+))?", readme
    )
    found = {}
    for path, stated in ((shared / name, stated) for name, *stated in rows):
        if wanted(path.stat().st_size):
            read = conll.read(path)
            counts = [len(read), sum(len(s.tokens) for s in read), n_mentions(read)]
            found[str(path)] = stated, counts, read.types, read.scheme
    return found


def check_counts(measured):
    for name, (stated, counts, types, scheme) in measured.items():
        *numbers, kind, stray = stated
        assert [*counts, len(types)] == [int(number) for number in numbers], name
        assert scheme.name == kind, name
        assert scheme.opened == int(stray or 0) or kind == "IOB1", name


@pytest.fixture(scope="module")
def measured(shared):
    return facts(shared, lambda size: size <= LARGE)


@pytest.mark.slow
def test_counts_of_every_set(measured, shared):
    assert len(measured) >= 39
    check_counts(measured)
    found = conll.read(str(shared / "ner" / "stockmark_ja" / "ner.json.xz"))
    assert (len(found), n_mentions(found), len(found.types)) == (5343, 13185, 8)


@pytest.mark.slow
def test_counts_of_large_sets(shared):
    found = facts(shared, lambda size: size > LARGE)
    assert len(found) > 6
    check_counts(found)


@pytest.mark.slow
def test_registry_facts_are_those_of_the_files(measured, shared):
    sets, names, looked = DataSets(shared / "ner"), LabelMap.load("unified"), 0
    for known in registry().values():
        types = set()
        for split, counts in known.counts.items():
            path = sets.find(known, split)
            assert checksum(path) == known.sha256[split], path
            if path in measured:
                assert measured[path][1] == counts, path
                types |= set(measured[path][2])
                looked += 1
        # No set has two types that become one.
        assert len({names.type(name) for name in types}) == len(types), known.name
    assert looked >= 31


# Sentences and mentions as counted by Tjong Kim Sang 2002 (mentions) and in NLTK's copy (sentences).
CONLL2002 = {
    "esp.train": 18798,
    "esp.testa": 4352,
    "esp.testb": 3559,
    "ned.train": 13344,
    "ned.testa": 2616,
    "ned.testb": 3941,
}


@pytest.mark.parametrize("member", CONLL2002)
def test_conll2002(shared, member):
    found = conll.read(str(shared / "ner" / "conll2002" / "conll2002.zip") + f":conll2002/{member}")
    assert n_mentions(found) == CONLL2002[member]
    assert found.types == ["LOC", "MISC", "ORG", "PER"]
    tags = [sentence.tags for sentence in found]
    assert sum(map(len, Entities(tags, IOB2).entities)) == CONLL2002[member]
