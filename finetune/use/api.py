"""The JSON of the demo: what it takes, and what it answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from finetune.use.page import Page, RefusedError


class PredictRequest(BaseModel):
    """Texts to tag."""

    model_config = ConfigDict(extra="forbid")

    texts: list[str] = Field(description="texts of any length", min_length=1, max_length=1000)

    @model_validator(mode="before")
    @classmethod
    def _single(cls, body: Any) -> Any:
        """Takes `text` for a list of one."""
        if isinstance(body, dict) and "text" in body and "texts" not in body:
            return {"texts": [body["text"]], **{k: v for k, v in body.items() if k != "text"}}
        return body

    model: str | None = Field(None, description="name of the model; the first one if left out")
    threshold: float | None = Field(
        None, description="smallest score of an entity; that of the model if left out", ge=0, le=1
    )
    split: bool = Field(True, description="whether texts are parted into sentences")
    types: list[str] = Field(
        [], description="types to look for, in words, if the model has an open head", max_length=100
    )


class FoundEntity(BaseModel):
    """A mention."""

    start: int = Field(description="first character")
    end: int = Field(description="one after the last character")
    type: str
    score: float = Field(description="probability, as of the model")
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
    """The description of a request's body, in OpenAPI's form."""
    content = {"application/json": {"schema": PredictRequest.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def predict(page: Page, body: bytes) -> PredictResponse:
    """Tags the texts of a request.

    Raises:
        RefusedError: the body is not of this form, or a text is refused.
    """
    try:
        request = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RefusedError(422, f"{place}: {first['msg']}" if place else first["msg"]) from None
    model = request.model or page.models[0]
    of_texts, milliseconds = page.tagged(request.texts, model, request.split, request.types)
    threshold = page.least(model) if request.threshold is None else request.threshold
    texts = [
        FoundText(
            entities=[
                FoundEntity(
                    start=entity.start,
                    end=entity.end,
                    type=entity.type,
                    score=entity.score,
                    text=entity.text,
                )
                for entity in entities
                if entity.score >= threshold
            ]
        )
        for entities in of_texts
    ]
    return PredictResponse(model=model, texts=texts, milliseconds=round(milliseconds, 1))
