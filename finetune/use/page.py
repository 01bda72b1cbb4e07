"""The web page that tags text: form, result, legend; and the requests and answers of its API."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from threading import Lock
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from finetune.tagger.entities import STYLE, Entities, Entity, Palette, marked
from finetune.tagger.tagger import Tagger
from nerbert.errors import UserError

EXAMPLES = {
    "Politics": "Angela Merkel of the CDU met Barack Obama in Berlin after the election of 2013. "
    "The Bundestag elected her chancellor again.",
    "Science": "Emmy Noether proved her theorem in Göttingen in 1915. Albert Einstein and David "
    "Hilbert admired it; Physical Review published it much later.",
    "Music": "David Bowie recorded Low and Heroes with Brian Eno at Hansa Studios, between punk "
    "rock and krautrock.",
    "Literature": "Leo Tolstoy wrote War and Peace in Yasnaya Polyana. Virginia Woolf called him "
    "the greatest of all novelists.",
    "AI": "Geoffrey Hinton, Yann LeCun and Yoshua Bengio won the Turing Award for deep learning. "
    "PyTorch and BERT came from Facebook and Google.",
}
"""Name of an example -> its text."""

_BYTES_PER_CHARACTER = 12  # four bytes of UTF-8, each as %XX; or two escapes \\uXXXX


class RefusedError(Exception):
    """A request that is refused; the page shows the message. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Side:
    """The mentions that one model has found.

    Attributes:
        model: name of the model.
        entities: the mentions.
        milliseconds: time that it took.
        marked: the text with its mentions, as HTML.
    """

    model: str
    entities: Sequence[Entity]
    milliseconds: float
    marked: Markup

    def to_json(self, text: str) -> dict[str, Any]:
        """The mentions, each with its text, as JSON."""
        return {"model": self.model, "text": text, "entities": list(map(asdict, self.entities))}


class Page:
    """Renders the page, and tags texts."""

    def __init__(self, taggers: Mapping[str, Tagger], longest: int) -> None:
        """Takes taggers by name, at least one, and the largest length of a text in characters."""
        folder = files("finetune.use") / "templates"
        environment = Environment(autoescape=True)
        self._template = environment.from_string(_read(folder / "demo.html"))
        self._api_template = environment.from_string(_read(folder / "api.html"))
        self._script = _read(folder / "demo.js")
        self._taggers = taggers
        self._starts = {name: tagger.min_score for name, tagger in taggers.items()}
        for tagger in taggers.values():
            tagger.min_score = 0.0  # the slider hides and shows
        self._longest = longest
        self._lock = Lock()

    @property
    def most_bytes(self) -> int:
        """Largest size of the body of a request, in bytes."""
        return _BYTES_PER_CHARACTER * self._longest + 4096

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self._taggers)

    @property
    def script_hash(self) -> str:
        """Digest of the page's script, by which a Content-Security-Policy allows it."""
        digest = hashlib.sha256(self._script.encode()).digest()
        return f"sha256-{base64.b64encode(digest).decode()}"

    def render(self, fields: Mapping[str, str] | None = None, error: str = "") -> str:
        """Renders the page, with a result if there is a text.

        Args:
            fields: fields of the form: `text`, `example`, `model`, `other`, `types` and
                `threshold`.
            error: message that is shown instead of a result.

        Raises:
            RefusedError: the text is empty or too long, or there is no such model.
        """
        fields = fields or {}
        text = EXAMPLES.get(fields.get("example", ""), fields.get("text", ""))
        model = fields.get("model") or self.models[0]
        second_model = fields.get("other", "")
        threshold = read_threshold(fields.get("threshold", str(self.least(model))))
        types = list(filter(None, map(str.strip, fields.get("types", "").split(","))))
        sides: list[Side] = []
        palette = Palette()
        if fields and not error:
            names = [model, second_model] if second_model and second_model != model else [model]
            sides = [self._side(name, text, types, palette, threshold) for name in names]
        counts = {
            name: sum(entity.type == name for side in sides for entity in side.entities)
            for name in palette.types
        }
        return self._template.render(
            style=Markup(STYLE),
            script=Markup(self._script),
            palette=palette,
            counts=counts,
            examples=EXAMPLES,
            models=self.models,
            model=model,
            other=second_model,
            takes_types=any(tagger.is_open for tagger in self._taggers.values()),
            types=", ".join(types),
            threshold=threshold,
            longest=self._longest,
            error=error,
            text=text,
            sides=sides,
            known={name: tagger.types for name, tagger in self._taggers.items()},
            json=json.dumps([side.to_json(text) for side in sides], ensure_ascii=False),
        )

    def least(self, model: str) -> float:
        """Smallest score of an entity that the page shows at first: that of the model itself."""
        return self._starts.get(model, 0.0)

    def render_api(self, address: str) -> str:
        """Renders the page that describes the API."""
        return self._api_template.render(
            style=Markup(STYLE), models=self.models, longest=self._longest, address=address
        )

    def _side(
        self, model: str, text: str, types: Sequence[str], palette: Palette, threshold: float
    ) -> Side:
        is_open = model in self._taggers and self._taggers[model].is_open
        (entities,), milliseconds = self.tagged([text], model, types=types if is_open else ())
        # `marked` escapes the text.
        html = Markup(marked(text, entities, palette, threshold))
        return Side(model, entities, milliseconds, html)

    def tagged(
        self, texts: Sequence[str], model: str, split: bool = True, types: Sequence[str] = ()
    ) -> tuple[list[Entities], float]:
        """The mentions of texts, and the time that it took in milliseconds.

        Raises:
            RefusedError: a text is empty, they are too long, there is no such model, or it takes
                no such types.
        """
        if model not in self._taggers:
            raise RefusedError(400, "There is no such model.")
        if not texts or not all(text.strip() for text in texts):
            raise RefusedError(400, "There is no text.")
        length = sum(map(len, texts))
        if length > self._longest:
            raise RefusedError(
                413, f"{length:,} characters; at most {self._longest:,} are accepted."
            )
        start = time.perf_counter()
        try:
            with self._lock:
                entities = self._taggers[model].predict(texts, split, types)
        except UserError as error:
            raise RefusedError(400, f"{error}.") from error
        return entities, 1000 * (time.perf_counter() - start)


def _read(path: Any) -> str:
    text: str = path.read_text(encoding="utf-8")
    return text


def read_threshold(text: str) -> float:
    """A threshold between 0 and 1.

    Raises:
        RefusedError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise RefusedError(400, "The threshold must be a number between 0 and 1.")
    return value
