"""The options of the commands that use taggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic.dataclasses import dataclass

from finetune.options import SMALL, Device
from finetune.settings import CONTEXT, DataRoot
from nerbert.commands.options import CHECKED, Location, Text, Texts, option
from nerbert.seams import names

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[("onnx", "int8", *names("exports"))]


@dataclass(frozen=True, config=CHECKED)
class PushOptions:
    """Sends a corpus, or a checkpoint, to the Hugging Face hub, with its card.

        nerbert push enwiki-corpus USER/wikipedia-ner
        nerbert push ner-bert USER/ner-bert --private

    If it is stopped, run it again: what is there is not sent again. It needs a token: hf auth
    login, or HF_TOKEN. A corpus becomes a data set that datasets.load_dataset reads.
    """

    path: Text = option(
        help="output of nerbert corpus, pretrain or train",
        positional=True,
        metavar="FOLDER",
        recipe=False,
    )
    repository: Text = option(
        help="repository on the hub", positional=True, metavar="USER/NAME", recipe=False
    )
    private: bool = option(False, "make a new repository private")


@dataclass(frozen=True, config=CHECKED)
class Placing(Device):
    """The options of commands that load a tagger to use it."""

    backend: Literal["auto", "torch", "onnx", "int8"] = option(
        "auto",
        "what computes: torch, or the files of nerbert export; auto takes onnx on a CPU, if there",
    )


@dataclass(frozen=True, config=CHECKED)
class Labelling(Placing):
    """The options of commands that label texts by a tagger."""

    types: Texts = option(
        (),
        "types to look for, in words, if the model has an open head: politician, 'political party' "
        "(default: those it was trained on)",
        metavar="TYPE",
    )


@dataclass(frozen=True, config=CHECKED)
class PredictOptions(Labelling):
    """Tags the entities in texts, with character offsets.

        nerbert predict --types poet city -- 'Dante was born in Florence.'
        nerbert predict --model MODEL 'Dante was born in Florence.'
        cat texts.txt | nerbert predict --model MODEL > entities.jsonl
        nerbert predict --model MODEL --input texts.txt --format html --output tagged.html

    jsonl has a line for each text, also an empty one: {"id": ..., "text": ..., "entities":
    [{"start", "end", "type", "score", "text"}, ...]}. csv and tsv have a line for each entity.
    """

    texts: Texts = option((), "texts to tag", metavar="TEXT", positional=True, recipe=False)
    model: Text = option(
        SMALL,
        "a fine-tuned or pre-trained tagger; open-en and the larger open-en-base are shipped, and "
        "take any --types in English",
        metavar="MODEL",
    )
    encoder: Text | None = option(
        None,
        "folder with the encoder of a shipped tagger (default: from the cache of the hub, or the "
        "hub)",
        metavar="DIR",
    )
    input: Text | None = option(
        None,
        "file with one text per line; - for standard input (default: a pipe, if there is one)",
        metavar="FILE",
        recipe=False,
    )
    format: Literal["auto", "text", "jsonl", "csv", "tsv", "conll", "html"] = option(
        "auto", "format of the output; auto is coloured text on a terminal, else jsonl"
    )
    output: Location | None = option(
        None, "file to write (default: standard output)", metavar="FILE", recipe=False
    )
    min_score: float | None = option(
        None,
        "smallest score of an entity (default: what nerbert train found on dev, or 0; with "
        "--types 0.35)",
        ge=0,
        le=1,
    )
    link: Text | None = option(
        None,
        "output folder of nerbert corpus: each entity gets the page that this name leads to there, "
        "and its Wikidata id (jsonl, csv, tsv)",
        metavar="RUN",
    )
    overlapping: bool = option(
        False, "with --types: every type that fits a mention, such as person and politician"
    )
    batch_size: int = option(1024, "texts that are tagged together", ge=1)
    context: int = option(0, CONTEXT, ge=0)
    split: bool = option(
        True, "part texts into sentences, and tag each one by itself, as in training"
    )


@dataclass(frozen=True, config=CHECKED)
class DemoOptions(Placing):
    """Serves a web page that tags text: it shows coloured entities with types and scores.

        nerbert demo --model MODEL
        nerbert demo --models MODEL OTHER --port 8080

    It only listens on this machine, unless --host is given. Texts are neither stored nor logged.
    """

    models: Texts = option(
        help="fine-tuned or pre-trained taggers to choose from", metavar="MODEL", also="--model"
    )
    host: str = option("127.0.0.1", "address to listen on", metavar="ADDRESS")
    port: int = option(8000, "port to listen on", ge=0, le=65535)
    allow_host: Texts = option(
        (),
        "names of this machine that browsers use, if --host lets others in; addresses in numbers "
        "always work",
        metavar="NAME",
    )
    max_characters: int = option(10_000, "longest text that is accepted", ge=1)


@dataclass(frozen=True, config=CHECKED)
class ExportOptions(DataRoot, Labelling):
    r"""Exports a tagger as ONNX, or labelled texts as a corpus or in the formats of other tools.

        nerbert export --format onnx --model politics-tagger
        nerbert export --format corpus --model ner-open --types protein disease --min-score 0.5 \
            --input texts.txt --output weak-corpus
        nerbert export --format spacy --data crossner/politics --part train --output train.spacy
        nerbert export --format label-studio --model politics-tagger --input texts.txt \
            --output tasks.json

    ONNX files lie in the checkpoint, where nerbert predict, nerbert demo and Tagger.load find them.
    A corpus is a folder for nerbert pretrain.
    """

    format: Format = option(
        help="a tagger as ONNX, also with weights of 8 bits; or the format of labelled texts"
    )
    model: Text | None = option(None, "tagger that is exported, or labels texts", metavar="MODEL")
    data: Text | None = option(
        None, "set or corpus whose sentences are written", metavar="SET", recipe=False
    )
    part: Literal["train", "dev", "test"] = option("train", "split of the set")
    input: Text | None = option(
        None, "file with one text per line; - for standard input", metavar="FILE", recipe=False
    )
    min_score: float = option(
        0.0,
        "smallest score of a mention in labelled texts; in a corpus, the loss ignores the words of "
        "other mentions",
        ge=0,
        le=1,
    )
    output: Location | None = option(None, "file or folder to write", metavar="PATH", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class ReleaseOptions(DataRoot):
    """Makes a corpus of one or several wikis, and a tagger of any type from it, to be published.

        nerbert release --wikis en uk de --output all
        nerbert release --dump dumps --types dbpedia/*.bz2 --output all --base-model MINILM

    It downloads what is not named, makes and joins the corpora, pre-trains with the open head,
    scores the tagger on CrossNER and WikiAnn without training, writes the format of GLiNER and
    checksums, and sends the corpus and the tagger to the hub if that is asked for. It runs the
    commands of nerbert one after the other; if it is stopped, run it again.
    """

    output: Location = option(help="folder of all outputs", metavar="DIR", recipe=False)
    wikis: Texts = option((), "languages of the wikis to download: en uk de", metavar="CODE")
    dump: Texts = option((), "dumps that are at hand", metavar="PATH", recipe=False)
    types: Texts = option((), "DBpedia's types of pages at hand", metavar="FILE", recipe=False)
    page_props: Texts = option((), "tables of pages' items", metavar="FILE", recipe=False)
    langlinks: Texts = option((), "tables of English titles", metavar="FILE", recipe=False)
    base_model: Text | None = option(
        None, "encoder (default: that of pretrain --recipe open)", metavar="MODEL"
    )
    max_steps: int | None = option(None, "steps of pre-training (default: the recipe's)", ge=1)
    scale: Literal["debug", "full"] = option("full", "debug: a tiny model, in minutes")
    push_to_hub: Text | None = option(
        None,
        "send the corpus to this repository, and the tagger to USER/NAME-open",
        metavar="USER/NAME",
    )
    dry_run: bool = option(False, "print the commands, and do nothing")
