"""Finds the parameters of a plan in a tree of parameters of JAX.

A leaf has a path such as ``model.layers.3.self_attn.q_proj.kernel``. A pattern
is such a path with ``*`` for one name, mostly the number of the layer. Known
patterns are the plan's own labels and the names in Hugging Face's checkpoints.
Flax's names ``kernel``, ``embedding`` and ``scale`` count as ``weight``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mtplan._errors import Error
from mtplan._jax_layouts import (KINDS, Dims, dims_of, jax_module, labels_of,
                                 starred)
from mtplan._plan import Plan

_NUMBERED = re.compile(r"^(layers?|h|blocks?)_(\d+)$")
_WEIGHTS = ("kernel", "embedding", "scale")


@dataclass(frozen=True)
class Stored:
    """Holds a parameter of a plan: its whole shape, and how it is stored.

    >>> Stored("ln_f.weight", (64,), (("dp",),)).shape
    (64,)
    """

    label: str  #: with the layer's number, or ``*`` for an array of all layers
    shape: tuple[int, ...]
    dims: Dims


def path_of(keys: Iterable[Any]) -> str:
    """Returns the path of a leaf as names between dots.

    >>> path_of(["params", "h_0", "ln_1", "scale"])
    'h.0.ln_1.weight'
    """
    words = []
    for key in keys:
        for name in ("key", "idx", "name"):  # attributes of JAX's keys
            key = getattr(key, name, key)
        words += re.split(r"[./]", _NUMBERED.sub(r"\1.\2", str(key)))
    if words[0] == "params":
        del words[0]
    if words and words[-1] in _WEIGHTS:
        words[-1] = "weight"
    return ".".join(words)


def patterns_of(plan: Plan, kind: str, names: dict[str, str] | None
                ) -> dict[str, str]:
    """Returns the label of each known pattern, those of ``names`` first.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=1)
    >>> known = patterns_of(plan, "llama", {"wq/*": "h.*.attn.q.weight"})
    >>> known["wq.*"], known["model.layers.*.self_attn.q_proj.weight"]
    ('h.*.attn.q.weight', 'h.*.attn.q.weight')
    """
    family = KINDS.get(kind)
    known = {path_of([pattern]): label
             for pattern, label in (names or {}).items()}
    for run in plan.layers:
        for one in run.parameters:
            operator, _, last = one.label.rpartition(".")
            name = (family.names.get(operator) if family else None) or operator
            module = name.replace("{}", "*")
            for pattern in (operator, module, module.partition(".")[2]):
                # An array of all layers has no number in its path.
                for path in (pattern, pattern.replace(".*", "", 1)):
                    if path:
                        known.setdefault(f"{path}.{last}", one.label)
    return known


def label_of(patterns: dict[str, str], keys: Iterable[Any]) -> str:
    """Returns the label of the leaf with these keys, or "" if none is known.

    >>> label_of({"layers.*.wq": "h.*.attn.q"}, ["layers_3", "wq"])
    'h.3.attn.q'
    """
    path = path_of(keys)
    for pattern, label in patterns.items():
        found = re.fullmatch(re.escape(pattern).replace(r"\*", r"([^.]+)"),
                             path)
        if found:
            for number in found.groups():
                label = label.replace("*", number, 1)
            return label
    return ""


def parameters_of(plan: Plan) -> dict[str, Stored]:
    """Returns the parameters of a plan by label, with the layers' numbers.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=1)
    >>> parameters_of(plan)["h.1.mlp.fc1.bias"].shape
    (256,)
    """
    return {label: Stored(label, tuple(one.global_shape), dims_of(one.layout))
            for run in plan.layers for one in run.parameters
            for label in labels_of(run, one.label)}


def matched(plan: Plan, kind: str, tree: Any, names: dict[str, str] | None
            ) -> list[Stored]:
    """Returns the parameter of a plan for each leaf of a tree, in tree order.

    ``names`` maps patterns to labels, and is tried first. Raises ``Error`` with
    every leaf that is no parameter of the plan or has another shape, and with
    every parameter without a leaf.

    >>> matched(plan, "llama", params, None)  # doctest: +SKIP
    [Stored(label='h.0.attn.k.weight', ...), ...]
    """
    stored = parameters_of(plan)
    labels = {**stored, **{starred(label): one
                           for label, one in stored.items()}}
    faults = [f"names: {label} is no parameter of the plan"
              + _near(label, list(labels))
              for label in (names or {}).values() if label not in labels]
    known = patterns_of(plan, kind, names)
    found = list[Stored]()
    for keys, leaf in jax_module("tree_util").tree_flatten_with_path(tree)[0]:
        path, label = path_of(keys), label_of(known, keys)
        if not label:
            faults.append(f"{path}: no parameter of the plan has this name"
                          + _near(path, list(known))
                          + "; names={\"pattern\": \"label\"} maps others")
        elif label not in labels:
            faults.append(f"{path}: the plan has no {label}")
        elif "*" in label:
            found.append(_of_all_layers(stored, label, faults))
        else:
            found.append(stored[label])
        if label in labels and tuple(leaf.shape) != found[-1].shape:
            faults.append(_wrong_shape(path, found[-1], tuple(leaf.shape)))
    have = [one.label for one in found]
    faults += [f"{label}: {have.count(label)} leaves of the tree are this "
               "parameter" for label in have if have.count(label) > 1]
    faults += [f"{label}: no leaf of the tree is this parameter of the plan"
               for label in stored if not faults and label not in have
               and starred(label) not in have]
    if faults:
        raise Error(list(dict.fromkeys(faults)))
    return found


def _near(word: str, choices: list[str]) -> str:
    """Returns the end of a sentence that names the nearest choice.

    >>> _near("h.0.atn.q", ["h.*.attn.q"])
    '; the nearest is h.*.attn.q'
    """
    close = difflib.get_close_matches(word, choices, 1, 0.0)
    return f"; the nearest is {close[0]}"


def _of_all_layers(stored: dict[str, Stored], label: str, faults: list[str]
                   ) -> Stored:
    """Returns a parameter of every layer as one array."""
    same = [one for name, one in stored.items() if starred(name) == label]
    faults += [f"{label}: {same[0].label} and {one.label} are stored "
               "differently, but the tree has one array of all layers; pass "
               "one array for each layer"
               for one in same if one.dims != same[0].dims][:1]
    return Stored(label, (len(same), *same[0].shape), ((), *same[0].dims))


def _wrong_shape(path: str, one: Stored, shape: tuple[int, ...]) -> str:
    """Returns a sentence about a leaf of another shape.

    >>> _wrong_shape("w", Stored("h.0.mlp.up.weight", (64, 192), ((), ())),
    ...              (192, 64))
    'w: the leaf is [192, 64], and h.0.mlp.up.weight [64, 192]; transpose it'
    """
    words = f"{path}: the leaf is {list(shape)}, and {one.label} " \
            f"{list(one.shape)}"
    if shape == one.shape[::-1]:
        return words + "; transpose it"
    if len(shape) == len(one.shape) and all(map(
            lambda a, b: a <= b, shape, one.shape)) and (
            one.label.startswith(("wte", "lm_head"))):
        return (f"{words}, because the plan pads the vocabulary; pad it with "
                "zeros, and leave the added logits out of the loss")
    return words
