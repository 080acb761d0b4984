"""Applies a plan to a module of transformers with PyTorch's own parts.

``torch.distributed.pipelining`` runs the stages (``_pipeline``), DTensor splits
weights over tp (``_tensor_parallel``), ``fully_shard`` and ``replicate`` work
over dp (``_data_parallel``), and ``checkpoint_wrapper`` recomputes layers. All
that PyTorch cannot express is reported before the module is changed.
"""

from __future__ import annotations

import math
from typing import Any

from mtplan._data_parallel import divide_samples
from mtplan._errors import Error
from mtplan._expressible import checked
from mtplan._import_torch import torch_module
from mtplan._pipeline import Pipeline
from mtplan._plan import Plan
from mtplan._recompute import recompute
from mtplan._stages import is_absent, keep_stages
from mtplan._step import roots_of
from mtplan._tensor_parallel import change_entrance, split_modules
from mtplan._weight_types import widths


def parallelize(plan: Plan, module: Any, device_mesh: Any = None) -> Any:
    """Applies a plan to a module, in place, and returns the module.

    This implements ``Plan.parallelize``.

    >>> parallelize(plan, model)  # doctest: +SKIP
    LlamaForCausalLM(...)
    """
    family, split = checked(plan, module)
    mesh = _mesh(plan, module, device_mesh)
    degrees = plan.parallelism
    _compare_weights(module, mesh)
    module.mtplan_plan = plan.saved_text()
    torch = torch_module()
    dtype = torch.bfloat16 if widths(plan)[0] == 2 else torch.float32
    rank = mesh["pp"].get_local_rank() if degrees.pp > 1 else 0
    keep_stages(plan, module, family, rank, dtype)
    if degrees.tp > 1:
        split_modules(module, mesh["tp"], split, family)
    # A cache of keys would grow again when a layer is recomputed.
    module.config.use_cache = False
    recompute(plan, module, family, rank)
    first = module.get_submodule(family.layers)[0]
    if degrees.tp > 1 and split.entrance is not None and not is_absent(first):
        change_entrance(first, mesh["tp"], split.entrance)
    if degrees.pp > 1:
        module.mtplan_pipeline = Pipeline(plan, module, family, split, mesh,
                                          dtype)
        module.forward = _refuse_forward
    if degrees.dp > 1:
        for root, model in roots_of(module):
            divide_samples(plan, root, model, family, mesh["dp"])
    return module


def _refuse_forward(*_: Any, **__: Any) -> Any:
    """Replaces the forward of a module if other ranks hold parts of it.

    >>> _refuse_forward()
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: a rank holds some stages of this module, ...
    """
    raise Error("a rank holds some stages of this module, and cannot run all "
                "of it: call plan.backward")


def _mesh(plan: Plan, module: Any, given: Any) -> Any:
    """Returns ``given`` after a check, or a new mesh with the axes dp and tp,
    and pp if there are stages."""
    distributed = torch_module("distributed")
    degrees = plan.parallelism
    axes = ("pp", "dp", "tp") if degrees.pp > 1 else ("dp", "tp")
    sizes = tuple(degrees[axis] for axis in axes)
    words = " x ".join(f"{axis} {degrees[axis]}" for axis in axes)
    if not distributed.is_initialized():
        raise Error("no ranks: call torch.distributed.init_process_group")
    if given is None:
        mesh_of = torch_module("distributed.device_mesh").init_device_mesh
        ranks = distributed.get_world_size()
        if ranks != math.prod(sizes):
            raise Error(f"the plan is for {words}, and {ranks} ranks run")
        return mesh_of(next(module.parameters()).device.type, sizes,
                       mesh_dim_names=axes)
    names = given.mesh_dim_names or ()
    faults = []
    for axis in axes:
        size = given[axis].size() if axis in names else 1
        if size != degrees[axis]:
            faults.append(f"the plan has {axis} {degrees[axis]}, and the mesh "
                          f"{size}; its dimensions are named "
                          f"{' and '.join(axes)}")
    if not faults and given.size() != math.prod(sizes):
        named = ", ".join(f'"{axis}"' for axis in axes)
        faults.append(f"the mesh has {given.size()} ranks, and the plan "
                      f"{math.prod(sizes)}; pass mesh[{named}]")
    if faults:
        raise Error(faults)
    return given


def _compare_weights(module: Any, mesh: Any) -> None:
    """Raises ``Error`` on every rank if ranks hold different weights."""
    torch = torch_module()
    distributed = torch_module("distributed")
    names, weights = zip(*module.named_parameters())
    lowest = torch.stack([one.detach().double().abs().sum()
                          for one in weights])
    highest = lowest.clone()
    for number in range(mesh.ndim):
        for sums, kind in ((lowest, "MIN"), (highest, "MAX")):
            distributed.all_reduce(sums, getattr(distributed.ReduceOp, kind),
                                   group=mesh.get_group(number))
    # The sums may round differently, because processors add in other orders.
    differs = (highest - lowest > 1e-9 * highest).tolist()
    if any(differs):
        raise Error(f"{names[differs.index(True)]}: its values differ between "
                    "ranks; load or seed the same weights on all of them")
