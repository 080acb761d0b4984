"""Imports experts: their choice for each token, and products with their weights.

The form is that of the experts of transformers with ``batched_mm``: topk of the
softmax of a router's logits, ``weights[chosen] @ token`` for every token and
chosen expert, and the sum over the chosen experts of this product times the
expert's weight. A result for tokens at their experts is a tensor whose value is
[experts, batch, capacity, features], and whose view has a dimension of choices:
the axis of dimension -n runs over the choices of routing number n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mtplan import _torch_shapes as shapes
from mtplan import _torch_views as views
from mtplan._torch_graph import Dim, Value
from mtplan._torch_import import Importer, operator
from mtplan._torch_values import (Chosen, ChosenWeights, Refusal, Routing, Tensor,
                                  Weighed)
from mtplan._torch_views import Axis

ROUTED = (Chosen, ChosenWeights, Weighed)
# Handlers of operators that read a routed value have names with this prefix.
PREFIX = "experts "
# These operators route in other ways.
OTHER_WAYS = ("one_hot", "histc", "sort", "index_add", "index_add_", "scatter",
              "scatter_", "nonzero", "_grouped_mm", "grouped_mm", "argsort",
              "bincount", "gather")
KNOWN = ("the sum over the chosen experts of expert(token) * weight, with "
         "chosen experts and weights from topk of the softmax of a router's logits, "
         "as transformers computes it with experts_implementation=\"batched_mm\"")


def unknown(name: str) -> str:
    """Returns a message about an operator of routing that is not known.

    >>> unknown("scatter")[:39]
    'scatter: routing to experts in another '
    """
    return f"{name}: routing to experts in another form; supported: {KNOWN}"


def are_numbers(given: Sequence[Any]) -> bool:
    """Returns whether all values are numbers of chosen experts.

    >>> are_numbers([Chosen(1, "numbers", ())]), are_numbers([Chosen(1, "sum", ())])
    (True, False)
    """
    return all(isinstance(one, Chosen) and one.part == "numbers" for one in given)


def tokens_of(given: Tensor) -> bool:
    """Returns whether rows of a tensor are the tokens of [batch, sequence, features].

    >>> importer = Importer(2)
    >>> tokens_of(importer.input("x", [2, 8, 4]))
    True
    """
    shape = given.value.shape
    return len(shape) == 3 and (
        views.reshaped(given.view, shape) == views.whole(shape))


@operator("topk")
def topk(importer: Importer, given: Any, count: int, dim: int = -1,
         largest: bool = True, is_sorted: bool = True) -> list[Chosen]:
    """Imports the choice of experts by the largest logits or probabilities.

    >>> importer = Importer(2)
    >>> weights, numbers = topk(importer, importer.input("x", [2, 8, 4]), 2)
    >>> weights.shape, numbers.part
    ((2, 8, 2), 'numbers')
    """
    tensor = importer.tensor(given)
    logits, part = tensor, "logits"
    op = tensor.value.op
    if op is not None and op.kind == "softmax":
        logits, part = Tensor(op.operands[0], tensor.view), "probabilities"
    if (dim % len(tensor.shape) != len(tensor.shape) - 1 or not largest
            or not tokens_of(logits)):
        raise Refusal(unknown("topk"))
    maker = logits.value.op
    if maker is not None and maker.kind == "einsum" and (
            maker.operands[1].kind == "parameter"):
        _rename(maker.attributes, maker.attributes["result"][-1], "e")
    importer.routings.append(Routing(logits.value, count))
    number = len(importer.routings)
    tokens = tensor.view[:-1]
    view = (*tokens, views.merged([Axis(2, count)]))
    return [Chosen(number, one, view) for one in (part, "numbers")]


def _rename(attributes: dict[str, Any], old: str, new: str) -> None:
    terms = {term: attributes[term] for term in ("left", "right", "result")}
    if old not in terms["left"] and not any(new in one for one in terms.values()):
        for term, letters in terms.items():
            attributes[term] = letters.replace(old, new)


def _ends_in_choices(importer: Importer, given: Chosen) -> bool:
    """Returns whether the last dimension runs over the choices of one token."""
    count = importer.routings[given.routing - 1].count
    return given.view[-1] == views.merged([Axis(2, count)])


@operator(PREFIX + "sum")
def total(importer: Importer, given: Any, dims: Sequence[int] | None = None,
          keepdim: bool = False, **_: Any) -> Any:
    """Imports the sum of a token's routing weights, or of the weighted outputs
    of its experts.

    >>> total(None, Chosen(1, "numbers", views.whole([8, 2])))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: sum: routing to experts in another form; ...
    """
    last = len(given.shape) - 1
    if (isinstance(given, Chosen) and given.part == "probabilities" and keepdim
            and dims is not None and [dim % (last + 1) for dim in dims] == [last]
            and _ends_in_choices(importer, given)):
        return replace(given, part="sum", view=(*given.view[:-1], ()))
    if isinstance(given, Weighed) and dims is not None and len(dims) == 1:
        return combine(importer, given, dims[0] % (last + 1), keepdim)
    raise Refusal(unknown("sum"))


@operator(PREFIX + "div", PREFIX + "div_")
def divide(importer: Importer, one: Any, other: Any) -> Chosen:
    """Imports the weights divided by their sum.

    >>> importer = Importer(2)
    >>> weights, _ = topk(importer, importer.input("x", [2, 8, 4]), 2)
    >>> divide(importer, weights, weights)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: div: routing to experts in another form; ...
    """
    if (isinstance(one, Chosen) and isinstance(other, Chosen)
            and one.routing == other.routing and one.part == "probabilities"
            and other.part == "sum" and _ends_in_choices(importer, one)
            and other.view == (*one.view[:-1], ())):
        return replace(one, part="normalised")
    raise Refusal(unknown("div"))


@operator(PREFIX + "softmax", PREFIX + "_softmax")
def softmax(importer: Importer, given: Any, dim: int, *_: Any, **__: Any) -> Chosen:
    """Imports the softmax of the largest logits, which gives normalised weights.

    >>> importer = Importer(2)
    >>> weights, _ = topk(importer, importer.input("x", [2, 8, 4]), 2)
    >>> softmax(importer, replace(weights, part="logits"), -1).part
    'normalised'
    """
    if (isinstance(given, Chosen) and given.part == "logits"
            and dim % len(given.shape) == len(given.shape) - 1
            and _ends_in_choices(importer, given)):
        return replace(given, part="normalised")
    raise Refusal(unknown("softmax"))


@operator(PREFIX + "index")
def index(importer: Importer, table: Any, indices: Sequence[Any]) -> ChosenWeights:
    """Imports the weights of the experts that each token chose.

    >>> index(None, None, [Chosen(1, "sum", views.whole([8, 1]))])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: index: routing to experts in another form; ...
    """
    if (len(indices) == 1 and isinstance(indices[0], Chosen)
            and indices[0].part == "numbers" and isinstance(table, Tensor)
            and table.is_parameter and len(table.shape) == 3
            and table.view == views.whole(table.shape)):
        return ChosenWeights(table, indices[0])
    raise Refusal(unknown("index"))


@operator(PREFIX + "bmm", PREFIX + "matmul")
def product(importer: Importer, one: Any, other: Any) -> Tensor:
    """Imports the products of tokens and the weights of their experts.

    >>> product(Importer(2), 1, 2)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: bmm: routing to experts in another form; ...
    """
    for weights, given, is_left in ((one, other, True), (other, one, False)):
        if not isinstance(weights, ChosenWeights) or isinstance(given, ROUTED):
            continue
        tensor = importer.tensor(given)
        if len(tensor.view) != 3 or tensor.view[2 if is_left else 1] != ():
            continue
        rows, features = tensor.view[0], tensor.view[1 if is_left else 2]
        places = at_experts(importer, Tensor(tensor.value, (rows, features)),
                            weights.chosen)
        letters = "eoi" if is_left else "eio"
        out = weights.shape[1 if is_left else 2]
        value = importer.emit("einsum", [places, weights.weights.value],
                              [*places.dims[:3], Dim(out)], left="ebci",
                              right=letters, result="ebco")
        made = (rows_of(importer, weights.chosen), views.merged([Axis(3, out)]))
        return Tensor(value, (made[0], made[1], ()) if is_left
                      else (made[0], (), made[1]))
    raise Refusal(unknown("bmm"))


def rows_of(importer: Importer, chosen: Chosen) -> views.Group:
    """Returns the group of the choices of all tokens.

    >>> importer = Importer(2)
    >>> _, numbers = topk(importer, importer.input("x", [2, 8, 4]), 2)
    >>> rows_of(importer, numbers)
    (Axis(dim=-1, size=32, stride=1),)
    """
    return views.merged([Axis(-chosen.routing, math.prod(chosen.shape))])


def in_order(chosen: Chosen, logits: Value, count: int) -> bool:
    """Returns whether choices are listed token by token.

    >>> in_order(Chosen(1, "numbers", views.whole([2, 8, 2])),
    ...          Value([Dim(2), Dim(8), Dim(4)]), 2)
    True
    """
    shape = [*logits.shape[:2], count]
    return views.reshaped(chosen.view, shape) == views.whole(shape)


def at_experts(importer: Importer, given: Tensor, chosen: Chosen) -> Value:
    """Returns the value [experts, batch, capacity, features] of tokens, which are
    sent to their experts unless they are already there.

    >>> at_experts(Importer(2), Tensor(Value([]), ((), ())),
    ...            Chosen(1, "sum", ()))
    Traceback (most recent call last):
    ...
    IndexError: ...
    """
    routing = importer.routings[chosen.routing - 1]
    logits = routing.logits
    if not in_order(chosen, logits, routing.count):
        raise Refusal(unknown("bmm"))
    here = rows_of(importer, chosen)
    if given.view[0] == here:
        if given.view[1] != (Axis(3, given.value.shape[3]),):
            raise Refusal("a product over a part of what an expert computes")
        return given.value
    tokens = given.view[0]
    repeated = () if routing.count == 1 else (Axis(None, routing.count),)
    shape = given.value.shape
    if (len(shape) != 3 or logits.shape[:2] != shape[:2]
            or tokens != (*views.merged([Axis(0, shape[0]), Axis(1, shape[1])]),
                          *repeated) or given.view[1] != (Axis(2, shape[2]),)):
        raise Refusal(f"tokens [{', '.join(map(str, given.shape))}] for experts; "
                      "supported: each token once for each expert that it chose")
    slots = slots_of(importer, routing)
    sent = routing.sent.get(given.value)
    if sent is None:
        batch, sequence, features = given.value.dims
        dims = [logits.dims[2], batch, Dim(places_of(importer, routing)),
                Dim(features.size)]
        sent = importer.emit("moe_dispatch", [given.value, slots], dims)
        routing.sent[given.value] = sent
    return sent


def places_of(importer: Importer, routing: Routing) -> int:
    """Returns how many tokens of a sample an expert takes, by default all.

    >>> importer = Importer(2)
    >>> x = importer.input("x", [2, 8, 4]).value
    >>> places_of(importer, Routing(x, 2))
    8
    """
    _, positions, experts = routing.logits.shape
    if importer.capacity_factor is None:
        return positions
    even = importer.capacity_factor * routing.count * positions / experts
    return min(max(1, math.ceil(even)), positions)


def slots_of(importer: Importer, routing: Routing) -> Value:
    """Returns the slots of tokens at their experts.

    >>> importer = Importer(2)
    >>> routing = Routing(importer.input("x", [2, 8, 4]).value, 2)
    >>> slots_of(importer, routing).type
    'i32'
    """
    if routing.slots is None:
        routing.slots = importer.emit("moe_slots", [routing.logits],
                                  routing.logits.dims, "i32",
                                  top_k=routing.count)
    return routing.slots


def gates_of(importer: Importer, routing: Routing, normalise: bool) -> Value:
    """Returns the weights of the experts of each token.

    >>> importer = Importer(2)
    >>> routing = Routing(importer.input("x", [2, 8, 4]).value, 2)
    >>> gates_of(importer, routing, True).shape
    [2, 8, 4]
    """
    if normalise not in routing.gates:
        routing.gates[normalise] = importer.emit(
            "moe_gate", [routing.logits], routing.logits.dims,
            top_k=routing.count, normalise=normalise)
    return routing.gates[normalise]


@operator(PREFIX + "mul", PREFIX + "mul_")
def multiply(importer: Importer, one: Any, other: Any) -> Weighed:
    """Imports the products of the experts' results and their weights.

    >>> multiply(Importer(2), 2.0, Chosen(1, "sum", ()))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: mul: routing to experts in another form; ...
    """
    for weights, given in ((one, other), (other, one)):
        if (isinstance(weights, Chosen) and not isinstance(given, ROUTED)
                and hasattr(given, "shape")
                and weights.part in ("probabilities", "normalised")):
            tensor = importer.tensor(given)
            routing = importer.routings[weights.routing - 1]
            if (tensor.view[0] == rows_of(importer, weights)
                    and len(tensor.view) == 2
                    and weights.shape == (tensor.shape[0], 1)
                    and in_order(weights, routing.logits, routing.count)
                    and tensor.view[1] == (Axis(3, tensor.value.shape[3]),)):
                return Weighed(tensor.value, weights, tensor.view)
    raise Refusal(unknown("mul"))


def combine(importer: Importer, given: Weighed, dim: int, keepdim: bool) -> Tensor:
    """Emits the sum over the experts of each token.

    >>> combine(Importer(2), Weighed(None, Chosen(1, "sum", ()), ()), 1, True)
    Traceback (most recent call last):
    ...
    IndexError: ...
    """
    chosen = given.chosen
    routing = importer.routings[chosen.routing - 1]
    count, width = routing.count, given.value.shape[3]
    tokens = math.prod(chosen.shape) // count
    wanted = (views.merged([Axis(-chosen.routing, tokens, count)]),
              views.merged([Axis(-chosen.routing, count)]), (Axis(3, width),))
    if given.view != wanted or dim != 1 or keepdim:
        raise Refusal(unknown("sum"))
    gates = gates_of(importer, routing, chosen.part == "normalised")
    slots = slots_of(importer, routing)
    batch, sequence, _ = routing.logits.dims
    value = importer.emit("moe_combine", [given.value, gates, slots],
                          [batch, sequence, Dim(width)])
    view = views.reshaped(views.whole(value.shape), [tokens, width])
    assert view is not None
    return Tensor(value, view)


@operator("repeat_interleave")
def repeat_interleave(importer: Importer, given: Any, count: Any, dim: Any = None,
                      **_: Any) -> Tensor:
    """Imports the repetition of each element of a dimension.

    >>> importer = Importer(2)
    >>> repeat_interleave(importer, importer.input("x", [2, 4]), 3, 0).shape
    (6, 4)
    """
    if not isinstance(count, int) or dim is None:
        raise Refusal("a repetition whose counts differ or of all dimensions")
    tensor = importer.tensor(given)
    at = dim % len(tensor.view)
    group = views.merged([*tensor.view[at], Axis(None, count)])
    return Tensor(tensor.value, (*tensor.view[:at], group, *tensor.view[at + 1:]))


for _handler, _names in (
        (shapes.reshape, ("view", "reshape", "_unsafe_view")),
        (shapes.flatten, ("flatten",)), (shapes.unflatten, ("unflatten",)),
        (shapes.select, ("select",)),
        (shapes.unsqueeze, ("unsqueeze",)), (shapes.squeeze, ("squeeze",)),
        (shapes.same, ("contiguous", "clone", "to", "_to_copy", "type_as", "float",
                       "alias", "convert_element_type"))):
    operator(*(PREFIX + _name for _name in _names))(_handler)
