"""Sends checkpoints and corpora to the Hugging Face hub; runs `nerbert push`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

from finetune.options import PushOptions
from nerbert.errors import UserError

for _name in ("httpx", "httpx2"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # a line for each request

_CLIENT_ERRORS: Any = HfHubHTTPError.__bases__
"""What the HTTP client of the hub raises; versions of huggingface_hub have different clients."""
_LEFT_OUT = [".training/*", ".lock", "events/*"]


def push_folder(options: PushOptions) -> str:
    """Sends a corpus or a checkpoint.

    Raises:
        UserError: the folder is neither, it has no card, or the hub refuses it.
    """
    folder, kind = _what(Path(options.path))
    if not (folder / "README.md").is_file():
        raise UserError("it has no card (README.md); make it again", options.path)
    check_token(options.repository)
    push(str(folder), options.repository, options.private, kind)
    place = f"datasets/{options.repository}" if kind == "dataset" else options.repository
    return f"{folder} is on the hub: {place}"


def _what(folder: Path) -> tuple[Path, str]:
    """The folder to send, and its kind on the hub."""
    for corpus in (folder, folder / "corpus"):
        if (corpus / "labels.json").is_file():
            return corpus, "dataset"
    if (folder / "config.json").is_file():
        return folder, "model"
    raise UserError("give a corpus, or the folder of a checkpoint", str(folder))


def check_token(repository: str) -> None:
    """Checks, before a training of hours, that the hub knows us.

    Raises:
        UserError: there is no token, or the hub refuses it.
    """
    _asked(repository, lambda api: api.whoami())


def push(folder: str, repository: str, private: bool, kind: str = "model") -> None:
    """Creates a repository if there is none, and uploads a folder.

    Files that an earlier, stopped upload has left on the hub are not sent again.

    Args:
        folder: the folder.
        repository: name of the repository.
        private: whether a new one is private.
        kind: "model" or "dataset".

    Raises:
        UserError: the hub refuses it.
    """

    def send(api: HfApi) -> None:
        api.create_repo(repository, private=private, exist_ok=True, repo_type=kind)
        api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            repo_type=kind,
            ignore_patterns=_LEFT_OUT,
            commit_message="Upload by nerbert",
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
