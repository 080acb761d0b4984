"""Says what JAX cannot express in a plan, before anything is built."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import Any

from mtplan._errors import Error
from mtplan._expressible import Verdict, pins_of
from mtplan._jax_layouts import KINDS, Hook, hooks_of, labelled
from mtplan._jax_names import Stored
from mtplan._jax_parameters import gradient_dims
from mtplan._plan import Plan
from mtplan._plan_names import family_name
from mtplan._recompute import recomputed
from mtplan._tensor_split import Split, split_of


def split_for(plan: Plan) -> tuple[Split, dict[str, Hook]]:
    """Returns the splits of a plan over tp, and the hook of each operator.

    Raises ``Error`` with every choice of the plan that JAX cannot express,
    and, last, with the keywords of the nearest plan that it can express.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=4, pp=2, dp=2)
    >>> split_for(plan)
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: pp 2: ...
    nearest: mtplan.plan(..., pp=1)
    """
    kind = family_name(plan)
    verdict = _other_axes(plan)
    known = [one for one, family in KINDS.items() if not family.post_norm]
    if plan.parallelism.tp > 1 and kind not in known:
        verdict.faults.append(
            f"tp {plan.parallelism.tp}: mtplan has hooks over tp for "
            f"{', '.join(sorted(known))}, and not for {kind}")
        verdict.nearest["tp"] = 1
    elif plan.parallelism.tp > 1:
        family = labelled(KINDS[kind])
        verdict.split = split_of(plan, family, "mtplan's hooks for JAX")
        verdict.faults += verdict.split.faults
        if verdict.split.faults:
            verdict.nearest["pins"] = pins_of(
                plan, family, bool(plan.parallelism.sequence_parallel))
    if verdict.faults:
        raise Error(verdict.faults + verdict.nearest_words())
    return verdict.split, hooks_of(plan, verdict.split)


def _other_axes(plan: Plan) -> Verdict:
    """Returns faults of choices beyond dp and tp, and keywords that avoid them.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=8, cp=2, dp=4)
    >>> _other_axes(plan).nearest
    {'cp': 1}
    """
    degrees, verdict = plan.parallelism, Verdict()
    if "tp2" in degrees:
        verdict.faults.append(f"tp2 {degrees.tp2}: the mesh has one axis tp")
        verdict.nearest["tp_axes"] = 1
    for key, plain, why in (
            ("pp", 1, "a sharding has no stages; the model implements them "
                      "as a loop over ppermute"),
            ("cp", 1, "the model implements ring attention, not a sharding"),
            ("ep", 1, "the model implements the exchange of tokens, not a "
                      "sharding"),
            ("virtual_stages", 1, "virtual stages need pp"),
            ("tiles", 1, "a weight is gathered as a whole"),
            ("offload", "none", "the optimizer decides whether it updates on "
                                "the host")):
        if degrees[key] != plain:
            verdict.faults.append(f"{key} {degrees[key]}: {why}")
            verdict.nearest[{"virtual_stages": "vp"}.get(key, key)] = plain
    if degrees.zero and degrees.zero_ranks != degrees.dp:
        verdict.faults.append(f"ZeRO over {degrees.zero_ranks} of "
                              f"{degrees.dp} replicas: the mesh has one axis "
                              "dp")
        verdict.nearest["zero_ranks"] = "all"
    return verdict


def uneven(plan: Plan, stored: list[Stored]) -> list[str]:
    """Returns sentences about parameters whose shards are not equal.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=4, dp=4)
    >>> uneven(plan, [Stored("wte.weight", (502, 64), (("dp",), ()))])
    ['wte.weight: JAX stores equal shards, and dp 4 does not divide 502']
    """
    degrees = plan.parallelism
    faults = [f"{one.label}: JAX stores equal shards, and "
              f"{' x '.join(f'{axis} {degrees[axis]}' for axis in axes)} does "
              f"not divide {size}"
              for one in stored for size, axes in zip(one.shape, one.dims)
              if size % prod(degrees[axis] for axis in axes)]
    if degrees.zero and degrees.dp > 1:
        faults += [f"{one.label}: ZeRO {degrees.zero} shards the gradient, and "
                   f"dp {degrees.dp} divides no dimension of the "
                   f"{list(shard)} that a rank of tp has"
                   for one in stored for shard in [
                       [size // prod(degrees[axis] for axis in axes)
                        for size, axes in zip(one.shape, one.dims)]]
                   if not any("dp" in axes for axes in gradient_dims(
                       plan, one))]
    return faults


#: Maps each precision of a plan to the type of its weights.
_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16",
          "fp8": "bfloat16"}


def wrong_types(plan: Plan, stored: list[Stored], types: Sequence[Any]
                ) -> list[str]:
    """Returns a sentence for each type of parameters that is not the plan's.

    ``types`` has the type of each parameter.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=1,
    ...                    precision="fp32")
    >>> wrong_types(plan, [Stored("wte.weight", (512, 64), ((), ()))],
    ...             ["float16"])
    ["wte.weight: the leaf is float16, and ... or plan with precision='fp16'"]
    """
    precision = json.loads(plan.to_json())["hardware"]["precision"]
    wanted = _TYPES[precision]
    first = {str(kind): one.label for one, kind
             in reversed([*zip(stored, types)])}
    others = {kind: f", or plan with precision={key!r}"
              for key, kind in _TYPES.items() if key != "fp8"}
    return [f"{label}: the leaf is {kind}, and weights under precision "
            f"{precision} are {wanted}; cast the parameters and keep master "
            f"weights in the optimizer{others.get(kind, '')}"
            for kind, label in first.items() if kind != wanted]


def unlike_layers(plan: Plan, stored: list[Stored], hooks: dict[str, Hook]
                  ) -> list[str]:
    """Returns sentences about differences between layers, if the tree has
    arrays of all layers, over which a loop runs.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=1,
    ...                    recompute="full", recompute_layers=1)
    >>> unlike_layers(plan, [Stored("h.*.ln_1.weight", (2, 64), ((), ()))], {})
    ['recompute_layers 1: a loop over all layers recomputes all or none']
    """
    if not any("*" in one.label for one in stored):
        return []
    faults = []
    kind, count = recomputed(plan)
    layers = sum(run.copies for run in plan.layers if run.segment == "h")
    if kind == "full" and count not in (0, layers):
        faults.append(f"recompute_layers {count}: a loop over all layers "
                      "recomputes all or none")
    for label, hook in hooks.items():
        first = "h.0." + label.partition(".")[2].partition(".")[2]
        if label.startswith("h.") and hook != hooks[first]:
            faults.append(f"{label} is laid out unlike {first}, but a loop "
                          "runs over an array of all layers; pass one array "
                          "for each layer")
    return faults
