"""Writes mtplan's textual IR."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mtplan._torch_graph import NUMBER, Dim, Op, Value
from mtplan._torch_layers import Segment

# Lists operators that are written with the type of their result alone.
SAME_TYPE = ("add", "mul", "scale", "dropout", "activation", "swiglu",
             "logit_softcap", "softmax", "rope", "moe_gate")
# Lists attributes that are not written in braces.
PLACED = ("left", "right", "result", "kind", "factor", "limit", "source")
INTEGERS = ("head_dim", "rotary_dim", "max_distance", "classes", "top_k")
# These attributes are written without a value, or left out if false.
WORDS = ("interleaved", "normalise")


class Writer:
    """Writes segments one after the other. ``element`` is bf16, f16 or f32.

    >>> print(Writer("f32", "mlp").text([]))
    module @mlp attributes {mtp.layers = 1 : i64} {
    }
    <BLANKLINE>
    """

    def __init__(self, element: str, name: str) -> None:
        self.element = element
        self.name = name
        self.names: dict[Value, str] = {}
        self.lines: list[str] = []
        self.at = Segment("", [], [], [])
        self.labels: set[str] = set()

    def text(self, segments: Sequence[Segment]) -> str:
        """Returns the module's text.

        >>> Writer("bf16", "m").text([]).splitlines()[-1]
        '}'
        """
        layers = sum(one.repeat for one in segments if one.repeat > 1) or 1
        name = re.sub(r"[^A-Za-z0-9_.$-]", "_", self.name) or "module"
        if not (name[0].isalpha() or name[0] == "_"):
            name = "_" + name
        self.lines = [f"module @{name} attributes {{mtp.layers = {layers} : i64}} {{"]
        for one in segments:
            self.segment(one)
        return "\n".join([*self.lines, "}"]) + "\n"

    def segment(self, one: Segment) -> None:
        """Writes a segment.

        >>> writer = Writer("bf16", "m")
        >>> writer.segment(Segment("embed", [], [], []))
        >>> writer.lines[0]
        '  mtp.segment @embed () {'
        """
        self.names = {}
        arguments = []
        for number, value in enumerate(one.takes):
            arguments.append(f"%arg{number}: {self.type(value)}")
            self.names.setdefault(value, f"%arg{number}")
        repeat = f" repeat {one.repeat}" if one.repeat > 1 else ""
        first = f" first {one.first}" if one.first else ""
        self.at = one
        self.lines.append(f"  mtp.segment @{one.name}{repeat}{first} "
                          f"({', '.join(arguments)}) {{")
        for op in one.ops:
            for value in op.operands:
                if value.op is not None and value.op.is_leaf and (
                        value not in self.names):
                    self.write(value.op)
            self.write(op)
            if op.kind == "token_loss":
                loss = op.results[0]
                self.lines.append(f'    mtp.accumulate "loss", {self.names[loss]} : '
                                  "tensor<f32>")
        # A repeated segment yields values in the order in which it takes them.
        values = ", ".join(self.passed(one, number, value)
                           for number, value in enumerate(one.yields))
        types = ", ".join(self.type(value) for value in one.yields)
        self.lines.append(f"    mtp.yield {values} : {types}" if one.yields
                          else "    mtp.yield")
        self.lines.append("  }")

    def passed(self, one: Segment, number: int, value: Value) -> str:
        """Returns the name of a value that a segment yields.

        >>> writer, value = Writer("bf16", "m"), Value([])
        >>> writer.passed(Segment("h", [], [value], [value], 2), 0, value)
        '%arg0'
        """
        if number < len(one.takes) and one.takes[number] is value:
            return f"%arg{number}"
        return self.names[value]

    def write(self, op: Op) -> None:
        """Writes an operator.

        >>> writer = Writer("bf16", "m")
        >>> op = Op("input", [], {"limit": 0}, label="count")
        >>> op.results = [Value([], "f32", op)]
        >>> writer.write(op)
        >>> writer.lines
        ['    %0 = mtp.input "count" dims [] : tensor<f32>']
        """
        result = op.results[0]
        name = f"%{len(self.names)}"
        self.names[result] = name
        shown = f"{name}, %lse_{name[1:]}" if op.kind == "attention" else name
        label = self.label(op)
        head = f"    {shown} = mtp.{op.kind} {quoted(label)}"
        if op.kind == "input":
            self.lines.append(f"{head}{self.input(op)} : {self.type(result)}")
            return
        if op.kind == "parameter":
            self.lines.append(f"{head}{self.parameter(op)} : {self.type(result)}")
            return
        if op.kind == "einsum":
            found = op.attributes
            head += f' "{found["left"]},{found["right"]}->{found["result"]}"'
        if op.kind == "activation":
            head += f" {op.attributes['kind']}"
        operands = ", ".join(self.names[value] for value in op.operands)
        by = f" by {number(op.attributes['factor'])}" if op.kind == "scale" else ""
        self.lines.append(f"{head} ({operands}){by}{self.attributes(op, label)} : "
                          f"{self.types(op)}{location(op)}")

    def label(self, op: Op) -> str:
        """Returns the label of an operator, with a star for the layer.

        >>> writer = Writer("bf16", "m")
        >>> writer.at = Segment("h", [], [], [], 2, 3)
        >>> writer.label(Op("add", [], {}, label="mlp.add"))
        'h.*.mlp.add'
        """
        one, label = self.at, op.label
        if op.is_leaf:
            index = one.stars.get(op.results[0])
            return label if index is None else starred(label, index)
        if one.repeat > 1:
            numbers = [int(match.group()) for match in NUMBER.finditer(label)]
            index = next(iter(one.stars.values()), 0)
            if index < len(numbers) and numbers[index] == one.first:
                label = starred(label, index)
            else:
                label = f"{one.name}.*.{label}"
        unique, number = label, 2
        while unique in self.labels:
            unique, number = f"{label}_{number}", number + 1
        self.labels.add(unique)
        return unique

    def input(self, op: Op) -> str:
        """Returns the dimensions and the limit of an input.

        >>> op = Op("input", [], {"limit": 9})
        >>> op.results = [Value([Dim(2, "batch")], "i32", op)]
        >>> Writer("bf16", "m").input(op)
        ' dims ["batch"] below 9'
        """
        roles = ", ".join(f'"{dim.role if dim.role in ("batch", "sequence") else "other"}"'
                          for dim in op.results[0].dims)
        limit = op.attributes["limit"]
        return f" dims [{roles}]" + (f" below {limit}" if limit else "")

    def parameter(self, op: Op) -> str:
        """Returns initialisation and padding of a parameter.

        >>> op = Op("parameter", [], {"init": "ones"})
        >>> op.results = [Value([Dim(4)], "float", op)]
        >>> Writer("bf16", "m").parameter(op)
        ' {init = "ones"}'
        """
        parts = []
        init = op.attributes.get("init", "normal")
        if init != "normal":
            parts.append(f'init = "{init}"')
        dims = op.results[0].dims
        if any(dim.used != dim.size for dim in dims):
            used = ", ".join(str(dim.used) for dim in dims)
            parts.append(f"unpadded = array<i64: {used}>")
        return f" {{{', '.join(parts)}}}" if parts else ""

    def attributes(self, op: Op, label: str = "") -> str:
        """Returns the attributes of an operator in braces.

        >>> Writer("bf16", "m").attributes(Op("rope", [], {"theta": 1e4}))
        ' {theta = 1.000000000000000e+04 : f64}'
        """
        given = {key: value for key, value in op.attributes.items()
                 if key not in PLACED}
        if op.kind in ("dropout", "attention"):
            given["mask"] = label
        parts = []
        for key, value in sorted(given.items()):
            if key in WORDS:
                parts += [key] if value else []
            elif isinstance(value, bool):
                parts.append(f"{key} = {str(value).lower()}")
            elif key in INTEGERS:
                parts.append(f"{key} = {value} : i64")
            elif isinstance(value, str):
                parts.append(f"{key} = {quoted(value)}")
            else:
                parts.append(f"{key} = {number(value)} : f64")
        return f" {{{', '.join(parts)}}}" if parts else ""

    def types(self, op: Op) -> str:
        """Returns the types of an operator.

        >>> op = Op("add", [], {})
        >>> op.results = [Value([Dim(4)], "float", op)]
        >>> Writer("bf16", "m").types(op)
        'tensor<4xbf16>'
        """
        result = self.type(op.results[0])
        if op.kind in SAME_TYPE:
            return result
        operands = ", ".join(self.type(value) for value in op.operands)
        if op.kind == "attention":
            query = op.operands[0].dims
            heads = Dim(query[2].size // op.attributes["head_dim"])
            result = f"({result}, {self.type(Value([*query[:2], heads], 'f32'))})"
        return f"({operands}) -> {result}"

    def type(self, value: Value) -> str:
        """Returns the type of a value, for one sample.

        >>> Writer("bf16", "m").type(Value([Dim(8, "batch"), Dim(4)], "i32"))
        'tensor<1x4xi32>'
        """
        element = self.element if value.type == "float" else value.type
        sizes = "".join(f"{1 if dim.role == 'batch' else dim.size}x"
                        for dim in value.dims)
        return f"tensor<{sizes}{element}>"


def quoted(text: str) -> str:
    """Returns a text in quotes, as MLIR reads it.

    >>> quoted("wte")
    '"wte"'
    """
    return json.dumps(text)


def number(value: Any) -> str:
    """Returns a number in MLIR's notation that reads back to the same bits.

    >>> number(0.1)
    '1.000000000000000e-01'
    """
    for digits in (15, 16, 17):
        text = f"{float(value):.{digits}e}"
        if float(text) == float(value):
            return text
    return text


def location(op: Op) -> str:
    """Returns the Python line of an operator, which messages name.

    >>> location(Op("add", [], {}))
    ''
    """
    origin = op.origin
    return f" loc({quoted(origin.file)}:{origin.line}:0)" if origin.file else ""


def starred(label: str, index: int) -> str:
    """Returns a label with a star for its number ``index``.

    >>> starred("h.3.mlp.3.w", 0)
    'h.*.mlp.3.w'
    """
    match = list(NUMBER.finditer(label))[index]
    return f"{label[:match.start()]}*{label[match.end():]}"
