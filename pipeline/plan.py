"""The plan of a run: checked inputs, units, and the folders of the stages.

extract   dump files                 -> documents/
types     DBpedia's files            -> types/
resolve   documents, types           -> entities/
corpus    documents, entities        -> examples/, corpus/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.seams import packages
from nerbert.storage.folders import Folder
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from nerbert.storage.records import check_made
from nerbert.text.common_nouns import DETERMINERS
from nerbert.text.sentences import TRAINED, SentenceModel
from ontology.categories import SHIPPED, CategorySet
from ontology.classes import ClassTree
from ontology.sources.infobox import InfoboxMapping
from pipeline.dump.streams import find_dumps
from pipeline.dump.units import InputFile, Unit, cut, inspect
from pipeline.execution.part_pass import Pass
from pipeline.inputs import (
    check_files,
    checked,
    converts_titles,
    has_lexicon,
    infobox_mapping,
    only_wiki,
)
from pipeline.language import pretrained
from pipeline.settings import CorpusSettings
from pipeline.wikitext.names import NOUNS_IN_UPPER_CASE

VERSIONS = {"extract": 19, "types": 1, "resolve": 22, "examples": 23, "corpus": 7}
"""Raised if a change of the code changes the rows of a stage; older outputs are made again."""

MANIFEST = "manifest.json"
"""File that records inputs, settings and versions of an output folder."""

WORDS = "words.json"
"""File in `documents/` with the most frequent words of the dump."""

DICTIONARY = "dictionary.arrow"
"""File in `examples/` with the dictionary of the dump's links."""

_BY_DIGEST = ("types", "page_props", "langlinks", "ontology", "infobox_mapping", "infobox")
"""Options that decide `resolve` by the contents of files; digests of these stand in their place."""


@dataclass(frozen=True)
class Plan:
    """A checked run: all inputs were checked, nothing has been written."""

    settings: CorpusSettings
    output: Place
    inputs: tuple[InputFile, ...]
    units: tuple[Unit, ...]
    tree: ClassTree
    mapping: InfoboxMapping
    categories: CategorySet
    pretrained: SentenceModel | None
    documents: Folder
    types: Folder
    entities: Folder
    examples: Folder
    corpus: Folder
    identities: Identities
    converts_titles: bool
    has_lexicon: bool

    @property
    def parts(self) -> tuple[Place, ...]:
        """Paths of the parts of documents."""
        return tuple(self.documents.path / unit.part for unit in self.units)

    @property
    def language(self) -> str:
        """Code of the wiki's language."""
        return self.inputs[0].site.language

    @property
    def propagates(self) -> bool:
        """Whether mentions without a link are found."""
        return propagates(self.settings, self.language)

    @property
    def uses_dictionary(self) -> bool:
        """Whether there is a dictionary of the dump's links."""
        return self.propagates and self.settings.dictionary_links > 0

    @property
    def fills(self) -> bool:
        """Whether titles of other pages are found where the words around them bear them out."""
        return self.propagates and self.settings.fill

    @property
    def sentence_model(self) -> str:
        """Source of the sentence model: "dump", or "nltk:" and the name of NLTK's model."""
        return self.pretrained.source if self.pretrained else TRAINED


def propagates(settings: CorpusSettings, language: str) -> bool:
    """Whether mentions without a link are found.

    Where all nouns have a capital it takes words that tell common nouns.
    """
    tells_names = language not in NOUNS_IN_UPPER_CASE or language in DETERMINERS
    return settings.mentions == "all" and tells_names


def make_plan(settings: CorpusSettings) -> Plan:
    """Checks settings and inputs.

    Args:
        settings: settings with an output and at least one dump.

    Raises:
        UserError: an input is missing or unreadable, or the output folder holds something else.
            Nothing has been changed.
    """
    assert settings.output
    identities = Identities(settings.output)
    dumps = find_dumps(settings.dump)
    inputs = tuple(inspect(path, settings.language, identities) for path in dumps)
    tree = checked("--ontology", settings.ontology, ClassTree.from_owl) or ClassTree.shipped()
    check_files(settings, only_wiki(inputs))
    mapping = infobox_mapping(settings, inputs[0].site.language)
    try:
        categories = CategorySet.load(settings.categories)
    except (ValueError, OSError) as error:
        raise UserError(f"--categories: {error}") from None
    language = inputs[0].site.language
    model = pretrained(language) if settings.sentence_model == "nltk" else None
    converts, lexicon = converts_titles(language), has_lexicon(language)
    folders = _folders(settings, settings.output, inputs, identities, converts, lexicon)
    _check_output(settings.output, folders[0])
    return Plan(
        settings,
        settings.output,
        inputs,
        tuple(cut(list(inputs))),
        tree,
        mapping,
        categories,
        model,
        *folders,
        identities,
        converts,
        lexicon,
    )


def _folders(
    settings: CorpusSettings,
    output: Place,
    inputs: Sequence[InputFile],
    identities: Identities,
    converts_titles: bool,
    has_lexicon: bool,
) -> tuple[Folder, Folder, Folder, Folder, Folder]:
    """The folders of a run. The fingerprint of each depends on that of the previous one."""
    folder = partial(_folder, output)
    types_files = [path.name for path in settings.types]
    documents = folder(
        "documents",
        "extract",
        dump=[list(source.identity) for source in inputs],
        dump_files=[source.path.name for source in inputs],
        site=fingerprint(*dict.fromkeys(source.site for source in inputs)),
        lexicon=has_lexicon,
        **settings.decide("extract"),
    )
    types = folder(
        "types",
        "types",
        types=[identities.of(path) for path in settings.types],
        types_files=types_files,
        language=inputs[0].site.language,
    )
    entities = folder(
        "entities",
        "resolve",
        **{"from": documents.fingerprint},
        types=types.fingerprint,
        types_files=types_files,
        page_props=[identities.of(path) for path in settings.page_props],
        langlinks=[identities.of(path) for path in settings.langlinks],
        converts_titles=converts_titles,
        ontology=identities.of(settings.ontology) if settings.ontology else "shipped",
        infobox_mapping=_mapping_identity(settings, identities),
        **{k: v for k, v in settings.decide("resolve").items() if k not in _BY_DIGEST},
        **_of_packages("voters"),
    )
    table = settings.categories
    decided = {
        **settings.decide("select"),
        "categories": table if table in SHIPPED else identities.of(Place(table)),
        "exclude": [identities.of(path) for path in settings.exclude],
        **_of_packages("filters"),
    }
    examples = folder("examples", "examples", **{"from": entities.fingerprint}, **decided)
    decided = {"from": examples.fingerprint, **settings.decide("balance")}
    return documents, types, entities, examples, folder("corpus", "corpus", **decided)


def _folder(output: Place, name: str, stage: str, /, **made_from: Any) -> Folder:
    """A folder of a run, with the fingerprint of what it is made from."""
    if made_from.get("columns", "") is None:  # not set: the folder is that of older versions
        del made_from["columns"]
    return Folder.of(output / name, stage, {"version": VERSIONS[stage], **made_from})


def _of_packages(seam: str) -> dict[str, Any]:
    """The parts that other packages bring, for a fingerprint; nothing if there are none."""
    return {seam: brought} if (brought := packages(seam)) else {}


def _mapping_identity(settings: CorpusSettings, identities: Identities) -> Any:
    if settings.infobox_mapping:
        return identities.of(settings.infobox_mapping)
    return "shipped" if settings.infobox else "none"


def _check_output(output: Place, documents: Folder) -> None:
    """Raises a UserError if the output folder holds other files, or documents of another dump."""
    if earlier := documents.on_disk():
        made_from = earlier["made_from"]
        if made_from["dump"] != documents.state["made_from"]["dump"]:
            names = ", ".join(made_from["dump_files"])
            raise UserError(
                f"{output}: made from another dump ({names}); choose another --output, or remove it"
            )
    else:
        check_made(output, MANIFEST, {"inputs", "stages", "versions"})


class PlanPass(Pass):
    """A pass of a plan, over the parts of its documents unless it says otherwise."""

    def __init__(self, plan: Plan) -> None:
        """Takes the plan."""
        self._plan = plan

    def elements(self) -> Sequence[Any]:
        return self._plan.parts
