"""Builds mtplan's graph from the operators of an exported module."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from mtplan import _torch_curves as curves
from mtplan import _torch_views as views
from mtplan._torch_graph import Dim, Graph, Op, Origin, Source, Value
from mtplan._torch_values import (Chosen, ChosenWeights, Curve, Data, Joined, Loss,
                                  Normed, Patches, Refusal, Rotated, Routing, Rows,
                                  Scores, Slice, Stat, Tensor, Turned, Weighed,
                                  Weighted)
from mtplan._torch_views import Axis

Handler = Callable[..., Any]
# Maps the ATen name of a function of PyTorch to the handler that imports it.
HANDLERS: dict[str, Handler] = {}
PARTIAL = (Chosen, ChosenWeights, Curve, Joined, Normed, Patches, Rotated, Rows, Scores,
           Slice, Stat, Turned, Weighed, Weighted, Loss)


def operator(*names: str) -> Callable[[Handler], Handler]:
    """Registers a function as the handler of operators of ATen.

    >>> @operator("example")
    ... def nothing(importer): return None
    >>> HANDLERS.pop("example") is nothing
    True
    """
    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler
    return register


class Importer:
    """Holds the graph that is built, and the operator that is being imported.

    ``batch`` is the number of samples of the example.

    >>> importer = Importer(2)
    >>> x = importer.input("x", [2, 8, 4])
    >>> x.value.dims[1].role
    'sequence'
    """

    def __init__(self, batch: int) -> None:
        self.graph = Graph()
        self.batch = batch
        self.origin = Origin()
        # Maps the id of a value to the value and the origin of its operator.
        self.made: dict[int, tuple[Any, Origin]] = {}
        # Maps the id of an expression to the expression and its tensor.
        self.computed: dict[int, tuple[Any, Tensor]] = {}
        self.notes: list[str] = []
        self.image: Value | None = None
        self.routings: list[Routing] = []
        self.capacity_factor: float | None = None

    @property
    def torch(self) -> Any:
        """Returns the module torch.

        >>> Importer(2).torch.nn                            # doctest: +SKIP
        """
        return importlib.import_module("torch")

    def emit(self, kind: str, operands: Sequence[Value], dims: Sequence[Dim],
             type: str = "float", /, **attributes: Any) -> Value:
        """Appends an operator for the current operator of PyTorch.

        >>> importer = Importer(2)
        >>> importer.emit("input", [], [Dim(2)]).shape
        [2]
        """
        return self.graph.add(kind, operands, dims, type, self.origin, "",
                              **attributes)

    def input(self, label: str, shape: Sequence[int], type: str = "float",
              limit: int = 0, source: Any = None) -> Tensor:
        """Returns a new input, whose first dimension counts samples.

        >>> Importer(2).input("x", [2, 4]).shape
        (2, 4)
        """
        if not shape or shape[0] != self.batch:
            raise Refusal(f"the input {label} has the shape {list(shape)}: its "
                          f"first dimension must count the samples, which are "
                          f"{self.batch} in the example")
        roles = ["batch"] + [""] * (len(shape) - 1)
        if len(shape) == 3 or (type == "i32" and len(shape) == 2):
            roles[1] = "sequence"
        dims = [Dim(size, role) for size, role in zip(shape, roles)]
        value = self.graph.add("input", [], dims, type, self.origin, label,
                               limit=limit, source=source)
        return Tensor(value, views.whole(value.shape))

    def data(self, given: Data, label: str, limit: int,
             shape: Sequence[int] | None = None) -> Value:
        """Returns the input that holds data, and creates it at the first use.

        >>> importer = Importer(2)
        >>> value = importer.data(Data("node", (2, 8)), "ids", 100)
        >>> importer.data(Data("node", (2, 8)), "ids", 100) is value
        True
        """
        for op in self.graph.ops:
            if op.kind == "input" and op.attributes["source"] is given.node:
                op.attributes["limit"] = min(limit, op.attributes["limit"])
                return op.results[0]
        taken = {op.label for op in self.graph.ops if op.kind == "input"}
        name, number = label, 2
        while name in taken:
            name, number = f"{label}_{number}", number + 1
        return self.input(name, shape or given.shape, "i32", limit,
                          given.node).value

    def patches(self, image: Tensor, shape: Sequence[int],
                source: tuple[Any, ...]) -> Tensor:
        """Returns the input of an image's windows; each window size has its own.

        >>> importer = Importer(2)
        >>> image = importer.input("image", [2, 3, 4, 4])
        >>> one = importer.patches(image, [2, 4, 12], ("patches", 2, 2, 0))
        >>> importer.patches(image, [2, 4, 12], ("patches", 2, 2, 0)) == one
        True
        """
        if self.image not in (None, image.value):
            raise Refusal("windows of two images; supported: one image")
        self.image = image.value
        cut = [op for op in self.graph.ops if op.kind == "input"
               and op.label.startswith("patches")]
        for op in cut:
            if op.attributes["source"] == source:
                value = op.results[0]
                return Tensor(value, views.whole(value.shape))
        label = f"patches_{len(cut) + 1}" if cut else "patches"
        return self.input(label, shape, source=source)

    def tensor(self, given: Any) -> Tensor:
        """Returns a tensor that operators can read, computing it if need be.

        Raises ``Refusal`` for an expression that no operator computes.

        >>> importer = Importer(2)
        >>> x = importer.input("x", [2, 8, 4])
        >>> twice = importer.tensor(Curve(x, lambda x: 2 * x, 2.0))
        >>> twice.value.op.kind, twice.shape
        ('scale', (2, 8, 4))
        """
        if isinstance(given, Tensor):
            return given
        if id(given) not in self.computed:
            here = self.origin
            self.origin = self.made.get(id(given), (given, here))[1]
            # The key is kept alive, so that no other object gets its id.
            self.computed[id(given)] = given, self._compute(given)
            self.origin = here
        return self.computed[id(given)][1]

    def _compute(self, given: Any) -> Tensor:
        if isinstance(given, Curve):
            return self._curve(given)
        if isinstance(given, Rotated):
            from mtplan import _torch_rotation as rotation
            return rotation.rope_of_part(self, given, given.part.stop)
        if isinstance(given, Slice):
            part = part_of(self, given)
            return part if given.factor == 1.0 else self.tensor(
                scaled(part, given.factor))
        if isinstance(given, Patches):
            return windows(self, given, 0)
        if isinstance(given, Normed):
            raise Refusal("a norm without gains: the nearest supported form is an RMS "
                          "norm with a gain for each feature")
        raise Refusal(MISUSED.get(type(given).__name__,
                                  "a constant tensor where a computed one is "
                                  "needed: only numbers, masks, positions and "
                                  "rotations can be constants"))

    def _curve(self, given: Curve) -> Tensor:
        base = given.base
        if isinstance(base, Scores):
            raise Refusal(MISUSED["Scores"])
        if given.factor == 1.0:
            return self.tensor(base)
        if given.factor is not None:
            base = self.tensor(base)
            return self.pointwise("scale", base, factor=given.factor)
        kind = curves.activation_of(given.function)
        if kind is not None:
            return self.pointwise("activation", self.tensor(base), kind=kind)
        cap = curves.softcap_of(given.function)
        if cap is not None:
            tensor = self.tensor(scaled(self.tensor(base), cap[0]))
            return self.pointwise("logit_softcap", tensor, cap=cap[1])
        if given.parts and given.parts[0] in ("add", "mul"):
            kind, one, other = given.parts
            return elementwise(self, kind, self.tensor(one), self.tensor(other))
        if given.parts:
            _, inner, function, factor = given.parts
            if inner.factor != 1.0:
                return self._curve(Curve(self._curve(inner), function, factor))
        raise Refusal("a function of one number that is no known activation; "
                      f"supported: {', '.join(curves.KINDS)}, c tanh(x / c) "
                      "and multiples")

    def pointwise(self, kind: str, given: Tensor, /, **attributes: Any) -> Tensor:
        """Applies an operator element by element.

        >>> importer = Importer(2)
        >>> x = importer.input("x", [2, 8, 4])
        >>> importer.pointwise("dropout", x, rate=0.1).shape
        (2, 8, 4)
        """
        if given.is_parameter:
            raise Refusal(f"{kind} of a parameter: only its transpose, its parts "
                          "and adding a number are supported")
        value = self.emit(kind, [given.value], given.value.dims, **attributes)
        return Tensor(value, given.view)


MISUSED = {
    "Scores": "a product of two activations that is not attention; supported: "
              "softmax(q k^T * scale + mask) v with heads in a dimension of "
              "their own",
    "Stat": "a mean over the features outside an RMS norm; supported: x * rsqrt("
            "mean(x^2) + epsilon) * gain",
    "Rows": "rows of a table at constant indices; supported: positions that are "
            "added to [batch, sequence, features], and T5's distances",
    "Turned": "two parts of a tensor in exchanged order; supported: the rotation "
              "by positions, x cos + rotate_half(x) sin",
    "Weighted": "a tensor times a constant tensor; supported: the rotation by "
                "positions, x cos + rotate_half(x) sin",
    "Joined": "a concatenation of features that no linear layer reads",
    "Chosen": "the experts that tokens chose outside the products with experts",
    "ChosenWeights": "the weights of experts outside a product with tokens",
    "Weighed": "what experts compute times their weights, outside a sum over the "
               "experts of a token",
    "Loss": "a function of the loss: the loss must be the mean cross entropy "
            "itself",
}


def scaled(given: Any, factor: float) -> Curve:
    """Returns a multiple of a tensor or of scores.

    >>> scaled(Slice(Tensor(Value([]), ()), 0, 0, 1), 2.0).factor
    2.0
    """
    return curve_of(given).then(lambda x: x * factor, factor)


def curve_of(given: Any) -> Curve:
    """Returns a curve as it is, and the identity function of another value.

    >>> curve_of(Curve(None, None, 2.0)).factor
    2.0
    """
    if isinstance(given, Curve):
        return given
    return Curve(given, lambda x: x, 1.0)


def elementwise(importer: Importer, kind: str, one: Tensor, other: Tensor
                ) -> Tensor:
    """Adds or multiplies two tensors whose values have the same dimensions.

    >>> importer = Importer(2)
    >>> x = importer.input("x", [2, 8, 4])
    >>> elementwise(importer, "add", x, x).shape
    (2, 8, 4)
    """
    if one.view != other.view or one.value.shape != other.value.shape:
        raise Refusal(
            f"{kind} of tensors [{', '.join(map(str, one.shape))}] and "
            f"[{', '.join(map(str, other.shape))}] whose elements lie in "
            f"different orders, {one.value.shape} and {other.value.shape}: mtplan "
            "has no operator that exchanges dimensions")
    return Tensor(importer.emit(kind, [one.value, other.value],
                                one.value.dims), one.view)


def column_of(given: Tensor) -> tuple[Op, int] | None:
    """Returns the product that makes a tensor, and the dimension of its columns.

    Returns None if the tensor is no product with a matrix of weights.

    >>> column_of(Tensor(Value([]), ())) is None
    True
    """
    op = given.value.op
    if op is None or op.kind != "einsum" or op.operands[1].kind != "parameter":
        return None
    result, weight = op.attributes["result"], op.attributes["right"]
    left = op.attributes["left"]
    free = [letter for letter in weight if letter not in left]
    if len(free) != 1 or free[0] not in result:
        return None
    return op, result.index(free[0])


def part_of(importer: Importer, given: Slice) -> Tensor:
    """Returns a slice as a product with a part of the weights.

    Raises ``Refusal`` if the slice is no range of the columns of a matrix.

    >>> part_of(Importer(2), Slice(Tensor(Value([]), views.whole([8])), 0, 0, 4))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a part of a tensor that is no range of ...
    """
    base = given.base
    group = base.view[given.dim]
    if base.is_parameter and given.step == 1:
        return part_of_parameter(importer, given)
    found = column_of(base)
    if (found is not None and len(group) == 1 and group[0].dim == found[1]
            and given.step == 1):
        op, dim = found
        axis, column = group[0], base.value.dims[dim]
        # If weights are fused within each head, a slice is a range in each head.
        groups, rest = divmod(column.size, axis.size * axis.stride)
        if not rest:
            start, stop = (end * axis.stride
                           for end in (given.start, given.stop))
            letter = op.attributes["result"][dim]
            position = op.attributes["right"].index(letter)
            operands = [op.operands[0]] + [
                parameter_part(importer, value, at, start, stop, groups)
                for value, at in zip(op.operands[1:], (position, 0))]
            dims = list(base.value.dims)
            dims[dim] = Dim((stop - start) * groups)
            attributes = {key: op.attributes[key]
                          for key in ("left", "right", "result")}
            origin, importer.origin = importer.origin, op.origin
            value = importer.emit("einsum", operands, dims, **attributes)
            importer.origin = origin
            view = [views.narrowed(one, axis, stop - start) for one in base.view]
            size = given.stop - given.start
            view[given.dim] = views.merged([Axis(dim, size, axis.stride)])
            return Tensor(value, tuple(view))
    raise Refusal("a part of a tensor that is no range of the columns of a product "
                  "with weights; supported: fused projections (q, k, v; gate and "
                  "up) and the halves of a rotation")


def parameter_part(importer: Importer, value: Value, dim: int, start: int,
                   stop: int, groups: int = 1) -> Value:
    """Returns the same range of each group of a parameter along a dimension.

    >>> importer = Importer(2)
    >>> w = importer.graph.parameter(Source("w"), [4, 6])
    >>> parameter_part(importer, w, 1, 0, 3).shape
    [4, 3]
    """
    assert value.op is not None and value.op.source is not None
    source = value.op.source
    if source.stop is not None or source.shape is not None or source.added:
        raise Refusal(f"a slice of a slice of the parameter {source.name}")
    shape = value.shape
    shape[dim] = (stop - start) * groups
    return importer.graph.parameter(
        Source(source.name, dim, start, stop, groups=groups), shape)


def part_of_parameter(importer: Importer, given: Slice) -> Tensor:
    """Returns a range of a parameter as a parameter.

    >>> importer = Importer(2)
    >>> w = importer.graph.parameter(Source("w"), [4, 6])
    >>> part_of_parameter(importer, Slice(Tensor(w, views.whole([4, 6])), 0, 1, 3)
    ...                   ).shape
    (2, 6)
    """
    base = given.base
    dim = views.dim_of(base.view[given.dim], base.value.shape)
    if dim is None:
        raise Refusal("a part of a reshaped parameter")
    value = parameter_part(importer, base.value, dim, given.start, given.stop)
    view = list(base.view)
    view[given.dim] = views.merged([Axis(dim, given.stop - given.start)])
    return Tensor(value, tuple(view))


def plain(importer: Importer, given: Any) -> Value:
    """Returns a parameter without its dimensions of size 1.

    Raises ``Refusal`` for a computed tensor, and for a parameter whose elements
    are read in another order than they are stored.

    >>> importer = Importer(2)
    >>> w = importer.graph.parameter(Source("w"), [1, 4])
    >>> plain(importer, Tensor(w, views.whole([1, 4]))).shape
    [4]
    """
    weight = importer.tensor(given)
    value = weight.value
    op = value.op
    if not weight.is_parameter or op is None or op.source is None:
        raise Refusal("gains, biases or positions that are computed; supported: "
                      "parameters")
    if views.reshaped(weight.view, value.shape) != views.whole(value.shape):
        raise Refusal(f"the parameter {op.source.name} with exchanged dimensions; "
                      "supported: exchanged dimensions of matrices of weights")
    shape = [size for size in weight.shape if size != 1] or [1]
    if value.shape == shape:
        return value
    if op.source.stop is not None:
        raise Refusal(f"a part of the parameter {op.source.name} in another shape")
    return importer.graph.parameter(
        Source(op.source.name, shape=tuple(shape), added=op.source.added), shape)


def windows(importer: Importer, given: Patches, extra: int) -> Tensor:
    """Returns a convolution by windows as a product with rows of the image.

    The input has ``extra`` rows of zeros before those of the windows.

    >>> windows(Importer(2), Patches(None, None, None, (4, 2, 2),
    ...         views.whole([2, 4, 8])), 0)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a convolution of a computed tensor; ...
    """
    if (not isinstance(given.image, Tensor) or given.image.value.kind != "input"
            or given.image.view != views.whole(given.image.value.shape)):
        raise Refusal("a convolution of a computed tensor; supported: the one that "
                      "cuts an input image into windows")
    count, width = given.windows[0], given.windows[1]
    out = given.weight.shape[0]
    rows = importer.patches(given.image, [importer.batch, count + extra, width],
                            ("patches", *given.windows[2:], extra))
    weight = importer.tensor(given.weight)
    matrix = views.reshaped(weight.view, [out, width])
    assert matrix is not None
    operands = [rows.value, plain(importer, Tensor(weight.value, matrix))]
    if given.bias is not None:
        operands.append(plain(importer, given.bias))
    dims = [*rows.value.dims[:2], Dim(out)]
    value = importer.emit("einsum", operands, dims, left="bsi", right="oi",
                          result="bso")
    view = views.whole(value.shape) if extra else given.view
    return Tensor(value, view)
