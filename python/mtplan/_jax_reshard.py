"""Changes the layout of values within a program of JAX.

``with_sharding_constraint`` gives a value and its gradient one layout. A plan
may have two layouts. The primitive in this file carries both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mtplan._jax_layouts import jax_module


@functools.cache
def _primitive(name: str) -> Any:
    """Returns the primitive that changes layouts, under one of two names.

    It is linear, and its transpose exchanges ``forward`` and ``back``. The name
    tells policies of ``jax.checkpoint`` what is gathered.
    """
    ad, batching, mlir = (jax_module(f"interpreters.{one}")
                          for one in ("ad", "batching", "mlir"))
    constrain = jax_module("lax").with_sharding_constraint

    def lowered(value: Any, *, forward: Any, back: Any) -> Any:
        for one in forward:
            value = constrain(value, one)
        return value

    def transposed(gradient: Any, _: Any, *, forward: Any, back: Any) -> Any:
        return (primitive.bind(gradient, forward=back, back=forward),)

    def batched(values: Any, at: Any, *, forward: Any, back: Any) -> Any:
        return primitive.bind(values[0], back=_widened(back, at[0]),
                              forward=_widened(forward, at[0])), at[0]

    primitive = jax_module("extend.core").Primitive(name)
    primitive.def_impl(lowered)
    primitive.def_abstract_eval(lambda value, **_: value)
    ad.deflinear2(primitive, transposed)
    batching.primitive_batchers[primitive] = batched
    mlir.register_lowering(primitive, mlir.lower_fun(
        lowered, multiple_results=False))
    return primitive


def _widened(shardings: Sequence[Any], at: int) -> tuple[Any, ...]:
    """Returns shardings of values with one more dimension, for ``vmap``."""
    kinds = jax_module("sharding")
    return tuple(kinds.NamedSharding(one.mesh, kinds.PartitionSpec(
        *one.spec[:at], None, *one.spec[at:])) for one in shardings)


def reshard(value: Any, forward: Sequence[Any], back: Sequence[Any]) -> Any:
    """Returns a value after changes of its layout, in order.

    ``forward`` lists ``NamedSharding``s, ``back`` those of the gradient.

    >>> reshard(x, [rows], [whole])  # doctest: +SKIP
    """
    return _primitive("mtplan_reshard").bind(value, forward=tuple(forward),
                                             back=tuple(back))


def gather(weight: Any, whole: Any, back: Sequence[Any]) -> Any:
    """Returns a weight as operators use it; its gradient goes through ``back``.

    >>> gather(w, whole, [stored])  # doctest: +SKIP
    """
    return _primitive("mtplan_gather").bind(weight, forward=(whole,),
                                            back=tuple(back))


#: Lists operators that give a gathered weight another form, at no cost.
_FORMS = ("mtplan_gather", "broadcast_in_dim", "convert_element_type",
          "reshape", "squeeze", "transpose")


def all_but_gathered(primitive: Any, *_: Any, **__: Any) -> bool:
    """Is a policy of ``jax.checkpoint``: gathered weights are not kept.

    >>> all_but_gathered(jax.lax.exp_p)  # doctest: +SKIP
    True
    """
    return primitive.name not in _FORMS


#: Begins the scope name of the operators of ``products`` in a program.
PRODUCTS = "mtplan_products_"


def products(mesh: Any, names: Sequence[str], value: Any,
             weights: Sequence[Any]) -> list[Any]:
    """Returns the products of a value with weights that are split by columns.

    ``value`` is [samples, sequence, in] and replicated over tp, weights are
    [in, out]. XLA would sum the gradient of ``value`` over tp for each weight;
    here these gradients are added first, and summed over tp once. ``names`` are
    the operators' names, which the compiled program keeps.

    >>> products(mesh, ["h.0.attn.q", "h.0.attn.k", "h.0.attn.v"], x,
    ...          [q, k, v])  # doctest: +SKIP
    """
    jax = jax_module()
    spec = jax_module("sharding").PartitionSpec

    def columns(one: Any, *matrices: Any) -> list[Any]:
        one = jax.lax.pcast(one, "tp", to="varying")
        return [one @ matrix for matrix in matrices]

    run: Callable[..., list[Any]] = jax.shard_map(
        columns, mesh=mesh, axis_names={"tp"},
        in_specs=(spec(), *[spec(None, "tp")] * len(weights)),
        out_specs=[spec(None, None, "tp")] * len(weights))
    with jax.named_scope(PRODUCTS + "+".join(names)):
        return run(value, *weights)
