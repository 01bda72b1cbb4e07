"""Sends checkpoints and corpora to the Hugging Face hub; runs `nerbert push`."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

from finetune.tagger.onnx import FOLDER
from finetune.tagger.onnx import RECORD as EXPORTED
from finetune.use.options import PushOptions
from nerbert.errors import UserError
from nerbert.reports import without_paths
from nerbert.storage.folders import STATE
from nerbert.storage.places import Place
from nerbert.storage.records import listed
from pretrain.settings import RECORD

METRICS, TRAINED = "metrics.json", "training.json"
"""Files that say how well a tagger does, written last, and what it is made from."""

for _name in ("httpx", "httpx2"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # a line for each request

_CLIENT_ERRORS: Any = HfHubHTTPError.__bases__
"""What the HTTP client of the hub raises; versions of huggingface_hub have different clients."""
_LEFT_OUT = (
    *(".lock", ".training/*", "events/*", "runs/*", "checkpoint-*", "base/*"),
    *("training_args.bin", "before.json"),
)
"""Patterns of our files that nobody else needs: they continue a training, or log it."""
_RECORDS_WITH_PATHS = (TRAINED,)


def push_folder(options: PushOptions) -> str:
    """Sends a corpus or a checkpoint.

    Raises:
        UserError: the folder is neither, it is not finished or not as it was written, it holds
            files that no run made, it has no card, or the hub refuses it.
    """
    folder, record, kind = kind_of_result(Path(options.path))
    paths = files_to_send(folder, record)
    check_token(options.repository)
    push(folder, paths, options.repository, options.private, kind)
    place = f"datasets/{options.repository}" if kind == "dataset" else options.repository
    return f"{folder} is on the hub: {place}"


def kind_of_result(folder: Path) -> tuple[Path, str, str]:
    """The folder to send, the name of its record, and its kind on the hub."""
    for corpus in (folder, folder / "corpus"):
        if (corpus / "labels.json").is_file():
            return corpus, STATE, "dataset"
    if (folder / "config.json").is_file():
        trained = (folder / METRICS).exists() or (folder / TRAINED).exists()
        return folder, METRICS if trained else RECORD, "model"
    raise UserError("give a corpus, or the folder of a checkpoint", str(folder))


def files_to_send(folder: Path, record: str) -> list[str]:
    """Names of the files of a finished result; what training needs to continue is left out.

    Args:
        folder: the folder.
        record: name of its record.

    Raises:
        UserError: the result is not finished or not as it was written, it has no card, or there
            are files that no run made, or links.
    """
    names = listed(Place(folder / record))
    if "README.md" not in names:
        raise UserError("it has no card (README.md); make it again", str(folder))
    if (folder / FOLDER).is_dir():
        names += [f"{FOLDER}/{name}" for name in listed(Place(folder / FOLDER / EXPORTED))]
    for name in Place(folder).listing():
        is_ours = name in names or any(fnmatchcase(name, pattern) for pattern in _LEFT_OUT)
        if (folder / name).is_symlink() or not is_ours:
            raise UserError(f"{folder / name}: no run made it; move it out of the folder to send")
    return [name for name in names if name not in _RECORDS_WITH_PATHS]


def check_token(repository: str) -> None:
    """Checks, before a training of hours, that the hub knows us.

    Raises:
        UserError: there is no token, or the hub refuses it.
    """
    _asked(repository, lambda api: api.whoami())


def push(
    folder: Path, names: Sequence[str], repository: str, private: bool, kind: str = "model"
) -> None:
    """Creates a repository if there is none, and uploads files of a folder.

    Files that an earlier, stopped upload has left on the hub are not sent again.

    Args:
        folder: the folder.
        names: names of the files in it.
        repository: name of the repository.
        private: whether a new one is private.
        kind: "model" or "dataset".

    Raises:
        UserError: the hub refuses it.
    """

    def send(api: HfApi) -> None:
        api.create_repo(repository, private=private, exist_ok=True, repo_type=kind)
        api.create_commit(
            repo_id=repository,
            operations=[CommitOperationAdd(name, _content(folder / name)) for name in names],
            repo_type=kind,
            commit_message="Upload by nerbert",
        )

    _asked(repository, send)


def _content(path: Path) -> str | bytes:
    """The path of a file to send; of a record, the content without paths of this machine."""
    if path.name not in (METRICS, RECORD):
        return str(path)
    content = without_paths(Place(path).read_json())
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


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
