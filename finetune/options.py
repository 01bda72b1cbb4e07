"""The options of the commands that fine-tune and use taggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic.dataclasses import dataclass

from finetune.parts import models
from finetune.settings import ALL, CONTEXT, SEEDS, SHOTS, DataOptions, DataRoot, Regime
from nerbert.commands.options import CHECKED, Seed, Text, Texts, option
from nerbert.seams import names


@dataclass(frozen=True, config=CHECKED)
class Device:
    """The options of commands that load a model."""

    device: str = option(
        "auto", "where models compute: cpu, cuda, mps; a GPU if there is one", metavar="NAME"
    )
    half: bool = option(
        False, "load taggers with 16 bits (float16 on a GPU, bfloat16 on a CPU), to use them"
    )


@dataclass(frozen=True, config=CHECKED)
class TrainOptions(DataOptions, Device):
    """Fine-tunes a tagger, and keeps it: an ordinary Hugging Face checkpoint with a model card.

        nerbert train --base-model ner-bert --data crossner/politics --output politics-tagger
        nerbert train --base-model TAGGER --keep-old TAGGER --data new-types --output both

    Trains on the train split, keeps the weights with the best F1 on the dev split, and scores the
    test split. If it is stopped, run the same command again: it continues from its last checkpoint
    and gets the same weights.
    """

    base_model: Text = option(
        help="encoder or pre-trained tagger: name on the hub, or folder", metavar="MODEL"
    )
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, files, or folders with train, dev and test; "
        "several are used together",
        metavar="SET",
    )
    output: Text = option(help="folder of the tagger", metavar="DIR", recipe=False)
    keep_old: Text | None = option(
        None,
        "tagger whose types the new one has, too: it labels them in the sentences of --data; best "
        "also the --base-model",
        metavar="TAGGER",
    )
    seed: Seed = option(555, "seed of head, dropout and order")
    report_to: Texts = option(
        (),
        "tools that get loss and dev F1 while it trains: tensorboard (files in OUTPUT/events), "
        "wandb, mlflow, or what else transformers knows",
        metavar="TOOL",
    )
    push_to_hub: Text | None = option(
        None, "repository on the hub, such as USER/NAME, to send the tagger to", metavar="REPO"
    )
    private: bool = option(False, "make this repository private")


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
class SearchOptions(DataOptions, Device):
    r"""Searches the settings of fine-tuning that give the best F1 on the dev split.

        nerbert search --base-model bert-base-cased --data crossner/politics --output search \
            --space learning_rate=1e-5,5e-5,1e-4 head=linear,crf
        nerbert search --base-model bert-base-cased --data crossner/politics --output search \
            --method tpe --trials 30 --space learning_rate=1e-5..1e-3 batch_size=8,16,32

    The method grid is that of T-NER: all settings are trained for a few epochs, the best of them to
    the end, and the best one of these until its dev F1 drops, unless --epochs says when to end. The
    best tagger is in OUTPUT/model, its settings are in OUTPUT/best.toml, a recipe for nerbert
    train. If it is stopped, run it again.
    """

    base_model: Text = option(
        help="encoder or pre-trained tagger: name on the hub, or folder", metavar="MODEL"
    )
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, or folders with train and dev", metavar="SET"
    )
    output: Text = option(help="folder of the search", metavar="DIR", recipe=False)
    space: Texts = option(
        ("learning_rate=1e-5,5e-5,1e-4", "batch_size=8,16", "head=linear,crf"),
        "settings to try: NAME=VALUE,VALUE, or NAME=LOW..HIGH",
        metavar="NAME=VALUES",
    )
    method: Literal["grid", "random", "tpe"] = option(
        "grid", "all values, in two stages; at random; or by optuna's TPE"
    )
    trials: int = option(20, "number of trials of random and tpe", ge=1)
    partial_epochs: int = option(5, "epochs of the first stage of grid", ge=1)
    kept: int = option(5, "settings that the second stage of grid trains to the end", ge=1)
    time_budget: float | None = option(
        None, "minutes after which no trial begins; run it again to go on", gt=0, metavar="MINUTES"
    )
    seed: Seed = option(555, "seed of head, dropout, order, and of the choices")


if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[("onnx", "int8", *names("exports"))]

BASES = (
    "encoders or pre-trained taggers: names on the hub, or folders; or without pre-training "
    + ("; ".join(f"{name}, {entry.help}" for name, entry in models().items()))
)
"""Help of the option --models."""


@dataclass(frozen=True, config=CHECKED)
class RunOptions(DataOptions, Device):
    """The options of commands that fine-tune several models on several sets."""

    models: Texts = option(help=BASES, metavar="MODEL", also="--model")
    data: Texts = option(
        help="names of sets (also patterns), hf:NAME, folders with train, dev and test",
        metavar="SET",
    )
    seeds: int = option(3, "number of repetitions with different seeds", ge=1, le=len(SEEDS))
    output: Text = option("report", "folder of the report", metavar="DIR", recipe=False)


@dataclass(frozen=True, config=CHECKED)
class EvaluateOptions(RunOptions):
    r"""Fine-tunes taggers on named-entity sets, and scores them on the test splits.

        nerbert evaluate --model ner-bert --data crossner/politics --seeds 3
        nerbert evaluate --models bert-base-cased ner-bert --data 'crossner/*' \
            --regime source-target --source conll2003-crossner --output report
        nerbert evaluate --models bert-base-cased ner-bert --data crossner/ai --shots 10 25 50 all
        nerbert evaluate --model tagger --data btc --regime zero-shot --label-map unified

    All results are kept in --output. If the command is stopped, run it again: it does the missing
    runs.
    """

    # Five seeds: Liu et al. 2021 (NER-BERT), section 4.4.
    seeds: int = option(5, "number of repetitions with different seeds", ge=1, le=len(SEEDS))
    regime: Regime = option(
        "target",
        "train on the target; on the source, then on the target; on both together; on the source "
        "only (zero-shot; without --source the model must be a tagger)",
    )
    source: Texts = option((), "source sets", metavar="SET")
    shots: Texts = option((ALL,), SHOTS, metavar="N")
    check_contamination: Text | None = option(
        None,
        "also score without the test sentences that are in this corpus, or text file",
        metavar="CORPUS",
    )


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

        nerbert predict --model MODEL 'Dante was born in Florence.'
        cat texts.txt | nerbert predict --model MODEL > entities.jsonl
        nerbert predict --model MODEL --input texts.txt --format html --output tagged.html
        nerbert predict --model OPEN --types scientist city -- 'Emmy Noether came to Princeton.'

    jsonl has a line for each text, also an empty one: {"id": ..., "text": ..., "entities":
    [{"start", "end", "type", "score", "text"}, ...]}. csv and tsv have a line for each entity.
    """

    texts: Texts = option((), "texts to tag", metavar="TEXT", positional=True, recipe=False)
    model: Text = option(help="a fine-tuned or pre-trained tagger", metavar="MODEL")
    input: Text | None = option(
        None,
        "file with one text per line; - for standard input (default: a pipe, if there is one)",
        metavar="FILE",
        recipe=False,
    )
    format: Literal["auto", "text", "jsonl", "csv", "tsv", "conll", "html"] = option(
        "auto", "format of the output; auto is coloured text on a terminal, else jsonl"
    )
    output: Text | None = option(
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
    output: Text | None = option(None, "file or folder to write", metavar="PATH", recipe=False)
