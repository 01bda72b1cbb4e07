"""Errors by consequence.

Exception
+-- UserError            wrong input; one line, exit code 2
+-- RunError             the run cannot go on; one line, exit code 1
|   +-- BadLossError     the loss is NaN or infinite
|   +-- WorkerDiedError  a local worker process ended early
|   +-- HostLostError    a host of a cluster was lost; the job starts again without it
+-- TooSlowError         a page took too long; it is counted and set aside
+-- RefusedError         a request to the demo is refused (finetune.use.page)
ValueError
+-- UnreadableError      a file of types is no RDF (ontology.sources.types)
OSError
+-- CorruptStreamError   a stream of a dump is damaged; it is counted (pipeline.dump.streams)
"""

from __future__ import annotations


class UserError(Exception):
    """Wrong input that the user can correct. Commands print it as one line and return 2.

    Attributes:
        about: the wrong value, such as a path or the name of a model. Commands print the flag of
            this value in front of the message; code below a command does not know the flags.
    """

    def __init__(self, message: str, about: str | None = None) -> None:
        super().__init__(message if about is None else f"{about}: {message}")
        self.about = about


def check_text(text: str) -> None:
    """Checks that a path or another argument can be written, as JSON and as a message.

    Raises:
        UserError: it holds bytes that are no UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{text!a}: no UTF-8; rename the file") from None


class RunError(Exception):
    """A run cannot continue; the message says why. Commands print it as one line and return 1."""


class BadLossError(RunError):
    """The loss is NaN or infinite."""


class WorkerDiedError(RunError):
    """A worker process of a local run ended before its work was done."""


class HostLostError(RunError):
    """A host of a cluster was lost; the job can start again without it.

    Attributes:
        host: what the engine calls it.
    """

    def __init__(self, message: str, host: str) -> None:
        super().__init__(message)
        self.host = host


class TooSlowError(Exception):
    """A block took longer than its limit."""


def is_disk_full(error: Exception) -> bool:
    """Whether an exception of a library means that the disk is full."""
    text = str(error)
    return "No space left on device" in text or "PytorchStreamWriter failed writing" in text


_EXTRAS = {
    "beam": "apache_beam grpc",
    "train": "accelerate datasets optuna peft safetensors seqeval tokenizers torch transformers",
    "onnx": "onnx onnxruntime onnxscript",
    "spacy": "spacy",
    "demo": "fastapi jinja2 markupsafe starlette uvicorn",
    "gcp": "google gcsfs",
    "http": "aiohttp",
    "s3": "s3fs aiobotocore botocore",
}
"""Extra -> packages that it installs."""


def install(extra: str) -> str:
    """The command that installs an extra: in a checkout, for no registry has this package yet."""
    return f"pip install -c constraints.txt -e '.[{extra}]' in the checkout of nerbert"


def missing_extra(error: ModuleNotFoundError) -> str:
    """One line that names the extra which installs a missing package.

    Raises:
        ModuleNotFoundError: no extra installs the package.
    """
    package = (error.name or "").partition(".")[0]
    for extra, packages in _EXTRAS.items():
        if package in packages.split():
            return f"{package} is not installed: {install(extra)}"
    raise error
