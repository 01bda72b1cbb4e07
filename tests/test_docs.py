"""README and docs say what the program does."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nerbert.commands.table import COMMANDS
from ontology.entity_table import EntityTable

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_quick_start_output_is_real(demo):
    _, out, err = demo
    section = README.split("## In a minute")[1].split("`python run_pipeline.py` is the same")[0]
    shown = [line.strip() for line in section.splitlines()]
    for line in out.splitlines():
        assert line.strip() in shown
    assert err.splitlines()[0] in shown


def test_tagged_sentence_is_of_the_demo(demo):
    from tests.helpers.runs import examples

    sentence = re.search(r"^    (\S+/[OB]\S* .*)$", README, re.MULTILINE)[1]
    tokens = [pair.rpartition("/")[0] for pair in sentence.split()]
    assert tokens in [row["tokens"] for row in examples(demo[0] / "corpus", "train")]


def test_first_minute_of_python(demo):
    """The README's lines, on the corpus of the demo."""
    from nerbert import load_corpus

    corpus = load_corpus(demo[0])
    table = corpus.table("train")
    assert {"tokens", "ner_tags", "page_id", "revision_id"} <= set(table.column_names)
    sentence = next(corpus.sentences("train"))
    assert len(sentence.tokens) == len(sentence.tags)


DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PARSERS = {name: entry.command().parser() for name, entry in COMMANDS.items()}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_flags_and_files_that_are_named_exist(document):
    transformers = pytest.importorskip("transformers")
    from nerbert.errors import UserError
    from pipeline.clusters.engine import unknown_flags

    def unknown(given):
        try:
            return unknown_flags(given)
        except UserError:  # the value is wrong
            return []

    text = (ROOT / document).read_text(encoding="utf-8")
    known = "".join(parser.format_help() for parser in PARSERS.values())
    others = {"--help", "--nproc-per-node", "--check", "--ignore-missing", "--no-compile"}
    # Of pip, uv, Slurm, Docker, of the job server of Beam, and of Java.
    others |= {"--torch-backend", "--rm", "--user", "--spark-master-url", "--job-host"}
    others |= {"--job-port", "--add-opens"}
    others |= {"--dependency", "--array", "--parsable", "--cpus-per-task"}
    others |= set(re.findall(r"--[a-z-]+", "".join(benchmarks(text))))
    for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", text)) - others:
        arguments = ([flag], [flag, "1"], [flag, "NONE"])
        is_beams = any(flag not in unknown(given) for given in arguments)
        is_trainers = hasattr(transformers.TrainingArguments, flag[2:].replace("-", "_"))
        assert flag in known or is_beams or is_trainers, flag
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        is_made = link == "commands.md"  # with the site, by docs/reference.py
        assert is_made or (ROOT / document).parent.joinpath(link).exists(), link
    for path in re.findall(
        r"`((?:pipeline|ontology|pretrain|finetune|nerbert|tests)/[\w./]+)`", text
    ):
        assert (ROOT / path).exists(), path


def benchmarks(text: str) -> list[str]:
    return re.findall(
        r"python -m (?:benchmarks|tests\.attacks)\.[^\n`]*", text.replace("\\\n", " ")
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_that_are_named_accept_their_flags(document):
    """`nerbert NAME --flag ...` in a document: each flag is one of that command, or goes on."""
    text = (ROOT / document).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        for name, arguments in re.findall(r"nerbert ([a-z]+)((?: [^`|]*)?)", line):
            if name not in COMMANDS or "nerbert" in arguments:
                continue
            help_text = PARSERS[name].format_help()
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", arguments):
                assert flag in help_text or name in ("corpus", "pretrain", "dapt"), (name, flag)


def test_entity_table_example(demo):
    assert EntityTable.open(demo[0] / "entities").class_of("Big Apple") == "City"


ADDRESS = re.compile(r"https://github\.com/([^/\s]+/nerbert)")


def test_the_repository_has_one_address():
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (address,) = re.findall(r'^Repository = "https://github.com/(.*)"$', pyproject, re.MULTILINE)
    places = ("README.md", "CITATION.cff", "docs/installation.md")
    for place in places:
        assert set(ADDRESS.findall((ROOT / place).read_text(encoding="utf-8"))) == {address}, place
    tracked = [path for path in ROOT.glob("docs/*.md") if str(path.relative_to(ROOT)) not in places]
    assert not any(ADDRESS.search(path.read_text(encoding="utf-8")) for path in tracked)


def test_a_release_needs_an_address_and_has_absolute_links(tmp_path):
    for name in (
        "README.md",
        "pyproject.toml",
        "CITATION.cff",
        "docs/installation.md",
        ".ci/address",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def address(*arguments):
        command = [tmp_path / ".ci" / "address", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    assert "OWNER" in address().stdout
    assert address().returncode == 1
    assert address("https://github.com/someone/nerbert").returncode == 0
    assert address().stdout == "https://github.com/someone/nerbert\n"
    assert address("--absolute").returncode == 0
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 20
    assert all(link.startswith(("#", "https://")) for link in links), links
    raw = "https://raw.githubusercontent.com/someone/nerbert/main/docs/images/demo.png"
    assert raw in links
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "run: .ci/address\n" in release
