"""Compares the collectives of a step that XLA compiled with those of a plan.

Where XLA differs from the plan for a known reason, the reason predicts exactly
what the compiled program has instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mtplan._collective_table import (Calls, Comparison, Reason, compared,
                                      key_of)
from mtplan._jax_hlo import collectives_of
from mtplan._jax_layouts import jax_module, starred
from mtplan._jax_reshard import PRODUCTS
from mtplan._plan import Plan
from mtplan._record import Record

if TYPE_CHECKING:
    from mtplan._jax import Shardings


def compare(shardings: Shardings, step: Any, args: Any, kwargs: Any
            ) -> Comparison:
    """Compiles a step, and compares its collectives with the plan's.

    This implements ``Shardings.check``.

    >>> compare(shardings, step, (params, state, batch), {})  # doctest: +SKIP
    """
    if not hasattr(step, "as_text"):
        jitted = step if hasattr(step, "lower") else jax_module().jit(step)
        step = jitted.lower(*args, **kwargs).compile()
    text = step.as_text()
    issued = collectives_of(text, dict(shardings.mesh.shape))
    ledger = ledger_of(shardings.plan)
    platform = shardings.mesh.devices.flat[0].platform
    return compared(ledger, reasons_of(shardings.plan, ledger, platform,
                                       products_of(text)), issued)


def products_of(text: str) -> set[str]:
    """Returns the operators of a program whose inputs went through
    ``products``.

    ``text`` is the result of ``compiled.as_text()``.

    >>> sorted(products_of('op_name="jit(f)/mtplan_products_h.*.attn.q'
    ...                    '+h.*.attn.k/dot"'))
    ['h.*.attn.k', 'h.*.attn.q']
    """
    return {one for found in re.findall(PRODUCTS + r"([\w.*+]+)", text)
            for one in found.split("+")}


def ledger_of(plan: Plan) -> list[Record]:
    """Returns the lines of a plan, with sums of gradients moved to backward.

    XLA sums gradients where they are computed, also those that the plan sums
    once per step.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, dp=2)
    >>> {line.phase for line in ledger_of(plan) if line.cause != "loss"
    ...  and line.kind == "all_reduce"}
    {'backward'}
    """
    return [Record(line, phase="backward")
            if line.kind in ("all_reduce", "reduce_scatter")
            and line.phase == "update" and line.cause != "loss" else line
            for line in plan.collectives]


def reasons_of(plan: Plan, ledger: list[Record], platform: str,
               shared: set[str]) -> list[Reason]:
    """Returns the known ways in which XLA differs from a plan's lines.

    ``shared`` are the operators whose inputs went through ``products``.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, dp=2, zero=0)
    >>> [one.words.split(":")[0] for one in reasons_of(
    ...     plan, ledger_of(plan), "gpu", set())]
    ['gradient norm', 'loss']
    """
    changed = _Changed(ledger)
    changed.by("gradient norm: computed by the optimizer, which chooses where "
               "to sum it", lambda line: line.axis == "all", lambda line: [])
    changed.by("loss: XLA sums one number over dp in each forward, and knows "
               "that tp ranks have the same one",
               lambda line: line.cause == "loss" and line.phase == "update",
               lambda line: [Record(
                   line, phase="forward", bytes=4,
                   count_per_step=plan.parallelism.micro_batches)]
               if line.axis == "dp" else [])
    changed.by("products: XLA sums the gradient of an input over tp for each "
               "of the operators that share it",
               lambda line: _sharing(line.cause) and line.axis == "tp"
               and _sharing(line.cause)[0] not in {
                   starred(one) for one in shared},
               lambda line: [Record(line, count_per_step=line.count_per_step
                                    * len(_sharing(line.cause)))])
    once = {(line.cause, line.axis) for line in plan.collectives
            if line.phase == "update" and line.kind != "all_gather"}
    if plan.parallelism.micro_batches > 1:
        changed.by("micro-batches: XLA sums gradients in each micro-batch",
                   lambda line: (line.cause, line.axis) in once
                   and line.phase == "backward",
                   lambda line: [Record(
                       line, count_per_step=line.count_per_step
                       * plan.parallelism.micro_batches)])
    if plan.parallelism.zero and plan.parallelism.dp > 1:
        changed.by("norms: XLA sums gradients over tp before it shards them "
                   "over dp", lambda line: line.axis == "tp"
                   and line.phase == "backward" and _is_small(line.cause),
                   lambda line: [Record(line, bytes=line.bytes
                                        * plan.parallelism.dp)])
    if _is_tied(plan):
        changed.by("a tied table: XLA sums the gradients of its two uses "
                   "apart", lambda line: line.cause == "wte.weight"
                   and line.axis == "dp" and line.phase == "backward"
                   and line.kind != "all_gather",
                   lambda line: [Record(line, count_per_step=2
                                        * line.count_per_step)])
        changed.by("a tied table: is gathered once in forward, and kept for "
                   "the head", lambda line: line.cause == "wte.weight"
                   and line.axis == "dp" and line.phase == "forward",
                   lambda line: [line] if line.segment == "embed" else [])
    if platform == "cpu":
        changed.by("CPU: XLA sums everything and slices, where it scatters on "
                   "other devices",
                   lambda line: line.kind == "reduce_scatter",
                   lambda line: [Record(line, kind="all_reduce")])
    return changed.reasons


class _Changed:
    """Holds the lines of a plan, which known differences change one by one."""

    def __init__(self, lines: list[Record]) -> None:
        self.lines = lines
        self.reasons = list[Reason]()

    def by(self, words: str, which: Callable[[Record], Any],
           into: Callable[[Record], list[Record]]) -> None:
        """Replaces each line that ``which`` selects by those of ``into``."""
        before = [line for line in self.lines if which(line)]
        after = [one for line in before for one in into(line)]
        if before:
            self.reasons.append(Reason(words, _calls(before), _calls(after)))
            self.lines = [line for line in self.lines
                          if not which(line)] + after


def _calls(lines: list[Record]) -> Calls:
    calls: Calls = Counter()
    for line in lines:
        calls[key_of(line)] += int(line.count_per_step)
    return calls


def _sharing(cause: str) -> list[str]:
    """Returns the operators whose gradients the operator ``cause`` adds.

    >>> _sharing("h.*.mlp.gate.sum")
    ['h.*.mlp.gate', 'h.*.mlp.up']
    """
    block, _, last = cause.rpartition(".")
    layer, _, name = block.rpartition(".")
    names = {"q": "qkv", "gate": ("gate", "up")}.get(name, ())
    return [f"{layer}.{one}" for one in names] if last == "sum" else []


def _is_small(cause: str) -> bool:
    """Returns whether a cause is the gradient of a norm or a bias.

    >>> _is_small("h.*.ln_1.grad#2"), _is_small("h.*.attn.q.sum")
    (True, False)
    """
    return ".grad#" in cause or cause.endswith((".db", ".bias", ".weight"))


def _is_tied(plan: Plan) -> bool:
    """Returns whether the head's matrix is the embedding's table."""
    return [one.label for run in plan.layers for one in run.parameters
            ].count("wte.weight") > 1
