"""Runs a step of a module to which a plan was applied.

The types of its weights and its dropout must be such that the step trains as the
plan does; its batch must have the plan's samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._tensor_split import layout_over


def widths(plan: Plan) -> tuple[int, int]:
    """Returns the bytes of a weight and of its gradient between replicas.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, dp=2,
    ...                    precision="fp32")
    >>> widths(plan)
    (4, 4)
    """
    report = json.loads(plan.to_json())
    norm = next(one for run in plan.layers for one in run.parameters
                if ".ln_1" in one.label or "embed.norm" in one.label)
    weight = norm.bytes / norm.local_shape[0]
    sums = [line.bytes / report["model"]["hidden"]
            for line in plan.collectives
            if line.axis == "dp" and line.kind != "all_gather"
            and line.cause.startswith(norm.label.rpartition(".")[0])]
    return round(weight), round(max(sums, default=weight))


def wrong_types(plan: Plan, precision: str, module: Any) -> list[str]:
    """Returns sentences if weights would not be computed and stored as planned.

    ``fully_shard`` casts weights to the plan's type, and keeps those of the
    module as master weights. Without replicas nothing is cast.

    >>> wrong_types(plan, "bf16", module.half())  # doctest: +SKIP
    ['dp 4: ... float16']
    """
    torch = torch_module()
    replicas = plan.parallelism.dp
    wanted = (torch.bfloat16 if precision == "bf16" and replicas == 1
              else torch.float32)
    return [f"dp {replicas}: the module's weights are {found}, and must be "
            f"{wanted}" + (
                ", the type of the plan's weights: MixedPrecisionPolicy "
                "belongs to fully_shard" if replicas == 1 else
                ", the type of the master weights that fully_shard keeps")
            for found in {str(one.dtype): one.dtype
                          for one in module.parameters()}.values()
            if found != wanted]


def wrong_dropout(module: Any) -> list[str]:
    """Returns a sentence if ranks of a tp group would drop different values.

    >>> wrong_dropout(model)  # doctest: +SKIP
    ['resid_pdrop 0.1: ...; set it to 0']
    """
    dropout = torch_module("nn").Dropout
    rates = {key: getattr(module.config, key, 0) for key in (
        "attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout",
        "hidden_dropout_prob", "attention_probs_dropout_prob")}
    if not any(rates.values()):  # the modules may have been edited
        rates = {name: one.p for name, one in module.named_modules()
                 if isinstance(one, dropout)}
    return [f"{name} {rate}: a rank of PyTorch draws its own mask, and the "
            "plan's masks do not depend on the split; set it to 0"
            for name, rate in rates.items() if rate]


def roots_of(module: Any) -> list[tuple[Any, Any]]:
    """Returns what a step calls: the stages of a pipeline, or the module, each
    with the model within it.

    >>> roots_of(3)
    [(3, 3)]
    """
    pipeline = getattr(module, "mtplan_pipeline", None)
    return ([(stage, stage.model) for stage in pipeline.stages.values()]
            if pipeline else [(module, module)])


def _check_batch(plan: Plan, module: Any, batch: dict[str, Any]) -> None:
    """Raises ``Error`` unless a module and a batch are those of a plan."""
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

    ``Plan.backward`` describes it. ``entered`` is called with "forward",
    "backward" or "update" before a part of that phase runs.

    >>> backward(plan, model, {"input_ids": ids, "labels": ids})  # doctest: +SKIP
    6.2
    """
    _check_batch(plan, module, batch)
    degrees = plan.parallelism
    if degrees.pp > 1:
        return float(module.mtplan_pipeline.step(batch, entered))
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
            module.set_reshard_after_backward(last)  # weights stay whole
        entered("forward")
        one = module(**part, return_dict=True).loss / count
        entered("backward")
        one.backward()
        loss += float(one.detach())
    return loss
