"""Imports PyTorch when a function needs it, and not with the package."""

from __future__ import annotations

import importlib
from typing import Any


def torch_module(name: str = "") -> Any:
    """Returns a module of PyTorch, which is imported only now.

    >>> torch_module("no_such_part")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: ...
    """
    return importlib.import_module(f"torch.{name}" if name else "torch")
