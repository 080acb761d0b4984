"""Says in which types a plan keeps weights and sums gradients."""

from __future__ import annotations

import json
from typing import Any

from mtplan._import_torch import torch_module
from mtplan._plan import Plan


def widths(plan: Plan) -> tuple[int, int]:
    """Returns the bytes of a weight, and of its gradient summed over replicas.

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
    """Returns sentences if the module's weights have other types than planned.

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
