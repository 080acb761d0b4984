"""Tracks which elements of a value each dimension of a tensor runs over.

PyTorch splits, merges and exchanges dimensions freely; mtplan's operators have
fixed ones. A tensor is therefore a value of mtplan's graph and a *view*. The view
maps each dimension of the tensor to parts of dimensions of the value. Therefore
``view``, ``transpose`` and ``expand`` need no operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """Runs ``size`` steps of ``stride`` along the dimension ``dim`` of a value.

    ``dim`` is None where a tensor is repeated along a dimension that its value
    does not have, and negative for the choices of a routing to experts.

    >>> Axis(2, 8, 4)
    Axis(dim=2, size=8, stride=4)
    """

    dim: int | None
    size: int
    stride: int = 1


Group = tuple[Axis, ...]
View = tuple[Group, ...]


def whole(shape: Sequence[int]) -> View:
    """Returns the view of a tensor that is its value.

    >>> whole([2, 1])
    ((Axis(dim=0, size=2, stride=1),), ())
    """
    return tuple((Axis(dim, size),) if size != 1 else ()
                 for dim, size in enumerate(shape))


def sizes(view: View) -> tuple[int, ...]:
    """Returns the shape of the tensor.

    >>> sizes(whole([2, 1, 5]))
    (2, 1, 5)
    """
    return tuple(math.prod(axis.size for axis in group) for group in view)


def merged(group: Sequence[Axis]) -> Group:
    """Joins neighbours that together run along one dimension.

    >>> merged([Axis(0, 4, 8), Axis(0, 8, 1)])
    (Axis(dim=0, size=32, stride=1),)
    """
    joined: list[Axis] = []
    for axis in group:
        if axis.size == 1:
            continue
        last = joined[-1] if joined else None
        if last is not None and last.dim == axis.dim and (
                axis.dim is None or last.stride == axis.size * axis.stride):
            joined[-1] = Axis(axis.dim, last.size * axis.size, axis.stride)
        else:
            joined.append(axis)
    return tuple(joined)


def reshaped(view: View, shape: Sequence[int]) -> View | None:
    """Returns the view with another shape; None if it would cut unevenly.

    >>> heads = reshaped(whole([2, 5, 12]), [2, 5, 3, 4])
    >>> heads[2:]
    ((Axis(dim=2, size=3, stride=4),), (Axis(dim=2, size=4, stride=1),))
    >>> reshaped(heads, [10, 12]) == reshaped(whole([2, 5, 12]), [10, 12])
    True
    """
    left = [axis for group in view for axis in group]
    left.reverse()
    result: list[Group] = []
    for size in shape:
        group: list[Axis] = []
        missing = size
        while missing > 1:
            if not left:
                return None
            axis = left.pop()
            if axis.size > missing:
                if axis.size % missing:
                    return None
                rest = axis.size // missing
                left.append(Axis(axis.dim, rest, axis.stride))
                axis = Axis(axis.dim, missing, axis.stride * rest)
            elif missing % axis.size:
                return None
            group.append(axis)
            missing //= axis.size
        result.append(merged(group))
    return None if left else tuple(result)


def broadcast(view: View, shape: Sequence[int]) -> View | None:
    """Returns the view repeated to a shape; None if the sizes do not match.

    >>> broadcast(whole([1, 4]), [3, 1, 4])[0]
    (Axis(dim=None, size=3, stride=1),)
    """
    if len(view) > len(shape):
        return None
    padded: View = ((),) * (len(shape) - len(view)) + view
    result: list[Group] = []
    for group, size in zip(padded, shape):
        own = math.prod(axis.size for axis in group)
        if own == size or size == -1:
            result.append(group)
        elif own == 1:
            result.append((Axis(None, size),))
        else:
            return None
    return tuple(result)


def dim_of(group: Group, shape: Sequence[int]) -> int | None:
    """Returns the dimension that a group covers as a whole; None for a part.

    >>> dim_of((Axis(1, 5),), [2, 5]), dim_of((Axis(1, 5),), [2, 10])
    (1, None)
    """
    axis = group[0] if len(group) == 1 else None
    if axis is None or axis.dim is None or axis.dim < 0:
        return None
    return axis.dim if axis.size == shape[axis.dim] else None


def row_of(group: Group, shape: Sequence[int]) -> int | None:
    """Returns the size of a group that is the last dimension of the value or one
    of its equal parts, such as a head; None for other groups.

    >>> row_of((Axis(1, 5),), [2, 10]), row_of((Axis(1, 5, 2),), [2, 10])
    (5, None)
    """
    last = len(shape) - 1
    if len(group) != 1 or group[0] != Axis(last, group[0].size) or (
            shape[last] % group[0].size):
        return None
    return group[0].size


def narrowed(group: Group, axis: Axis, size: int) -> Group:
    """Returns a group after the ranges of an axis were cut to ``size`` elements.

    >>> heads, features = Axis(2, 4, 24), Axis(2, 24)
    >>> narrowed((heads,), features, 8)
    (Axis(dim=2, size=4, stride=8),)
    """
    block = axis.size * axis.stride
    return tuple(
        Axis(one.dim, one.size, one.stride // block * size)
        if one.dim == axis.dim and one.stride >= block else one for one in group)
