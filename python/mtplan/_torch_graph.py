"""Defines the graph that a module is imported into: mtplan's operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Matches an index in a name, such as the number of a layer.
NUMBER = re.compile(r"(?:(?<=\.)|^)\d+(?=\.|$)")


@dataclass(eq=False)
class Dim:
    """Is a dimension of a value. ``role`` is "batch", "sequence", "vocab" or "".

    A batch has the size of the example, and is written with the size 1. ``used``
    is the size without padding.

    >>> Dim(500, "vocab").used
    500
    """

    size: int
    role: str = ""
    used: int = 0

    def __post_init__(self) -> None:
        self.used = self.used or self.size


@dataclass(frozen=True)
class Origin:
    """Says where an operator comes from.

    >>> Origin("mlp.act", "model.py", 7).place
    'model.py:7'
    """

    module: str = ""
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """Returns the place in the Python source, "" if it is not known.

        >>> Origin().place
        ''
        """
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True)
class Source:
    """Describes how a parameter is computed from a parameter of the module.

    The elements from ``start`` to ``stop`` are taken from each of ``groups``
    equal ranges of dimension ``dim``. They get the shape ``shape``, and
    ``added`` is added. At the end, the last two dimensions are exchanged if
    ``transposed``.

    >>> Source("lm_head.weight", transposed=True).name
    'lm_head.weight'
    """

    name: str
    dim: int = 0
    start: int = 0
    stop: int | None = None
    shape: tuple[int, ...] | None = None
    added: float = 0.0
    transposed: bool = False
    groups: int = 1

    @property
    def label(self) -> str:
        """Returns the name in mtplan's graph, which differs for a part.

        >>> Source("attn.c_attn.weight", 1, 64, 128).label
        'attn.c_attn.weight.part_64'
        """
        return self.name + ("" if self.stop is None else f".part_{self.start}")

    def cut(self, tensor: Any) -> Any:
        """Returns the part of the module's tensor as a view, in which the groups
        are a dimension of their own.

        >>> Source("w", 1, 0, 2).cut(None)
        Traceback (most recent call last):
        ...
        AttributeError: 'NoneType' object has no attribute 'unflatten'
        """
        assert self.stop is not None
        groups = tensor.unflatten(self.dim, (self.groups, -1))
        return groups.narrow(self.dim + 1, self.start, self.stop - self.start)

    def of(self, tensor: Any) -> Any:
        """Computes the parameter from the module's tensor.

        >>> class Tensor:
        ...     mT = "exchanged"
        >>> Source("w", transposed=True).of(Tensor())
        'exchanged'
        """
        if self.stop is not None:
            tensor = self.cut(tensor).flatten(self.dim, self.dim + 1)
        if self.shape is not None:
            tensor = tensor.reshape(self.shape)
        if self.added:
            tensor = tensor + self.added
        return tensor.mT if self.transposed else tensor


@dataclass(eq=False)
class Value:
    """Is a result of an operator. ``type`` is "float", "f32" or "i32".

    >>> Value([Dim(2, "batch"), Dim(8)]).shape
    [2, 8]
    """

    dims: list[Dim]
    type: str = "float"
    op: Op | None = None
    index: int = 0

    @property
    def shape(self) -> list[int]:
        """Returns the sizes of the dimensions.

        >>> Value([Dim(3)]).shape
        [3]
        """
        return [dim.size for dim in self.dims]

    @property
    def kind(self) -> str:
        """Returns the kind of the operator that makes the value.

        >>> Value([]).kind
        ''
        """
        return self.op.kind if self.op else ""


@dataclass(eq=False)
class Op:
    """Is an operator of docs/reference/ops.md, with its attributes.

    ``kind`` is the name without "mtp.". Inputs and parameters are operators
    without operands.

    >>> Op("add", [], {}).attributes
    {}
    """

    kind: str
    operands: list[Value]
    attributes: dict[str, Any]
    origin: Origin = Origin()
    label: str = ""
    results: list[Value] = field(default_factory=list)
    source: Source | None = None

    @property
    def is_leaf(self) -> bool:
        """Returns whether the operator is an input or a parameter.

        >>> Op("input", [], {}).is_leaf
        True
        """
        return self.kind in ("input", "parameter")


class Graph:
    """Holds operators in the order in which they run.

    >>> graph = Graph()
    >>> x = graph.add("input", [], [Dim(2, "batch")])
    >>> graph.add("scale", [x], x.dims, factor=2.0).op.attributes
    {'factor': 2.0}
    """

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.parameters: dict[Source, Value] = {}
        self.loss: Value | None = None

    def add(self, kind: str, operands: Sequence[Value], dims: Sequence[Dim],
            type: str = "float", origin: Origin = Origin(), label: str = "", /,
            **attributes: Any) -> Value:
        """Appends an operator, and returns its first result.

        >>> Graph().add("input", [], [Dim(3)]).shape
        [3]
        """
        op = Op(kind, list(operands), attributes, origin, label)
        op.results.append(Value(list(dims), type, op))
        self.ops.append(op)
        return op.results[0]

    def parameter(self, source: Source, shape: Sequence[int]) -> Value:
        """Returns the value of a parameter; each source has one value.

        >>> graph = Graph()
        >>> one = graph.parameter(Source("w"), [3])
        >>> one is graph.parameter(Source("w"), [3])
        True
        """
        if source not in self.parameters:
            value = self.add("parameter", [], [Dim(size) for size in shape], "float",
                             Origin(), source.label)
            assert value.op is not None
            value.op.source = source
            self.parameters[source] = value
        return self.parameters[source]

    def users(self) -> dict[Value, list[Op]]:
        """Returns the operators that read each value.

        >>> Graph().users()
        {}
        """
        found: dict[Value, list[Op]] = {}
        for op in self.ops:
            for value in op.operands:
                found.setdefault(value, []).append(op)
        return found

    def drop_unused(self, kept: Iterable[Value]) -> None:
        """Removes the operators on which no kept value depends.

        >>> graph = Graph()
        >>> _ = graph.add("input", [], [])
        >>> graph.drop_unused([])
        >>> graph.ops
        []
        """
        alive: set[int] = set()
        pending = [value.op for value in kept]
        while pending:
            op = pending.pop()
            if op is None or id(op) in alive:
                continue
            alive.add(id(op))
            pending += [value.op for value in op.operands]
        self.ops = [op for op in self.ops if id(op) in alive]
