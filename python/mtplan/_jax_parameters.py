"""Says how parameters in use, and gradients, are sharded."""

from __future__ import annotations

from math import prod

from mtplan._jax_layouts import Dims, without
from mtplan._jax_names import Stored
from mtplan._plan import Plan


def used_dims(kinds: dict[str, str], stored: Stored) -> Dims:
    """Returns how an operator uses a parameter: replicated over dp.

    ``kinds`` says how operators are split over tp. An operator that ``kinds``
    lacks uses parameters as they are stored over tp.

    >>> used_dims({"h.0.attn.q": "column"}, Stored(
    ...     "h.0.attn.q.weight", (64, 64), (("tp", "dp"), ())))
    ((), ('tp',))
    """
    operator, _, last = stored.label.rpartition(".")
    dims = without(stored.dims, "dp")
    kind = kinds.get(operator)
    if kind is None:
        return dims
    first = int("*" in stored.label)
    number = {"column": len(dims) - 1, "vocab": first, "row": first}.get(kind)
    if kind == "row" and last != "weight":
        number = None
    return tuple(("tp",) if at == number else ()
                 for at in range(len(dims)))


def gradient_dims(plan: Plan, stored: Stored) -> Dims:
    """Returns how a gradient and the optimizer's copies are sharded.

    With ZeRO 1 and 2, dp splits the first dimension that it divides evenly,
    preferably one that no other axis splits.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, dp=2, zero=1)
    >>> gradient_dims(plan, Stored("h.0.attn.proj.weight", (64, 64),
    ...                            (("tp",), ())))
    (('tp',), ('dp',))
    """
    degrees = plan.parallelism
    if not degrees.zero or any("dp" in axes for axes in stored.dims):
        return stored.dims
    first = int("*" in stored.label)
    places = sorted(range(first, len(stored.dims)),
                    key=lambda at: bool(stored.dims[at]))
    for at in places:
        parts = prod(degrees[axis] for axis in stored.dims[at]) * degrees.dp
        if stored.shape[at] % parts == 0:
            return tuple((*axes, "dp") if number == at else axes
                         for number, axes in enumerate(stored.dims))
    return stored.dims
