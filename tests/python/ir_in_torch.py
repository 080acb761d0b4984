"""Computes mtplan's textual IR with PyTorch, in the precision of the parameters.

Every operator is written after docs/reference/ops.md, and shares nothing with
the importer or the engine.
"""

import math
import re

import torch
from torch.nn import functional as F

SEGMENT = re.compile(r"  mtp\.segment @([\w$.-]+)(?: repeat (\d+))?(?: first (\d+))? \((.*)\) \{")
OPERATOR = re.compile(r'    (%\w+)(?:, %\w+)? = mtp\.(\w+) "([^"]*)"(.*)')
NUMBER = r"[-+0-9.e]+"


class Model:
    """Holds parsed segments. ``run`` returns the loss."""

    def __init__(self, text):
        self.segments = []
        for line in text.splitlines():
            line = re.sub(r" loc\(.*\)$", "", line)
            if found := SEGMENT.match(line):
                name, repeat, first, arguments = found.groups()
                names = re.findall(r"(%arg\d+):", arguments)
                self.segments.append({"name": name, "repeat": int(repeat or 1),
                                      "first": int(first or 0), "takes": names,
                                      "ops": [], "yields": []})
            elif found := OPERATOR.match(line):
                self.segments[-1]["ops"].append(found.groups())
            elif found := re.match(r'    mtp\.accumulate "loss", (%\w+)', line):
                self.segments[-1]["loss"] = found[1]
            elif found := re.match(r"    mtp\.yield(.*)", line):
                self.segments[-1]["yields"] = re.findall(r"%\w+",
                                                         found[1].split(" : ")[0])
            elif not re.match(r"module|  }|}", line):
                raise ValueError(line)

    def run(self, parameters, inputs):
        carried, loss = [], None
        for segment in self.segments:
            for layer in range(segment["first"], segment["first"] + segment["repeat"]):
                values = dict(zip(segment["takes"], carried, strict=True))
                for result, kind, label, rest in segment["ops"]:
                    star = str(layer) if segment["repeat"] > 1 else "*"
                    values[result] = self.compute(kind, label.replace("*", star), rest,
                                                  values, parameters, inputs)
                carried = [values[name] for name in segment["yields"]]
                if "loss" in segment:
                    loss = values[segment["loss"]]
        return loss

    def compute(self, kind, label, rest, values, parameters, inputs):
        if kind == "parameter":
            return parameters[label]
        if kind == "input":
            return inputs[label]
        found = re.search(r"\(((?:%\w+(?:, )?)+)\)", rest)
        x = [values[name] for name in found[1].split(", ")]
        words = rest[:found.start()].split()
        braces = re.search(r"\{(.*?)\}", rest)
        at = dict(re.findall(r'(\w+) = ("[^"]*"|[-+\w.]+)', braces[1])) if braces else {}
        real = {key: float(value) for key, value in at.items()
                if re.fullmatch(NUMBER, value)}
        if kind == "einsum":
            y = torch.einsum(words[0].strip('"'), x[0], x[1])
            return y + x[2] if len(x) == 3 else y
        if kind == "scale":
            return x[0] * float(re.search(rf"\) by ({NUMBER})", rest)[1])
        if kind == "activation":
            return {"gelu": F.gelu, "silu": F.silu, "relu": F.relu,
                    "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
                    "tanh": torch.tanh, "sigmoid": torch.sigmoid}[words[0]](x[0])
        if kind == "attention":
            return attention(x, at, real)
        if kind == "rope":
            return rope(x[0], real, "interleaved" in rest)
        if kind.startswith("moe_"):
            return moe(kind, x, at, rest)
        if kind == "layer_norm":
            rows = x[0].unflatten(-1, (-1, int(real.get("head_dim", x[0].shape[-1]))))
            return F.layer_norm(rows, x[1].shape, x[1], x[2], real["epsilon"]).flatten(-2)
        if kind == "rms_norm":
            rows = x[0].unflatten(-1, (-1, int(real.get("head_dim", x[0].shape[-1]))))
            mean = (rows ** 2).mean(-1, keepdim=True)
            return (rows / torch.sqrt(mean + real["epsilon"]) * x[1]).flatten(-2)
        return {
            "add": lambda: x[0] + x[1], "mul": lambda: x[0] * x[1],
            "swiglu": lambda: F.silu(x[0]) * x[1],
            "softmax": lambda: torch.softmax(x[0], -1),
            "logit_softcap": lambda: real["cap"] * torch.tanh(x[0] / real["cap"]),
            "embedding": lambda: x[1][x[0]],
            "position_embedding": lambda: x[0] + x[1][:x[0].shape[1]],
            "take_first": lambda: x[0][:, 0],
            "put_first": lambda: torch.cat(
                [x[1].expand(x[0].shape[0], 1, -1), x[0][:, 1:]], 1),
            "vocab_max": lambda: x[0][..., :int(real["classes"])].amax(-1),
            "vocab_sum_exp": lambda: torch.exp(
                x[0][..., :int(real["classes"])] - x[1][..., None]).sum(-1),
            "vocab_pick": lambda: torch.where(x[1] < 0, 0.0, torch.gather(
                x[0], -1, x[1].clamp(min=0)[..., None])[..., 0]),
            "token_loss": lambda: torch.where(
                x[3] < 0, 0.0, torch.log(x[1]) + x[0] - x[2]).sum() / x[4],
        }[kind]()


def attention(x, at, real):
    query, key, value = x[:3]
    width = int(real["head_dim"])

    def heads(one):
        return one.reshape(*one.shape[:2], -1, width).transpose(1, 2)
    q, k, v = heads(query), heads(key), heads(value)
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], 1) for one in (k, v))
    scores = q @ k.transpose(-1, -2) * real["scale"]
    distance = torch.arange(k.shape[2])[None, :] - torch.arange(q.shape[2])[:, None]
    if "softcap" in real:
        scores = real["softcap"] * torch.tanh(scores / real["softcap"])
    if at["causal"] == "true":
        scores = scores.masked_fill(distance > 0, -math.inf)
    if len(x) == 4:
        scores = scores + x[3][bucket(distance, x[3].shape[0], real["max_distance"],
                                      at["causal"] == "true")].permute(2, 0, 1)
    mixed = torch.softmax(scores, -1) @ v
    return mixed.transpose(1, 2).reshape(query.shape)


def moe(kind, x, at, rest):
    """Computes an operator of experts, whose types state the capacity."""
    if kind in ("moe_gate", "moe_slots"):
        count = int(re.search(r"top_k = (\d+)", rest)[1])
        chosen = x[0].topk(count, -1).indices
        if kind == "moe_gate":
            probabilities = torch.softmax(x[0], -1)
            kept = torch.zeros_like(x[0]).scatter(-1, chosen, 1.0)
            gates = probabilities * kept
            return gates / gates.sum(-1, keepdim=True) if "normalise" in rest else gates
        slots = torch.full(x[0].shape, -1)
        for sample, rows in enumerate(chosen):
            taken = [0] * x[0].shape[-1]
            for choice in range(count):
                for place, expert in enumerate(rows[:, choice].tolist()):
                    slots[sample, place, expert] = taken[expert]
                    taken[expert] += 1
        return slots
    shape = [int(size) for size in re.findall(r"tensor<([\dx]+)x", rest)[0 if kind ==
             "moe_combine" else -1].split("x")]
    slots = x[-1]
    # `taken` is 1 for each slot [b, s, e, c] that a token takes.
    taken = (slots[..., None] == torch.arange(shape[2])).to(x[0].dtype)
    if kind == "moe_dispatch":
        return torch.einsum("bsh,bsec->ebch", x[0], taken)
    return torch.einsum("ebch,bse,bsec->bsh", x[0], x[1], taken)


def bucket(distance, count, most, causal):
    first = 0
    if not causal:
        count //= 2
        first = torch.where(distance > 0, count, 0)
        far = distance.abs()
    else:
        far = (-distance).clamp(min=0)
    exact = count // 2
    growth = torch.log(far.clamp(min=1) / exact) / math.log(most / exact)
    large = (exact + (growth * (count - exact))).long().clamp(max=count - 1)
    return first + torch.where(far < exact, far, large)


def rope(x, real, interleaved):
    width, turned = int(real["head_dim"]), int(real["rotary_dim"])
    heads = x.reshape(*x.shape[:2], -1, width)
    half = turned // 2
    rate = real["theta"] ** (-torch.arange(half, dtype=torch.float64) * 2 / turned)
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * rate
    cos, sin = angle.cos()[:, None].to(x.dtype), angle.sin()[:, None].to(x.dtype)
    a, b, rest = heads[..., :half], heads[..., half:turned], heads[..., turned:]
    if interleaved:
        a, b = heads[..., :turned:2], heads[..., 1:turned:2]
        pairs = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        return torch.cat([pairs, rest], -1).reshape(x.shape)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1).reshape(x.shape)
