"""The three stages: what each is made from, whether it is up to date, and its place on disk.

extract   dump files                 -> documents/
resolve   documents, DBpedia's files -> entities/
corpus    documents, entities        -> examples/, corpus/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any

from ontology.categories import SHIPPED, CategorySet
from ontology.classes import ClassTree
from ontology.conll import read_columns
from ontology.infobox import InfoboxMapping
from pipeline import files
from pipeline.config import (
    BalanceSettings,
    ExtractSettings,
    ResolveSettings,
    SelectSettings,
    as_dict,
    check_share,
)
from pipeline.errors import UserError
from pipeline.inputs import check_types, checked, find_dumps
from pipeline.sentences import SentenceModel
from pipeline.stable_hash import fingerprint
from pipeline.units import InputFile, Unit, cut, inspect

VERSIONS = {"extract": 2, "resolve": 2, "examples": 2, "corpus": 2}
"""Raised when the code of a stage makes other rows: its outputs are then made anew."""

_LIBRARIES = ("nltk", "numpy", "pyarrow")


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run makes, and how many lost pages it bears.

    Attributes:
        max_set_aside: share of pages that may be set aside before the run fails.
    """

    dumps: tuple[str, ...]
    output: str
    language: str | None = None
    max_set_aside: float = 0.01
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    resolve: ResolveSettings = field(default_factory=ResolveSettings)
    select: SelectSettings = field(default_factory=SelectSettings)
    balance: BalanceSettings = field(default_factory=BalanceSettings)

    def __post_init__(self) -> None:
        check_share("--max-set-aside", self.max_set_aside)


def check_remote(named: Mapping[str, Sequence[str]]) -> None:
    """Whether machines elsewhere can read and write all files.

    Args:
        named: flag -> paths.

    Raises:
        UserError: a file is on the local disk.
    """
    for flag, paths in named.items():
        for path in paths:
            if not files.is_remote(path):
                raise UserError(f"{flag} {path}: Dataflow's workers do not see this disk; "
                                "give a gs:// path")  # fmt: skip


def paths_of(settings: Settings) -> dict[str, tuple[str, ...]]:
    """The paths that flags of a run name."""
    return {"--dump": settings.dumps, "--output": (settings.output,),
            "--types": settings.resolve.types, "--exclude": settings.select.exclude}  # fmt: skip


def with_absolute_paths(settings: Settings) -> Settings:
    """The same for workers that may work in another folder, or on another machine."""
    resolve = settings.resolve
    return replace(
        settings,
        dumps=tuple(map(files.absolute, settings.dumps)),
        output=files.absolute(settings.output),
        resolve=replace(resolve, types=tuple(map(files.absolute, resolve.types))),
        select=replace(
            settings.select, exclude=tuple(map(files.absolute, settings.select.exclude))
        ),
    )


@dataclass(frozen=True)
class Folder:
    """One folder of outputs, and the state that says what it was made from."""

    path: str
    state: dict[str, Any]

    @property
    def state_path(self) -> str:
        return files.join(self.path, "stage.json")

    def found(self) -> dict[str, Any] | None:
        """The state on disk, None when there is none."""
        return files.read_json(self.state_path) if files.exists(self.state_path) else None

    def is_complete(self) -> bool:
        """Whether it holds all outputs of just these inputs and settings."""
        found = self.found() or {}
        return bool(found.get("complete")) and found["fingerprint"] == self.state["fingerprint"]

    def prepare(self) -> None:
        """Empties the folder when it was made from something else; parts that fit stay."""
        if (self.found() or {}).get("fingerprint") != self.state["fingerprint"]:
            files.remove_tree(self.path)
        files.remove_unfinished(self.path)
        files.write_json(self.state_path, {**self.state, "complete": False})


@dataclass(frozen=True)
class Plan:
    """A checked run: every input has been looked at, nothing has been written."""

    settings: Settings
    inputs: tuple[InputFile, ...]
    units: tuple[Unit, ...]
    tree: ClassTree
    mapping: InfoboxMapping
    categories: CategorySet
    pretrained: SentenceModel | None
    documents: Folder
    entities: Folder
    examples: Folder
    corpus: Folder

    @property
    def parts(self) -> tuple[str, ...]:
        """Paths of the parts of documents."""
        return tuple(files.join(self.documents.path, unit.part) for unit in self.units)


def plan(settings: Settings) -> Plan:
    """Checks settings and inputs.

    Raises:
        UserError: something is missing, unreadable, or does not fit; nothing has been changed.
    """
    inputs = tuple(inspect(path, settings.language) for path in find_dumps(settings.dumps))
    languages = {source.site.language for source in inputs}
    if len(languages) > 1:
        raise UserError(
            f"--dump: files of several languages ({', '.join(sorted(languages))}); "
            "run one language at a time, or give --language"
        )
    tree = checked("--ontology", settings.resolve.ontology, ClassTree.from_owl) or (
        ClassTree.shipped()
    )
    mapping = InfoboxMapping.empty()
    if settings.resolve.infobox:
        path = settings.resolve.infobox_mapping
        mapping = checked("--infobox-mapping", path, InfoboxMapping.from_xml) or (
            InfoboxMapping.shipped()
        )
    for path in settings.resolve.types:
        checked("--types", path, check_types)
    for path in settings.select.exclude:
        checked("--exclude", path, lambda name: next(read_columns(name)))
    try:
        categories = CategorySet.load(settings.select.categories)
    except (ValueError, OSError) as error:
        raise UserError(f"--categories: {error}") from None
    pretrained = None
    if settings.extract.sentence_model == "nltk":
        pretrained = SentenceModel.pretrained(languages.copy().pop())
    folders = _folders(settings, inputs)
    _check_output(settings.output, folders[0])
    return Plan(settings, inputs, tuple(cut(list(inputs))), tree, mapping, categories, pretrained,
                *folders)  # fmt: skip


def check_set_aside(plan: Plan) -> None:
    """Whether the documents hold enough of the dump's pages.

    Raises:
        UserError: more pages were set aside than the settings allow.
    """
    counts = (plan.documents.found() or {}).get("counts")
    if counts is None:
        raise UserError(
            f"{plan.documents.path}: the run left nothing here; do its workers see this folder?"
        )
    reasons, read = counts["set_aside"], counts["pages"].get("read", 0)
    aside = sum(reasons.values())
    if aside > plan.settings.max_set_aside * read:
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        raise UserError(
            f"{files.join(plan.documents.path, 'quarantine')}: {aside:,} of {read:,} pages were "
            f"set aside ({listed}); repair the dump, or give a --max-set-aside above "
            f"{plan.settings.max_set_aside:g}"
        )


def _folders(settings: Settings, inputs: Sequence[InputFile]) -> tuple[Folder, ...]:
    """The folders of a run. Each fingerprint holds that of the folder it is made from."""
    resolve, select = settings.resolve, settings.select
    dump = [list(source.identity) for source in inputs]
    documents = _folder(settings, "documents", "extract", {
        "dump": dump, "dump_files": [files.name(source.path) for source in inputs],
        "site": fingerprint(*(source.site for source in inputs)), **as_dict(settings.extract),
    })  # fmt: skip
    entities = _folder(settings, "entities", "resolve", {
        "from": documents.state["fingerprint"],
        "types": [files.identity(path) for path in resolve.types],
        "types_files": [files.name(path) for path in resolve.types],
        "ontology": files.identity(resolve.ontology) if resolve.ontology else "shipped",
        "infobox_mapping": files.identity(resolve.infobox_mapping) if resolve.infobox_mapping
        else "shipped" if resolve.infobox else "none",
    })  # fmt: skip
    table = select.categories
    examples = _folder(settings, "examples", "examples", {
        "from": entities.state["fingerprint"], **as_dict(select),
        "categories": table if table in SHIPPED else files.identity(table),
        "exclude": [files.identity(path) for path in select.exclude],
    })  # fmt: skip
    corpus = _folder(settings, "corpus", "corpus", {
        "from": examples.state["fingerprint"], **as_dict(settings.balance),
    })  # fmt: skip
    return documents, entities, examples, corpus


def _folder(settings: Settings, name: str, stage: str, made_from: dict[str, Any]) -> Folder:
    made_from = {"version": VERSIONS[stage], **made_from}
    identifying = {key: value for key, value in made_from.items() if not key.endswith("_files")}
    state = {"stage": stage, "fingerprint": fingerprint(identifying), "made_from": made_from}
    return Folder(files.join(settings.output, name), state)


def _check_output(output: str, documents: Folder) -> None:
    """Refuses a folder that holds something else, or documents of another dump."""
    found = documents.found()
    if found is not None:
        made_from = found["made_from"]
        if made_from["dump"] != documents.state["made_from"]["dump"]:
            names = ", ".join(made_from["dump_files"])
            raise UserError(
                f"{output}: made from another dump ({names}); choose another --output, or remove it"
            )
    elif files.is_used_folder(output) and not files.exists(files.join(output, "manifest.json")):
        raise UserError(
            f"{output}: not empty, and no run made it; choose another --output, or empty it"
        )


def manifest(plan: Plan) -> dict[str, Any]:
    """What `manifest.json` holds: inputs, settings, versions, and the state of each folder."""
    settings = plan.settings
    folders = (plan.documents, plan.entities, plan.examples, plan.corpus)
    return {
        "inputs": [
            {"file": files.name(source.path), "bytes": source.size, "digest": source.digest,
             "compression": source.compression, "language": source.site.language}
            for source in plan.inputs
        ],
        "units": len(plan.units),
        "sentence_model": sentence_model_name(plan),
        "settings": {
            "extract": as_dict(settings.extract),
            "resolve": {
                **as_dict(settings.resolve),
                "types": [files.name(p) for p in settings.resolve.types],
                "ontology": files.name(settings.resolve.ontology or "shipped"),
                "infobox_mapping": files.name(settings.resolve.infobox_mapping or "shipped"),
            },
            "select": {**as_dict(settings.select),
                       "categories": files.name(settings.select.categories),
                       "exclude": [files.name(p) for p in settings.select.exclude]},
            "balance": as_dict(settings.balance),
        },
        "versions": {**_library_versions(), **VERSIONS},
        "stages": {files.name(folder.path): folder.found() for folder in folders},
    }  # fmt: skip


@cache
def _library_versions() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}


def sentence_model_name(plan: Plan) -> str:
    """Where the sentence model is from: "dump", or "nltk:" and the language of NLTK's model."""
    return plan.pretrained.source if plan.pretrained else "dump"
