"""The files of a run beside its settings: that they are there, readable, and of one wiki."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from nerbert.errors import UserError, install
from nerbert.storage.places import Place, local_copies
from nerbert.text.columns import read_columns
from ontology.sources.infobox import InfoboxMapping
from ontology.sources.sql import check_table
from ontology.sources.types import check_types
from ontology.titles import EXTRAS, converter
from pipeline.dump.units import InputFile
from pipeline.settings import CorpusSettings
from pipeline.wikitext import lexicon

_LOGGER = logging.getLogger("nerbert")


def only_wiki(inputs: Sequence[InputFile]) -> str | None:
    """Database name of the wiki of all dump files, such as "enwiki"; None if they do not say it."""
    languages = {source.site.language for source in inputs}
    if len(languages) > 1:
        raise UserError(
            f"--dump: files of several languages ({', '.join(sorted(languages))}); "
            "run one language at a time, or give --language"
        )
    wikis = {source.database for source in inputs} - {None}
    if len(wikis) > 1:
        raise UserError(
            f"--dump: files of several wikis ({', '.join(sorted(filter(None, wikis)))}); "
            "run one wiki at a time"
        )
    return next(iter(wikis), None)


def check_files(settings: CorpusSettings, wiki: str | None) -> None:
    """Raises a UserError if a file beside the dump is unreadable, or of another wiki."""
    for path in settings.types:
        checked("--types", path, check_types)
    for path in settings.page_props:
        checked("--page-props", path, lambda local: check_table(local, "page_props", wiki))
    for path in settings.langlinks:
        checked("--langlinks", path, lambda local: check_table(local, "langlinks", wiki))
    for path in settings.exclude:
        checked("--exclude", path, lambda local: read_columns(local, settings.columns))


def converts_titles(language: str) -> bool:
    """Whether titles are converted to the language's other script."""
    try:
        return converter(language) is not None
    except ImportError:
        _LOGGER.warning(
            "language %s: links in the other script do not find their pages; %s",
            language,
            install(EXTRAS[language]),
        )
        return False


def has_lexicon(language: str) -> bool:
    """Whether a lexicon tells names from other words, where no capitals do."""
    if language != lexicon.LANGUAGE:
        return False
    installed = lexicon.is_installed()
    if not installed:
        _LOGGER.warning(
            "language %s: links to concepts count as names; %s", language, install(lexicon.LANGUAGE)
        )
    return installed


def infobox_mapping(settings: CorpusSettings, language: str) -> InfoboxMapping:
    """The mapping of infoboxes to classes: the file of the settings, or the shipped one."""
    if not settings.infobox:
        return InfoboxMapping.empty()
    given_mapping = checked("--infobox-mapping", settings.infobox_mapping, InfoboxMapping.from_xml)
    return given_mapping or InfoboxMapping.shipped(language)


def checked(flag: str, path: Place | None, read: Callable[[Place], Any]) -> Any:
    """Reads a file; errors are one line that names the flag and the file.

    Args:
        flag: flag that the file was given with.
        path: path of the file.
        read: reads the file at a local path.

    Returns:
        What `read` returns; None without a path.

    Raises:
        UserError: the file is missing, or cannot be read.
    """
    if path is None:
        return None
    try:
        with local_copies([path]) as (local,):
            return read(local)
    except FileNotFoundError:
        raise UserError(f"{flag} {path}: no such file; check the path") from None
    except (OSError, EOFError) as error:
        raise UserError(f"{flag} {path}: cannot be read ({error}); is it complete?") from None
    except ValueError as error:
        reason = " ".join(str(error).removeprefix(f"{local}: ").split())
        raise UserError(f"{flag} {path}: {reason}; give another file") from None
