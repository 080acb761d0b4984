"""Wraps what a plan recomputes: layers, or attention in all of them."""

from __future__ import annotations

import importlib
import json
from typing import Any

from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._plan_names import Family
from mtplan._stages import layers_of_stages, stages_of_rank


def recomputed(plan: Plan) -> tuple[str, int]:
    """Returns what is recomputed, and in how many layers of a stage at most.

    >>> import mtplan
    >>> recomputed(mtplan.plan("examples/tiny-llama.json", gpus=1,
    ...                        recompute="full"))
    ('full', 2)
    """
    saved = json.loads(plan.saved_text())["plans"][0]["parallelism"]
    layers = sum(run.copies for run in plan.layers if run.segment == "h")
    count = saved["recompute_layers"]
    return saved["recompute"], layers if count < 0 else count


def recompute(plan: Plan, module: Any, family: Family, rank: int) -> None:
    """Wraps the layers that are recomputed, or attention in all of them.

    ``rank`` is the rank along pp. The first layers of each of its virtual
    stages are recomputed.

    >>> import mtplan
    >>> from mtplan._plan_names import FAMILIES
    >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2, recompute="none")
    >>> recompute(plan, None, FAMILIES["gpt2"], 0)  # nothing is wrapped
    """
    kind, count = recomputed(plan)
    if kind == "full":
        wrap = torch_module(
            "distributed.algorithms._checkpoint.checkpoint_wrapper"
        ).checkpoint_wrapper
        layers = module.get_submodule(family.layers)
        for stage in stages_of_rank(plan, rank):
            mine = layers_of_stages(plan)[stage]
            for number in mine[:count]:
                layers[number] = wrap(layers[number])
    elif kind == "selective":
        _recompute_attention(module)


def _attention_functions() -> tuple[Any, Any]:
    """Returns the registries of transformers for attention and for masks."""
    return (importlib.import_module("transformers.modeling_utils"
                                    ).ALL_ATTENTION_FUNCTIONS,
            importlib.import_module("transformers.masking_utils"
                                    ).ALL_MASK_ATTENTION_FUNCTIONS)


def unknown_attention(module: Any) -> list[str]:
    """Returns a sentence if attention of a module cannot be recomputed.

    >>> unknown_attention(model)  # doctest: +SKIP
    []
    """
    name = module.config._attn_implementation
    if all(name in one for one in _attention_functions()):
        return []
    return [f"recompute selective: {name} attention of transformers is not "
            "registered; load the module with attn_implementation=\"sdpa\""]


def _recompute_attention(module: Any) -> None:
    """Lets attention keep only q, k and v for backward.

    transformers finds the function by its name in a registry of the process.
    """
    interface, masks = _attention_functions()
    name = module.config._attn_implementation
    inner = interface[name]
    checkpoint = torch_module("utils.checkpoint").checkpoint

    def attention(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(inner, *args, use_reentrant=False, **kwargs)

    recomputed = f"mtplan_recomputed_{name}"
    interface.register(recomputed, attention)
    masks.register(recomputed, masks[name])
    module.config._attn_implementation = recomputed
