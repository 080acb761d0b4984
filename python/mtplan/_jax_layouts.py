"""Says how a plan lays values out, in JAX's terms.

A layout of a plan is a text such as ``[dp, -, tp+dp] partial={tp:sum}``: the
axes that split each dimension, major axis first. JAX has a ``PartitionSpec``
for it, and cannot express partial values outside of ``shard_map``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

from mtplan._errors import Error
from mtplan._plan import Plan
from mtplan._record import Record
from mtplan._plan_names import FAMILIES, Family
from mtplan._tensor_split import Split, layout_over

#: Names the axes that split each dimension, major axis first.
Dims: TypeAlias = tuple[tuple[str, ...], ...]

#: Maps families to the names of their modules; Mistral uses those of Llama.
KINDS = {**FAMILIES, "mistral": FAMILIES["llama"]}


def jax_module(name: str = "") -> Any:
    """Returns a module of JAX, which is imported only now.

    >>> jax_module("no_such_part")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: ...
    """
    return importlib.import_module(f"jax.{name}" if name else "jax")


def dims_of(layout: str) -> Dims:
    """Returns the axes that split each dimension.

    >>> dims_of("[dp, -, tp+dp] partial={tp:sum}")
    (('dp',), (), ('tp', 'dp'))
    >>> dims_of("[]")
    ()
    """
    inside = layout.partition("]")[0][1:]
    return tuple(() if one == "-" else tuple(one.split("+"))
                 for one in inside.split(", ") if one)


def without(dims: Dims, axis: str) -> Dims:
    """Returns dimensions without their split over an axis.

    >>> without((("dp",), ("tp", "dp")), "dp")
    ((), ('tp',))
    """
    return tuple(tuple(one for one in axes if one != axis) for axes in dims)


def split_over_tp(dims: Dims, layout: str) -> Dims:
    """Returns dimensions with the split over tp of a layout such as "S1".

    >>> split_over_tp((("dp",), (), ("tp",)), "S1")
    (('dp',), ('tp',), ())
    """
    plain = without(dims, "tp")
    if layout in ("R", "P"):
        return plain
    number = int(layout[1:])
    return tuple((*axes, "tp") if at == number else axes
                 for at, axes in enumerate(plain))


def spec_of(dims: Dims) -> Any:
    """Returns the ``PartitionSpec`` of dimensions.

    >>> spec_of((("dp",), ()))  # doctest: +SKIP
    PartitionSpec('dp', None)
    """
    return jax_module("sharding").PartitionSpec(
        *((axes[0] if len(axes) == 1 else axes) if axes else None
          for axes in dims))


@dataclass(frozen=True)
class Hook:
    """Holds the layouts over tp through which the result of an operator goes.

    ``forward`` lists the layouts of the value in order; operators read the
    value in the last one. ``back`` lists the layouts of its gradient. ``shape``
    is the shape over all ranks, and ``dims`` its split over the other axes.

    >>> Hook((8, 32, 64), (("dp",), (), ()), ("S1", "R"), ("S1",)).dims
    (('dp',), (), ())
    """

    shape: tuple[int, ...]
    dims: Dims
    forward: tuple[str, ...]
    back: tuple[str, ...]

    def fitted(self, label: str, shape: Sequence[int], layout: str) -> Dims:
        """Returns the split of a value, whose features may be cut into heads.

        Raises ``Error`` if a value of that shape is no result of the operator.

        >>> hook = Hook((8, 32, 64), (("dp",), (), ()), ("S2",), ("S2",))
        >>> hook.fitted("h.0.attn.q", (8, 32, 4, 16), "S2")
        (('dp',), (), ('tp',), ())
        """
        rank = len(self.shape)
        features = prod(shape[rank - 1:])
        if (len(shape) < rank or (rank > 2 and features != self.shape[-1])
                or (not rank and shape)):
            raise Error(f"{label}: the value is {list(shape)}, and the plan's "
                        f"{list(self.shape)}; its last dimension may be "
                        "divided into heads, but not moved")
        return (*split_over_tp(self.dims, layout),
                *[()] * (len(shape) - rank))


def labels_of(run: Record, label: str) -> Iterator[str]:
    """Returns the labels of an entry of a run, with the layers' numbers.

    >>> list(labels_of(Record(first=2, copies=2), "h.*.ln_1"))
    ['h.2.ln_1', 'h.3.ln_1']
    """
    if "*" not in label:
        yield label
    else:
        for layer in range(run.first, run.first + run.copies):
            yield label.replace("*", str(layer), 1)


def starred(label: str) -> str:
    """Returns a label with ``*`` for the number of the layer.

    >>> starred("h.12.attn.q"), starred("wte")
    ('h.*.attn.q', 'wte')
    """
    return re.sub(r"^(\w+)\.\d+\.", r"\1.*.", label)


def whole_shape(entry: Record, degrees: Record) -> tuple[int, ...]:
    """Returns the shape of an operator's result over all ranks.

    >>> whole_shape(Record(local_shape=[4, 32], layout="[dp, -]"),
    ...             Record(dp=2, tp=2))
    (8, 32)
    """
    return tuple(size * prod(degrees[axis] for axis in axes) for size, axes
                 in zip(entry.local_shape, dims_of(entry.layout)))


def labelled(family: Family) -> Family:
    """Returns a family whose modules are named as the plan's operators.

    >>> labelled(FAMILIES["llama"]).module("h.3.attn.q")
    'h.3.attn.q'
    """
    return replace(family, layers="h", attention="attn", mlp="mlp", names={
        label: label.replace("*", "{}") for label in family.names})


def hooks_of(plan: Plan, split: Split) -> dict[str, Hook]:
    """Returns the hook of every forward operator of a plan.

    With tp, the plan's norms must precede attention and the MLP.

    >>> import mtplan
    >>> from mtplan._tensor_split import split_of
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, tp=2,
    ...                    sequence_parallel=False)
    >>> split = split_of(plan, labelled(FAMILIES["llama"]))
    >>> hooks_of(plan, split)["h.0.attn.proj"].forward
    ('R',)
    """
    hooks, backward = dict[str, Hook](), dict[str, str]()
    for run in plan.layers:
        for op in run.ops:
            for label in labels_of(run, op.label):
                layout = layout_over("tp", op.layout)
                if op.phase == "backward":
                    backward[label] = layout
                    continue
                same = ("R",) if layout == "P" else (layout,)
                hooks[label] = Hook(whole_shape(op, plan.parallelism),
                                    without(dims_of(op.layout), "tp"), same,
                                    same)
    for label in hooks:
        layer, _, last = label.rpartition(".")
        # The gradient of a residual sum has the name of the norm after it.
        if last == "add" and layer.startswith("h."):
            layer, _, block = layer.rpartition(".")
            norm = "ln_2" if block == "attn" else "ln_1"
            gradient = backward.get(f"{layer}.{norm}.sum", "P")
            if gradient != "P":
                hooks[label] = replace(hooks[label], back=(gradient,))
    changes = [*split.after.items()]
    for norm, block in (("ln_1", "attn"), ("ln_2", "mlp")):
        changes += [(label.replace(block, norm), change)
                    for label, change in split.before.items()
                    if label.endswith("." + block)]
    if split.entrance is not None:
        changes.append(([op.label for run in plan.layers for op in run.ops
                         if run.segment == "embed"
                         and op.phase == "forward"][-1], split.entrance))
    for label, change in changes:
        # Without "R", XLA would look up part of a sequence in part of a table.
        source = ("R" if change is split.entrance and change.source == "P"
                  else change.source)
        hooks[label] = replace(
            hooks[label], forward=_path(source, change.target),
            back=_path(change.gradient_source, change.gradient_target))
    return hooks


def _path(*layouts: str) -> tuple[str, ...]:
    """Returns the layouts that JAX can express, each once.

    >>> _path("P", "S1"), _path("S2", "R")
    (('S1',), ('S2', 'R'))
    """
    return tuple(dict.fromkeys(one for one in layouts if one != "P"))
