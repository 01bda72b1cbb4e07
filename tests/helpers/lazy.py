"""Imports at first use: collecting the tests loads neither torch nor Beam."""

from importlib import import_module
from typing import Any


class lazy:
    """A module that is imported when one of its names is used."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    @property
    def __dict__(self) -> dict[str, Any]:
        """The names of the module: where `monkeypatch` looks up what it will restore."""
        return vars(import_module(self._name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_pytest", "pytest_", "_mock_")):  # pytest looks for these
            raise AttributeError(name)
        return getattr(import_module(self._name), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(import_module(self._name), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(import_module(self._name), name)
