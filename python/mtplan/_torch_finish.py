"""Completes an imported graph: vocabulary, layout of weights, labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from mtplan._errors import Error
from mtplan._torch_graph import Graph, Op, Value

# The vocabulary is padded to a multiple of this size (docs/model-format.md).
MULTIPLE = 128
# Maps kinds of operators to their names in labels, where the two differ.
NAMES = {"token_loss": "loss", "vocab_max": "loss.max",
         "vocab_sum_exp": "loss.sum_exp", "vocab_pick": "loss.pick",
         "activation": "act", "logit_softcap": "softcap"}
# Lists operators whose results may have padded classes.
CLASSWISE = ("einsum", "scale", "logit_softcap", "dropout", "activation", "vocab_max",
             "vocab_sum_exp", "vocab_pick", "token_loss")
LABELLED = ("einsum", "layer_norm", "rms_norm", "embedding", "position_embedding",
            "put_first")


def finish(graph: Graph, loss: Value) -> None:
    """Completes a graph whose last value is the loss.

    >>> graph = Graph()
    >>> finish(graph, graph.add("input", [], [], "f32"))
    >>> len(graph.ops)
    1
    """
    graph.drop_unused([loss])
    check_parts(graph.ops)
    mark_vocabulary(graph, loss)
    exchange_weights(graph)
    initialise(graph.ops)
    name(graph.ops)


def check_parts(ops: Iterable[Op]) -> None:
    """Raises ``Error`` if parts of a parameter overlap.

    >>> check_parts([])
    """
    whole: dict[str, list[tuple[tuple[int, int], int, int]]] = {}
    for op in ops:
        if op.source is None:
            continue
        stop = op.source.stop if op.source.stop is not None else -1
        whole.setdefault(op.source.name, []).append(
            ((op.source.dim, op.source.groups), op.source.start, stop))
    for parameter, parts in whole.items():
        if len(parts) == 1:
            continue
        parts.sort()
        ends = [stop for _, _, stop in parts]
        starts = [start for _, start, _ in parts]
        if -1 in ends or len({dim for dim, _, _ in parts}) > 1 or any(
                stop > start for stop, start in zip(ends, starts[1:])):
            raise Error(f"the parameter {parameter} is read both as a whole and in "
                        "parts, or in parts that overlap; mtplan has parameters "
                        "that are read in one way")


def rounded(size: int) -> int:
    """Returns the size of a table with its padding.

    >>> rounded(50257)
    50304
    """
    return -(-size // MULTIPLE) * MULTIPLE


def mark_vocabulary(graph: Graph, loss: Value) -> None:
    """Marks the classes of the loss as the vocabulary, and pads them.

    Embedding tables with as many rows are padded, too.

    >>> graph = Graph()
    >>> mark_vocabulary(graph, graph.add("input", [], []))
    """
    logits = next((op.operands[0] for op in graph.ops if op.kind == "vocab_max"),
                  None)
    if logits is None:
        return
    classes = logits.dims[-1]
    count = classes.size
    tables: list[tuple[Value, int]] = []
    if any(classes in value.dims and op.kind not in CLASSWISE
           or op.kind == "einsum" and any(classes in value.dims
                                          for value in op.operands)
           for op in graph.ops for value in op.results + op.operands):
        # Nothing is padded, because other operators would read the padding.
        for op in graph.ops:
            if op.kind in ("vocab_max", "vocab_sum_exp"):
                op.attributes["classes"] = count
        return
    for op in graph.ops:
        if op.kind in ("vocab_max", "vocab_sum_exp"):
            op.attributes["classes"] = count
        if op.kind == "einsum" and classes in op.results[0].dims:
            letter = op.attributes["result"][op.results[0].dims.index(classes)]
            if op.operands[1].kind != "parameter" or (
                    letter not in op.attributes["right"]):
                return
            tables.append((op.operands[1], op.attributes["right"].index(letter)))
            tables += [(bias, 0) for bias in op.operands[2:]]
            for term in ("right", "result"):
                op.attributes[term] = op.attributes[term].replace(letter, "v")
    if not tables:
        return
    for op in graph.ops:
        if op.kind == "embedding" and op.operands[1].dims[0].size == count:
            tables.append((op.operands[1], 0))
    classes.size, classes.used = rounded(count), count
    for value, dim in tables:
        value.dims[dim].size, value.dims[dim].used = rounded(count), count


def exchange_weights(graph: Graph) -> None:
    """Stores weights [out, in] of products as [in, out], as mtplan's models do.

    A table that is also looked up stays as it is. The matrices [experts, out, in]
    of experts become [experts, in, out].

    >>> exchange_weights(Graph())
    """
    for value, users in graph.users().items():
        if value.kind != "parameter" or len(value.dims) not in (2, 3):
            continue
        if not all(op.kind == "einsum" and op.operands[1] is value
                   and op.attributes["right"][-2] not in op.attributes["left"]
                   and op.attributes["right"][:-2] == "e" * (len(value.dims) - 2)
                   for op in users):
            continue
        assert value.op is not None and value.op.source is not None
        value.dims[-2:] = value.dims[:-3:-1]
        value.op.source = replace(value.op.source, transposed=True)
        for op in users:
            *first, out, inner = op.attributes["right"]
            op.attributes["right"] = "".join([*first, inner, out])


def initialise(ops: Iterable[Op]) -> None:
    """Sets how parameters start: gains with ones, biases with zeros.

    >>> initialise([])
    """
    for op in ops:
        starts = {"layer_norm": {1: "ones", 2: "zeros"}, "rms_norm": {1: "ones"},
                  "einsum": {2: "zeros"}}.get(op.kind, {})
        for index, value in enumerate(op.operands):
            if index in starts and value.op is not None:
                value.op.attributes["init"] = starts[index]


def name(ops: Iterable[Op]) -> None:
    """Labels operators with the names of the module's parts.

    >>> op = Op("add", [], {})
    >>> name([op])
    >>> op.label
    'add'
    """
    ops = list(ops)
    reads = Counter(value for op in ops for value in op.operands)
    for op in ops:
        if op.is_leaf:
            continue
        kind = NAMES.get(op.kind, op.kind)
        path = op.origin.module
        # The name of a table with two readers does not tell the readers apart.
        source = next((value.op.source for value in op.operands[1:]
                       if value.op is not None and value.op.source is not None
                       and (op.kind == "embedding" or reads[value] == 1
                            or not path)), None)
        if source is not None and op.kind in LABELLED:
            part = f".part_{source.start}" if source.stop is not None else ""
            label = source.name.rpartition(".")[0] + part or source.name
        elif kind.startswith("loss"):
            label = kind
        elif path.rpartition(".")[2].startswith(kind[:3]) or (
                path and op.kind in LABELLED):
            label = path
        else:
            label = f"{path}.{kind}" if path else kind
        op.label = label
