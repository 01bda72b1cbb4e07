"""Runs `nerbert corpus`: a run for each wiki of the dumps, and a join of several."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from nerbert.errors import UserError
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from pipeline.dump.streams import find_dumps
from pipeline.dump.units import inspect
from pipeline.join.run import join
from pipeline.join.settings import JoinSettings
from pipeline.runs.corpus import make_corpus
from pipeline.settings import CorpusSettings


def make_corpora(settings: CorpusSettings, beam_flags: Sequence[str] = ()) -> None:
    """Makes the corpus of a wiki; of several, one of each and then one of all.

    Raises:
        UserError: an option or an input is wrong.
        RunError: a corpus has no train example.
    """
    by_wiki = settings_by_wiki(settings)
    for wiki, wiki_settings in by_wiki.items():
        if wiki:
            print(f"{wiki}:")
        make_corpus(wiki_settings, beam_flags)
    if len(by_wiki) > 1 and settings.stage == "corpus" and settings.share is None:
        assert settings.output
        options = JoinSettings(
            runs=tuple(settings.output / wiki for wiki in by_wiki),
            output=settings.output / "corpus",
            language_alpha=settings.language_alpha,
            validation_share=settings.validation_share,
            seed=settings.seed,
        )
        print(f"all:\n{join(options)}")


def settings_by_wiki(settings: CorpusSettings) -> dict[str, CorpusSettings]:
    """The settings of the run of each wiki; of a single one those that came in, under "".

    Raises:
        UserError: a dump cannot be read, or nobody can tell to which wiki a table belongs.
    """
    if not settings.dump or not settings.output or settings.language is not None:
        return {"": settings}
    identities = Identities(settings.output)
    dumps: dict[str, list[Place]] = {}
    for path in find_dumps(settings.dump):
        source = inspect(path, None, identities)
        dumps.setdefault(source.database or f"{source.site.language}wiki", []).append(path)
    if len(dumps) < 2:
        return {"": settings}
    return {
        wiki: replace(
            settings,
            dump=tuple(paths),
            output=settings.output / wiki,
            page_props=_of_wiki("--page-props", settings.page_props, wiki, dumps),
            langlinks=_of_wiki("--langlinks", settings.langlinks, wiki, dumps),
        )
        for wiki, paths in dumps.items()
    }


def _of_wiki(
    flag: str, paths: Sequence[Place], wiki: str, wikis: Collection[str]
) -> tuple[Place, ...]:
    """The tables of a wiki, by the beginnings of their names, as Wikimedia calls them."""
    for path in paths:
        match = re.match(r"[a-z_]+", path.name)
        if match is None or match[0] not in wikis:
            raise UserError(
                f"{flag} {path}: of which wiki? begin its name with one of {', '.join(wikis)}"
            )
    return tuple(path for path in paths if path.name.startswith(f"{wiki}-"))
