"""Applies a plan to a module of transformers with PyTorch's own parts.

Stages are those of ``torch.distributed.pipelining`` (``_pipeline``), tensor
parallelism is DTensor's (``_tensor_parallel``), data parallelism that of
``fully_shard`` and ``replicate`` (``_data_parallel``), recomputation that of
``checkpoint_wrapper``. What PyTorch cannot express is reported before the module is
touched.
"""

from __future__ import annotations

import json
import math
from typing import Any

from mtplan._data_parallel import divide_samples
from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._pipeline import Pipeline, wrong_schedule
from mtplan._plan import Plan
from mtplan._plan_names import FAMILIES, Family
from mtplan._recompute import recompute, unknown_attention
from mtplan._stages import is_absent, keep_stages
from mtplan._step import roots_of, widths, wrong_dropout, wrong_types
from mtplan._tensor_parallel import change_entrance, split_modules
from mtplan._tensor_split import Split, layout_over, split_of


def parallelize(plan: Plan, module: Any, device_mesh: Any = None) -> Any:
    """Applies a plan to a module, in place, and returns the module.

    ``Plan.parallelize`` describes it.

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
    """Stands for the forward of a module of which other ranks hold parts."""
    raise Error("a rank holds some stages of this module, and cannot run all of "
                "it: call plan.backward")


def checked(plan: Plan, module: Any) -> tuple[Family, Split]:
    """Returns the names of a module's family and the splits of a plan.

    Raises ``Error`` with all that PyTorch has no words for, and, last, with the
    keywords of the nearest plan that it has words for.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-t5.json", gpus=2, tp=2)
    >>> checked(plan, None)
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: no module of transformers for t5; there are bert, ...
    """
    report = json.loads(plan.to_json())
    kind = report["model"]["family"]
    if kind not in FAMILIES:
        raise Error(f"no module of transformers for {kind}; there are "
                    f"{', '.join(sorted(FAMILIES))}")
    family = FAMILIES[kind]
    faults = _wrong_module(report["model"], kind, family, module)
    if faults:
        raise Error(faults)
    found, nearest = _other_axes(plan)
    faults += found
    split = split_of(plan, family)
    if plan.parallelism.tp > 1 and not faults:
        faults += split.faults + _wrong_weights(plan, family, split, module)
        faults += wrong_dropout(module)
        # An optimizer cannot update DTensors and plain tensors together.
        faults += [f"{name}: the plan has no such parameter" for name, owner in (
            (name, name.rpartition(".")[0])
            for name, _ in module.named_parameters())
            if owner not in split.leaves and owner not in family.extra
            and owner + ".q" not in split.leaves]
        padding = report["model"]["padded_vocabulary"]
        rows = report["model"]["vocabulary"]
        kinds = [split.leaves[family.names[label]].kind
                 for label in ("wte", "lm_head")]
        if padding != rows and ("vocab" in kinds or "column" in kinds):
            faults.append(
                f"the plan splits {padding} rows of the vocabulary, and the "
                f"module has {rows}; call module.resize_token_embeddings("
                f"{padding}) and plan module.config")
        if split.faults:
            nearest["pins"] = _pins(plan, family)
    if plan.parallelism.recompute == "selective":
        faults += unknown_attention(module)
    faults += wrong_types(plan, report["hardware"]["precision"], module)
    if report["hardware"]["precision"] in ("fp8", "fp16"):
        nearest["precision"] = "bf16"
    if faults:
        if nearest:
            faults.append("nearest: mtplan.plan(..., " + ", ".join(
                f"{key}={value!r}" for key, value in nearest.items()) + ")")
        raise Error(faults)
    return family, split


def _wrong_module(model: dict[str, Any], kind: str, family: Family,
                  module: Any) -> list[str]:
    """Returns a sentence if the plan is not one for the module.

    >>> _wrong_module({}, "llama", FAMILIES["llama"], None)
    ['a plan for llama is applied to LlamaForCausalLM or ..., but this is a NoneType']
    """
    name = type(module).__name__
    if hasattr(module, "mtplan_plan"):
        return ["a plan has been applied to this module; build a new one"]
    if name not in family.classes:
        return [f"a plan for {kind} is applied to "
                f"{' or '.join(family.classes)}, but this is a {name}"]
    config = module.config
    sizes = {"layers": config.num_hidden_layers,
             "hidden": config.hidden_size,
             "heads": config.num_attention_heads}
    faults = [f"the plan is for {model[key]} {key}, and the module has {value}"
              for key, value in sizes.items() if model[key] != value]
    if config.vocab_size not in (model["vocabulary"],
                                 model["padded_vocabulary"]):
        faults.append(f"the plan is for a vocabulary of {model['vocabulary']},"
                      f" and the module has {config.vocab_size}")
    if getattr(config, "add_cross_attention", False):
        faults.append("the plan has no cross-attention, and the module has")
    count = sum(one.numel() for one in module.parameters())
    added = model["padding_parameters"]
    if not faults and count not in (model["parameters"],
                                    model["parameters"] - added):
        faults.append(f"the plan is for {model['parameters']} parameters, and "
                      f"the module has {count}; plan module.config")
    if any(hasattr(one, "placements") for one in module.parameters()):
        faults.append("the module's weights are DTensors already")
    if any(one.is_meta for one in module.parameters()):
        faults.append("the module's weights are on the meta device; load them")
    return faults


def _other_axes(plan: Plan) -> tuple[list[str], dict[str, Any]]:
    """Returns sentences about axes without words, and keywords without them.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=8, cp=2, dp=4)
    >>> _other_axes(plan)[1]
    {'cp': 1}
    """
    degrees = plan.parallelism
    faults, nearest = [], dict[str, Any]()
    for key, plain, why in (
            ("cp", 1, "context_parallel of PyTorch runs ring attention with "
                      "collectives that the plan does not count"),
            ("ep", 1, "experts of transformers are one module"),
            ("tiles", 1, "fully_shard gathers a weight as a whole"),
            ("offload", "none", "CPUOffloadPolicy moves weights and not only "
                                "the optimizer's state")):
        if degrees[key] != plain:
            faults.append(f"{key} {degrees[key]}: {why}")
            nearest[key] = plain
    if degrees.zero and degrees.zero_ranks != degrees.dp:
        faults.append(f"ZeRO over {degrees.zero_ranks} of {degrees.dp} "
                      "replicas: fully_shard would sum gradients twice, over "
                      "shards and then over copies, in an order of its own")
        nearest["zero_ranks"] = "all"
    wrong, other = wrong_schedule(plan)
    return faults + wrong, nearest | other


def _wrong_weights(plan: Plan, family: Family, split: Split, module: Any
                   ) -> list[str]:
    """Returns sentences about weights that are stored unlike they are used."""
    faults = []
    for run in plan.layers:
        for one in run.parameters:
            label = one.label.replace("*", str(run.first), 1)
            operator = label.rpartition(".")[0]
            if run.segment == "head" and operator == "wte":
                continue
            leaf = split.leaves.get(family.module(operator))
            stored = layout_over("tp", one.layout)
            if leaf is None:
                faults.append(f"{one.label}: no module of transformers")
            elif stored != "R" and leaf.kind in ("replicated", "sequence"):
                faults.append(f"{one.label}: is stored split over tp and used "
                              "whole; fully_shard gathers over dp only")
    config = module.config
    tied = getattr(config, "tie_word_embeddings", False)
    kinds = (split.leaves[family.names["wte"]].kind,
             split.leaves[family.names["lm_head"]].kind)
    if tied and kinds not in (("vocab", "column"),
                              ("replicated", "replicated")):
        faults.append(f"wte is split as {kinds[0]} and lm_head as {kinds[1]},"
                      " but they are one weight; pin wte=vocab")
    return faults


def _pins(plan: Plan, family: Family) -> list[str]:
    """Returns pins under which modules of transformers can follow a plan.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, tp=2,
    ...                    sequence_parallel=True)
    >>> _pins(plan, FAMILIES["llama"])[:2]
    ['wte=vocab', 'h.*.ln_1=sequence']
    """
    word = ("sequence" if plan.parallelism.sequence_parallel
            and not family.post_norm else "replicated")
    whole = ("wpe", "wtt", "embed.add", "embed.norm", "embed.drop")
    labels = {op.label for run in plan.layers for op in run.ops}
    streams = ("ln_1", "ln_2", "attn.add", "mlp.add", "attn.drop", "mlp.drop",
               "ln_1.grad", "ln_2.grad", "ln_1.sum", "ln_2.sum")
    pins = {"wte": "vocab", **{label: "replicated" for label in whole},
            **{f"h.*.{label}": word for label in streams},
            "h.*.mlp.fc1.sum": word, "ln_f": word, "ln_f.grad": word,
            **{f"cls.transform{part}": "replicated"
               for part in ("", ".dx", ".dw")},
            **{label: "vocab" for label in ("lm_head", "loss.max",
                                            "loss.sum_exp", "loss.pick")}}
    return [f"{label}={pin}" for label, pin in pins.items() if label in labels]


def _mesh(plan: Plan, module: Any, given: Any) -> Any:
    """Returns a mesh with the axes dp and tp, and pp if there are stages;
    ``given`` is checked."""
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
    # Processors add in different orders.
    differs = (highest - lowest > 1e-9 * highest).tolist()
    if any(differs):
        raise Error(f"{names[differs.index(True)]}: its values differ between "
                    "ranks; load or seed the same weights on all of them")
