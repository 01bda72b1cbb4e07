"""Standard streams that are closed, full or odd, and texts with line ends of other systems."""

import json
import os
import subprocess
import sys

import pytest

from finetune.data.plain import plain_sentences
from finetune.use.predict import read_texts
from nerbert.commands.recipes import Recipes, recipe_text
from nerbert.errors import UserError
from nerbert.storage.places import Place
from tests.helpers.runs import ROOT, run


def shell(streams, *command, cwd):
    line = f'"{sys.executable}" -m nerbert "$@" {streams}'
    return subprocess.run(
        ["sh", "-c", line, "sh", *map(str, command)],
        cwd=cwd,
        # Output is written when its buffer is full, as for users, whatever this machine has set.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("streams", ["2>&-", pytest.param("<&- 2>&-", marks=pytest.mark.slow)])
def test_closed_streams_do_not_matter_where_nobody_reads_them(tmp_path, streams):
    done = shell(streams, "corpus", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert "train " in done.stdout
    # No file of the run has got what libraries write to standard error.
    report = json.loads((tmp_path / "out" / "corpus" / "report.json").read_text())
    assert report["language"] == "en"


@pytest.mark.parametrize("streams", [">&-", ">/dev/full"])
def test_output_that_is_lost_is_an_error(demo, tmp_path, streams):
    done = shell(streams, "audit", demo[0], "--sample", 3, "--output", "x.html", cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "run the same command again" in done.stderr
    assert (tmp_path / "x.html").exists()


@pytest.mark.parametrize("asked", ["--help", "--version", "audit --help", "corpus --print-recipe"])
@pytest.mark.parametrize("streams", [">&-", ">/dev/full"])
def test_what_a_command_says_of_itself_is_not_lost_either(streams, asked, tmp_path):
    done = shell(streams, *asked.split(), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("standard output: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"\xef\xbb\xbfAda Byron\nUlm\n", ["Ada Byron", "Ulm"]),
        (b"Ada\r\nUlm\r\n", ["Ada", "Ulm"]),
        (b"Ada\rByron\nUlm\n", ["Ada\rByron", "Ulm"]),
        (b"Ada\rUlm\r", ["Ada", "Ulm"]),
        (b"a\x0bb\x0cc\x1cd\xc2\x85e\xe2\x80\xa8f\ng", ["a\x0bb\x0cc\x1cd\x85e\u2028f", "g"]),
        (b"\n\na", ["", "", "a"]),
        (b"", []),
    ],
)
def test_lines_are_texts_and_their_numbers_are_ids(tmp_path, content, texts):
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    assert read_texts(str(path)) == texts


def test_a_bom_is_no_part_of_the_first_word(tmp_path, shared):
    path = shared / "reports" / "bom.txt"
    assert read_texts(str(path))[0].startswith("Ada Byron")
    assert next(plain_sentences(str(path), "--text"))[0] == "Ada"


@pytest.mark.parametrize("code", [*range(32), 127, 128, 0x2028, 0xFEFF])
def test_recipes_have_any_character(tmp_path, code):
    from pipeline.settings import CorpusSettings

    values = {"categories": f"a{chr(code)}b", "alpha": 0.7}
    (tmp_path / "x.toml").write_text(recipe_text(values), encoding="utf-8", newline="")
    read = Recipes().read(str(tmp_path / "x.toml"), [CorpusSettings])
    assert {name: entry.value for name, entry in read.items()} == values


def test_a_recipe_that_is_nested_deeply(tmp_path):
    from pipeline.settings import CorpusSettings

    (tmp_path / "x.toml").write_text("categories = " + "[" * 3000)
    with pytest.raises(UserError, match=r"x\.toml: not valid TOML"):
        Recipes().read(str(tmp_path / "x.toml"), [CorpusSettings])


def test_names_that_are_no_utf8_and_odd_environments(tmp_path):
    name = os.fsdecode(b"enwiki\xff.xml")
    (tmp_path / name).write_text("<mediawiki>")
    for pattern in (name, Place(tmp_path)):
        code, _, err = run("--dump", pattern, "--output", "out", cwd=tmp_path)
        assert (code, err.count("\n"), "no UTF-8; rename the file" in err) == (2, 1, True)
    (tmp_path / name).unlink()
    code, _, err = run("--output", "out", cwd=tmp_path, environment={"MPLBACKEND": "garbage"})
    assert code == 0, err
