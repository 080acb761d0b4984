"""Splits modules over tp with DTensor and ``parallelize_module``.

Weights are DTensors. Values between modules are plain tensors, whose layouts
the plan knows; a hook on a module changes a layout by ``DTensor.redistribute``.
Values and gradients have different layouts. q, k and v share one layout change,
so that the gradients of their input are summed before they are communicated.

PyTorch is imported when the functions are called.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._plan_names import Family
from mtplan._stages import present
from mtplan._tensor_split import Change, Leaf, Split


def placement(layout: str) -> Any:
    """Returns DTensor's placement for a layout: "R", "P" or "S1".

    >>> placement("S1")  # doctest: +SKIP
    Shard(dim=1)
    """
    tensor = torch_module("distributed.tensor")
    if layout == "R":
        return tensor.Replicate()
    return (tensor.Partial() if layout == "P"
            else tensor.Shard(int(layout[1:])))


def moved(value: Any, mesh: Any, source: str, target: str) -> Any:
    """Returns the local part of a value in another layout.

    >>> moved(3, None, "R", "R")
    3
    """
    if source == target:
        return value
    if source in ("R", "P") and target not in ("R", "P"):
        size = value.shape[int(target[1:])]
        if size % mesh.size():  # from_local supports equal parts only
            raise Error(f"tp {mesh.size()} does not divide dimension "
                        f"{target[1:]} of size {size}")
    if target == "P" and source not in ("R", "P"):
        # Every rank puts its part into zeros, which needs no communication.
        place, size = int(source[1:]), value.shape[int(source[1:])]
        shape = list(value.shape)
        shape[place] *= mesh.size()
        result = value.new_zeros(shape)
        result.narrow(place, mesh.get_local_rank() * size, size).copy_(value)
        return result
    tensor = torch_module("distributed.tensor")
    return tensor.DTensor.from_local(
        value, mesh, [placement(source)], run_check=False).redistribute(
            placements=[placement(target)]).to_local()


@functools.cache
def _functions() -> tuple[Any, Any]:
    """Returns the differentiable functions of this file: one that changes the
    layouts of a value and its gradient, and one that keeps a replicated value
    on the first rank only, so that it can be added to partial ones."""
    function = torch_module("autograd").Function

    def forward(context: Any, value: Any, mesh: Any, change: Change) -> Any:
        context.mesh, context.change = mesh, change
        result = moved(value, mesh, change.source, change.target)
        return value.view_as(value) if result is value else result

    def backward(context: Any, gradient: Any) -> Any:
        change = context.change
        return moved(gradient.contiguous(), context.mesh,
                     change.gradient_source, change.gradient_target
                     ), None, None

    def keep(context: Any, value: Any, first: bool) -> Any:
        return value.clone() if first else value.new_zeros(value.shape)

    def pass_on(context: Any, gradient: Any) -> Any:
        return gradient, None

    return (type("ChangeLayout", (function,), {
                "forward": staticmethod(forward),
                "backward": staticmethod(backward)}),
            type("KeepOnFirst", (function,), {
                "forward": staticmethod(keep),
                "backward": staticmethod(pass_on)}))


def changed(value: Any, mesh: Any, change: Change) -> Any:
    """Returns a value in another layout; autograd also changes its gradient.

    >>> changed(3, None, Change("R", "R", "S1", "S1"))
    3
    """
    if not change.needed:
        return value
    return _functions()[0].apply(value, mesh, change)


def _with_first_tensor(names: tuple[str, ...], edit: Callable[[Any], Any]
                       ) -> Callable[[Any, Any, Any], Any]:
    """Returns a pre-hook that edits one input: by name, or else the first."""
    def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for name in names:
            if name in kwargs:
                return args, {**kwargs, name: edit(kwargs[name])}
        return (edit(args[0]), *args[1:]), kwargs
    return hook


_INPUTS = ("hidden_states", "input", "x")


def _split_parameter(leaf: Leaf, name: str, out_last: bool) -> str:
    """Returns the layout of a parameter over tp, in PyTorch's dimensions.

    >>> _split_parameter(Leaf("column", "R", "S2"), "weight", False)
    'S0'
    >>> _split_parameter(Leaf("row", "S2", "P"), "bias", False)
    'R'
    """
    if name == "bias":
        return "S0" if leaf.kind == "column" else "R"
    rows = {"column": "S0", "row": "S1"}
    columns = {"column": "S1", "row": "S0", "vocab": "S0"}
    return (columns if out_last else rows).get(leaf.kind, "R")


@functools.cache
def _style() -> Any:
    """Returns the ParallelStyle that splits one module as a ``Leaf`` says."""
    torch = torch_module()
    tensor = torch_module("distributed.tensor")
    base = torch_module("distributed.tensor.parallel").ParallelStyle

    def init(self: Any, leaf: Leaf, summed: dict[Any, Any]) -> None:
        base.__init__(self)
        self.leaf, self.summed = leaf, summed

    def apply(self: Any, module: Any, mesh: Any) -> Any:
        leaf = self.leaf
        out_last = (isinstance(module, torch.nn.Embedding)
                    or hasattr(module, "nf"))
        for name, parameter in module.named_parameters(recurse=False):
            # The other module of a tied parameter may have split it already.
            part = self.summed.get(id(parameter))
            if part is None:
                part = torch.nn.Parameter(tensor.distribute_tensor(
                    parameter.detach(), mesh,
                    [placement(_split_parameter(leaf, name, out_last))],
                    src_data_rank=self.src_data_rank),
                    requires_grad=parameter.requires_grad)
                part.register_hook(_summed_gradient)
                # The old parameter is kept, so that its id is not used again.
                self.summed[id(parameter)] = part
                self.summed[id(part), "old"] = parameter
            setattr(module, name, part)
        if leaf.kind == "column" and hasattr(module, "nf"):
            module.nf //= mesh.size()
        _compute_with_parts(module, leaf, mesh)
        return module

    return type("SplitModule", (base,), {"__init__": init, "_apply": apply})


def _summed_gradient(gradient: Any) -> Any:
    """Sums the gradient of a replicated weight whose users read parts of the
    sequence. ``fully_shard`` does the same for weights that it gathers."""
    tensor = torch_module("distributed.tensor")
    if any(one.is_partial() for one in gradient.placements):
        return gradient.redistribute(placements=[
            tensor.Replicate() if one.is_partial() else one
            for one in gradient.placements])
    return gradient


def _compute_with_parts(module: Any, leaf: Leaf, mesh: Any) -> None:
    """Lets a module compute with the local parts of its parameters."""
    original: Any = type(module)
    module.__class__ = _split_class(original)
    module.mtplan_leaf, module.mtplan_mesh = leaf, mesh


@functools.cache
def _split_class(original: Any) -> Any:
    """Returns the subclass of ``original`` for modules split over tp."""
    tensor = torch_module("distributed.tensor")

    class Split(original):  # type: ignore[misc]
        """Computes with the local parts of its parameters, which are DTensors.

        ``mtplan_leaf`` says how the module is split, over ``mtplan_mesh``.
        """

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            leaf, mesh = self.mtplan_leaf, self.mtplan_mesh
            partial = [tensor.Partial()] if leaf.source == "S1" else None
            kept = dict(self._parameters)
            try:
                for name, one in kept.items():
                    if not isinstance(one, tensor.DTensor):
                        continue
                    part = one.to_local(grad_placements=partial)
                    if name == "bias" and leaf.kind == "row":
                        part = _functions()[1].apply(
                            part, mesh.get_local_rank() == 0)
                    self._parameters[name] = part
                if leaf.kind == "vocab":
                    return _looked_up(self, mesh, *args)
                return super().forward(*args, **kwargs)
            finally:
                self._parameters.update(kept)

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            memo[id(self.mtplan_mesh)] = self.mtplan_mesh
            made = self.__class__.__new__(self.__class__)
            memo[id(self)] = made
            made.__dict__.update(copy.deepcopy(self.__dict__, memo))
            for one in made._parameters.values():
                # Copies of parameters lose their hooks.
                if isinstance(one, tensor.DTensor) and not one._backward_hooks:
                    one.register_hook(_summed_gradient)
            return made

    Split.__name__ = Split.__qualname__ = original.__name__
    return Split


def _looked_up(module: Any, mesh: Any, ids: Any) -> Any:
    """Looks up the rows that this rank holds; other tokens give zeros."""
    weight = module._parameters["weight"]
    rows = weight.shape[0]
    begin = rows * mesh.get_local_rank()
    outside = (ids < begin) | (ids >= begin + rows)
    padding = module.padding_idx
    if padding is not None:
        padding = padding - begin if begin <= padding < begin + rows else None
    found = torch_module("nn.functional").embedding(
        (ids - begin).masked_fill(outside, 0), weight, padding)
    return found.masked_fill(outside.unsqueeze(-1), 0)


def change_entrance(layer: Any, mesh: Any, change: Change) -> None:
    """Changes the layout of the embedding's result before a layer, outside the
    wrapper that recomputes the layer.

    >>> change_entrance(layers[0], device_mesh["tp"], change)  # doctest: +SKIP
    """
    layer.register_forward_pre_hook(
        _with_first_tensor(_INPUTS, functools.partial(
            changed, mesh=mesh, change=change)),
        with_kwargs=True, prepend=True)


@functools.cache
def _fused_columns() -> Any:
    """Returns the class that computes q, k and v of GPT-2 one by one."""
    torch = torch_module()

    def init(self: Any, fused: Any) -> None:
        torch.nn.Module.__init__(self)
        size = fused.weight.shape[1] // 3
        for number, name in enumerate("qkv"):
            part = type(fused)(size, fused.weight.shape[0])
            columns = slice(number * size, (number + 1) * size)
            part.weight = torch.nn.Parameter(
                fused.weight.detach()[:, columns].clone())
            part.bias = torch.nn.Parameter(
                fused.bias.detach()[columns].clone())
            setattr(self, name, part)

    def forward(self: Any, x: Any) -> Any:
        return torch.cat([self.q(x), self.k(x), self.v(x)], dim=-1)

    return type("FusedColumns", (torch.nn.Module,),
                {"__init__": init, "forward": forward})


def split_modules(model: Any, mesh: Any, split: Split, family: Family) -> None:
    """Splits the modules of a model over the ranks of a mesh, as planned.

    ``mesh`` has one dimension, tp. Every rank must hold the same weights; the
    weights of the first rank are used. Modules of other stages are left out.

    >>> split_modules(model, device_mesh["tp"], split, family)  # doctest: +SKIP
    """
    parallel = torch_module("distributed.tensor.parallel")
    modules = present(model)
    if family.out_last:  # GPT-2
        for number in range(model.config.num_hidden_layers):
            name = family.in_layer(number, family.attention)
            if name not in modules:
                continue
            attention = modules[name]
            attention.c_attn = _fused_columns()(attention.c_attn)
            if split.leaves[family.module("h.0.attn.q")].kind == "column":
                attention.split_size //= mesh.size()
    style, summed = _style(), dict[Any, Any]()
    modules = present(model)
    parallel.parallelize_module(model, mesh, {
        name: style(leaf, summed) for name, leaf in split.leaves.items()
        if name in modules})
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owner, _, last = name.rpartition(".")
        if owner in family.extra and id(parameter) in summed:
            setattr(model.get_submodule(owner), last, summed[id(parameter)])
    for name in split.before.keys() & modules.keys():
        modules[name].register_forward_pre_hook(
            _with_first_tensor(_INPUTS, functools.partial(
                changed, mesh=mesh, change=split.before[name])),
            with_kwargs=True)
    for name in split.after.keys() & modules.keys():
        modules[name].register_forward_hook(
            lambda _, __, result, change=split.after[name]: changed(
                result, mesh, change))
    for name in split.entries.keys() & modules.keys():
        entry = split.entries[name]
        _divide_input(modules[name], modules[entry.first_module], mesh,
                      entry.first, entry.residual)
    if split.parallel_loss and family.names["lm_head"] in modules:
        _parallel_loss(model, modules[family.names["lm_head"]], mesh)


def _divide_input(layer: Any, first: Any, mesh: Any, to_first: Change,
                  to_residual: Change) -> None:
    """Gives the first module of a layer, a norm or attention, the layer's input
    in another layout than the residual addition. If both need the same layout,
    one change serves both."""
    branch: list[Any] = []

    def on_layer(value: Any) -> Any:
        branch.clear()  # a value remains if a forward failed
        if to_first == to_residual:
            value = changed(value, mesh, to_first)
            branch.append(value)
            return value
        shared = (to_first.target == to_residual.target
                  and to_first.source != to_first.target)
        if shared:  # one collective in forward, then two in backward
            value = changed(value, mesh, Change(
                to_first.source, to_first.target,
                to_first.gradient_target, to_first.gradient_target))
            source = to_first.target
        else:
            source = to_first.source
        branch.append(changed(value, mesh, Change(
            source, to_first.target, to_first.gradient_source,
            to_first.gradient_target)))
        return changed(value, mesh, Change(
            source, to_residual.target, to_residual.gradient_source,
            to_residual.gradient_target))

    layer.register_forward_pre_hook(
        _with_first_tensor(_INPUTS, on_layer), with_kwargs=True)
    first.register_forward_pre_hook(
        _with_first_tensor(_INPUTS, lambda _: branch.pop()), with_kwargs=True)


def _parallel_loss(model: Any, head: Any, mesh: Any) -> None:
    """Computes the loss from logits that are split by the vocabulary.

    The logits of the model become a DTensor, which PyTorch's
    ``loss_parallel`` reads, and the loss remains a plain tensor.
    """
    tensor = torch_module("distributed.tensor")

    def on_head(_: Any, __: Any, logits: Any) -> Any:
        return tensor.DTensor.from_local(logits, mesh, [tensor.Shard(-1)],
                                         run_check=False)

    def on_model(_: Any, __: Any, result: Any) -> Any:
        loss = getattr(result, "loss", None)
        if isinstance(loss, tensor.DTensor):
            result.loss = loss.to_local()
        return result

    head.register_forward_hook(on_head)
    model.register_forward_hook(on_model)
    _keep_loss_parallel()


@functools.cache
def _keep_loss_parallel() -> Any:
    """Enters ``loss_parallel`` for the whole process, once.

    Callers may run backward themselves, outside of mtplan's functions. The
    cache keeps the context alive, because garbage collection would exit it.
    """
    context = torch_module("distributed.tensor.parallel").loss_parallel()
    context.__enter__()
    return context
