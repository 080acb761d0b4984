"""Clips gradients by their global norm, over every axis of ranks."""

from __future__ import annotations

from typing import Any

from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._pipeline import local_part
from mtplan._plan import Plan


def clip_gradients(plan: Plan, module: Any, most: float) -> float:
    """Scales gradients so that their norm is at most ``most``.

    This implements ``Plan.clip_grad_norm``.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2)
    >>> clip_gradients(plan, None, 0.0)
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: max_norm: must be above 0, but is 0.0
    """
    if not most > 0:
        raise Error(f"max_norm: must be above 0, but is {most}")
    if getattr(module, "mtplan_plan", None) != plan.saved_text():
        raise Error("this plan has not been applied to the module: call "
                    "plan.parallelize first")
    torch = torch_module()
    given = {name: one for name, one in module.named_parameters()
             if one.grad is not None}
    norm = _squares(plan, module, given).sqrt()
    factor = (most / (norm + 1e-6)).clamp(max=1.0)
    with torch.no_grad():
        for one in given.values():
            local_part(one.grad).mul_(factor)
    return float(norm)


def _squares(plan: Plan, module: Any, given: dict[str, Any]) -> Any:
    """Returns, on every rank, the sum of the squares of all gradients."""
    torch = torch_module()
    distributed = torch_module("distributed")
    pipeline = getattr(module, "mtplan_pipeline", None)
    first = next(module.parameters())
    # Gradients are sharded over dp, tp, both or neither; each case has a sum.
    axes = [axis for axis in ("dp", "tp") if plan.parallelism[axis] > 1]
    sums: dict[tuple[str, ...], Any] = {
        tuple(axis for number, axis in enumerate(axes) if bits >> number & 1):
        torch.zeros((), dtype=torch.float64, device=first.device)
        for bits in range(2 ** len(axes))}
    groups: dict[str, Any] = {}
    counted = set()  # a table tied between two stages counts in the first
    if pipeline and distributed.get_rank(pipeline.group) and pipeline.tied:
        counted.add(id(pipeline.tied.weight))
    for name, one in given.items():
        if id(one) in counted:
            continue
        divided = []
        places = getattr(one.grad, "placements", ())
        for number, place in enumerate(places):
            axis = one.grad.device_mesh.mesh_dim_names[number]
            if axis not in axes:
                continue
            groups[axis] = one.grad.device_mesh.get_group(number)
            if place.is_partial():
                raise Error(f"{name}: its gradient is not summed over {axis}")
            if not place.is_replicate():
                divided.append(axis)
        sums[tuple(axis for axis in axes if axis in divided)] += (
            local_part(one.grad).detach().double().square().sum())
    for axis in groups:
        parts = [key for key in sums if axis in key]
        summed = torch.stack([sums[key] for key in parts])
        distributed.all_reduce(summed, group=groups[axis])
        sums.update(zip(parts, summed))
    total = torch.stack(list(sums.values())).sum()
    if pipeline:
        distributed.all_reduce(total, group=pipeline.group)
    return total
