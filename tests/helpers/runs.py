"""Starting the program as a user does, and looking at what it left."""

import contextlib
import filecmp
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from seqeval.scheme import IOB2, Entities

from nerbert.commands.table import COMMANDS, run_command
from nerbert.text.tags import tags_to_spans

ROOT = Path(__file__).parent.parent.parent
DEMO = ROOT / "pipeline" / "data" / "demo.xml"


PIPELINE = (str(ROOT / "run_pipeline.py"),)
PRETRAIN = ("-m", "pretrain.launch")


def start(*arguments, cwd, environment=(), program=PIPELINE, **options):
    command = [sys.executable, *program, *map(str, arguments)]
    variables = {k: v for k, v in os.environ.items() if k != "NLTK_DATA"}
    variables |= {"PYTHONHASHSEED": "random", **dict(environment)}
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def run_apart(*arguments, cwd, **options):
    """Runs a command in a process of its own; returns exit code, output and error output."""
    process = start(*arguments, cwd=cwd, **options)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def run(*arguments, cwd, name="corpus", environment=()):
    """Runs a command in this process, which has loaded the libraries; returns the same."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.delenv("NLTK_DATA", raising=False)
        for variable, value in dict(environment).items():
            patch.setenv(variable, value)
        code = run_command(name, [str(argument) for argument in arguments], f"nerbert {name}")
    return code, out.getvalue(), err.getvalue()


def call(name, *arguments):
    """Runs a command in this process and returns its exit code."""
    return run_command(name, [str(argument) for argument in arguments], f"nerbert {name}")


def parsed(name, *flags):
    """The settings of a command line: an instance of each options class."""
    return COMMANDS[name].command().parse([str(flag) for flag in flags]).settings


def tree(folder):
    """The files of a run, without its logs, which have times."""
    paths = {str(p.relative_to(folder)): p for p in sorted(Path(folder).rglob("*")) if p.is_file()}
    return {name: path for name, path in paths.items() if not name.startswith("logs/")}


def assert_same_bytes(one, other):
    ours, others = tree(one), tree(other)
    assert ours.keys() == others.keys()
    for name, path in ours.items():
        assert filecmp.cmp(path, others[name], shallow=False), name


def examples(corpus, split):
    return [
        row
        for path in sorted(Path(corpus, split).glob("*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


def check_example(row, document, tags):
    """Tokens give back the text, mentions are just the anchors, tags are strict IOB2."""
    text = document["text"][row["start"] : row["end"]]
    position, rebuilt = 0, ""
    for token, offset in zip(row["tokens"], row["token_starts"], strict=True):
        assert text[position:offset].strip() == ""
        assert text[offset : offset + len(token)] == token
        rebuilt += text[position:offset] + token
        position = offset + len(token)
    assert rebuilt == text
    names = [tags[label] for label in row["ner_tags"]]
    spans = tags_to_spans(names)
    assert spans == [(e.start, e.end, e.tag) for e in Entities([names], IOB2).entities[0]]
    ends = [
        start + len(token) for start, token in zip(row["token_starts"], row["tokens"], strict=True)
    ]
    assert len(row["sources"]) == len(row["targets"]) == len(spans)
    mentions = [
        (row["start"] + row["token_starts"][s], row["start"] + ends[e - 1])
        for (s, e, _), source in zip(spans, row["sources"], strict=True)
        if source == "link"
    ]
    anchors = [
        a
        for a in document["anchors"]
        if a["name"] and row["start"] <= a["start"] and a["end"] <= row["end"]
        # "French" is a mention if it does not lead to a place, "GDP" if its page has a class.
        if not a["doubt"] or (a["start"], a["end"]) in mentions
    ]
    assert mentions == [(a["start"], a["end"]) for a in anchors]
    linked = zip(row["targets"], row["sources"], strict=True)
    assert [target for target, source in linked if source == "link"] == [
        a["target"] for a in anchors
    ]
