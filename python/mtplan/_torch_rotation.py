"""Imports rotations of queries and keys by their positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mtplan import _torch_views as views
from mtplan._torch_attention import heads_of
from mtplan._torch_import import Importer, operator
from mtplan._torch_values import Refusal, Rotated, Slice, Tensor, Turned, Weighted


def rotate(importer: Importer, one: Weighted, other: Weighted) -> Any:
    """Imports x cos + rotate_half(x) sin.

    >>> rotate(None, Weighted(Slice(None, 0, 0, 1), None),
    ...        Weighted(Slice(None, 0, 0, 1), None))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: ...
    """
    if isinstance(one.part, Turned):
        one, other = other, one
    plain, turned = one.part, other.part
    if isinstance(plain, Turned) or not isinstance(turned, Turned) or (
            turned.part != plain or not turned.is_flat):
        raise Refusal("a sum of two tensors times constant tables; supported: the "
                      "rotation by positions, x cos + rotate_half(x) sin")
    theta = theta_of(importer, plain, one.table, other.table, turned.interleaved)
    rotated = Rotated(plain, theta, turned.interleaved)
    if plain.start == 0 and plain.stop == plain.base.shape[-1]:
        return rope(importer, rotated)
    return rotated


def rope(importer: Importer, given: Rotated) -> Tensor:
    """Emits the rotation of the first features of every head.

    >>> from mtplan._torch_graph import Value
    >>> x = Tensor(Value([]), views.whole([8]))
    >>> rope(None, Rotated(Slice(x, 0, 0, 4), 1e4))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a rotation of a tensor that is not [batch, heads...
    """
    part = given.part
    base = part.base
    if part.start or part.stop - part.start > base.shape[part.dim]:
        raise Refusal("a rotation of other features than the first of each head")
    found = heads_of(by_heads(base))
    if found is None or found[2] != 1:
        raise Refusal("a rotation of a tensor that is not [batch, heads, positions, "
                      "features of a head]")
    paired = {"interleaved": True} if given.interleaved else {}
    value = importer.emit("rope", [base.value], base.value.dims, head_dim=found[1],
                          rotary_dim=part.stop, theta=given.theta, **paired)
    return Tensor(value, base.view)


def rope_of_part(importer: Importer, given: Rotated, stop: int) -> Tensor:
    """Emits the rotation of the first features of every head.

    The heads begin with the rotated part, end at ``stop``, and may be a part of
    the features of a product.

    >>> from mtplan._torch_graph import Value
    >>> part = Slice(Tensor(Value([]), views.whole([8])), 0, 4, 6)
    >>> rope_of_part(Importer(2), Rotated(part, 1e4), 8)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a part of a tensor that is no range of the ...
    """
    part = given.part
    whole = replace(part, stop=stop)
    if whole.start or stop != part.base.shape[part.dim]:
        base = importer.tensor(whole)
        part = Slice(base, part.dim, 0, part.stop - part.start)
    return rope(importer, replace(given, part=part))


def by_heads(given: Tensor) -> Tensor:
    """Returns [batch, positions, heads, features] as [batch, heads, positions,
    features], and other tensors as they are.

    >>> by_heads(Tensor(None, views.whole([2, 5, 3, 4]))).shape
    (2, 3, 5, 4)
    """
    if len(given.view) != 4 or len(given.view[1]) != 1 or given.view[1][0].dim != 1:
        return given
    samples, positions, heads, features = given.view
    return Tensor(given.value, (samples, heads, positions, features))


def theta_of(importer: Importer, part: Slice, cos: Any, sin: Any,
             interleaved: bool = False) -> float:
    """Returns the base of the angles of a rotation, from its tables.

    The features of a pair are neighbours if ``interleaved``. Raises ``Refusal`` if
    the angle of pair i at position p is not p * theta^(-2i/n) for one theta.

    >>> theta_of(None, Slice(None, 0, 0, 1), None, None)
    Traceback (most recent call last):
    ...
    AttributeError: ...
    """
    torch = importer.torch
    width = part.stop - part.start
    swapped = by_heads(part.base) != part.base
    positions = part.base.shape[1 if swapped else -2]
    tables = []
    for table in (cos, sin):
        full = table.double().expand(part.shape)
        full = (full.transpose(1, 2) if swapped else full).reshape(
            -1, positions, width)
        if not bool((full == full[:1]).all()):
            raise Refusal("rotations that differ between samples or heads")
        tables.append(full[0].unflatten(-1, (-1, 2)).mT.flatten(-2)
                      if interleaved and width % 2 == 0 else full[0])
    cosines, sines = tables
    half = width // 2
    rounding = max(float(torch.finfo(table.dtype).eps) for table in (cos, sin))
    if positions < 2 or width % 2 or not torch.equal(
            cosines[:, :half], cosines[:, half:]) or not torch.equal(
            sines[:, :half], sines[:, half:]):
        raise Refusal("a rotation whose tables differ between the halves of a head; "
                      "supported: equal halves, and at least 2 positions")
    angles = torch.atan2(sines[1, :half], cosines[1, :half])
    last = float(angles[-1])
    guess = last ** (-half / (half - 1)) if last > 0.0 and half > 1 else 1e4
    rows = torch.arange(positions, dtype=torch.float64)[:, None]
    steps = torch.arange(half, dtype=torch.float64) * 2 / width
    bound = 4 * rounding + 4e-7 * positions
    errors = {}
    for theta in _near(guess):
        made = rows * theta ** -steps
        error = torch.cat([made.cos() - cosines[:, :half],
                           made.sin() - sines[:, :half]])
        if float(error.abs().max()) <= bound:
            errors[theta] = float(error.square().mean())
    for theta, error in errors.items():
        # Candidates are sorted by their number of digits. The first candidate with
        # an error near the smallest error is returned, because more digits only
        # fit rounding errors.
        if error <= 1.1 * min(errors.values()) + (2e-7 * positions) ** 2:
            return theta
    length = float((cosines[:, :half] ** 2 + sines[:, :half] ** 2).mean())
    what = ("are multiplied by a number" if abs(length - 1.0) > 0.01
            else "do not follow from one base theta, as with rope_scaling")
    raise Refusal(f"rotations that {what}; supported: angles position * "
                  "theta^(-2i/n), rope_type \"default\"")


def _near(theta: float) -> list[float]:
    """Returns a number rounded to 1, 2, 3, 4, 6 and 9 digits.

    >>> _near(9999.9993)[0]
    10000.0
    """
    if not 1.0 < theta < 1e15:
        return []
    return [float(f"{theta:.{digits}g}") for digits in (1, 2, 3, 4, 6, 9)]


def rejoined(importer: Importer, parts: list[Any], dim: int) -> Any:
    """Imports concatenated parts of one tensor; returns None for others.

    >>> rejoined(None, [1, 2], 0) is None
    True
    """
    if len(parts) != 2:
        return None
    first, second = parts
    if isinstance(first, Slice) and isinstance(second, Slice) and (
            first.base == second.base and dim == first.dim == second.dim
            and first.step == second.step == 1):
        if (first.factor == -1.0 and second.factor == 1.0
                and second.stop == first.start
                and first.stop - first.start == second.stop - second.start):
            return Turned(Slice(first.base, dim, second.start, first.stop))
        if first.factor == second.factor == 1.0 and first.stop == second.start:
            return Slice(first.base, dim, first.start, second.stop)
    if isinstance(first, Rotated) and isinstance(second, Slice) and (
            first.part.base == second.base and first.part.stop == second.start
            and second.factor == second.step == 1.0
            and dim == first.part.dim == second.dim):
        return rope_of_part(importer, first, second.stop)
    return None


@operator("stack")
def stack(importer: Importer, parts: Any, dim: int = 0) -> Turned:
    """Imports the pairs of a rotation of neighbours, (-x[1::2], x[::2]).

    >>> stack(None, [1, 2])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a stack of tensors; supported: the pairs of ...
    """
    second, first = parts if len(parts) == 2 else (None, None)
    if isinstance(first, Slice) and second == replace(
            first, start=first.start + 1, factor=-first.factor):
        last = len(first.shape) - 1
        if (first.step == 2 and first.factor == 1.0 and first.dim == last
                and dim % (last + 2) == last + 1
                and (first.stop - first.start) % 2 == 0):
            return Turned(replace(first, step=1), True, False)
    raise Refusal("a stack of tensors; supported: the pairs of a rotation of "
                  "neighbours, stack([-x[..., 1::2], x[..., ::2]], -1)")
