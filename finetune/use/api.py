"""The API of the demo: `POST /api/predict`, and what it takes and returns."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from finetune.use.page import Page, RefusedError


class PredictRequest(BaseModel):
    """Texts to tag."""

    model_config = ConfigDict(extra="forbid")

    texts: list[str] = Field(description="texts of any length", min_length=1, max_length=1000)
    model: str | None = Field(None, description="name of the model; the first one if left out")
    threshold: float = Field(0.0, description="smallest score of an entity", ge=0, le=1)
    split: bool = Field(True, description="whether texts are parted into sentences")


class FoundEntity(BaseModel):
    """A mention."""

    start: int = Field(description="first character")
    end: int = Field(description="one after the last character")
    type: str
    score: float = Field(description="mean probability of the tags of its words")
    text: str


class FoundText(BaseModel):
    """The mentions of a text."""

    entities: list[FoundEntity]


class PredictResponse(BaseModel):
    """The mentions of all texts, in order."""

    model: str
    texts: list[FoundText]
    milliseconds: float


class Refusal(BaseModel):
    """Why a request is refused."""

    error: str


def schema() -> dict[str, Any]:
    """What OpenAPI says of the body of a request."""
    content = {"application/json": {"schema": PredictRequest.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def predict(page: Page, body: bytes) -> PredictResponse:
    """Tags the texts of a request.

    Raises:
        RefusedError: the body is not of this form, or a text is refused.
    """
    try:
        wanted = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RefusedError(422, f"{place}: {first['msg']}" if place else first["msg"]) from None
    model = wanted.model or page.models[0]
    found, milliseconds = page.tagged(wanted.texts, model, wanted.split)
    texts = [
        FoundText(
            entities=[
                FoundEntity(
                    start=one.start, end=one.end, type=one.type, score=one.score, text=one.text
                )
                for one in entities
                if one.score >= wanted.threshold
            ]
        )
        for entities in found
    ]
    return PredictResponse(model=model, texts=texts, milliseconds=round(milliseconds, 1))
