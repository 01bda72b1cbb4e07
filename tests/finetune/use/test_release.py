"""`nerbert release`: from dumps to what is published."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from nerbert.text.corpus import load_corpus
from tests.helpers.lazy import lazy
from tests.helpers.runs import DEMO, ROOT, run
from tests.helpers.toy import write_set

tagger = lazy("finetune.tagger.tagger")


def flags(folder):
    return (
        *("--dump", str(folder / "enwiki-demo.xml"), "--scale", "debug", "--max-steps", "4"),
        *("--types", str(folder / "types.nt")),
        *("--data-root", str(folder / "sets"), "--output", str(folder / "out")),
    )


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "enwiki-demo.xml").write_bytes(DEMO.read_bytes())
    (tmp_path / "sets" / "crossner").mkdir(parents=True)
    folder = write_set(tmp_path / "sets" / "crossner" / "ai")
    (folder / "valid.txt").rename(folder / "dev.txt")
    (tmp_path / "sets" / "wikiann").mkdir()
    for language in ("en", "uk"):
        folder = write_set(tmp_path / "sets" / "wikiann" / language, person="PER", city="LOC")
        for split, name in (("train", "train"), ("valid", "val"), ("test", "test")):
            (folder / f"{split}.txt").rename(folder / f"{name}.conllu")
    (tmp_path / "types.nt").write_text(
        "".join(
            f"<http://{host}dbpedia.org/resource/{title}> "
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
            f"<http://dbpedia.org/ontology/{name}> .\n"
            for host, title, name in (("uk.", "Київ", "City"), ("", "Ada_Byron", "Scientist"))
        )
    )
    return tmp_path


def start(folder):
    return subprocess.Popen(
        [sys.executable, "-m", "nerbert", "release", *flags(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_release_that_was_killed_goes_on(inputs):
    killed = start(inputs)
    steps = inputs / "out" / "steps.json"
    while not (inputs / "out" / "run").exists() and killed.poll() is None:  # in the first step
        time.sleep(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert steps.exists()
    code, out, err = run(*flags(inputs), cwd=inputs, name="release")
    assert code == 0, err
    output = inputs / "out"
    assert str(output / "run" / "corpus") in out
    assert len(load_corpus(output / "run").table("train")) > 100
    assert tagger.Tagger.load(str(output / "tagger")).is_open
    assert json.loads((output / "gliner" / "train.json").read_text())
    assert "| wikiann/en |" in (output / "scores" / "report.md").read_text()
    assert "wikiann/uk" not in (output / "scores" / "report.md").read_text()
    excluded = json.loads((output / "run" / "corpus" / "report.json").read_text())
    assert "conllu" in json.dumps(excluded)
    assert "lists of titles" in (output / "tagger" / "README.md").read_text()
    sums = dict(
        reversed(line.split("  ")) for line in (output / "SHA256SUMS").read_text().splitlines()
    )
    assert {name.partition("/")[0] for name in sums} == {"run", "tagger", "gliner"}
    for name, digest in sums.items():
        assert hashlib.sha256((output / name).read_bytes()).hexdigest() == digest


@pytest.mark.unit
def test_what_it_would_download(tmp_path):
    flags = ("--wikis", "en", "uk", "--output", "out", "--push-to-hub", "me/all", "--dry-run")
    code, out, err = run(*flags, cwd=tmp_path, name="release")
    assert code == 0, err
    commands = [line.split()[1:] for line in out.splitlines() if line.startswith("    nerbert")]
    assert [command[0] for command in commands] == [
        *("fetch", "fetch", "fetch", "corpus", "pretrain", "evaluate", "export", "push", "push")
    ]
    assert commands[0][:5] == ["fetch", "dump", "--wiki", "en", "uk"]
    assert commands[-1][-1] == "me/all-open"
    assert not (tmp_path / "out").exists()


@pytest.mark.unit
@pytest.mark.parametrize("flags", [(), ("--wikis", "en", "--dump", "x")])
def test_wikis_or_dumps(flags, tmp_path):
    code, _, err = run(*flags, "--output", "out", cwd=tmp_path, name="release")
    assert (code, err) == (2, "give --wikis to download, or --dump with what is at hand\n")
