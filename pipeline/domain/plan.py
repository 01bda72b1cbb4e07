"""The plan of a domain corpus: checked inputs, and the folders of its stages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nerbert.commands.options import decided_by
from nerbert.errors import UserError
from nerbert.storage.folders import Folder
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from nerbert.storage.records import check_made
from nerbert.text.columns import read_columns
from ontology.classes import ClassTree
from pipeline.domain.definition import Domain, DomainSettings
from pipeline.inputs import checked
from pipeline.plan import DICTIONARY, MANIFEST, WORDS

VERSION = 4
"""Raised if a change of the code changes the rows."""

RECORD = "domain.json"
"""File with the settings; it marks the folder of a domain corpus."""


@dataclass(frozen=True)
class DomainPlan:
    """A checked run: all inputs were checked, nothing has been written.

    Attributes:
        settings: options of the corpus.
        domain: definition of the domain.
        parts: paths of the parts of documents.
        entities: folder of the entity table.
        tree: classes of the ontology.
        language: code of the wiki's language.
        categories: folder of the graph of wiki categories.
        sentences: folder of the domain's sentences.
        annotation: folder of the sentences that people may correct.
    """

    settings: DomainSettings
    domain: Domain
    parts: tuple[Place, ...]
    entities: Place
    tree: ClassTree
    language: str
    categories: Folder
    sentences: Folder
    annotation: Folder

    @property
    def categories_path(self) -> Place:
        """Path of the file with the domain's wiki categories."""
        return self.settings.output / "wiki_categories.parquet"

    @property
    def words(self) -> Place:
        """Path of the most frequent words of the dump."""
        return self.settings.documents / "documents" / WORDS

    @property
    def dictionary(self) -> Place | None:
        """Path of the dictionary of the dump's links; None if no corpus was made with one."""
        return _dictionary(self.settings)

    @property
    def record(self) -> dict[str, Any]:
        """The settings that decide the corpus, as written to `RECORD`."""
        return _record(self.settings, self.domain)


def make_domain_plan(settings: DomainSettings) -> DomainPlan:
    """Checks settings and inputs.

    Raises:
        UserError: an input is missing or unreadable, or the output folder holds something else.
            Nothing has been changed.
    """
    documents, entities = (_made_from(settings, name) for name in ("documents", "entities"))
    tree, domain = ClassTree.shipped(), settings.definition()
    domain.check(tree)
    for path in settings.exclude:
        checked("--exclude", path, lambda local: read_columns(local, settings.columns))
    check_made(settings.output, RECORD, {"documents", "domain", "entity_mentions"})
    manifest = (settings.documents / MANIFEST).read_json_or_none()
    if not isinstance(manifest, dict) or not manifest.get("inputs"):
        raise UserError(
            f"--documents {settings.documents}: {MANIFEST} is missing or torn; run nerbert corpus "
            "again"
        )
    # Without paths, which do not decide the rows.
    decided = {
        **_record(settings, domain),
        "documents": "",
        "output": "",
        "exclude": [Identities().of(path) for path in settings.exclude],
        "dictionary": Identities().of(dictionary)
        if (dictionary := _dictionary(settings))
        else None,
    }
    if decided["columns"] is None:  # not set: the folders are those of older versions
        del decided["columns"]
    return DomainPlan(
        settings=settings,
        domain=domain,
        parts=tuple((settings.documents / "documents" / "part-*.parquet").files()),
        entities=settings.documents / "entities",
        tree=tree,
        language=manifest["inputs"][0]["language"],
        categories=_folder(settings, "categories", {"from": documents}),
        sentences=_folder(settings, "sentences", {"from": entities, **decided}),
        annotation=_folder(settings, "annotation", {"from": entities, **decided}),
    )


def _dictionary(settings: DomainSettings) -> Place | None:
    path = settings.documents / "examples" / DICTIONARY
    return path if settings.mentions == "all" and path.exists() else None


def _record(settings: DomainSettings, domain: Domain) -> dict[str, Any]:
    return {
        "documents": settings.documents,
        "output": settings.output,
        "domain": asdict(domain),
        **decided_by(settings, "sentences"),
    }


def _made_from(settings: DomainSettings, name: str) -> str:
    """The fingerprint of a finished folder that `nerbert corpus` made."""
    state = Folder(settings.documents / name, {}).on_disk()
    if not state.get("complete"):
        raise UserError(
            f"{settings.documents}: has no finished {name}/; make them with nerbert corpus "
            f"--dump ... --output {settings.documents} --stage resolve"
        )
    return str(state["fingerprint"])


def _folder(settings: DomainSettings, name: str, made_from: dict[str, Any]) -> Folder:
    return Folder.of(settings.output / name, name, {"version": VERSION, **made_from})
