"""Imports changes of shape, and parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mtplan import _torch_positions as positions
from mtplan import _torch_rotation as rotation
from mtplan import _torch_views as views
from mtplan._torch_import import Importer, operator, plain, windows
from mtplan._torch_values import (Chosen, Joined, Normed, Patches, Refusal, Rows,
                                  Scores, Slice, Tensor, Turned, Weighed)
from mtplan._torch_views import Axis, View


def seen(importer: Importer, given: Any, view: View | None, what: str) -> Any:
    """Returns a tensor, or rows of a table, with another view.

    >>> seen(None, Rows(None, None, ()), None, "view")
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a view that cuts dimensions unevenly
    """
    if view is None:
        raise Refusal(f"a {what} that cuts dimensions unevenly")
    if isinstance(given, Rows) and given.mask is not None:
        raise Refusal(f"a {what} of masked distances")
    return replace(given, view=view)


def viewed(importer: Importer, given: Any) -> Any:
    """Returns ``given`` if it has a view of its own, or else its tensor.

    >>> viewed(None, Rows(None, None, ())).mask is None
    True
    """
    if isinstance(given, (Chosen, Patches, Rows, Weighed)):
        return given
    return importer.tensor(given)


@operator("view", "reshape", "_unsafe_view", "_reshape_alias")
def reshape(importer: Importer, given: Any, shape: Sequence[int]) -> Any:
    """Imports a change of shape.

    >>> reshape(None, Scores(None, None, (2, 4)), [2, 4]).shape
    (2, 4)
    """
    sizes = resolved(given.shape, shape)
    if tuple(given.shape) == sizes:
        return given
    if isinstance(given, Turned) and sizes == given.part.shape:
        return replace(given, is_flat=True)
    one = viewed(importer, given)
    return seen(importer, one, views.reshaped(one.view, sizes), "view")


def resolved(old: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape in which -1 is replaced by the size that is left.

    >>> resolved([2, 6], [3, -1])
    (3, 4)
    """
    count = known = 1
    for size in old:
        count *= size
    for size in shape:
        known *= size if size != -1 else 1
    return tuple(size if size != -1 else count // known for size in shape)


@operator("flatten")
def flatten(importer: Importer, given: Any, start: int = 0, end: int = -1) -> Any:
    """Imports the merging of dimensions.

    >>> flatten(None, Scores(None, None, (2, 4)), 1).shape
    (2, 4)
    """
    shape = list(given.shape)
    last = end % len(shape)
    return reshape(importer, given, [*shape[:start], -1, *shape[last + 1:]])


@operator("unflatten")
def unflatten(importer: Importer, given: Any, dim: int, shape: Sequence[int]) -> Any:
    """Imports the splitting of a dimension.

    >>> unflatten(None, Scores(None, None, (2, 4)), 1, [4]).shape
    (2, 4)
    """
    old = list(given.shape)
    dim %= len(old)
    return reshape(importer, given, [*old[:dim], *resolved([old[dim]], shape),
                                     *old[dim + 1:]])


@operator("permute")
def permute(importer: Importer, given: Any, dims: Sequence[int]) -> Any:
    """Imports another order of dimensions.

    >>> rows = Rows(None, None, views.whole([2, 4]))
    >>> permute(None, rows, [1, 0]).shape
    (4, 2)
    """
    one = viewed(importer, given)
    return seen(importer, one, tuple(one.view[dim] for dim in dims), "permutation")


@operator("transpose", "transpose_", "swapaxes")
def transpose(importer: Importer, given: Any, first: int, second: int) -> Any:
    """Imports an exchange of two dimensions.

    >>> transpose(None, Rows(None, None, views.whole([2, 4])), 0, 1).shape
    (4, 2)
    """
    dims = list(range(len(given.shape)))
    dims[first], dims[second] = dims[second], dims[first]
    return permute(importer, given, dims)


@operator("t", "numpy_T", "mT")
def exchange(importer: Importer, given: Any) -> Any:
    """Imports the transpose of a matrix.

    >>> exchange(None, Rows(None, None, views.whole([2, 4]))).shape
    (4, 2)
    """
    return transpose(importer, given, -2, -1)


@operator("unsqueeze", "unsqueeze_")
def unsqueeze(importer: Importer, given: Any, dim: int) -> Any:
    """Imports a new dimension of size 1.

    >>> unsqueeze(None, Rows(None, None, views.whole([2, 4])), 0).shape
    (1, 2, 4)
    """
    one = viewed(importer, given)
    at = dim % (len(one.view) + 1)
    return seen(importer, one, (*one.view[:at], (), *one.view[at:]), "view")


@operator("squeeze", "squeeze_")
def squeeze(importer: Importer, given: Any, dims: Any = None) -> Any:
    """Imports the removal of dimensions of size 1.

    >>> squeeze(None, Rows(None, None, views.whole([1, 4])), 0).shape
    (4,)
    """
    one = viewed(importer, given)
    chosen = range(len(one.view)) if dims is None else (
        [dims] if isinstance(dims, int) else dims)
    gone = {dim % len(one.view) for dim in chosen}
    view = tuple(group for index, group in enumerate(one.view)
                 if index not in gone or group)
    return seen(importer, one, view, "view")


@operator("expand")
def expand(importer: Importer, given: Any, shape: Sequence[int], **_: Any) -> Any:
    """Imports the repetition of dimensions of size 1.

    >>> expand(None, Rows(None, None, views.whole([1, 4])), [3, -1]).shape
    (3, 4)
    """
    one = viewed(importer, given)
    return seen(importer, one, views.broadcast(one.view, list(shape)), "repetition")


@operator("expand_as")
def expand_as(importer: Importer, given: Any, other: Any) -> Any:
    """Imports the repetition to another tensor's shape.

    >>> other = Rows(None, None, views.whole([3, 4]))
    >>> expand_as(None, Rows(None, None, views.whole([1, 4])), other).shape
    (3, 4)
    """
    return expand(importer, given, other.shape)


@operator("contiguous", "clone", "to", "_to_copy", "type_as", "alias", "float",
          "lift_fresh_copy", "lift_fresh", "requires_grad_", "half", "bfloat16",
          "double", "convert_element_type")
def same(importer: Importer, given: Any, *_: Any, **__: Any) -> Any:
    """Imports copies and conversions between types of floating-point numbers.

    >>> same(None, Normed(None, 1.0), "float32").epsilon
    1.0
    """
    return given


@operator("detach", "detach_")
def detach(importer: Importer, given: Any) -> Any:
    """Refuses tensors without a gradient.

    >>> detach(None, None)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: detach: ...
    """
    raise Refusal("detach: a tensor that is computed and has no gradient; mtplan "
                  "differentiates everything")


# These functions import parts of tensors, and concatenations.


@operator("slice")
def slice_(importer: Importer, given: Any, dim: int = 0, start: int | None = None,
           end: int | None = None, step: int = 1) -> Any:
    """Imports a range of a dimension.

    >>> slice_(None, Scores(None, None, (2, 4)), 1, 0, None).shape
    (2, 4)
    """
    size = given.shape[dim]
    first, last, stride = slice(start, end, step).indices(size)
    if (first, last, stride) == (0, size, 1):
        return given
    one = given if isinstance(given, Slice) else importer.tensor(given)
    if isinstance(one, Slice):
        if one.dim == dim % len(one.shape) and one.step == 1:
            return Slice(one.base, one.dim, one.start + first, one.start + last,
                         one.factor, stride)
        one = importer.tensor(one)
    return Slice(one, dim % len(one.shape), first, last, 1.0, stride)


@operator("narrow")
def narrow(importer: Importer, given: Any, dim: int, start: int, length: int) -> Any:
    """Imports a range of a dimension.

    >>> narrow(None, Scores(None, None, (2, 4)), 1, 0, 4).shape
    (2, 4)
    """
    return slice_(importer, given, dim, start, start + length)


@operator("split", "split_with_sizes")
def split(importer: Importer, given: Any, size: Any, dim: int = 0) -> list[Any]:
    """Imports the division of a dimension into parts.

    >>> len(split(None, Slice(Tensor(None, views.whole([8])), 0, 0, 8), [2, 6]))
    2
    """
    whole = given.shape[dim]
    sizes = list(size) if isinstance(size, (list, tuple)) else [
        min(size, whole - start) for start in range(0, whole, size)]
    parts, start = [], 0
    for one in sizes:
        parts.append(slice_(importer, given, dim, start, start + one))
        start += one
    return parts


@operator("chunk")
def chunk(importer: Importer, given: Any, count: int, dim: int = 0) -> list[Any]:
    """Imports the division of a dimension into a number of parts.

    >>> len(chunk(None, Slice(Tensor(None, views.whole([8])), 0, 0, 8), 2))
    2
    """
    size: int = -(-given.shape[dim] // count)
    parts: list[Any] = split(importer, given, size, dim)
    return parts


@operator("unbind")
def unbind(importer: Importer, given: Any, dim: int = 0) -> list[Any]:
    """Imports the elements of a dimension.

    >>> unbind(None, Scores(None, None, (0, 4)))
    []
    """
    return [select(importer, given, dim, index)
            for index in range(given.shape[dim])]


@operator("select")
def select(importer: Importer, given: Any, dim: int, index: int) -> Any:
    """Imports one element of a dimension, such as the first position.

    >>> importer = Importer(2)
    >>> select(importer, importer.input("x", [2, 8, 4]), 1, 0).shape
    (2, 4)
    """
    if isinstance(given, Chosen) and given.shape[dim] == 1:
        return squeeze(importer, given, dim)
    tensor = importer.tensor(given)
    shape, at = tensor.value.shape, dim % len(tensor.view)
    if (index == 0 and at == 1 and len(shape) == 3
            and tensor.view == views.whole(shape)):
        dims = [tensor.value.dims[0], tensor.value.dims[2]]
        value = importer.emit("take_first", [tensor.value], dims)
        return Tensor(value, views.whole(value.shape))
    if tensor.view[at] == ():
        return squeeze(importer, tensor, at)
    index %= tensor.shape[at]
    if tensor.view[at] == (Axis(1, shape[1]),) and len(shape) == 3:
        return positions.over_positions(importer, tensor, [at], index, index + 1)
    part = importer.tensor(Slice(tensor, at, index, index + 1))
    return Tensor(part.value, (*part.view[:at], *part.view[at + 1:]))


@operator("index")
def index(importer: Importer, given: Any, indices: Sequence[Any]) -> Any:
    """Imports a lookup of consecutive constant indices, as a range.

    >>> index(None, None, [None])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a lookup by indices; supported: constant ...
    """
    given_at = [at for at, one in enumerate(indices) if one is not None]
    ids: Any = indices[given_at[0]] if len(given_at) == 1 else None
    if (hasattr(ids, "numel") and ids.dim() == 1 and ids.numel()
            and not ids.dtype.is_floating_point and ids.dtype != importer.torch.bool):
        ids = ids % given.shape[given_at[0]]
        first, count = int(ids[0]), ids.numel()
        if importer.torch.equal(ids, importer.torch.arange(first, first + count)):
            return slice_(importer, given, given_at[0], first, first + count)
    raise Refusal("a lookup by indices; supported: constant numbers that follow each "
                  "other, and embeddings")


@operator("cat", "concat", "concatenate")
def concatenate(importer: Importer, parts: Sequence[Any], dim: int = 0) -> Any:
    """Imports the halves of a rotation, a class token before patches, and features
    that a linear layer reads.

    >>> concatenate(None, [Rows(None, None, views.whole([2, 4]))]).shape
    (2, 4)
    """
    parts = [part for part in parts if 0 not in part.shape]
    if len(parts) == 1:
        return parts[0]
    at = dim % len(parts[0].shape)
    found = rotation.rejoined(importer, list(parts), at)
    if found is not None:
        return found
    first, second = parts if len(parts) == 2 else (None, None)
    if (isinstance(first, Tensor) and first.is_parameter and at == 1
            and isinstance(second, Patches) and first.shape[1] == 1
            and len(first.shape) == 3
            and second.view == views.whole(second.shape)):
        rows = windows(importer, second, 1)
        # Samples share the vector.
        vector = plain(importer, Tensor(first.value, ((), *first.view[1:])))
        value = importer.emit("put_first", [rows.value, vector], rows.value.dims)
        return Tensor(value, rows.view)
    if at == len(parts[0].shape) - 1 > 0 and not any(
            hasattr(part, "numel") for part in parts):
        return Joined(tuple(parts))
    raise Refusal("a concatenation; supported: the two halves of a rotation, a "
                  "learned vector before the patches of an image, and features that "
                  "a linear layer reads")
