"""Runs a step of a module to which a plan was applied.

The batch must have as many samples as a replica of the plan. A step that fails
leaves no gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtplan._data_parallel import reset_step
from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._tensor_split import layout_over


def roots_of(module: Any) -> list[tuple[Any, Any]]:
    """Returns the modules that a step calls, each with the model within it:
    the stages of a pipeline, or the whole module.

    >>> roots_of(3)
    [(3, 3)]
    """
    pipeline = getattr(module, "mtplan_pipeline", None)
    return ([(stage, stage.model) for stage in pipeline.stages.values()]
            if pipeline else [(module, module)])


def _check_batch(plan: Plan, module: Any, batch: dict[str, Any]) -> None:
    """Raises ``Error`` unless a module and a batch fit a plan."""
    if getattr(module, "mtplan_plan", None) != plan.saved_text():
        raise Error("this plan has not been applied to the module: call "
                    "plan.parallelize first")
    degrees = plan.parallelism
    samples = degrees.micro_batch * degrees.micro_batches
    tensor = torch_module().Tensor
    faults = [f"{key} must be a tensor with a row for each sample"
              for key, value in batch.items()
              if not isinstance(value, tensor) or not value.dim()]
    faults += [f"a replica has {samples} samples per step, but {key} has "
               f"{len(value)}" for key, value in batch.items()
               if not faults and len(value) != samples]
    faults += [f"the batch has no {key}" for key in ("input_ids", "labels")
               if key not in batch]
    if not faults and degrees.tp > 1:
        length = batch["input_ids"].shape[1]
        if length % degrees.tp and any(
                layout_over("tp", op.layout) == "S1"
                for run in plan.layers for op in run.ops):
            faults.append(f"the plan splits sequences over tp {degrees.tp}, "
                          f"which does not divide {length} tokens")
    if faults:
        raise Error(faults)


def backward(plan: Plan, module: Any, batch: dict[str, Any],
             entered: Callable[[str], None] = lambda _: None) -> float:
    """Computes the gradients of one step, and returns the loss of a replica.

    This implements ``Plan.backward``. ``entered`` is called with "forward",
    "backward" or "update" before a part of that phase runs.

    >>> backward(plan, model, {"input_ids": ids, "labels": ids})  # doctest: +SKIP
    6.2
    """
    _check_batch(plan, module, batch)
    try:
        if plan.parallelism.pp > 1:
            return float(module.mtplan_pipeline.step(batch, entered))
        return _one_stage(plan, module, batch, entered)
    except BaseException:
        if plan.parallelism.dp > 1:
            for root, _ in roots_of(module):
                reset_step(root)
        module.zero_grad(set_to_none=True)
        raise


def _one_stage(plan: Plan, module: Any, batch: dict[str, Any],
               entered: Callable[[str], None]) -> float:
    """Computes the gradients of a step without stages."""
    degrees = plan.parallelism
    count = degrees.micro_batches
    loss = 0.0
    for number in range(count):
        part = {key: value[number * degrees.micro_batch:
                           (number + 1) * degrees.micro_batch]
                for key, value in batch.items()}
        last = number == count - 1
        if degrees.dp > 1 and degrees.zero < 2:
            module.set_requires_gradient_sync(last)
        if degrees.dp > 1 and degrees.zero in (1, 2):
            module.set_reshard_after_backward(last)  # weights stay gathered
        entered("forward")
        one = module(**part, return_dict=True).loss / count
        entered("backward")
        one.backward()
        loss += float(one.detach())
    entered("update")
    return loss
