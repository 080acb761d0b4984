"""Recognises functions of one number by what they compute.

An activation that is written out, such as 0.5 x (1 + tanh(...)), is compared with
the known ones at several hundred points in double precision.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# Functions that agree at all points within this relative tolerance count as equal.
TOLERANCE = 1e-9
KINDS = ("gelu", "gelu_tanh", "silu", "relu", "tanh", "sigmoid")


def known(kind: str) -> Any:
    """Returns an activation of mtplan as a function of PyTorch tensors.

    Raises ``KeyError`` for other names.

    >>> known("cube")
    Traceback (most recent call last):
    ...
    KeyError: 'cube'
    """
    if kind not in KINDS:
        raise KeyError(kind)
    torch = importlib.import_module("torch")
    functional = torch.nn.functional
    return {"gelu": functional.gelu,
            "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
            "silu": functional.silu, "relu": functional.relu,
            "tanh": torch.tanh, "sigmoid": torch.sigmoid}[kind]


def points() -> Any:
    """Returns the numbers at which functions are compared.

    >>> points() is not None  # doctest: +SKIP
    True
    """
    torch = importlib.import_module("torch")
    return torch.cat([torch.linspace(-9.0, 9.0, 361, dtype=torch.float64),
                      torch.linspace(-300.0, 300.0, 61, dtype=torch.float64),
                      torch.linspace(-0.1, 0.1, 41, dtype=torch.float64)])


def agree(one: Any, other: Any) -> bool:
    """Returns whether two results are equal but for rounding.

    >>> agree(points(), points())  # doctest: +SKIP
    True
    """
    if not bool(one.isfinite().all() and other.isfinite().all()):
        return False
    bound = TOLERANCE * (1.0 + float(other.abs().max()))
    return float((one - other).abs().max()) <= bound


def activation_of(function: Callable[[Any], Any]) -> str | None:
    """Returns the name of the activation that a function computes, or None.

    >>> activation_of(known("silu"))  # doctest: +SKIP
    'silu'
    """
    x = points()
    made = function(x)
    return next((kind for kind in KINDS if agree(made, known(kind)(x))), None)


def softcap_of(function: Callable[[Any], Any]) -> tuple[float, float] | None:
    """Returns (s, c) if a function is c tanh(s x / c).

    >>> import math
    >>> softcap_of(lambda x: 30 * (2 * x / 30).tanh())  # doctest: +SKIP
    (2.0, 30.0)
    """
    torch = importlib.import_module("torch")
    x = points()

    def at(number: float) -> float:
        return float(function(torch.tensor(number, dtype=torch.float64)))

    cap = at(1e9)
    if not 0.0 < cap < 1e8:
        return None
    share = torch.tensor(at(1.0) / cap, dtype=torch.float64)
    slope = float(torch.atanh(share)) * cap
    if not 0.0 < slope < 1e8 or not agree(function(x),
                                          cap * torch.tanh(slope * x / cap)):
        return None
    return _rounded(slope), _rounded(cap)


def _rounded(number: float) -> float:
    """Rounds a number to twelve digits, which removes rounding errors.

    >>> _rounded(29.999999999999996)
    30.0
    """
    return float(f"{number:.12g}")
