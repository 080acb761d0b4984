"""Defines what a tensor of the module can be while the module is imported.

Most tensors are a value of mtplan's graph and a view. Others are not computed
by themselves: constants, integers that come with the data, and parts of an
expression, such as the square under the root of a norm, that become one operator
once the whole expression is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mtplan import _torch_views as views
from mtplan._torch_graph import Value
from mtplan._torch_views import View


class Refusal(Exception):
    """Is raised for code that cannot be imported; ``Walk`` adds the Python line.

    >>> str(Refusal("a convolution with overlapping windows"))
    'a convolution with overlapping windows'
    """


class _Viewed:
    """Has the shape of its view."""

    view: View

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees."""
        return views.sizes(self.view)


class _OfBase:
    """Has the shape of its base."""

    base: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees."""
        return tuple(self.base.shape)


class _OfPart:
    """Has the shape of its part."""

    part: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees."""
        return tuple(self.part.shape)


@dataclass(frozen=True)
class Tensor(_Viewed):
    """Is a value of mtplan's graph, seen through a view.

    >>> from mtplan._torch_graph import Dim
    >>> Tensor(Value([Dim(2), Dim(3)]), views.whole([2, 3])).shape
    (2, 3)
    """

    value: Value
    view: View

    @property
    def is_parameter(self) -> bool:
        """Returns whether the tensor is a parameter and not computed.

        >>> Tensor(Value([]), ()).is_parameter
        False
        """
        return self.value.kind == "parameter"


@dataclass(frozen=True)
class Data:
    """Is a tensor of integers or booleans that follows from the data alone.

    ``node`` is the node of the exported program that computes the tensor, or
    the constant itself.

    >>> Data("input_ids", (2, 8)).shape
    (2, 8)
    """

    node: Any
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Curve(_OfBase):
    """Is an elementwise function of a tensor or of attention scores.

    ``function`` computes the curve in double precision, and ``factor`` is set
    if it multiplies by a constant. ``parts`` says how the curve was made:
    ("add" or "mul", one curve, other curve) or ("then", curve, function,
    factor).

    >>> Curve(None, None, 2.0).factor
    2.0
    """

    base: Any
    function: Any
    factor: float | None = None
    parts: tuple[Any, ...] = ()

    def then(self, function: Callable[[Any], Any],
             factor: float | None = None) -> Curve:
        """Returns the curve that applies ``function`` to this curve's result.

        >>> Curve(None, lambda x: x + 1).then(lambda x: 2 * x).function(3)
        8
        """
        first = self.function
        linear = (None if factor is None or self.factor is None
                  else factor * self.factor)
        return Curve(self.base, lambda x: function(first(x)), linear,
                     ("then", self, function, factor))


@dataclass(frozen=True)
class Stat:
    """Is a step on the way to the reciprocal root mean square of rows.

    ``step`` is "mean", "mean + epsilon", "root" or "reciprocal".

    >>> Stat(None, "mean").epsilon
    0.0
    """

    base: Any
    step: str
    epsilon: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees.

        >>> Stat(Stat(None, "mean"), "mean").step
        'mean'
        """
        return (*self.base.shape[:-1], 1)


@dataclass(frozen=True)
class Normed(_OfBase):
    """Is a tensor divided by the root mean square of its rows.

    >>> Normed(None, 1e-6).epsilon
    1e-06
    """

    base: Any
    epsilon: float


@dataclass(frozen=True)
class Rows(_Viewed):
    """Is a table's rows at constant indices, such as positions or distances.

    ``view`` is over the shape of ``ids`` and the table's width. ``mask`` is a
    constant that is added, which has the shape that PyTorch sees.

    >>> Rows(None, None, views.whole([4, 8])).shape
    (4, 8)
    """

    table: Any
    ids: Any
    view: View
    mask: Any = None


@dataclass(frozen=True)
class Slice:
    """Is a part of a tensor along one dimension, times a number.

    It has every ``step``-th element from ``start`` to ``stop``.

    >>> Slice(Tensor(Value([]), views.whole([2, 8])), 1, 4, 8).shape
    (2, 4)
    """

    base: Tensor
    dim: int
    start: int
    stop: int
    factor: float = 1.0
    step: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees.

        >>> Slice(Tensor(Value([]), views.whole([8])), 0, 4, 8).shape
        (4,)
        """
        shape = list(self.base.shape)
        shape[self.dim] = -(-(self.stop - self.start) // self.step)
        return tuple(shape)


@dataclass(frozen=True)
class Turned(_OfPart):
    """Is the second half of a slice, negated, followed by the first half.

    If ``interleaved``, the halves are the elements with odd and with even
    indices, and the elements of a pair follow each other. The pairs are a
    dimension of their own unless ``is_flat``.

    >>> Turned(Slice(Tensor(Value([]), views.whole([2, 8])), 1, 0, 8)).shape
    (2, 8)
    """

    part: Slice
    interleaved: bool = False
    is_flat: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees.

        >>> x = Slice(Tensor(Value([]), views.whole([8])), 0, 0, 8)
        >>> Turned(x, True, False).shape
        (4, 2)
        """
        *first, last = self.part.shape
        return (*first, last) if self.is_flat else (*first, last // 2, 2)


@dataclass(frozen=True)
class Weighted(_OfPart):
    """Is a slice or a turned slice times a constant table of cos or sin.

    >>> Weighted(Slice(Tensor(Value([]), views.whole([2])), 0, 0, 2), None).shape
    (2,)
    """

    part: Slice | Turned
    table: Any


@dataclass(frozen=True)
class Rotated(_OfPart):
    """Is a slice whose features are rotated by the position.

    >>> Rotated(Slice(Tensor(Value([]), views.whole([8])), 0, 0, 8), 1e4).theta
    10000.0
    """

    part: Slice
    theta: float
    interleaved: bool = False


@dataclass(frozen=True)
class Joined:
    """Is a concatenation of the features of tensors, for a linear layer.

    >>> x = Tensor(Value([]), views.whole([2, 8]))
    >>> Joined((x, x)).shape
    (2, 16)
    """

    parts: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees.

        >>> x = Tensor(Value([]), views.whole([2, 8]))
        >>> Joined((x, x, x)).shape
        (2, 24)
        """
        return (*self.parts[0].shape[:-1], sum(one.shape[-1] for one in self.parts))


@dataclass(frozen=True)
class Scores:
    """Is the product of queries and keys of attention, on the way to softmax.

    ``scale`` and ``softcap`` were applied to the products. ``mask`` is a
    constant that is added to the results, ``bias`` are rows that are added, and
    ``rate`` is the dropout after the softmax.

    >>> Scores(None, None, (2, 4, 8, 8)).rate
    0.0
    """

    query: Any
    key: Any
    shape: tuple[int, ...]
    scale: float = 1.0
    softcap: float = 0.0
    mask: Any = None
    bias: Rows | None = None
    is_softmax: bool = False
    rate: float = 0.0

    def changed(self, **fields: Any) -> Scores:
        """Returns a copy with other fields.

        >>> Scores(None, None, ()).changed(rate=0.1).rate
        0.1
        """
        return replace(self, **fields)


@dataclass(frozen=True)
class Loss:
    """Is the cross entropy of logits, the mean over the targets.

    >>> Loss(None).shape
    ()
    """

    value: Any
    shape: tuple[int, ...] = field(default=())


@dataclass(frozen=True)
class Patches(_Viewed):
    """Is a convolution of an image by windows that do not overlap.

    ``windows`` has the number of windows, the number of elements of a window, and
    the sizes of a window.
    The view is over samples, windows and channels.

    >>> Patches(None, None, None, (), views.whole([2, 4, 8])).shape
    (2, 4, 8)
    """

    image: Any
    weight: Any
    bias: Any
    windows: tuple[int, ...]
    view: View


@dataclass(eq=False)
class Routing:
    """Is the choice of the ``count`` experts with the largest logits.

    ``gates`` holds the weights of experts: under True if they are normalised, else
    under False. ``sent`` maps tokens to their value at the experts.

    >>> Routing(Value([]), 2).slots is None
    True
    """

    logits: Value
    count: int
    slots: Value | None = None
    gates: dict[bool, Value] = field(default_factory=dict)
    sent: dict[Value, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen(_Viewed):
    """Is a property of the experts that tokens chose in a routing.

    ``part`` is "numbers", "logits", "probabilities", their "sum" for each token, or
    "normalised" weights. The view is over [batch, sequence, chosen].

    >>> Chosen(1, "numbers", views.whole([2, 8, 2])).shape
    (2, 8, 2)
    """

    routing: int
    part: str
    view: View


@dataclass(frozen=True)
class ChosenWeights:
    """Is the matrix of weights of the expert of each choice.

    >>> ChosenWeights(None, None).chosen is None
    True
    """

    weights: Any
    chosen: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape that PyTorch sees.

        >>> weights = Tensor(Value([]), views.whole([4, 8, 16]))
        >>> chosen = Tensor(Value([]), views.whole([6]))
        >>> ChosenWeights(weights, chosen).shape
        (6, 8, 16)
        """
        return (*self.chosen.shape, *self.weights.shape[1:])


@dataclass(frozen=True)
class Weighed(_Viewed):
    """Is the result of experts, [experts, batch, capacity, features], times the
    weights of the experts.

    >>> Weighed(None, None, views.whole([16, 4])).shape
    (16, 4)
    """

    value: Any
    chosen: Any
    view: View
