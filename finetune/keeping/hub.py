"""Sends a tagger to Hugging Face's hub."""

from __future__ import annotations

import logging
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

from nerbert.errors import UserError

for _name in ("httpx", "httpx2"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # a line for each request

_CLIENT_ERRORS: Any = HfHubHTTPError.__bases__
"""What the HTTP client of the hub raises; versions of huggingface_hub have different clients."""
_LEFT_OUT = [".training/*", ".lock", "events/*"]


def check_token(repository: str) -> None:
    """Checks, before a training of hours, that the hub knows us.

    Raises:
        UserError: there is no token, or the hub refuses it.
    """
    _asked(repository, lambda api: api.whoami())


def push(folder: str, repository: str, private: bool) -> None:
    """Creates a repository if there is none, and uploads a folder.

    Raises:
        UserError: the hub refuses it.
    """

    def send(api: HfApi) -> None:
        api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            ignore_patterns=_LEFT_OUT,
            commit_message="Tagger by nerbert train",
        )

    _asked(repository, send)


def _asked(repository: str, work: Any) -> None:
    try:
        work(HfApi())
    except LocalTokenNotFoundError:
        raise UserError("no token; run `hf auth login`, or set HF_TOKEN", repository) from None
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"the hub refuses ({reason}); check the name, HF_TOKEN and HF_ENDPOINT", repository
        ) from None
    except _CLIENT_ERRORS as error:
        raise UserError(f"no hub ({error}); check HF_ENDPOINT", repository) from None
