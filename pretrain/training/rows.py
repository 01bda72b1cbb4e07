"""Opens Parquet parts as memory-mapped rows of `datasets`."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from datasets.exceptions import DatasetsError

from nerbert.errors import UserError


def open_parts(parts: Sequence[Path], cache_dir: str | None = None, **options: Any) -> Dataset:
    """Opens parts, memory-mapped.

    Args:
        parts: paths of the parts, in order.
        cache_dir: folder of the memory-mapped files of `datasets`.
        options: options of `load_dataset`, such as columns and features.

    Raises:
        UserError: a part is damaged, or `datasets` cannot take such a path.
    """
    folder = parts[0].parent
    if "::" in str(folder.absolute()):
        raise UserError(f"{folder}: `datasets` reads no path with '::'; rename the folder")
    names = [glob.escape(str(path)) for path in parts]
    try:
        return load_dataset(
            "parquet", data_files={"rows": names}, split="rows", cache_dir=cache_dir, **options
        )
    except (DatasetsError, OSError) as error:
        if getattr(error, "errno", None):  # of the disk, not of the part
            raise
        reason = " ".join(str(error.__cause__ or error).split())
        raise UserError(
            f"{folder}: a part cannot be read ({reason}); make the corpus again"
        ) from error
