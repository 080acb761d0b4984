"""Says how the operators of a plan are split over tp, in PyTorch's terms.

A value is replicated ("R"), partial ("P") or sharded along a dimension ("S1"
along the sequence, "S2" along the last dimension). Between two modules its layout
changes in forward, and that of its gradient in backward. ``split_of`` collects
these changes, and a sentence for each choice of the plan that modules of
transformers cannot follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mtplan._plan import Plan
from mtplan._plan_names import Family


@dataclass(frozen=True)
class Change:
    """Holds a layout change of a value and that of its gradient.

    >>> Change("P", "S1", "S1", "R").needed
    True
    >>> Change("R", "R", "R", "R").needed
    False
    """

    source: str  #: layout in which the value is made
    target: str  #: layout in which it is used
    gradient_source: str  #: layout in which the gradient is made
    gradient_target: str  #: layout in which the producer needs it

    @property
    def needed(self) -> bool:
        """Returns whether anything changes.

        >>> Change("R", "R", "P", "R").needed
        True
        """
        return (self.source != self.target
                or self.gradient_source != self.gradient_target)


@dataclass(frozen=True)
class Leaf:
    """Holds how a module with parameters is split.

    >>> Leaf("column", "R", "S2").kind
    'column'
    """

    kind: str  #: column, row, vocab, replicated or sequence
    source: str  #: layout of its input
    target: str  #: layout of its result
    qkv: bool = False  #: whether it may be a third of a fused matrix


@dataclass(frozen=True)
class Entry:
    """Holds the layout changes of a layer's input.

    A layer begins with a norm, or, if norms follow the additions, with attention.

    >>> same = Change("R", "R", "R", "R")
    >>> Entry("model.layers.0.input_layernorm", same, same).residual.needed
    False
    """

    first_module: str  #: the norm, or attention
    first: Change  #: on the way to ``first_module``
    residual: Change  #: on the way to the residual addition


@dataclass
class Split:
    """Holds the splits of all modules over tp.

    >>> Split().faults
    []
    """

    leaves: dict[str, Leaf] = field(default_factory=dict)
    before: dict[str, Change] = field(default_factory=dict)
    after: dict[str, Change] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    entrance: Change | None = None  #: from the embedding to the first layer
    parallel_loss: bool = False  #: whether logits stay split in the loss
    streams: list[str] = field(default_factory=list)  #: each layer's result


def layout_over(axis: str, text: str) -> str:
    """Returns what a layout of a plan says about one axis.

    >>> layout_over("tp", "[dp, -, tp]"), layout_over("tp", "[dp, tp+dp]")
    ('S2', 'S1')
    >>> layout_over("tp", "[-, -] partial={dp:sum, tp:sum}")
    'P'
    >>> layout_over("tp", "[dp]")
    'R'
    """
    dims, _, partial = text.partition("] partial=")
    if axis + ":" in partial:
        return "P"
    for number, axes in enumerate(dims.strip("[]").split(", ")):
        if axis in axes.split("+"):
            return f"S{number}"
    return "R"


def split_of(plan: Plan, family: Family,
             modules: str = "modules of transformers") -> Split:
    """Returns the splits of a plan over tp.

    The faults say what ``modules`` cannot follow.

    >>> import mtplan
    >>> from mtplan._plan_names import FAMILIES
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, tp=2,
    ...                    sequence_parallel=False)
    >>> split = split_of(plan, FAMILIES["llama"])
    >>> split.leaves["model.layers.0.self_attn.q_proj"].kind
    'column'
    >>> split.after["model.layers.0.self_attn.o_proj"]
    Change(source='P', target='R', gradient_source='R', gradient_target='R')
    """
    reader = _Reader(plan, family, modules)
    reader.read()
    return reader.split


_MATRICES = {"column": ("R", "S2", "P", "S2"), "row": ("S2", "P", "S2", "R"),
             "replicated": ("R", "R", "R", "R"),
             "sequence": ("S1", "S1", "S1", "S1")}


class _Reader:
    """Reads the layouts of a plan, and fills a ``Split``."""

    def __init__(self, plan: Plan, family: Family, modules: str) -> None:
        self.split = Split()
        self._modules = modules
        self._family = family
        self._layouts: dict[str, str] = {}
        for run in plan.layers:
            for op in run.ops:
                for label in self._labels(run, op.label):
                    self._layouts[label] = layout_over("tp", op.layout)
        self._layers = sum(run.copies for run in plan.layers
                           if run.segment == "h")

    @staticmethod
    def _labels(run: object, label: str) -> Iterable[str]:
        first, copies = getattr(run, "first"), getattr(run, "copies")
        if "*" not in label:
            return [label]
        return [label.replace("*", str(first + i), 1) for i in range(copies)]

    def _has(self, label: str) -> bool:
        return label in self._layouts

    def _at(self, label: str) -> str:
        return self._layouts[label]

    def _fault(self, label: str, words: str) -> None:
        self.split.faults.append(f"{label}: {words}")

    def _same(self, label: str, wanted: str, why: str) -> None:
        """Notes a fault unless a value has the layout that is wanted."""
        if self._has(label) and self._at(label) != wanted:
            self._fault(label, f"is {_WORDS[self._at(label)]}, but {why} "
                               f"{_WORDS[wanted]}")

    def read(self) -> None:
        for label, layout in self._layouts.items():
            if layout == "S0" and not label.endswith((".dw", ".db")):
                self._fault(label, "splits samples over tp: "
                                   f"{self._modules} split samples over dp "
                                   "only")
        if self.split.faults:
            return
        stream, gradient = self._embedding()
        for layer in range(self._layers):
            stream, gradient = (
                self._post_norm_layer if self._family.post_norm
                else self._pre_norm_layer)(f"h.{layer}.", layer, stream,
                                           gradient)
            self.split.streams.append(stream)
        self._head(stream, gradient)

    def _embedding(self) -> tuple[str, str]:
        """Returns the layout of the first layer's input and of its gradient."""
        kinds = {"P": "vocab", "S2": "column", "R": "replicated"}
        out = self._at("wte")
        if out not in kinds:
            self._fault("wte", "looks up a part of the sequence: "
                               f"{self._modules} look up all of it; pin "
                               "wte=vocab, column or replicated")
            return "R", "R"
        name = self._family.module("wte")
        self.split.leaves[name] = Leaf(kinds[out], "R", out)
        back = "S2" if out == "S2" else "R"
        others = [label for label in ("wtt", "wpe", "embed.add", "embed.norm",
                                      "embed.drop") if self._has(label)]
        if not others:
            return out, back
        for label in others:
            self._same(label, "R", f"{self._modules} compute positions for "
                                   "the whole sequence; pin it as")
        for label in ("wtt", "wpe", "embed.norm"):
            if self._has(label):
                self._leaf(label, "replicated", "R", "R")
        self._change(self.split.after, name, Change(out, "R", "R", back))
        return "R", "R"

    def _leaf(self, label: str, kind: str, source: str, target: str,
              qkv: bool = False) -> None:
        name = self._family.module(label)
        self.split.leaves[name] = Leaf(kind, source, target, qkv)

    def _change(self, place: dict[str, Change], name: str, change: Change
                ) -> None:
        if (_whole(change.source), _whole(change.target)) != (
                _whole(change.gradient_target),
                _whole(change.gradient_source)):
            self._fault(name, "values and their gradients are divided "
                              f"differently; {self._modules} give both one "
                              "shape")
        if change.needed:
            place[name] = change

    def _matrix(self, label: str, qkv: bool = False) -> tuple[str, ...]:
        """Returns the layouts of a matrix product's input and result, and of
        their gradients."""
        kind = {"S2": "column", "P": "row", "R": "replicated",
                "S1": "sequence"}[self._at(label)]
        layouts = _MATRICES[kind]
        self._leaf(label, kind, layouts[0], layouts[1], qkv)
        self._same(label + ".dx", layouts[2],
                   "autograd computes it with the forward's split, that is")
        weight = {"column": "S1", "row": "S0", "replicated": "R",
                  "sequence": "P"}[kind]
        if self._has(label + ".dw") and self._at(label + ".dw") not in (
                weight, "S0" if self._transposed(label) else weight):
            self._fault(label + ".dw", "has another split than the forward "
                                       "product, whose split autograd follows")
        return layouts

    def _transposed(self, label: str) -> bool:
        """Returns whether a matrix is stored as [out, in]: a tied embedding."""
        return label == "lm_head" and not self._has("lm_head.weight")

    def _matrices(self, labels: list[str], qkv: bool = False
                  ) -> tuple[str, ...]:
        """Returns the layouts of matrices that share their input."""
        found = [self._matrix(label, qkv) for label in labels]
        for label, one in zip(labels, found):
            if one != found[0]:
                self._fault(label, f"is split unlike {labels[0]}, whose input "
                                   "it shares")
        return found[0]

    def _norm(self, label: str) -> str:
        """Returns the layout of a norm."""
        layout = self._at(label)
        if layout not in ("R", "S1"):
            self._fault(label, "is split along the features: "
                               f"{self._modules} normalise whole rows")
            layout = "R"
        self._same(label + ".grad", layout,
                   "autograd computes it with the forward's split, that is")
        self._leaf(label, "sequence" if layout == "S1" else "replicated",
                   layout, layout)
        return layout

    def _stream(self, label: str) -> str:
        layout = self._at(label)
        if layout not in ("R", "S1"):
            self._fault(label, f"is {_WORDS[layout]}: {self._modules} "
                               "add replicated values or parts of the sequence")
        return layout

    def _branches(self, layer: str) -> tuple[
            tuple[str, ...], tuple[str, ...], tuple[str, ...],
            tuple[str, ...]]:
        """Returns the layouts of q, of proj, and of the first and the last
        matrix of the MLP."""
        attention = self._matrices(
            [layer + one for one in ("attn.q", "attn.k", "attn.v")], True)
        proj = self._matrix(layer + "attn.proj")
        for label in ("attn.q_rope", "attn.k_rope", "attn.core"):
            self._same(layer + label, attention[1], "q, k and v are")
        if attention[1] != proj[0] or attention[1] == "S1":
            self._fault(layer + "attn.core",
                        "needs q, k, v and proj all replicated, or q, k, v by "
                        "columns and proj by rows")
        gated = self._has(layer + "mlp.gate")
        first = self._matrices([layer + one for one in (
            ("mlp.gate", "mlp.up") if gated else ("mlp.fc1",))])
        last = self._matrix(layer + ("mlp.down" if gated else "mlp.fc2"))
        self._same(layer + "mlp.act", first[1], "its input is")
        if first[1] != last[0]:
            self._fault(layer + "mlp.act",
                        f"changes its layout within the MLP: {self._modules} "
                        "need columns then rows, or both matrices alike")
        return attention, proj, first, last

    def _pre_norm_layer(self, layer: str, number: int, stream: str,
                        gradient: str) -> tuple[str, str]:
        family, split = self._family, self.split
        attention, proj, first, last = self._branches(layer)
        norms = self._norm(layer + "ln_1"), self._norm(layer + "ln_2")
        added = self._stream(layer + "attn.add")
        for label in ("mlp.add", "attn.drop", "mlp.drop"):
            self._same(layer + label, added, "attn.add of its layer is")
        inner, outer = (self._stream(layer + "ln_2.sum"),
                        self._stream(layer + "ln_1.sum"))
        if added != inner:
            self._fault(layer + "attn.add",
                        f"is {_WORDS[added]} and its gradient {_WORDS[inner]}:"
                        f" {self._modules} give both one shape")
        name, module = family.module(layer + "ln_1"), f"{family.layers}.{number}"
        if number == 0:
            # The layout of the embedding's result changes outside the wrapper
            # that recomputes the layer. Inside the wrapper, recomputation would
            # repeat the communication.
            target = "S1" if norms[0] == added == "S1" else "R"
            split.entrance = Change(stream, target, outer, gradient)
            if _whole(outer) != _whole(target):
                self._fault(layer + "ln_1.sum",
                            f"is {_WORDS[outer]}, but the layer's input is "
                            f"{_WORDS[target]}: {self._modules} give both "
                            "one shape")
            stream = target
        else:
            self._change(split.before, module,
                         Change(stream, stream, outer, gradient))
        split.entries[module] = Entry(
            name, Change(stream, norms[0], norms[0], outer),
            Change(stream, added, inner, outer))
        self._change(split.before, family.in_layer(number, family.attention),
                     Change(norms[0], attention[0], attention[2], norms[0]))
        self._change(split.after, family.module(layer + "attn.proj"),
                     Change(proj[1], added, inner, proj[3]))
        self._change(split.before, family.module(layer + "ln_2"),
                     Change(added, norms[1], norms[1], inner))
        self._change(split.before, family.in_layer(number, family.mlp),
                     Change(norms[1], first[0], first[2], norms[1]))
        down = "mlp.down" if self._has(layer + "mlp.down") else "mlp.fc2"
        self._change(split.after, family.module(layer + down),
                     Change(last[1], added, inner, last[3]))
        return added, inner

    def _post_norm_layer(self, layer: str, number: int, stream: str,
                         gradient: str) -> tuple[str, str]:
        family, split = self._family, self.split
        attention, proj, first, last = self._branches(layer)
        one = self._norm(layer + "ln_1")
        for label in ("ln_2", "attn.add", "mlp.add", "attn.drop", "mlp.drop",
                      "mlp.fc1.sum"):
            self._same(layer + label, one, "ln_1 of its layer is")
        self._norm(layer + "ln_2")
        name = family.in_layer(number, "")[:-1]
        reads = family.in_layer(number, family.attention)
        if stream == "R" and one == "S1":
            # Attention reads the whole input, and the residual addition a part;
            # their gradients are summed before they are communicated.
            self._change(split.before, name,
                         Change("R", "R", attention[2], gradient))
            split.entries[name] = Entry(
                reads, Change("R", attention[0], attention[2], attention[2]),
                Change("R", "S1", "S1", attention[2]))
        else:
            self._change(split.before, name,
                         Change(stream, one, one, gradient))
            self._change(split.before, reads,
                         Change(one, attention[0], attention[2], one))
        self._change(split.after, family.module(layer + "attn.proj"),
                     Change(proj[1], one, one, proj[3]))
        self._change(split.before, family.in_layer(number, family.mlp),
                     Change(one, first[0], first[2], one))
        self._change(split.after, family.module(layer + "mlp.fc2"),
                     Change(last[1], one, one, last[3]))
        return one, one

    def _head(self, stream: str, gradient: str) -> None:
        family, split = self._family, self.split
        head = self._matrix("lm_head")
        if head[0] != "R":
            self._fault("lm_head", "must be split by the vocabulary or "
                                   f"replicated: {self._modules} "
                                   "compute the loss of whole sequences")
        split.parallel_loss = (head[1] == "S2"
                               and self._at("loss.pick") == "P")
        if head[1] == "S2" and not split.parallel_loss:
            split.after[family.module("lm_head")] = Change("S2", "R", "R",
                                                           "S2")
        for label in ("loss.max", "loss.sum_exp", "loss.pick"):
            self._same(label, "P" if split.parallel_loss else "R",
                       f"the whole loss of {self._modules} is")
        if self._has("ln_f"):
            norm = self._norm("ln_f")
            name = family.module("ln_f")
            self._change(split.before, name,
                         Change(stream, norm, norm, gradient))
            # GPT-2 views the result of the norm as a whole sequence.
            self._change(split.after, name,
                         Change(norm, head[0], head[2], norm))
        if self._has("cls.transform"):
            first = self._matrix("cls.transform")
            name = family.module("cls.transform")
            act = self._at("cls.act")
            norm = self._norm("cls.norm")
            self._same("cls.act", norm, "cls.norm is")
            self._change(split.before, name,
                         Change(stream, first[0], first[2], gradient))
            self._change(split.after, name, Change(first[1], act, norm,
                                                   first[3]))
            self._change(split.after, family.module("cls.norm"),
                         Change(norm, head[0], head[2], norm))


def _whole(layout: str) -> bool:
    """Returns whether the local part has the shape of the whole value."""
    return layout in ("R", "P")


_WORDS = {"R": "replicated", "P": "partial", "S0": "split by samples",
          "S1": "split along the sequence", "S2": "split along the features"}
