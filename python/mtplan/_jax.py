"""Expresses a plan in JAX: shardings of arrays, and hooks for activations."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from mtplan._errors import Error
from mtplan._jax_checked import (split_for, uneven, unlike_layers,
                                 wrong_types)
from mtplan._jax_layouts import Dims, jax_module, spec_of
from mtplan._jax_names import Stored, label_of, matched, patterns_of
from mtplan._jax_parameters import gradient_dims, used_dims
from mtplan._jax_reshard import all_but_gathered, gather, products, reshard
from mtplan._plan import Plan
from mtplan._plan_names import family_name
from mtplan._recompute import recomputed

if TYPE_CHECKING:
    from mtplan._collective_table import Comparison


class Shardings:
    """Holds a plan in JAX's terms, for one tree of parameters.

    ``mesh`` has the axes dp and tp. ``params`` is a tree of the shardings in
    which the parameters are stored. ``gradients`` is a tree of the shardings of
    gradients, optimizer copies and updates, which are sharded over dp from ZeRO
    stage 1 on. ``Plan.shardings`` builds this object.

    >>> shardings = plan.shardings(params)                 # doctest: +SKIP
    >>> params = jax.device_put(params, shardings.params)  # doctest: +SKIP
    """

    def __init__(self, plan: Plan, params: Any, names: dict[str, str] | None,
                 mesh: Any) -> None:
        self.plan = plan
        split, self._hooks = split_for(plan)
        kind = family_name(plan)
        found = matched(plan, kind, params, names)
        leaves, tree = jax_module("tree_util").tree_flatten(params)
        faults = (wrong_types(plan, found, [one.dtype for one in leaves])
                  + uneven(plan, found)
                  + unlike_layers(plan, found, self._hooks))
        if faults:
            raise Error(faults)
        self.mesh = mesh_of(plan, mesh)
        self._found = found
        self._patterns = patterns_of(plan, kind, names)
        self.params = tree.unflatten([self._named(one.dims) for one in found])
        self.gradients = tree.unflatten(
            [self._named(gradient_dims(plan, one)) for one in found])
        self._weights = {one.label: one for one in found}
        self._kinds = {label: leaf.kind for label, leaf in split.leaves.items()}
        for label in [one for one in self._hooks if one.startswith("h.0.")]:
            starred = "h.*." + label[4:]  # for an array of all layers
            self._hooks[starred] = self._hooks[label]
            if label in self._kinds:
                self._kinds[starred] = self._kinds[label]

    def _named(self, dims: Dims) -> Any:
        return jax_module("sharding").NamedSharding(self.mesh, spec_of(dims))

    def optimizer(self, state: Any) -> Any:
        """Returns a tree of the shardings of an optimizer's state.

        ``state`` is any tree, such as ``optax.adamw(...).init(params)``. An
        array whose path ends in that of a parameter, and that has its shape, is
        sharded as the plan says, also if other parameters are masked. All other
        arrays are replicated, with a warning if one has several elements.

        >>> shardings.optimizer(state)  # doctest: +SKIP
        """
        tree = jax_module("tree_util")
        leaves = tree.tree_flatten_with_path(self.gradients)[0]
        known = {(path, stored.shape): named for (path, named), stored
                 in zip(leaves, self._found)}
        whole = list[str]()

        def sharded(path: tuple[Any, ...], one: Any) -> Any:
            shape = tuple(getattr(one, "shape", ()))
            ends = ((path[first:], shape) for first in range(len(path) + 1))
            named = next((known[end] for end in ends if end in known), None)
            if named is None and prod(shape) > 1:
                whole.append(f"{tree.keystr(path)} {list(shape)}")
            return self._named(()) if named is None else named

        found = tree.tree_map_with_path(sharded, state)
        if whole and any(any(named.spec) for _, named in leaves):
            warnings.warn(
                f"the optimizer's state has {len(whole)} arrays that are "
                "replicated, because they have neither the path nor the shape "
                f"of a parameter: {', '.join(whole[:3])}"
                + ", ..." * (len(whole) > 3), stacklevel=2)
        return found

    def inputs(self, batch: Any) -> Any:
        """Returns a tree of the shardings of a batch: samples over dp.

        The first dimension of every array counts the samples of a step. The
        samples of replica 0 come first.

        >>> shardings.inputs({"tokens": tokens})  # doctest: +SKIP
        """
        return jax_module("tree_util").tree_map(
            lambda one: self._named(
                (("dp",), *[()] * (len(one.shape) - 1)) if one.shape else ()),
            batch)

    def constrain(self, name: str, value: Any) -> Any:
        """Puts a value and its gradient into the layouts of the plan.

        ``value`` is the result of the operator with the label ``name``, such as
        ``h.0.attn.q``, or ``h.*.attn.q`` in a loop over an array of all layers.
        The dimensions of ``value`` are samples, sequence and features; the
        features may be divided into heads. If ``name`` is the label of a
        parameter, ``value`` is gathered over dp. Raises ``Error`` for another
        name or shape.

        >>> shardings.constrain("h.0.attn.proj", x @ w)  # doctest: +SKIP
        """
        if name in self._hooks:
            hook = self._hooks[name]
            return reshard(value, *(
                [self._named(hook.fitted(name, value.shape, layout))
                 for layout in layouts]
                for layouts in (hook.forward, hook.back)))
        stored = self._weights.get(name)
        if stored is None:
            known = [*self._hooks, *self._weights]
            near = difflib.get_close_matches(name, known, 1, 0.0)
            raise Error(f"{name}: the plan has no such operator or parameter; "
                        f"the nearest is {near[0]}")
        return self._gathered(stored, value, "*" in stored.label)

    def _gathered(self, stored: Stored, value: Any, last: bool) -> Any:
        """Returns a weight, or one layer of it, as operators use it.

        ``last`` says whether the gradient is sharded over dp here.
        """
        used = used_dims(self._kinds, stored)
        back = gradient_dims(self.plan, stored) if last else used
        first = len(used) - len(value.shape)
        # A table's gradient is first summed as a whole, then sharded. XLA would
        # otherwise gather tokens and their gradients.
        return gather(value, self._named(used[first:]),
                      [self._named(dims[first:])
                       for dims in dict.fromkeys((used, back))])

    def gathered(self, params: Any) -> Any:
        """Returns all parameters as operators use them.

        Arrays of all layers stay as they are stored: ``constrain`` gathers a
        layer, within the loop over layers.

        >>> shardings.gathered(params)["wte"]  # doctest: +SKIP
        """
        tree = jax_module("tree_util")
        leaves, structure = tree.tree_flatten(params)
        return structure.unflatten([
            leaf if "*" in stored.label else self._gathered(
                stored, leaf, True)
            for leaf, stored in zip(leaves, self._found)])

    def products(self, names: Sequence[str], value: Any, weights: Sequence[Any]
                 ) -> list[Any]:
        """Returns ``value @ weight`` for operators that share their input.

        ``names`` are q, k and v, or gate and up: ``["h.0.attn.q", ...]``. The
        gradients of ``value`` are added before the sum over tp. XLA alone might
        sum each of them over tp. ``value`` is [samples, sequence, in], and
        weights are [in, out].

        >>> shardings.products(["h.0.mlp.gate", "h.0.mlp.up"], x,
        ...                    [gate, up])  # doctest: +SKIP
        """
        weights = [self.constrain(f"{name}.weight", weight)
                   for name, weight in zip(names, weights, strict=True)]
        columns = all(self._kinds.get(name) == "column" for name in names)
        if columns and self.plan.parallelism.tp > 1:
            found = products(self.mesh, names, value, weights)
        else:
            found = [value @ weight for weight in weights]
        return [self.constrain(name, one) for name, one in zip(names, found)]

    def checkpoint(self, name: str, function: Callable[..., Any]
                   ) -> Callable[..., Any]:
        """Returns ``function``, recomputed in backward if the plan says so for
        the layer ("h.3") or its attention ("h.3.attn.core").

        >>> layer = shardings.checkpoint("h.0", layer)  # doctest: +SKIP
        """
        kind, layers = recomputed(self.plan)
        number = name.split(".")[1] if name.startswith("h.") else ""
        if kind == "full" and (number == "*" or number.isdigit()
                               and int(number) < layers):
            again = name.count(".") == 1
        else:
            again = kind == "selective" and name.endswith(".attn.core")
        return jax_module().checkpoint(function) if again else function

    def intercept(self, call: Callable[..., Any], args: Any, kwargs: Any,
                  context: Any) -> Any:
        """Constrains the results of Flax modules whose parameters are known.

        >>> with nn.intercept_methods(shardings.intercept):  # doctest: +SKIP
        ...     model.apply(variables, tokens)
        """
        found = call(*args, **kwargs)
        if context.method_name != "__call__":
            return found
        path = (*context.module.path, "weight")
        label = label_of(self._patterns, path).rpartition(".")[0]
        return self.constrain(label, found) if label in self._hooks else found

    def value_and_grad(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function of parameters and a batch that returns the loss
        and its gradients, as ``jax.value_and_grad`` does.

        ``loss(params, batch)`` is the mean over a micro-batch. A loop calls
        ``loss`` for each micro-batch; all micro-batches have the same weight.
        Sums are at least in float32. A scalar in the batch goes to every
        micro-batch. Weights are gathered over dp before forward, and with ZeRO
        3 again in backward. Raises ``Error`` for a batch of another size than
        the plan's.

        >>> loss, gradients = shardings.value_and_grad(loss_of)(
        ...     params, batch)  # doctest: +SKIP
        """
        jax, numpy = jax_module(), jax_module("numpy")
        degrees = self.plan.parallelism
        count = degrees.micro_batches

        def gathered(params: Any, batch: Any) -> Any:
            return loss(self.gathered(params), batch)

        if degrees.zero == 3:
            gathered = jax.checkpoint(gathered, policy=all_but_gathered)
        both = jax.value_and_grad(gathered)

        def add(params: Any, total: Any, part: Any) -> Any:
            return jax.tree.map(numpy.add, total, both(params, part)), None

        def run(params: Any, batch: Any) -> Any:
            samples = self.plan.parallelism.global_batch
            for one in jax.tree.leaves(batch):
                if one.shape and one.shape[0] != samples:
                    raise Error(f"the plan has {samples} samples per step, but "
                                f"an array of the batch is {list(one.shape)}")
            if count == 1:
                return both(params, batch)
            parts = jax.tree.map(self._divided, batch)
            kinds = jax.eval_shape(
                both, params, jax.tree.map(lambda one: one[0], parts))
            # A sum in bfloat16 would lose small addends.
            none = jax.tree.map(lambda kind: numpy.zeros(
                kind.shape, numpy.promote_types(kind.dtype, "float32")), kinds)
            total, _ = jax.lax.scan(lambda one, part: add(params, one, part),
                                    none, parts)
            return jax.tree.map(lambda one, kind: (one / count).astype(
                kind.dtype), total, kinds)

        return run

    def _divided(self, array: Any) -> Any:
        """Divides the samples of all replicas into micro-batches."""
        degrees = self.plan.parallelism
        shape = (degrees.dp, degrees.micro_batches, degrees.micro_batch)
        if not array.shape:
            return jax_module("numpy").broadcast_to(array, shape[1:2])
        moved = array.reshape(*shape, *array.shape[1:]).swapaxes(0, 1)
        parts = moved.reshape(shape[1], shape[0] * shape[2], *array.shape[1:])
        return jax_module("lax").with_sharding_constraint(
            parts, self._named(((), ("dp",), *[()] * (len(array.shape) - 1))))

    def update(self, optimizer: Any, params: Any, gradients: Any, state: Any
               ) -> tuple[Any, Any]:
        """Returns the parameters and the state after a step of an optimizer.

        ``optimizer`` has the ``update`` of optax, which returns the changes to
        add to the parameters. From ZeRO stage 1 on, a replica updates its
        shard.

        >>> params, state = shardings.update(
        ...     optax.adamw(1e-3), params, gradients, state)  # doctest: +SKIP
        """
        jax = jax_module()
        constrain = jax.lax.with_sharding_constraint
        shards = constrain(params, self.gradients)
        updates, state = optimizer.update(gradients, state, shards)
        moved = jax.tree.map(lambda one, step: (one + step).astype(one.dtype),
                             shards, updates)
        # Shards are updated before the parameters are gathered.
        moved = constrain(moved, self.gradients)
        return (constrain(moved, self.params),
                constrain(state, self.optimizer(state)))

    def check(self, step: Any, *args: Any, **kwargs: Any) -> Comparison:
        """Compiles a step, and compares its collectives with the plan's.

        ``step`` is a function for ``jax.jit``, a jitted function or a compiled
        program. A function needs its arguments, which may be
        ``jax.ShapeDtypeStruct`` with shardings; a program takes none. Nothing
        runs. Returns the comparison: ``print`` it for a table; ``holds`` says
        whether all differences are explained. Raises ``Error`` for a collective
        in a loop whose number of iterations is not known.

        >>> shardings.check(step, params, state, batch).holds  # doctest: +SKIP
        True
        """
        from mtplan._jax_collectives import compare
        return compare(self, step, args, kwargs)


def mesh_of(plan: Plan, given: Any) -> Any:
    """Returns ``given`` after a check, or a new mesh with the axes dp and tp.

    >>> mesh_of(plan, None)  # doctest: +SKIP
    Mesh('dp': 2, 'tp': 4, axis_types=(Auto, Auto))
    """
    jax = jax_module()
    degrees = plan.parallelism
    auto = jax.sharding.AxisType.Auto
    count = degrees.dp * degrees.tp
    if given is None:
        if jax.device_count() < count:
            raise Error(f"the plan is for {count} devices, and JAX has "
                        f"{jax.device_count()}; the environment variable "
                        "XLA_FLAGS=--xla_force_host_platform_device_count="
                        f"{count} divides a CPU")
        return jax.make_mesh((degrees.dp, degrees.tp), ("dp", "tp"),
                             axis_types=(auto, auto),
                             devices=jax.devices()[:count])
    faults = []
    if dict(given.shape) != {"dp": degrees.dp, "tp": degrees.tp}:
        faults.append(f"the plan has the axes dp {degrees.dp}, tp {degrees.tp},"
                      f" and the mesh {dict(given.shape)}")
    if any(kind != auto for kind in given.axis_types):
        faults.append("the mesh must have axes of the type Auto: pass "
                      "axis_types=(AxisType.Auto,) * 2 to make_mesh")
    if faults:
        raise Error(faults)
    return given
