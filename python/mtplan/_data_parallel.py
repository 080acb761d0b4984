"""Shards or replicates parameters over dp: ``fully_shard``, ``replicate``.

A *root* is the outermost module that ``fully_shard`` or ``replicate`` is
applied to: the model, or each stage of a pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._plan_names import Family
from mtplan._stages import present
from mtplan._weight_types import widths


def groups_of(module: Any, family: Family) -> Iterator[list[Any]]:
    """Returns the modules whose parameters are grouped in one collective.

    These are the embedding, every layer, and the last norm with the head. If
    embedding and head are tied, modules outside the layers are left to the
    root. Modules of other stages have no parameters, and are left out.

    >>> from types import SimpleNamespace
    >>> from mtplan._plan_names import FAMILIES
    >>> empty = SimpleNamespace(named_modules=lambda: [("model.layers", [])])
    >>> list(groups_of(empty, FAMILIES["llama"]))
    []
    """
    modules = present(module)
    embedding, norm, head = (modules.get(family.names.get(label, ""))
                             for label in ("wte", "ln_f", "lm_head"))
    tied = embedding and head and embedding.weight is head.weight
    if embedding and not tied:
        yield [embedding]
    for layer in modules[family.layers]:
        if any(True for _ in layer.parameters()):
            yield [layer]
    if head and not tied and "ln_f" in family.names:
        yield [norm, head]


def divide_samples(plan: Plan, root: Any, model: Any, family: Family,
                   mesh: Any) -> None:
    """Shards or replicates parameters over dp, as the ZeRO stage says.

    ``root`` is the model or contains it. ``mesh`` has one dimension, dp.

    >>> divide_samples(plan, model, model, family, mesh)  # doctest: +SKIP
    """
    degrees = plan.parallelism
    fsdp = torch_module("distributed.fsdp")
    torch = torch_module()
    weights, gradients = ({2: torch.bfloat16, 4: torch.float32}[width]
                          for width in widths(plan))
    keywords: dict[str, Any] = {
        "mesh": mesh, "mp_policy": fsdp.MixedPrecisionPolicy(
            param_dtype=weights, reduce_dtype=gradients)}
    if degrees.zero:
        apply = fsdp.fully_shard
        keywords["reshard_after_forward"] = degrees.zero == 3
    else:
        apply = torch_module(
            "distributed._composable.replicate_with_fsdp").replicate
    groups = list(groups_of(model, family))
    for group in groups:
        for part in [group] if degrees.zero else group:
            apply(part, **keywords)
    apply(root, **keywords)
    root.register_forward_hook(_shard_after_evaluation)
    if degrees.zero == 3 and degrees.pp > 1:
        # By default, backward prefetches in the reverse order of the last
        # forward, which may be that of another micro-batch.
        order = [group[0] for group in groups] + [root]
        for number, one in enumerate(order):
            one.set_modules_to_backward_prefetch([order[max(number - 1, 0)]])


def _shard_after_evaluation(root: Any, _: Any, __: Any) -> None:
    """Frees gathered weights after a forward that no backward follows, because
    the optimizer may change the shards before the next forward."""
    if not root.training or not torch_module().is_grad_enabled():
        shard(root)


def begin_step(plan: Plan, root: Any) -> None:
    """Prepares a root for several forwards before the first backward.

    ZeRO 0 and 1 postpone the sum over replicas to ``end_step``; below ZeRO 3,
    weights stay gathered until then.

    >>> begin_step(plan, stage)  # doctest: +SKIP
    """
    zero = plan.parallelism.zero
    root.set_requires_gradient_sync(zero >= 2)
    root.set_reshard_after_backward(zero == 3)
    root.set_manual_backward_finalization(zero < 2)


def end_step(plan: Plan, root: Any) -> None:
    """Ends the step of a root, after all its backwards. Gradients are then
    averaged over replicas, and the optimizer sees shards.

    >>> end_step(plan, stage)  # doctest: +SKIP
    """
    zero = plan.parallelism.zero
    root.set_requires_gradient_sync(True)
    root.set_reshard_after_backward(True)
    if zero < 2:
        root.finalize_backward()
        root.set_manual_backward_finalization(False)
    if zero == 2:
        shard(root)


def reset_step(root: Any) -> None:
    """Ends a step that failed; its gradients are lost.

    >>> reset_step(model)  # doctest: +SKIP
    """
    # The first forward decides which module is the root. A step that failed
    # before its first forward left no state.
    if root._get_fsdp_state()._is_root is not None:
        root.reset_iter_state()
    root.set_manual_backward_finalization(False)
    root.set_requires_gradient_sync(True)
    root.set_reshard_after_backward(True)


def shard(root: Any) -> None:
    """Frees the gathered weights of a root.

    >>> shard(model)  # doctest: +SKIP
    """
    kind = torch_module("distributed.fsdp").FSDPModule
    for one in root.modules():
        if isinstance(one, kind):
            one.reshard()
