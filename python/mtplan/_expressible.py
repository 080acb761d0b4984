"""Says what PyTorch does not support in a plan, and which plan is nearest."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._plan_names import FAMILIES, Family, family_name
from mtplan._recompute import unknown_attention
from mtplan._tensor_split import Split, layout_over, split_of
from mtplan._weight_types import wrong_types


@dataclass
class Verdict:
    """Holds what PyTorch does not support in a plan.

    ``ways`` holds alternatives, each of which leads to plans without one of the
    faults: keywords of a search with the values that PyTorch supports.

    >>> Verdict().faults
    []
    """

    split: Split = field(default_factory=Split)  #: splits over tp
    faults: list[str] = field(default_factory=list)
    ways: list[dict[str, Any]] = field(default_factory=list)
    nearest: dict[str, Any] = field(default_factory=dict)

    def nearest_words(self) -> list[str]:
        """Returns a line with the keywords of the nearest plan.

        >>> Verdict(nearest={"cp": 1, "schedule": ["1f1b"]}).nearest_words()
        ["nearest: mtplan.plan(..., cp=1, schedule='1f1b')"]
        """
        words = [f"{key}={value!r}" for key, value in (
            (key, value[0] if isinstance(value, list) and key != "pins"
             else value) for key, value in self.nearest.items())]
        return ([f"nearest: mtplan.plan(..., {', '.join(words)})"] if words
                else [])


#: Maps keywords to the values that PyTorch always needs, and to the reasons.
ALWAYS: dict[str, tuple[Any, str]] = {
    "cp": (1, "context_parallel of PyTorch runs ring attention with "
              "collectives that the plan does not count"),
    "ep": (1, "experts of transformers are one module"),
    "tiles": (1, "fully_shard gathers a weight as a whole"),
    "offload": ("none", "CPUOffloadPolicy moves weights and not only the "
                        "optimizer's state"),
    "zero_ranks": ("all", "fully_shard would sum gradients twice, over shards "
                          "and then over replicas, unlike the plan")}


def family_of(plan: Plan) -> Family:
    """Returns the names of the modules that a plan is for.

    >>> import mtplan
    >>> family_of(mtplan.plan("examples/tiny-t5.json", gpus=2))
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: no module of transformers for t5; there are bert, ...
    """
    kind = family_name(plan)
    if kind not in FAMILIES:
        raise Error(f"no module of transformers for {kind}; there are "
                    f"{', '.join(sorted(FAMILIES))}")
    return FAMILIES[kind]


def judged(plan: Plan) -> Verdict:
    """Returns what PyTorch does not support in a plan, for any module.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=8, cp=2, dp=4)
    >>> judged(plan).nearest
    {'cp': 1}
    """
    family = family_of(plan)
    report = json.loads(plan.to_json())
    verdict = Verdict(split_of(plan, family))
    _judge_axes(plan, verdict)
    precision = report["hardware"]["precision"]
    if precision in ("fp8", "fp16"):
        verdict.faults.append(
            "fp16: the training loop scales the loss, not the module"
            if precision == "fp16" else
            "fp8: modules of transformers compute in bf16 or fp32")
        verdict.nearest["precision"] = "bf16"
    if verdict.nearest:
        verdict.ways.append(dict(verdict.nearest))
    _judge_schedule(plan, verdict)
    if plan.parallelism.tp > 1:
        faults = verdict.split.faults + _wrong_weights(plan, family,
                                                       verdict.split)
        if faults:
            verdict.faults += faults
            first = bool(plan.parallelism.sequence_parallel)
            verdict.nearest["pins"] = pins_of(plan, family, first)
            verdict.ways += [
                {"sequence_parallel": divided,
                 "pins": pins_of(plan, family, divided)}
                for divided in (first, not first)]
        padding = report["model"]["padded_vocabulary"]
        rows = report["model"]["vocabulary"]
        kinds = [verdict.split.leaves[family.names[label]].kind
                 for label in ("wte", "lm_head")
                 if family.names[label] in verdict.split.leaves]
        if padding != rows and ("vocab" in kinds or "column" in kinds):
            verdict.faults.append(
                f"the plan splits {padding} rows of the vocabulary, and the "
                f"module has {rows}; call module.resize_token_embeddings("
                f"{padding}) and plan module.config")
    return verdict


def _judge_axes(plan: Plan, verdict: Verdict) -> None:
    """Adds what PyTorch never supports."""
    degrees = plan.parallelism
    if "tp2" in degrees:
        verdict.faults.append(f"tp2 {degrees.tp2}: parallelize_module has one "
                              "dimension of tensor ranks")
        verdict.nearest["tp_axes"] = 1
    for key, (plain, why) in ALWAYS.items():
        if key == "zero_ranks":
            if degrees.zero and degrees.zero_ranks != degrees.dp:
                verdict.faults.append(f"ZeRO over {degrees.zero_ranks} of "
                                      f"{degrees.dp} replicas: {why}")
                verdict.nearest[key] = plain
        elif degrees[key] != plain:
            verdict.faults.append(f"{key} {degrees[key]}: {why}")
            verdict.nearest[key] = plain


def _judge_schedule(plan: Plan, verdict: Verdict) -> None:
    """Adds what PyTorch's schedules do not support."""
    degrees = plan.parallelism
    if degrees.pp == 1:
        return
    ways: list[dict[str, Any]] = []
    if degrees.schedule == "1f1b" and degrees.micro_batches < degrees.pp:
        verdict.faults.append(
            f"1f1b with {degrees.micro_batches} micro-batches: Schedule1F1B "
            f"takes as many as there are stages, {degrees.pp}, or more")
        ways = [{"schedule": ["gpipe", "interleaved", "zero-bubble"]}]
    elif degrees.schedule == "zero-bubble" and degrees.zero > 1:
        verdict.faults.append(
            "zero-bubble: fully_shard cannot scatter gradients of weights that "
            "are computed apart from those of inputs in every micro-batch")
        ways = [{"schedule": ["1f1b", "interleaved", "gpipe"]},
                {"zero": [1, 0]}]
    if ways:
        verdict.nearest |= ways[0]
        verdict.ways += ways


def checked(plan: Plan, module: Any) -> tuple[Family, Split]:
    """Returns the names of a module's family and the splits of a plan.

    Raises ``Error`` with all that PyTorch does not support, and, last, with the
    keywords of the nearest plan that it supports.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-t5.json", gpus=2, tp=2)
    >>> checked(plan, None)
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: no module of transformers for t5; there are bert, ...
    """
    family = family_of(plan)
    report = json.loads(plan.to_json())
    faults = _wrong_module(report["model"], report["model"]["family"], family,
                           module)
    if faults:
        raise Error(faults)
    verdict = judged(plan)
    faults = verdict.faults
    split = verdict.split
    if plan.parallelism.tp > 1:
        faults += _wrong_dropout(module)
        # An optimizer cannot update DTensors and plain tensors together.
        faults += [
            f"{name}: the plan has no such parameter" for name, owner in (
                (name, name.rpartition(".")[0])
                for name, _ in module.named_parameters())
            if not split.faults and owner not in split.leaves
            and owner not in family.extra
            and owner + ".q" not in split.leaves]
    if plan.parallelism.recompute == "selective":
        faults += unknown_attention(module)
    if report["hardware"]["precision"] in ("bf16", "fp32"):
        faults += wrong_types(plan, report["hardware"]["precision"], module)
    if faults:
        raise Error(faults + verdict.nearest_words())
    return family, split


def _wrong_module(model: dict[str, Any], kind: str, family: Family,
                  module: Any) -> list[str]:
    """Returns sentences that say why the plan is not for the module.

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
        faults.append("the module has cross-attention, and the plan has not")
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


def _wrong_dropout(module: Any) -> list[str]:
    """Returns a sentence per dropout, whose masks would differ among tp ranks.

    >>> _wrong_dropout(model)  # doctest: +SKIP
    ['resid_pdrop 0.1: ...; set it to 0']
    """
    dropout = torch_module("nn").Dropout
    rates = {key: getattr(module.config, key, 0) for key in (
        "attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout",
        "hidden_dropout_prob", "attention_probs_dropout_prob")}
    if not any(rates.values()):  # the modules may have other rates
        rates = {name: one.p for name, one in module.named_modules()
                 if isinstance(one, dropout)}
    return [f"{name} {rate}: each PyTorch rank draws its own mask, but the "
            "plan's masks do not depend on the split; set it to 0"
            for name, rate in rates.items() if rate]


def _wrong_weights(plan: Plan, family: Family, split: Split) -> list[str]:
    """Returns sentences about weights whose storage and use differ over tp."""
    if split.faults:
        return []  # leaves are missing
    faults = []
    labels = set()
    for run in plan.layers:
        for one in run.parameters:
            label = one.label.replace("*", str(run.first), 1)
            labels.add(label)
            operator = label.rpartition(".")[0]
            if run.segment == "head" and operator == "wte":
                continue
            leaf = split.leaves.get(family.module(operator))
            stored = layout_over("tp", one.layout)
            if leaf is None:
                faults.append(f"{one.label}: no module of transformers")
            elif stored != "R" and leaf.kind in ("replicated", "sequence"):
                faults.append(f"{one.label}: is stored split over tp and "
                              "used replicated; fully_shard gathers over dp "
                              "only")
    kinds = (split.leaves[family.names["wte"]].kind,
             split.leaves[family.names["lm_head"]].kind)
    if "lm_head.weight" not in labels and kinds not in (
            ("vocab", "column"), ("replicated", "replicated")):
        faults.append(f"wte is split as {kinds[0]} and lm_head as {kinds[1]},"
                      " but they are one weight; pin wte=vocab")
    return faults


def pins_of(plan: Plan, family: Family, divided: bool) -> list[str]:
    """Returns pins under which modules of transformers can follow a plan.

    ``divided`` says whether norms and residual streams are split along the
    sequence.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, tp=2,
    ...                    sequence_parallel=True)
    >>> pins_of(plan, FAMILIES["llama"], True)[:2]
    ['wte=vocab', 'h.*.ln_1=sequence']
    """
    word = "sequence" if divided else "replicated"
    whole = ("wpe", "wtt", "embed.add", "embed.norm", "embed.drop")
    labels = {op.label for run in plan.layers for op in run.ops}
    streams = ("ln_1", "ln_2", "attn.add", "mlp.add", "attn.drop", "mlp.drop",
               "ln_1.grad", "ln_2.grad", "ln_1.sum", "ln_2.sum")
    pins = {"wte": "vocab", **{label: "replicated" for label in whole},
            **{f"h.*.{label}": word for label in streams},
            "h.*.mlp.fc1.sum": word, "ln_f": word, "ln_f.grad": word,
            **{f"cls.transform{part}": "replicated"
               for part in ("", ".dx", ".dw")},
            **{f"cls.{part}": "replicated"
               for part in ("act", "norm", "norm.grad")},
            **{label: "vocab" for label in ("lm_head", "loss.max",
                                            "loss.sum_exp", "loss.pick")}}
    return [f"{label}={pin}" for label, pin in pins.items() if label in labels]
