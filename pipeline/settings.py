"""The options of `nerbert corpus`: one table of some 50 fields, which is why it is long."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from nerbert.commands.options import (
    CHECKED,
    Location,
    Locations,
    Option,
    Seed,
    Text,
    decided_by,
    option,
    options_of,
)
from nerbert.text.lines import ColumnsText

Stage = Literal["extract", "resolve", "corpus"]

Rule = Literal["votes", "deepest"]
"""The same as `ontology.voting.building.Rule`, which is not imported because it loads numpy."""

STAGES: tuple[Stage, ...] = ("extract", "resolve", "corpus")
"""The stages of a run, in order."""

DEMO_OUTPUT = "demo-corpus"
"""Folder of the demo's outputs, unless another is named."""

_INPUT, _RUN = "input and output", "run"
_EXTRACT, _RESOLVE = "extract: dump -> documents", "resolve: titles -> classes"
_CORPUS = "corpus: label, filter, balance"
_MORE = f"{_CORPUS}, details"
_RUN_MORE = "run, details"
_RESOLVE_MORE = f"{_RESOLVE}, details"

DropSteps = tuple[tuple[int, float], ...]
"""Pairs: a number of ENTITY mentions, and the probability of dropping a sentence with so many."""


def parse_drop_steps(value: Any) -> Any:
    """Parses "3:0.3,4:0.5" to ((3, 0.3), (4, 0.5)), sorted. Lists of pairs are only sorted.

    Raises:
        ValueError: a text is not of that form, or a probability is not from 0 to 1.
    """
    if isinstance(value, str):
        try:
            pairs = [pair.split(":") for pair in value.split(",") if pair.strip()]
            value = [(int(count), float(probability)) for count, probability in pairs]
        except ValueError:
            raise ValueError("write NUMBER:PROBABILITY,... such as 3:0.3,4:0.5,5:0.7") from None
    if not isinstance(value, list | tuple):
        return value
    steps = tuple(sorted(tuple(pair) for pair in value))
    if not all(len(pair) == 2 and 0 <= pair[1] <= 1 for pair in steps):
        raise ValueError("give probabilities from 0 to 1")
    return steps


@dataclass(frozen=True, config=CHECKED)
class CorpusSettings:
    r"""Makes a weakly-labelled, balanced named-entity corpus in Parquet from a Wikipedia dump.

        nerbert corpus                                                  the demo dump, in a minute
        nerbert corpus --dump 'enwiki-*.xml.bz2' --output enwiki-corpus
        nerbert corpus --dump gs://bucket/enwiki/ --output gs://bucket/corpus \
            --runner DataflowRunner --project P --region R --temp_location gs://bucket/tmp

    Our flags come first, Beam's follow. `python run_pipeline.py` is the same command.
    """

    dump: Locations = option(
        (),
        "dump files, globs or directories, local or gs:// (default: the demo dump)",
        metavar="PATH",
        group=_INPUT,
        path="workers",
    )
    output: Location | None = option(
        None,
        "folder of all outputs (required with --dump; demo: demo-corpus)",
        metavar="DIR",
        group=_INPUT,
        recipe=False,
        path="workers",
    )
    previous: Location | None = option(
        None,
        "output of a run on an earlier dump of this wiki; its documents of pages that have not "
        "changed are taken over, with the same result",
        metavar="RUN",
        group=_RUN_MORE,
        recipe=False,
        path="workers",
    )
    language: str | None = option(
        None, "code of the wiki's language, if the dump names none or a wrong one", group=_INPUT
    )
    stage: Stage = option(
        "corpus", "last stage to run; earlier ones run if they are not up to date", group=_RUN_MORE
    )
    workers: int | None = option(
        None, "local worker processes (default: one per core)", group=_RUN, ge=1
    )
    share: Text | None = option(
        None,
        "make the K-th of N shares of the documents only, as one of several runs at once; the "
        "command without it then does the rest",
        metavar="K/N",
        group=_RUN_MORE,
        recipe=False,
    )
    max_set_aside: float = option(
        0.01, "tolerated share of unreadable pages", metavar="S", group=_RUN_MORE, ge=0, le=1
    )
    seed: Seed = option(0, "seed of every random choice (default: 0)", group=_RUN_MORE)
    sentence_model: Literal["dump", "nltk"] = option(
        "dump",
        "Punkt trained on the dump itself, or NLTK's pre-trained model, from NLTK_DATA",
        group=_EXTRACT,
        decides="extract",
    )
    list_items: bool = option(
        False, "keep list items as paragraphs", group=_EXTRACT, decides="extract"
    )
    types: Locations = option(
        (),
        "types of pages (.ttl, .nt; also .bz2, .gz, .xz): DBpedia's instance types of this "
        "language; with --page-props those of Wikidata's ids; with --langlinks those of English",
        metavar="FILE",
        group=_RESOLVE,
        decides="resolve",
        path="here",
    )
    page_props: Locations = option(
        (),
        "MediaWiki's SQL dump of page_props: the Wikidata id of each page",
        metavar="FILE",
        group=_RESOLVE,
        decides="resolve",
        path="workers",
    )
    langlinks: Locations = option(
        (),
        "MediaWiki's SQL dump of langlinks: the English title of each page",
        metavar="FILE",
        group=_RESOLVE,
        decides="resolve",
        path="workers",
    )
    ontology: Location | None = option(
        None,
        "DBpedia's ontology (default: shipped)",
        metavar="FILE",
        group=_RESOLVE_MORE,
        decides="resolve",
        path="here",
    )
    infobox_mapping: Location | None = option(
        None,
        "DBpedia's Mapping_xx.xml (default: shipped for 41 languages)",
        metavar="FILE",
        group=_RESOLVE_MORE,
        decides="resolve",
        path="here",
    )
    infobox: bool = option(
        True, "take classes from infoboxes, too", group=_RESOLVE_MORE, decides="resolve"
    )
    classes: Rule = option(
        "votes",
        "class by a vote of all sources, or the deepest class of --types, else of the infobox",
        group=_RESOLVE,
        decides="resolve",
    )
    page_typer: bool = option(
        True,
        "train a page typer on the pages with a class, and type others (with --classes votes)",
        group=_RESOLVE_MORE,
        decides="resolve",
    )
    typer_precision: float = option(
        0.95,
        "least precision of the page typer on held-out pages; it leaves the other pages alone",
        metavar="P",
        group=_RESOLVE_MORE,
        gt=0,
        le=1,
        decides="resolve",
    )
    categories: Text = option(
        "specific",
        "specific, nerbert315, nerbert212, coarse4, or a table 'class TAB category'",
        metavar="SET",
        group=_CORPUS,
        decides="select",
        path="here",
    )
    names_only: bool = option(
        True,
        "only anchors that are names are mentions, not 'tennis' or 'American citizen'",
        group=_CORPUS,
        decides="select",
    )
    mentions: Literal["links", "all"] = option(
        "all",
        "mentions of links, or also of titles, repeated names, surnames and names in the "
        "dictionary of the dump's links",
        group=_CORPUS,
        decides="select",
    )
    dictionary_links: int = option(
        5,
        "links in the whole dump that a name of the dictionary needs; 0: no dictionary",
        metavar="N",
        group=_MORE,
        ge=0,
        decides="select",
    )
    fill: bool = option(
        True,
        "names that are titles of other pages are mentions of them, too, where a model of the "
        "words around links bears them out (with --mentions all)",
        group=_MORE,
        decides="select",
    )
    min_entities: int | None = option(
        None,
        "distinct linked pages that a category needs (default: 10; demo: 2)",
        group=_CORPUS,
        ge=0,
        decides="select",
    )
    frequent: int = option(
        20,
        "number of most frequent categories that the drop rule looks at",
        group=_MORE,
        ge=0,
        decides="select",
    )
    keep_untyped: bool = option(
        False, "keep sentences whose mentions are all ENTITY", group=_MORE, decides="select"
    )
    keep_described: bool = option(
        False,
        "keep sentences of mentions without a category, if the page of one says what it is "
        '("algorithm"): for --head open',
        group=_MORE,
        decides="select",
    )
    drop_entity: Annotated[DropSteps, BeforeValidator(parse_drop_steps)] = option(
        ((3, 0.3), (4, 0.5), (5, 0.7)),
        "drop probability by number of ENTITY mentions; the last one holds for more "
        "(default: 3:0.3,4:0.5,5:0.7)",
        metavar="N:P,...",
        group=_MORE,
        decides="select",
    )
    drop_other_languages: bool = option(
        True,
        "drop pages in another language than the wiki's; they are counted anyway",
        group=_MORE,
        decides="select",
    )
    min_tokens: int = option(
        5, "shorter sentences are dropped", group=_MORE, ge=1, decides="select"
    )
    max_tokens: int = option(
        256, "longer sentences are dropped", group=_MORE, ge=1, decides="select"
    )
    split: Literal["pages", "examples"] = option(
        "pages",
        "what is drawn for validation: pages with all their examples; or examples, as in the "
        "paper, so that a page may be in both splits",
        group=_MORE,
        decides="select",
    )
    validation_share: float = option(
        0.1,
        "share of the pages, or examples, that are for validation",
        metavar="S",
        group=_MORE,
        ge=0,
        le=1,
        decides="select",
    )
    exclude: Locations = option(
        (),
        "evaluation sets (CoNLL columns) whose sentences must not be in the corpus",
        metavar="FILE",
        group=_CORPUS,
        decides="select",
        path="workers",
    )
    columns: ColumnsText = option(
        None,
        "columns of words and tags in these files, by number or name (default: the first and the "
        "last)",
        metavar="word=N,tag=N",
        group=_MORE,
        decides="select",
    )
    balance: Literal["category-first", "calibrated", "none"] = option(
        "category-first", "how train examples are repeated", group=_CORPUS, decides="balance"
    )
    every_sentence: bool = option(
        True,
        "balancing only adds copies, and leaves out no sentence",
        group=_MORE,
        decides="balance",
    )
    min_support: float = option(
        0.0,
        "categories with a smaller share of mentions whose page several sources know are not "
        "repeated (default: 0)",
        metavar="S",
        group=_MORE,
        ge=0,
        le=1,
        decides="balance",
    )
    alpha: float = option(
        0.7, "exponent of balancing", metavar="A", group=_CORPUS, ge=0, le=1, decides="balance"
    )
    language_alpha: float = option(
        0.7, "exponent of languages, with dumps of several wikis", group=_MORE, ge=0, le=1
    )

    def __post_init__(self) -> None:
        if self.max_tokens < self.min_tokens:
            raise ValueError(
                f"--max-tokens {self.max_tokens}: give --min-tokens ({self.min_tokens}) or more"
            )

    @property
    def uses_page_typer(self) -> bool:
        """Whether a page typer is one of the voters."""
        return self.page_typer and self.classes == "votes"

    @property
    def judges_lone(self) -> bool:
        """Whether what a voter states alone is doubted; see `ontology.voting.lone`."""
        return self.uses_page_typer and bool(self.types)

    def decide(self, output: str) -> dict[str, Any]:
        """The options that decide an output, and their values, in the order of fingerprints."""
        return {**decided_by(self, output), "seed": self.seed}


DECIDED = ("extract", "resolve", "select", "balance")
"""What options decide: two stages, and the two halves of the stage `corpus`."""


def deciding(output: str) -> list[Option]:
    """The options that decide an output, beside the seed, which decides all."""
    return [entry for entry in options_of(CorpusSettings) if entry.facts["decides"] == output]
