"""A component for pipelines of spaCy: `nlp.add_pipe("nerbert", config={"model": "my-tagger"})`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans, minibatch

from finetune.tagger.tagger import Tagger

NAME = "nerbert"
"""Name of the component."""

Span.set_extension("score", default=None, force=True)


@Language.factory(
    NAME,
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": "",
        "types": [],
        "min_score": None,
        "device": "auto",
        "overwrite": False,
    },
)
def make(
    nlp: Language,
    name: str,
    model: str,
    types: Sequence[str],
    min_score: float | None,
    device: str,
    overwrite: bool,
) -> Tagging:
    """Makes the component; spaCy calls this for `nlp.add_pipe`.

    Args:
        nlp: the pipeline.
        name: name of the component in it.
        model: folder or hub name of a tagger.
        types: types to look for, if the model has an open head.
        min_score: smallest score of an entity; None for what `nerbert train` found on dev.
        device: where the model computes.
        overwrite: whether entities that the document has already are removed; else they stay, and
            of two that overlap the earlier component's counts.

    Raises:
        UserError: there is no such tagger.
    """
    tagger = Tagger.load(model, device=device)
    if types:
        tagger.use_types(types)
    if min_score is not None:
        tagger.min_score = min_score
    return Tagging(tagger, overwrite)


class Tagging:
    """Sets `doc.ents`; `span._.score` is the score of each."""

    def __init__(self, tagger: Tagger, overwrite: bool) -> None:
        """Takes a tagger; see `make` for `overwrite`."""
        self._tagger, self._overwrite = tagger, overwrite

    def __call__(self, doc: Doc) -> Doc:
        """Tags a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tags documents, many together. Entities end at the ends of spaCy's tokens."""
        for docs in minibatch(stream, batch_size):  # type: ignore[no-untyped-call]
            for doc, entities in zip(
                docs, self._tagger.predict([doc.text for doc in docs]), strict=True
            ):
                spans: list[Any] = [] if self._overwrite else list(doc.ents)
                occupied = {token.i for span in spans for token in span}
                for entity in entities:
                    span = doc.char_span(
                        entity.start, entity.end, entity.type, alignment_mode="expand"
                    )
                    if span is not None and occupied.isdisjoint(token.i for token in span):
                        span._.score = entity.score
                        spans.append(span)
                doc.ents = filter_spans(spans)
                yield doc
