"""Imports means over positions, and single positions.

mtplan has no operator that reduces over positions alone. A mean is a product with
weights [batch, sequence] that come with the data, and are the same for each sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtplan import _torch_views as views
from mtplan._torch_import import Importer, operator
from mtplan._torch_pointwise import letters_of
from mtplan._torch_values import (Curve, Normed, Patches, Refusal, Scores, Slice, Stat,
                                  Tensor)
from mtplan._torch_views import Axis, Group

LABEL = "position_weights"
KNOWN = ("a mean over positions or features; supported: the mean over all positions, "
         "the mean of squares in an RMS norm, and layer_norm")


@operator("mean")
def mean(importer: Importer, one: Any, dim: Any = None, keepdim: bool = False,
         dtype: Any = None) -> Any:
    """Imports a mean over positions, or the mean of squares in an RMS norm.

    >>> mean(None, Normed(None, 1.0))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a mean ...
    """
    dims = [dim] if isinstance(dim, int) else list(dim or [])
    if isinstance(one, Curve) and keepdim and dims in ([-1], [len(one.shape) - 1]):
        torch = importer.torch
        x = torch.linspace(-3.0, 3.0, 61, dtype=torch.float64)
        if not isinstance(one.base, Scores) and torch.allclose(
                one.function(x), x * x, rtol=1e-12, atol=0.0):
            return Stat(one.base, "mean")
    if not dims or isinstance(one, (Normed, Stat)):
        raise Refusal(KNOWN)
    first, last = 0, None
    if isinstance(one, Slice) and one.factor == one.step == 1:
        # The mean over some positions gives the others the weight 0.
        base, at = one.base, one.dim
        if [at] == [dim % len(base.shape) for dim in dims] and (
                base.view[at] == (Axis(1, base.shape[at]),)):
            first, last, one = one.start, one.stop, base
    tensor = importer.tensor(one)
    over = sorted(dim % len(tensor.view) for dim in dims)
    return over_positions(importer, tensor, over, first, last, keepdim)


@operator("adaptive_avg_pool2d", "adaptive_avg_pool1d")
def pool(importer: Importer, given: Any, size: Any) -> Any:
    """Imports the mean over an image.

    >>> pool(None, Patches(None, None, None, (), views.whole([2, 4, 8])), 7)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: an average over parts of an image...
    """
    sizes = [size] if isinstance(size, int) else list(size)
    if set(sizes) != {1}:
        raise Refusal("an average over parts of an image; supported: over all of it")
    return mean(importer, given, list(range(-len(sizes), 0)), True)


def over_positions(importer: Importer, given: Tensor, dims: Sequence[int],
                   start: int = 0, stop: int | None = None, keepdim: bool = False
                   ) -> Tensor:
    """Returns the mean over the positions from ``start`` to ``stop``.

    >>> importer = Importer(2)
    >>> x = importer.input("x", [2, 8, 4])
    >>> over_positions(importer, x, [1], 7).value.op.attributes
    {'left': 'bs', 'right': 'bsi', 'result': 'bi'}
    """
    shape = given.value.shape
    over = [axis for at in dims for axis in given.view[at]]
    rest = [axis for at, group in enumerate(given.view) if at not in dims
            for axis in group]
    if (len(shape) != 3 or given.is_parameter
            or views.merged(over) != (Axis(1, shape[1]),)
            or any(axis.dim == 1 for axis in rest)):
        raise Refusal(KNOWN)
    weights = importer.torch.zeros(shape[1], dtype=importer.torch.float64)
    weights[start:stop] = 1.0 / len(weights[start:stop])
    letters = letters_of(given)
    samples, positions, features = given.value.dims
    value = importer.emit(
        "einsum", [weights_of(importer, weights, given.value.dims[:2]), given.value],
        [samples, features], left=letters[:2], right=letters,
        result=letters[0] + letters[2])
    view: list[Group] = []
    for at, group in enumerate(given.view):
        if at not in dims:
            view.append(tuple(Axis(1 if axis.dim == 2 else axis.dim, axis.size,
                                   axis.stride) for axis in group))
        elif keepdim:
            view.append(())
    return Tensor(value, tuple(view))


def weights_of(importer: Importer, weights: Any, dims: Sequence[Any]) -> Any:
    """Returns the input that holds weights; equal weights share an input.

    >>> weights_of(Importer(2), None, [])
    Traceback (most recent call last):
    ...
    AttributeError: 'NoneType' object has no attribute 'expand'
    """
    rows = weights.expand(importer.batch, len(weights))
    count = 0
    for op in importer.graph.ops:
        if op.kind == "input" and op.label.startswith(LABEL):
            count += 1
            if importer.torch.equal(op.attributes["source"], rows):
                return op.results[0]
    label = f"{LABEL}_{count + 1}" if count else LABEL
    return importer.graph.add("input", [], dims, "float", importer.origin, label,
                              limit=0, source=rows)
