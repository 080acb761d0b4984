"""Imports products, norms, lookups, and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtplan import _torch_alias as alias
from mtplan import _torch_attention as attention
from mtplan import _torch_pointwise as pointwise
from mtplan import _torch_shapes as shapes
from mtplan import _torch_views as views
from mtplan._torch_graph import Dim
from mtplan._torch_import import Importer, elementwise, operator, plain
from mtplan._torch_values import (Curve, Data, Joined, Loss, Normed, Patches, Refusal,
                                  Rows, Scores, Slice, Tensor)
from mtplan._torch_views import Axis

LETTERS = "abcdefghijklmnopqrstuvwxyz"

def product(importer: Importer, given: Tensor, weight: Tensor, bias: Any = None
            ) -> Tensor:
    """Returns the product of the last dimension and a matrix [in, out].

    >>> importer = Importer(2)
    >>> x = importer.input("x", [2, 8, 4])
    >>> from mtplan._torch_graph import Source
    >>> w = importer.graph.parameter(Source("w"), [4, 6])
    >>> product(importer, x, Tensor(w, views.whole([4, 6]))).value.op.attributes
    {'left': 'bsi', 'right': 'io', 'result': 'bso'}
    """
    shape = given.value.shape
    dim = views.dim_of(given.view[-1], shape)
    if dim is None:
        raise Refusal(
            f"a product over a part of {shape}: mtplan has no operator that "
            "divides or merges the dimensions of what is computed")
    if given.value.dims[dim].role == "batch":
        raise Refusal("a product over the samples")
    if weight.view not in (views.whole(weight.value.shape),
                           views.whole(weight.value.shape)[::-1]):
        raise Refusal("a matrix of weights in another shape")
    swapped = weight.view != views.whole(weight.value.shape)
    letters = list(pointwise.letters_of(given))
    inner = letters[dim]
    if inner != "i" and "i" not in letters:
        letters[dim] = inner = "i"
    right = "o" + inner if swapped else inner + "o"
    dims = list(given.value.dims)
    dims[dim] = Dim(weight.shape[-1])
    result = [*letters[:dim], "o", *letters[dim + 1:]]
    if bias is not None and dim != len(shape) - 1:
        raise Refusal(
            f"a bias along dimension {dim} of {shape}; supported: biases along the "
            "last one; leave the bias out of products over other dimensions")
    if weight.shape[-1] == 1 and bias is None and 1 < len(shape) == dim + 1:
        # The product is a number per row, such as the gate of a shared expert.
        value = importer.emit("einsum", [given.value, plain(importer, weight)],
                              dims[:-1], left="".join(letters), right=inner,
                              result="".join(letters[:-1]))
        return Tensor(value, (*given.view[:-1], ()))
    operands = [given.value, weight.value]
    if bias is not None:
        operands.append(plain(importer, bias))
    value = importer.emit("einsum", operands, dims, left="".join(letters),
                          right=right, result="".join(result))
    return Tensor(value, (*given.view[:-1], views.merged([Axis(dim, weight.shape[-1])])))


@operator("linear")
def linear(importer: Importer, given: Any, weight: Any, bias: Any = None) -> Any:
    """Imports a linear layer.

    >>> linear(Importer(2), Scores(None, None, ()), None)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: ...
    """
    matrix = importer.tensor(weight)
    if not matrix.is_parameter:
        raise Refusal("a linear layer whose weights are computed")
    matrix = shapes.exchange(importer, matrix)
    if not isinstance(given, Joined):
        return product(importer, importer.tensor(given), matrix, bias)
    # A product with concatenated features is the sum of the parts' products.
    result, start = None, 0
    for part in given.parts:
        stop = start + part.shape[-1]
        weights = importer.tensor(Slice(matrix, 0, start, stop))
        made = product(importer, importer.tensor(part), weights,
                       bias if start == 0 else None)
        result = made if result is None else elementwise(importer, "add", result, made)
        start = stop
    return result


@operator("addmm")
def addmm(importer: Importer, bias: Any, one: Any, other: Any, beta: float = 1,
          alpha: float = 1) -> Any:
    """Imports a product with a bias.

    >>> addmm(None, None, None, None, 2)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: addmm with other factors than 1
    """
    if beta != 1 or alpha != 1:
        raise Refusal("addmm with other factors than 1")
    return product(importer, importer.tensor(one), importer.tensor(other), bias)


@operator("matmul", "mm", "bmm")
def matmul(importer: Importer, one: Any, other: Any) -> Any:
    """Imports a matrix product, with weights or within attention.

    >>> matmul(Importer(2), Scores(None, None, ()), Scores(None, None, ()))
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: ...
    """
    if pointwise.of_scores(one):
        return attention.attend(importer, attention.settled(importer, one),
                                importer.tensor(other))
    if not isinstance(other, Tensor) or not other.is_parameter:
        factor = 1.0
        if isinstance(one, Curve) and one.factor is not None and isinstance(
                one.base, Tensor):
            factor, one = one.factor, one.base
        if isinstance(other, Curve) and other.factor is not None and isinstance(
                other.base, Tensor):
            factor, other = factor * other.factor, other.base
        left, right = importer.tensor(one), importer.tensor(other)
        scores = attention.multiply_scores(importer, left, right)
        return scores.changed(scale=factor)
    return product(importer, importer.tensor(one), other)


@operator("einsum")
def einsum(importer: Importer, equation: str, operands: Sequence[Any], **_: Any
           ) -> Any:
    """Imports an einsum of two tensors with undivided dimensions.

    >>> einsum(None, "ij->ji", [None])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: einsum of 1 operands; supported: 2
    """
    if len(operands) != 2:
        raise Refusal(f"einsum of {len(operands)} operands; supported: 2")
    tensors = [importer.tensor(one) for one in operands]
    if tensors[0].is_parameter and not tensors[1].is_parameter:
        tensors.reverse()
        terms, result = equation.replace(" ", "").split("->")
        equation = ",".join(reversed(terms.split(","))) + "->" + result
    terms, result = equation.replace(" ", "").split("->")
    names: list[list[str]] = []
    sizes: dict[str, Dim] = {}
    for term, tensor in zip(terms.split(","), tensors):
        letters = [""] * len(tensor.value.dims)
        for letter, group in zip(term, tensor.view):
            dim = views.dim_of(group, tensor.value.shape)
            if dim is None or "." in term:
                raise Refusal("an einsum over a part of a dimension: mtplan has no "
                              "operator that divides the dimensions of what is "
                              "computed")
            letters[dim] = letter
            sizes.setdefault(letter, tensor.value.dims[dim])
        names.append(letters)
    if "" in names[0] + names[1]:
        raise Refusal("an einsum over repeated dimensions")
    left, right = ("".join(term) for term in names)
    if any((letter in left) + (letter in right) + (letter in result) < 2
           for letter in left + right + result):
        raise Refusal("an einsum in which a letter occurs once")
    if any(sizes[letter].role == "batch" and (
            letter not in result or tensors[1].is_parameter and letter in right)
           for letter in sizes):
        raise Refusal("an einsum that mixes samples, or has weights for each")
    change = _letters(left, right, result, sizes, tensors[1].is_parameter)
    left, right, made = ("".join(change[letter] for letter in term)
                         for term in (left, right, result))
    value = importer.emit("einsum", [tensor.value for tensor in tensors],
                          [sizes[letter] for letter in result], left=left,
                          right=right, result=made)
    return Tensor(value, views.whole(value.shape))


def _letters(left: str, right: str, result: str, sizes: dict[str, Dim],
             weights: bool) -> dict[str, str]:
    change: dict[str, str] = {}
    for letter in dict.fromkeys(left + right + result):
        role = {"batch": "b", "sequence": "s"}.get(sizes[letter].role, "")
        if weights and not role and letter in right:
            role = ("o" if letter not in left else
                    "i" if letter not in result else "")
        if role and role not in change.values():
            change[letter] = role
    free = (one for one in LETTERS if one not in "bsveio")
    for letter in dict.fromkeys(left + right + result):
        if letter not in change:
            change[letter] = next(free)
    return change


# These functions import norms, softmax, dropout and lookups.


def _rows(importer: Importer, given: Any, what: str) -> Tensor:
    tensor = importer.tensor(given)
    shape = tensor.value.shape
    if views.dim_of(tensor.view[-1], shape) != len(shape) - 1:
        raise Refusal(
            f"{what} over a part of {shape}, such as the features of a head; "
            "supported: rows that are the whole last dimension")
    return tensor


@operator("layer_norm")
def layer_norm(importer: Importer, given: Any, shape: Sequence[int],
               weight: Any = None, bias: Any = None, eps: float = 1e-5,
               *_: Any) -> Tensor:
    """Imports a layer norm over the last dimension or over equal parts of it.

    >>> layer_norm(None, None, [4, 4])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a layer norm over 2 dimensions; supported: 1
    """
    if len(shape) != 1:
        raise Refusal(f"a layer norm over {len(shape)} dimensions; supported: 1")
    if weight is None or bias is None:
        raise Refusal("a layer norm without gain or bias; supported: nn.LayerNorm "
                      "with both")
    return pointwise.normalised(importer, "layer_norm", importer.tensor(given),
                                [weight, bias], eps)


@operator("native_layer_norm")
def native_layer_norm(importer: Importer, *arguments: Any) -> list[Any]:
    """Imports a layer norm; its results for mean and deviation are None.

    >>> native_layer_norm(None, None, [4, 4])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a layer norm over 2 dimensions; supported: 1
    """
    return [layer_norm(importer, *arguments), None, None]


@operator("rms_norm")
def rms_norm(importer: Importer, given: Any, shape: Sequence[int],
             weight: Any = None, eps: float | None = None) -> Tensor:
    """Imports PyTorch's RMS norm.

    >>> rms_norm(None, None, [4])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: an RMS norm without gain ...
    """
    if len(shape) != 1 or weight is None or eps is None:
        raise Refusal("an RMS norm without gain or epsilon, or over several "
                      "dimensions; supported: nn.RMSNorm(width, eps=...)")
    return pointwise.normalised(importer, "rms_norm", importer.tensor(given),
                                [weight], eps)


@operator("softmax", "_softmax", "_safe_softmax")
def softmax(importer: Importer, given: Any, dim: int, *_: Any, **__: Any) -> Any:
    """Imports a softmax over the last dimension.

    >>> softmax(None, Scores(None, None, (2, 4)), -1).is_softmax
    True
    """
    if dim % len(given.shape) != len(given.shape) - 1:
        raise Refusal("a softmax over another dimension than the last")
    if pointwise.of_scores(given):
        scores = attention.settled(importer, given)
        if scores.is_softmax:
            raise Refusal("a softmax of attention's softmax")
        return scores.changed(is_softmax=True)
    tensor = _rows(importer, given, "a softmax")
    return Tensor(importer.emit("softmax", [tensor.value], tensor.value.dims),
                  tensor.view)


@operator("dropout", "dropout_")
def dropout(importer: Importer, given: Any, rate: float, train: bool = True) -> Any:
    """Imports dropout, which does nothing in a module in eval mode.

    >>> dropout(None, Scores(None, None, (), is_softmax=True), 0.1, True).rate
    0.1
    """
    if not train or rate == 0.0:
        return given
    if isinstance(given, Scores):
        if not given.is_softmax or given.rate:
            raise Refusal("dropout of attention scores before the softmax")
        return given.changed(rate=rate)
    return importer.pointwise("dropout", importer.tensor(given), rate=rate)


@operator("embedding")
def embedding(importer: Importer, table: Any, ids: Any, padding_idx: int = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Imports the lookup of a table's rows.

    PyTorch gives the row ``padding_idx`` no gradient of lookups, and mtplan does.
    The importer notes this difference.

    >>> embedding(None, None, [0, 1])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: an embedding of computed indices
    """
    if scale_grad_by_freq or sparse:
        raise Refusal("an embedding with scaled or sparse gradients")
    if not isinstance(ids, Data) and not hasattr(ids, "numel"):
        raise Refusal("an embedding of computed indices")
    weight = importer.tensor(table)
    if not weight.is_parameter or weight.view != views.whole(weight.value.shape):
        raise Refusal("a lookup in a table that is computed or transposed")
    if isinstance(ids, Data):
        if padding_idx >= 0:
            assert weight.value.op is not None
            importer.notes.append(
                f"{weight.value.op.label}: PyTorch gives row {padding_idx} "
                "(padding_idx) no gradient where it is looked up, and mtplan does; "
                "both agree on samples without padding")
        rows, width = weight.value.shape
        name = label_of(ids)
        value = importer.data(ids, name, rows)
        dims = [*value.dims, Dim(width)]
        result = importer.emit("embedding", [value, weight.value], dims)
        return Tensor(result, views.whole(result.shape))
    if padding_idx >= 0 and bool((ids == padding_idx).any()):
        raise Refusal(f"a constant lookup of row {padding_idx} (padding_idx), which "
                      "gets no gradient in PyTorch")
    return Rows(weight, ids, views.whole([*ids.shape, weight.shape[-1]]))


def label_of(ids: Data) -> str:
    """Returns the name of an input of mtplan for integers of the data.

    mtrun feeds "ids" with tokens, so computed integers have other names.

    >>> label_of(Data("token_type_ids", (2, 8)))
    'types'
    """
    node = ids.node
    while getattr(node, "op", "") == "call_function" and alias.aliases(node):
        node = node.args[0]
    name = str(getattr(node, "name", node))
    if "type" in name:
        return "types"
    if "decoder" in name:
        return "decoder_ids"
    return "computed_ids" if getattr(node, "op", "") == "call_function" else "ids"


@operator("conv2d", "convolution")
def conv2d(importer: Importer, given: Any, weight: Any, bias: Any = None,
           stride: Any = 1, padding: Any = 0, dilation: Any = 1, *rest: Any) -> Any:
    """Imports the convolution that cuts an image into windows.

    >>> conv2d(None, None, Tensor(None, ()), None, [2, 2], [1, 1])
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a convolution with overlapping windows...
    """
    def both(one: Any) -> list[int]:
        return [one, one] if isinstance(one, int) else (
            list(one) * 2 if len(one) == 1 else list(one))
    kernel = list(weight.shape[2:])
    if (both(stride) != kernel or both(padding) != [0, 0] or both(dilation) != [1, 1]
            or any(one not in (False, 1, [0, 0]) for one in rest)):
        raise Refusal("a convolution with overlapping windows, padding, dilation or "
                      "groups; supported: one that cuts an input image into windows "
                      "(stride = kernel size)")
    channels, *image = given.shape[1:]
    counts = [size // step for size, step in zip(image, kernel)]
    if [count * step for count, step in zip(counts, kernel)] != list(image):
        raise Refusal("a convolution that leaves a margin of the image out")
    count = counts[0] * counts[1]
    width = channels * kernel[0] * kernel[1]
    out = weight.shape[0]
    batch = importer.batch
    view = ((Axis(0, batch),), (Axis(2, out),),
            views.merged([Axis(1, counts[0], counts[1])]),
            views.merged([Axis(1, counts[1])]))
    return Patches(given, weight, bias, (count, width, *kernel), view)


# These functions import masks and the loss.


@operator("masked_fill", "masked_fill_")
def masked_fill(importer: Importer, given: Any, mask: Any, number: Any) -> Any:
    """Imports masked attention scores.

    >>> masked_fill(None, Normed(None, 1.0), None, 0.0)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: masked_fill of ...
    """
    fill = pointwise.number_of(number)
    if fill is None or not (pointwise.of_scores(given) or isinstance(given, Rows)):
        raise Refusal("masked_fill of something other than attention scores")
    return attention.masked(importer, mask, given, fill)


@operator("where")
def where(importer: Importer, mask: Any, one: Any, other: Any) -> Any:
    """Imports masked attention scores.

    >>> where(None, None, Normed(None, 1.0), 0.0)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: where of ...
    """
    fill = pointwise.number_of(other)
    if fill is None and hasattr(other, "unique") and other.unique().numel() == 1:
        fill = float(other.flatten()[0])
    if fill is None or isinstance(mask, Data) or not (
            pointwise.of_scores(one) or isinstance(one, Rows)):
        raise Refusal("where of something other than attention scores and a "
                      "constant mask")
    return attention.masked(importer, ~mask, one, fill)


@operator("cross_entropy_loss")
def cross_entropy(importer: Importer, logits: Any, targets: Any, weight: Any = None,
                  reduction: int = 1, ignore_index: int = -100,
                  label_smoothing: float = 0.0) -> Loss:
    """Imports the mean cross entropy of logits.

    >>> cross_entropy(None, None, None, None, 2)
    Traceback (most recent call last):
    ...
    mtplan._torch_values.Refusal: a cross entropy with ...
    """
    if weight is not None or reduction != 1 or label_smoothing or ignore_index >= 0:
        raise Refusal("a cross entropy with class weights, another reduction than "
                      "the mean, label smoothing, or an ignored class; supported: the "
                      "mean over the targets that are not negative")
    if not isinstance(targets, Data):
        raise Refusal("a cross entropy whose targets do not come from the data")
    if len(logits.shape) > 2 or targets.shape != tuple(logits.shape[:-1]):
        raise Refusal(f"a cross entropy of logits {list(logits.shape)} and targets "
                      f"{list(targets.shape)}; supported: [tokens, classes] and the "
                      "numbers of the classes [tokens]; PyTorch's classes are "
                      "dimension 1")
    tensor = _rows(importer, logits, "a cross entropy")
    return loss_of(importer, tensor, targets)


def loss_of(importer: Importer, logits: Tensor, targets: Data | None) -> Loss:
    """Emits the loss of logits. Without targets, a new input holds them.

    >>> importer = Importer(2)
    >>> loss_of(importer, importer.input("x", [2, 8, 4]), None).value.shape
    []
    """
    dims = logits.value.dims
    classes, lead = dims[-1], dims[:-1]
    if views.reshaped(logits.view, logits.value.shape) != views.whole(
            logits.value.shape):
        raise Refusal("a cross entropy of logits whose dimensions were exchanged; "
                      "supported: [batch, sequence, classes] and [batch, classes]")
    classes.role = "vocab"
    shape = [dim.size for dim in lead]
    given = importer.data(targets or Data("targets", tuple(shape)), "targets",
                          classes.size, shape)
    count = importer.graph.add("input", [], [], "f32", importer.origin, "count",
                               limit=0, source="count")
    value = logits.value
    most = importer.emit("vocab_max", [value], lead, "f32")
    total = importer.emit("vocab_sum_exp", [value, most], lead, "f32")
    picked = importer.emit("vocab_pick", [value, given], lead, "f32")
    loss = importer.emit("token_loss", [most, total, picked, given, count], [],
                         "f32")
    return Loss(loss)
