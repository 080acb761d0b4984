"""Imports sums, products and functions of single numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mtplan import _torch_attention as attention
from mtplan import _torch_rotation as rotation
from mtplan import _torch_views as views
from mtplan._torch_graph import Source
from mtplan._torch_import import (Importer, curve_of, elementwise, operator, plain,
                                  scaled)
from mtplan._torch_values import (Curve, Data, Loss, Normed, Refusal, Rows, Scores,
                                  Slice, Stat, Tensor, Turned, Weighted)


def number_of(given: Any) -> float | None:
    """Returns a number or a constant of one element as a float, otherwise None.

    >>> number_of(2), number_of("word")
    (2.0, None)
    """
    if isinstance(given, (bool, int, float)):
        return float(given)
    if hasattr(given, "numel") and given.numel() == 1:
        return float(given)
    return None


def is_constant(given: Any) -> bool:
    """Returns whether a tensor of PyTorch was given.

    >>> is_constant(2)
    False
    """
    return hasattr(given, "numel")


def of_scores(given: Any) -> bool:
    """Returns whether scores of attention, or a function of them, were given.

    >>> of_scores(Scores(None, None, ()))
    True
    """
    return isinstance(given, Scores) or (isinstance(given, Curve)
                                         and isinstance(given.base, Scores))


@operator("add", "add_")
def add(importer: Importer, one: Any, other: Any, alpha: float = 1) -> Any:
    """Imports a sum.

    >>> add(None, Stat(None, "mean"), 1e-6).epsilon
    1e-06
    """
    if number_of(one) is not None or (is_constant(one) and not is_constant(other)):
        one, other = other, one
        if alpha != 1:
            one, alpha = scaled(one, alpha), 1
    if alpha != 1:
        other = other * alpha if is_constant(other) or number_of(
            other) is not None else scaled(other, alpha)
    number = number_of(other)
    if number is not None:
        return _add_number(importer, one, number)
    if is_constant(other) and not bool(other.any()) and importer.torch.broadcast_shapes(
            tuple(one.shape), other.shape) == tuple(one.shape):
        return one
    for first, second in ((one, other), (other, one)):
        if of_scores(first):
            return attention.add_to_scores(importer, first, second)
        if isinstance(first, Rows) and is_constant(second):
            mask = second if first.mask is None else first.mask + second
            return Rows(first.table, first.ids, first.view, mask)
    if isinstance(one, Weighted) and isinstance(other, Weighted):
        return rotation.rotate(importer, one, other)
    for first, second in ((one, other), (other, one)):
        if isinstance(second, Rows) and not isinstance(first, Rows):
            return _add_positions(importer, importer.tensor(first), second)
        if isinstance(second, Tensor) and second.is_parameter:
            return _add_parameter(importer, importer.tensor(first), second)
    if isinstance(one, (Curve, Tensor)) and isinstance(other, (Curve, Tensor)):
        left, right = curve_of(one), curve_of(other)
        if left.base == right.base:
            return Curve(left.base,
                         lambda x: left.function(x) + right.function(x),
                         None, ("add", one, other))
    return elementwise(importer, "add", *_alike(importer, one, other))


def _alike(importer: Importer, one: Any, other: Any) -> tuple[Tensor, Tensor]:
    first, second = importer.tensor(one), importer.tensor(other)
    if first.shape != second.shape:
        raise Refusal(
            f"tensors of the shapes {list(first.shape)} and {list(second.shape)}: "
            "only tensors of one shape are added or multiplied, apart from biases, "
            "gains and positions")
    return first, second


def _add_number(importer: Importer, one: Any, number: float) -> Any:
    if isinstance(one, Stat):
        if one.step not in ("mean", "mean + epsilon"):
            raise Refusal("a number added to a root of a mean")
        return Stat(one.base, "mean + epsilon", one.epsilon + number)
    if number == 0.0:
        return one
    if isinstance(one, Tensor) and one.is_parameter:
        op = one.value.op
        assert op is not None and op.source is not None
        value = importer.graph.parameter(
            replace(op.source, added=op.source.added + number), one.value.shape)
        return Tensor(value, one.view)
    return curve_of(one).then(lambda x: x + number)


def _add_positions(importer: Importer, one: Tensor, rows: Rows) -> Tensor:
    table = rows.table
    ids = rows.ids.reshape(-1, rows.ids.shape[-1])
    shape = [*rows.ids.shape, table.shape[-1]]
    sequence, last = ids.shape[-1], len(shape) - 1
    torch = importer.torch
    if (rows.mask is not None or one.value.shape[1:] != [sequence, shape[-1]]
            or one.view != views.whole(one.value.shape)
            or [views.dim_of(group, shape) for group in rows.view[-2:]]
            != [last - 1, last]):
        raise Refusal("rows of a table at constant indices: the nearest supported "
                      "form adds row i of the table to position i of [batch, sequence, "
                      "features]")
    if torch.equal(ids, torch.arange(sequence).expand_as(ids)):
        value = importer.emit("position_embedding", [one.value, table.value],
                              one.value.dims)
        return Tensor(value, one.view)
    if len(ids) != 1 and not torch.equal(ids, ids[:1].expand_as(ids)):
        raise Refusal("rows of a table at constant indices that differ between "
                      "samples")
    # The indices become an input, such as BERT's types of tokens.
    assert table.value.op is not None
    given = Data(ids[0].expand(importer.batch, sequence),
                 (importer.batch, sequence))
    label = "types" if "type" in table.value.op.label else "positions"
    looked = importer.data(given, label, table.shape[0])
    found = importer.emit("embedding", [looked, table.value], one.value.dims)
    return elementwise(importer, "add", one, Tensor(found, one.view))


def _add_parameter(importer: Importer, one: Tensor, weight: Tensor) -> Any:
    shape = one.value.shape
    last = len(shape) - 1
    own = [size for size in weight.shape if size != 1]
    op = one.value.op
    if (len(own) == 1 and weight.shape[-1] == own[0] and op is not None
            and views.dim_of(one.view[-1], shape) == last and own[0] == shape[-1]):
        if op.kind == "einsum" and len(op.operands) == 2:
            value = importer.emit("einsum", [*op.operands, plain(importer, weight)],
                                  one.value.dims, **op.attributes)
            return Tensor(value, one.view)
        raise Refusal("a bias that is not added to a product; supported: a bias of "
                      "a linear layer")
    if (len(shape) == 3 and one.view == views.whole(shape) and len(own) == 2
            and list(weight.shape[-2:]) == shape[1:]):
        value = importer.emit("position_embedding",
                              [one.value, plain(importer, weight)], one.value.dims)
        return Tensor(value, one.view)
    raise Refusal(f"a parameter of the shape {list(weight.shape)} added to "
                  f"{list(one.shape)}; supported: biases of linear layers along the "
                  "last dimension, and learned positions [sequence, features]")


@operator("sub", "sub_")
def subtract(importer: Importer, one: Any, other: Any, alpha: float = 1) -> Any:
    """Imports a difference, as a sum.

    >>> subtract(None, Stat(None, "mean"), -1e-6).epsilon
    1e-06
    """
    return add(importer, one, other, -alpha)


@operator("rsub")
def subtract_from(importer: Importer, one: Any, other: Any, alpha: float = 1
                  ) -> Any:
    """Imports ``other - alpha * one``.

    >>> subtract_from(None, Stat(None, "mean"), 2.0)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a multiple of a mean
    """
    return add(importer, multiply(importer, one, -alpha), other)


@operator("mul", "mul_")
def multiply(importer: Importer, one: Any, other: Any) -> Any:
    """Imports a product, element by element.

    >>> multiply(None, Curve(None, None, 2.0), 3.0).factor
    6.0
    """
    if number_of(one) is not None or (is_constant(one) and not is_constant(other)):
        one, other = other, one
    number = number_of(other)
    if number is not None:
        return _times_number(importer, one, number)
    if is_constant(other):
        return _times_table(importer, one, other)
    for first, second in ((one, other), (other, one)):
        if isinstance(second, Stat):
            return _divided(first, second)
        if isinstance(second, Tensor) and second.is_parameter:
            return _times_parameter(importer, first, second)
    if isinstance(one, (Curve, Tensor)) and isinstance(other, (Curve, Tensor)):
        left, right = curve_of(one), curve_of(other)
        if left.base == right.base:
            return Curve(left.base,
                         lambda x: left.function(x) * right.function(x),
                         None, ("mul", one, other))
    tensors = importer.tensor(one), importer.tensor(other)
    for first, second in (tensors, tensors[::-1]):
        if (first.view == (*second.view[:-1], ()) != second.view
                and first.value.shape == second.value.shape[:-1]):
            return _times_rows(importer, first, second)
    first, second = _alike(importer, *tensors)
    for gate, up in ((first, second), (second, first)):
        op = gate.value.op
        if (op is not None and op.kind == "activation"
                and op.attributes["kind"] == "silu"):
            return elementwise(importer, "swiglu",
                               Tensor(op.operands[0], gate.view), up)
    return elementwise(importer, "mul", first, second)


def _times_rows(importer: Importer, one: Tensor, other: Tensor) -> Tensor:
    letters = letters_of(one) + "h"
    if len(set(letters)) < len(letters):
        raise Refusal(f"a number for each row of {list(other.shape)}; supported: rows "
                      "of [batch, sequence, features] and [batch, features]")
    value = importer.emit("einsum", [one.value, other.value], other.value.dims,
                          left=letters[:-1], right=letters, result=letters)
    return Tensor(value, other.view)


def _times_number(importer: Importer, one: Any, number: float) -> Any:
    if number == 1.0:
        return one
    if isinstance(one, Slice):
        return replace(one, factor=one.factor * number)
    if isinstance(one, (Stat, Rows)):
        raise Refusal("a multiple of a mean" if isinstance(one, Stat)
                      else "a multiple of a table's rows")
    if isinstance(one, Loss):
        raise Refusal("a multiple of the loss: the loss must be the mean cross "
                      "entropy itself")
    if isinstance(one, (Tensor, Curve, Scores)):
        return scaled(one, number)
    return scaled(importer.tensor(one), number)


def _times_table(importer: Importer, one: Any, table: Any) -> Any:
    if of_scores(one):
        raise Refusal("attention scores times a constant table")
    if isinstance(one, Turned):
        return Weighted(one, table)
    if not isinstance(one, Slice):
        tensor = importer.tensor(one)
        one = Slice(tensor, len(tensor.shape) - 1, 0, tensor.shape[-1])
    return Weighted(one, table)


def _divided(one: Any, root: Stat) -> Normed:
    if root.step != "reciprocal" or root.base != one:
        raise Refusal("a tensor times a mean; supported: x * rsqrt(mean(x^2) + "
                      "epsilon) of the same x")
    return Normed(root.base, root.epsilon)


def _times_parameter(importer: Importer, one: Any, weight: Tensor) -> Any:
    base = importer.tensor(one.base if isinstance(one, Normed) else one)
    shape = base.value.shape
    own = [size for size in weight.shape if size != 1]
    dim = views.dim_of(base.view[-1], shape)
    if (isinstance(one, Normed) and own == [weight.shape[-1]]
            and views.row_of(base.view[-1], shape) == own[0]):
        return normalised(importer, "rms_norm", base, [weight], one.epsilon)
    if len(own) != 1 or own[0] != weight.shape[-1] or dim is None or (
            own[0] != shape[dim]):
        raise Refusal(
            f"a parameter {list(weight.shape)} times {list(base.shape)}, which lies "
            f"as {shape}; supported: gains for each of the last features, and the "
            "gains of a norm for each feature of a head")
    if isinstance(one, Normed):
        raise Refusal("a norm over another dimension than the last")
    gain = plain(importer, weight)
    letters = letters_of(base)
    value = importer.emit("einsum", [base.value, gain], base.value.dims,
                          left=letters, right=letters[dim], result=letters)
    return Tensor(value, base.view)


def normalised(importer: Importer, kind: str, given: Tensor,
               vectors: Sequence[Any], epsilon: float) -> Tensor:
    """Emits a norm with its gain and bias.

    Rows are the whole last dimension or equal parts of it, such as heads.

    >>> importer = Importer(2)
    >>> x = importer.input("x", [2, 8, 6])
    >>> w = importer.graph.parameter(Source("w"), [3])
    >>> heads = Tensor(x.value, views.reshaped(x.view, [2, 8, 2, 3]))
    >>> gain = Tensor(w, views.whole([3]))
    >>> normalised(importer, "rms_norm", heads, [gain], 1e-6).value.op.attributes
    {'epsilon': 1e-06, 'head_dim': 3}
    """
    shape = given.value.shape
    width = views.row_of(given.view[-1], shape)
    if width is None:
        raise Refusal(
            f"a norm over a part of {shape}; supported: rows that are the last "
            "dimension, or equal parts of it that follow each other")
    heads = {} if width == shape[-1] else {"head_dim": width}
    operands = [given.value, *(plain(importer, one) for one in vectors)]
    value = importer.emit(kind, operands, given.value.dims, epsilon=epsilon,
                          **heads)
    return Tensor(value, given.view)


def letters_of(given: Tensor) -> str:
    """Returns a letter for each dimension of a tensor's value.

    >>> from mtplan._torch_graph import Dim, Value
    >>> letters_of(Tensor(Value([Dim(2, "batch"), Dim(8)]), ()))
    'bi'
    """
    free = iter("ihpquwxyz")
    letters: list[str] = []
    for dim in given.value.dims:
        wanted = {"batch": "b", "sequence": "s"}.get(dim.role, "")
        letters.append(wanted if wanted and wanted not in letters else next(free))
    # The last letter is "i", as for the input of a matrix.
    if "i" in letters and letters[-1] != "i":
        index = letters.index("i")
        letters[index], letters[-1] = letters[-1], letters[index]
    return "".join(letters)


@operator("div", "div_", "true_divide")
def divide(importer: Importer, one: Any, other: Any) -> Any:
    """Imports a quotient by a number or by a root mean square.

    >>> divide(None, Curve(None, None, 6.0), 3.0).factor
    2.0
    """
    number = number_of(other)
    if number:
        return multiply(importer, one, 1.0 / number)
    if isinstance(other, Stat) and other.step == "root" and other.base == one:
        return Normed(one, other.epsilon)
    if isinstance(other, Curve) and isinstance(one, (Curve, Tensor)):
        left = curve_of(one)
        if left.base == other.base:
            return Curve(left.base,
                         lambda x: left.function(x) / other.function(x))
    raise Refusal("a quotient of two tensors; supported: division by a number and "
                  "by the root mean square of a row")


@operator("neg")
def negate(importer: Importer, one: Any) -> Any:
    """Imports a change of sign.

    >>> negate(None, Slice(None, 0, 0, 4)).factor
    -1.0
    """
    return multiply(importer, one, -1.0)


@operator("pow", "pow_")
def power(importer: Importer, one: Any, exponent: Any) -> Any:
    """Imports a power with a constant exponent.

    >>> power(None, Curve(None, lambda x: x, 1.0), 3).function(2)
    8
    """
    number = number_of(exponent)
    if number is None or number_of(one) is not None:
        raise Refusal("a power whose exponent is no constant")
    if isinstance(one, Stat):
        if number not in (0.5, -0.5):
            raise Refusal("a power of a mean; supported: the square root and its "
                          "reciprocal")
        return root(importer, one) if number > 0 else reciprocal_root(importer, one)
    inner = curve_of(one if isinstance(one, Curve) else importer.tensor(one))
    power_of = number if number != int(number) else int(number)
    result = inner.then(lambda x: x ** power_of)
    if number == 2:
        return Curve(inner.base, result.function, None, ("mul", one, one))
    return result


@operator("square")
def square(importer: Importer, one: Any) -> Any:
    """Imports a square.

    >>> square(None, Curve(None, lambda x: x, 1.0)).function(3)
    9
    """
    return power(importer, one, 2)


@operator("rsqrt")
def reciprocal_root(importer: Importer, one: Any) -> Any:
    """Imports the reciprocal of a square root.

    >>> reciprocal_root(None, Stat(None, "mean + epsilon", 0.1)).step
    'reciprocal'
    """
    if isinstance(one, Stat) and one.step in ("mean", "mean + epsilon"):
        return Stat(one.base, "reciprocal", one.epsilon)
    return curve_of(importer.tensor(one)).then(lambda x: x ** -0.5)


@operator("sqrt")
def root(importer: Importer, one: Any) -> Any:
    """Imports a square root.

    >>> root(None, Stat(None, "mean")).step
    'root'
    """
    if isinstance(one, Stat) and one.step in ("mean", "mean + epsilon"):
        return Stat(one.base, "root", one.epsilon)
    return curve_of(importer.tensor(one)).then(lambda x: x ** 0.5)


@operator("reciprocal")
def reciprocal(importer: Importer, one: Any) -> Any:
    """Imports 1 / x.

    >>> reciprocal(None, Stat(None, "root", 0.1)).step
    'reciprocal'
    """
    if isinstance(one, Stat) and one.step == "root":
        return Stat(one.base, "reciprocal", one.epsilon)
    return curve_of(importer.tensor(one)).then(lambda x: 1.0 / x)


def _function(name: str) -> Any:
    def apply(importer: Importer, one: Any, *rest: Any, **options: Any) -> Any:
        found = getattr(importer.torch.ops.aten, name)
        inner = one if isinstance(one, Curve) or of_scores(one) else (
            importer.tensor(one))
        return curve_of(inner).then(lambda x: found(x, *rest, **options))
    return apply


for _name in ("tanh", "sigmoid", "erf", "exp", "log", "sin", "cos", "abs", "gelu",
              "silu", "relu", "softplus", "elu", "hardswish", "leaky_relu"):
    operator(_name, _name + "_")(_function(_name))
