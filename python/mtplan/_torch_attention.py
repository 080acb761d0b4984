"""Imports attention: scores, masks, and relative positions."""

from __future__ import annotations

import math
from typing import Any

from mtplan import _torch_curves as curves
from mtplan import _torch_views as views
from mtplan._torch_graph import Dim
from mtplan._torch_import import Importer, operator
from mtplan._torch_values import Data, Refusal, Rows, Scores, Slice, Tensor
from mtplan._torch_views import Axis

# A number that is at most MASKED masks the score to which it is added.
MASKED = -1e4
# distance_of() tries longest distances of T5 below this bound.
MOST_DISTANCE = 4096
MASK_OF_DATA = ("an attention mask that follows from the data; supported: no mask and "
                "the causal mask; leave attention_mask out, samples are taken as full")


def heads_of(given: Tensor) -> tuple[int, int, int] | None:
    """Returns the number of heads, features per head and repetitions per head.

    Returns None if a tensor is no view [batch, heads, positions, features] of a
    value [batch, positions, heads * features].

    >>> from mtplan._torch_graph import Value
    >>> x = Tensor(Value([Dim(2), Dim(5), Dim(12)]), views.whole([2, 5, 12]))
    >>> heads_of(x) is None
    True
    """
    shape = given.value.shape
    if len(given.view) != 4 or len(shape) != 3 or not given.view[3]:
        return None
    samples, heads, positions, features = given.view
    if (samples != (Axis(0, shape[0]),) or positions != (Axis(1, shape[1]),)
            or len(features) != 1):
        return None
    width = features[0].size
    if features[0] != Axis(2, width) or shape[2] % width:
        return None
    count, repeat = shape[2] // width, 1
    group = list(heads)
    if group and group[-1].dim is None:
        repeat = group.pop().size
    if group != ([Axis(2, count, width)] if count > 1 else []):
        return None
    return count, width, repeat


def attend(importer: Importer, scores: Scores, value: Tensor) -> Tensor:
    """Emits the attention of scores after their softmax.

    >>> attend(Importer(2), Scores(None, None, ()), None)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: ...
    """
    if not scores.is_softmax:
        raise Refusal("attention scores times values without a softmax")
    query, key = scores.query, scores.key
    q, k, v = heads_of(query), heads_of(key), heads_of(value)
    if q is None or k is None or v is None or q[2] != 1:
        raise Refusal(
            "attention whose heads are not a dimension of their own; supported: "
            "query, key and value [batch, heads, positions, features] that are "
            "views of [batch, positions, heads * features]")
    # PyTorch broadcasts a single head of keys and values.
    if k != v or k[1] != q[1] or k[0] * k[2] not in (1, q[0]):
        raise Refusal(f"attention with {q[0]} query heads of {q[1]} features, "
                      f"{k[0]} x {k[2]} keys of {k[1]} and {v[0]} x {v[2]} values "
                      f"of {v[1]}: keys and values must be alike, and repeated to "
                      "as many as queries")
    positions, keys = query.value.shape[1], key.value.shape[1]
    causal = is_causal(importer, scores.mask, positions, keys)
    attributes: dict[str, Any] = {"head_dim": q[1], "causal": causal,
                                  "scale": scores.scale, "rate": scores.rate}
    operands = [query.value, key.value, value.value]
    if scores.bias is not None:
        if scores.softcap:
            raise Refusal("attention with both a bias and a soft cap")
        operands.append(scores.bias.table.value)
        attributes["max_distance"] = distance_of(importer, scores.bias, causal)
    if scores.softcap:
        attributes["softcap"] = scores.softcap
    dims = [*query.value.dims[:2], Dim(query.value.shape[2])]
    result = importer.emit("attention", operands, dims, **attributes)
    view = (query.view[0], query.view[1], query.view[2], query.view[3])
    return Tensor(result, view)


def is_causal(importer: Importer, mask: Any, positions: int, keys: int) -> bool:
    """Returns whether a mask hides exactly the keys after the query.

    ``mask`` holds the numbers to add to scores, or None. Raises ``Refusal`` for a mask
    that hides other keys.

    >>> is_causal(None, None, 4, 4)
    False
    """
    if mask is None:
        return False
    if isinstance(mask, Data):
        raise Refusal(MASK_OF_DATA)
    torch = importer.torch
    hidden = mask <= MASKED
    if not bool((hidden | (mask == 0)).all()):
        raise Refusal("constant numbers added to attention scores; supported: masks "
                      "(0 or a large negative number), and T5's table of distances")
    if not bool(hidden.any()):
        return False
    rows = hidden.expand((*hidden.shape[:-2], positions, keys)).reshape(
        -1, positions, keys)
    after = torch.ones(positions, keys, dtype=torch.bool).triu(1)
    if positions == keys and all(torch.equal(one, after) for one in rows):
        return True
    window = ""
    first = rows[0]
    if positions == keys and bool((first | ~after).all()):
        window = (f", as a sliding window of {int((~first[-1]).sum())} of the "
                  f"{keys} keys does; a shorter sequence would not need it")
    raise Refusal("an attention mask that hides other keys than those after the "
                  f"query{window}; supported: no mask and the causal mask")


def additive(importer: Importer, mask: Any) -> Any:
    """Returns a mask as numbers to add; False becomes -infinity.

    >>> additive(None, None) is None
    True
    """
    if mask is None or isinstance(mask, Data):
        return mask
    torch = importer.torch
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def settled(importer: Importer, given: Any) -> Scores:
    """Returns scores with their function expressed as scale and soft cap.

    >>> settled(None, Scores(None, None, ())).scale
    1.0
    """
    if isinstance(given, Scores):
        return given
    scores: Scores = given.base
    if scores.is_softmax:
        raise Refusal("a function of attention's softmax; supported: dropout")
    if given.factor is not None:
        if scores.mask is None and scores.bias is None:
            return scores.changed(scale=scores.scale * given.factor)
        raise Refusal("a multiple of masked attention scores; supported: to scale "
                      "them before the mask is added")
    cap = curves.softcap_of(given.function)
    if cap is None or scores.mask is not None or scores.bias is not None:
        raise Refusal("a function of attention scores that is no multiple and no "
                      "soft cap c tanh(x / c)")
    return scores.changed(scale=scores.scale * cap[0], softcap=cap[1])


def add_to_scores(importer: Importer, given: Any, other: Any) -> Scores:
    """Imports a mask or a bias that is added to scores.

    >>> add_to_scores(None, Scores(None, None, ()), "word")
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a computed tensor added to attention scores...
    """
    scores = settled(importer, given)
    if scores.is_softmax:
        raise Refusal("a sum after attention's softmax; supported: dropout")
    if isinstance(other, Rows):
        if scores.bias is not None:
            raise Refusal("two tables of distances for one attention")
        mask = other.mask
        if scores.mask is not None and mask is not None:
            mask = mask + scores.mask
        return scores.changed(bias=other,
                              mask=scores.mask if mask is None else mask)
    if isinstance(other, Data):
        raise Refusal(MASK_OF_DATA)
    if not hasattr(other, "numel"):
        raise Refusal("a computed tensor added to attention scores; supported: "
                      "constant masks, and T5's table of distances")
    return scores.changed(mask=other if scores.mask is None
                          else scores.mask + other)


def distance_of(importer: Importer, bias: Rows, causal: bool) -> int:
    """Returns T5's longest distance, found from the buckets of all distances.

    >>> distance_of(None, Rows(None, None, ()), True)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: ...
    """
    known = ("a bias of attention that is not T5's; supported: table[bucket(key - "
             "query), head] with buckets of equal or logarithmic width")
    if len(bias.view) != 4 or bias.ids.dim() != 2:
        raise Refusal(known)
    torch = importer.torch
    count, heads = bias.table.shape
    positions, keys = bias.ids.shape
    if bias.view[0] not in ((), (Axis(None, importer.batch),)) or bias.view[1:] != (
            (Axis(2, heads),), (Axis(0, positions),), (Axis(1, keys),)):
        raise Refusal(known)
    distances = torch.arange(keys)[None, :] - torch.arange(positions)[:, None]
    seen = (distances <= 0) if causal else torch.ones_like(distances) > 0
    for most in [128, *range(2, MOST_DISTANCE)]:
        made = buckets(importer, distances, count, most, not causal)
        if made is not None and torch.equal(made[seen], bias.ids[seen]):
            return int(most)
    raise Refusal(known)


def buckets(importer: Importer, distances: Any, count: int, most: int,
            both: bool) -> Any:
    """Returns T5's bucket of each distance; None if ``most`` is too short.

    >>> buckets(None, None, 4, 1, False) is None
    True
    """
    if both:
        count //= 2
    exact = count // 2
    if most <= exact:
        return None
    torch = importer.torch
    first = (distances > 0).long() * count if both else 0
    far = distances.abs() if both else (-distances).clamp(min=0)
    large = exact + (torch.log(far.float() / exact) / math.log(most / exact)
                     * (count - exact)).clamp(min=0, max=count).long()
    return first + torch.where(far < exact, far, large.clamp(max=count - 1))


@operator("scaled_dot_product_attention")
def scaled_dot_product_attention(
        importer: Importer, query: Any, key: Any, value: Any,
        attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """Imports PyTorch's attention.

    >>> scaled_dot_product_attention(None, None, None, None, Data(None, ()))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: an attention mask that follows from the data...
    """
    if isinstance(attn_mask, Data):
        raise Refusal(MASK_OF_DATA)
    query, key, value = (importer.tensor(one) for one in (query, key, value))
    if isinstance(attn_mask, Rows):
        bias, mask = attn_mask, attn_mask.mask
    else:
        bias, mask = None, additive(importer, attn_mask)
        if mask is not None and not hasattr(mask, "numel"):
            raise Refusal("an attention mask that is computed")
    if is_causal:
        positions, keys = query.shape[-2], key.shape[-2]
        mask = importer.torch.full((positions, keys), -math.inf).triu(1)
    if enable_gqa and len(query.shape) == 4 and query.shape[1] != key.shape[1]:
        repeat = query.shape[1] // key.shape[1]
        key, value = (Tensor(one.value, (one.view[0], (*one.view[1],
                                                       Axis(None, repeat)),
                                         *one.view[2:])) for one in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return attend(importer, Scores(
        query, key, (), scale=factor, mask=mask, bias=bias, is_softmax=True,
        rate=dropout_p), value)


def multiply_scores(importer: Importer, query: Tensor, key: Tensor) -> Scores:
    """Returns the scores of a product of queries and transposed keys.

    >>> multiply_scores(None, Slice(None, 0, 0, 1), None)
    Traceback (most recent call last):
    ...
    AttributeError: ...
    """
    flipped = Tensor(key.value, (*key.view[:-2], key.view[-1], key.view[-2]))
    shape = (*query.shape[:-1], key.shape[-1])
    return Scores(query, flipped, shape)


def masked(importer: Importer, mask: Any, given: Any, number: float
           ) -> Scores | Rows:
    """Imports scores, or a bias of scores, in which a large negative number
    replaces masked elements.

    >>> masked(None, None, Scores(None, None, ()), 1.0)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: ...
    """
    if not number <= MASKED:
        raise Refusal(f"attention scores replaced by {number}; supported: large "
                      "negative numbers")
    if isinstance(mask, Data):
        raise Refusal(MASK_OF_DATA)
    hidden = importer.torch.zeros(mask.shape).masked_fill(mask, -math.inf)
    if isinstance(given, Rows):
        return Rows(given.table, given.ids, given.view,
                    hidden if given.mask is None else given.mask + hidden)
    return add_to_scores(importer, given, hidden)
