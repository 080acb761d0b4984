"""Maps the labels of a plan to the names of modules of transformers.

A plan stores matrices as [in, out]. ``torch.nn.Linear`` stores them as [out,
in]. ``Conv1D`` of GPT-2 stores them as [in, out], with q, k and v in one
matrix.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtplan._plan import Plan


@dataclass(frozen=True)
class Family:
    """Holds the names of one ``model_type``; ``{}`` is the layer number.

    >>> FAMILIES["llama"].module("h.3.attn.q")
    'model.layers.3.self_attn.q_proj'
    """

    layers: str  #: the list of the repeated layers
    names: dict[str, str]  #: module of each labelled operator
    attention: str  #: module that passes its input to q, k and v
    mlp: str  #: module that passes its input to the first matrix of the MLP
    classes: tuple[str, ...]  #: classes of the whole model, with its loss
    out_last: bool = False  #: whether matrices are stored as [in, out]
    post_norm: bool = False  #: whether norms follow the residual additions
    extra: dict[str, str] = field(default_factory=dict)  #: tied parameters
    front: tuple[str, ...] = ()  #: modules with parameters before the layers
    back: tuple[str, ...] = ()  #: modules with parameters after the layers

    def module(self, label: str) -> str:
        """Returns the name of the module that computes an operator.

        >>> FAMILIES["gpt2"].module("h.0.mlp.fc1")
        'transformer.h.0.mlp.c_fc'
        """
        words = label.split(".")
        if words[0] == "h" and len(words) > 1:
            return self.names["h.*." + ".".join(words[2:])].format(words[1])
        return self.names[label]

    def parameter(self, label: str) -> str:
        """Returns the name of a parameter.

        >>> FAMILIES["llama"].parameter("h.0.attn.q.weight")
        'model.layers.0.self_attn.q_proj.weight'
        """
        operator, _, last = label.rpartition(".")
        return f"{self.module(operator)}.{last}"

    def in_layer(self, layer: int, entry: str) -> str:
        """Returns the name of a module of a layer.

        >>> FAMILIES["llama"].in_layer(1, "mlp")
        'model.layers.1.mlp'
        """
        return f"{self.layers}.{layer}.{entry}"


def _llama() -> Family:
    layer = "model.layers.{}."
    return Family(
        layers="model.layers",
        names={
            "wte": "model.embed_tokens",
            "h.*.ln_1": layer + "input_layernorm",
            "h.*.attn.q": layer + "self_attn.q_proj",
            "h.*.attn.k": layer + "self_attn.k_proj",
            "h.*.attn.v": layer + "self_attn.v_proj",
            "h.*.attn.proj": layer + "self_attn.o_proj",
            "h.*.ln_2": layer + "post_attention_layernorm",
            "h.*.mlp.gate": layer + "mlp.gate_proj",
            "h.*.mlp.up": layer + "mlp.up_proj",
            "h.*.mlp.down": layer + "mlp.down_proj",
            "ln_f": "model.norm",
            "lm_head": "lm_head",
        },
        attention="self_attn", mlp="mlp",
        classes=("LlamaForCausalLM", "Qwen2ForCausalLM"),
        front=("model.embed_tokens",), back=("model.norm", "lm_head"))


def _gpt2() -> Family:
    layer = "transformer.h.{}."
    return Family(
        layers="transformer.h",
        names={
            "wte": "transformer.wte",
            "wpe": "transformer.wpe",
            "h.*.ln_1": layer + "ln_1",
            "h.*.attn.q": layer + "attn.c_attn.q",
            "h.*.attn.k": layer + "attn.c_attn.k",
            "h.*.attn.v": layer + "attn.c_attn.v",
            "h.*.attn.proj": layer + "attn.c_proj",
            "h.*.ln_2": layer + "ln_2",
            "h.*.mlp.fc1": layer + "mlp.c_fc",
            "h.*.mlp.fc2": layer + "mlp.c_proj",
            "ln_f": "transformer.ln_f",
            "lm_head": "lm_head",
        },
        attention="attn", mlp="mlp", classes=("GPT2LMHeadModel",),
        out_last=True, front=("transformer.wte", "transformer.wpe"),
        back=("transformer.ln_f", "lm_head"))


def _bert() -> Family:
    layer = "bert.encoder.layer.{}."
    return Family(
        layers="bert.encoder.layer",
        names={
            "wte": "bert.embeddings.word_embeddings",
            "wtt": "bert.embeddings.token_type_embeddings",
            "wpe": "bert.embeddings.position_embeddings",
            "embed.norm": "bert.embeddings.LayerNorm",
            "h.*.attn.q": layer + "attention.self.query",
            "h.*.attn.k": layer + "attention.self.key",
            "h.*.attn.v": layer + "attention.self.value",
            "h.*.attn.proj": layer + "attention.output.dense",
            "h.*.ln_1": layer + "attention.output.LayerNorm",
            "h.*.mlp.fc1": layer + "intermediate.dense",
            "h.*.mlp.fc2": layer + "output.dense",
            "h.*.ln_2": layer + "output.LayerNorm",
            "cls.transform": "cls.predictions.transform.dense",
            "cls.norm": "cls.predictions.transform.LayerNorm",
            "lm_head": "cls.predictions.decoder",
        },
        attention="attention.self", mlp="intermediate",
        classes=("BertForMaskedLM",), post_norm=True,
        extra={"cls.predictions": "lm_head"}, front=("bert.embeddings",),
        back=("cls",))


#: Holds the families whose modules a plan can be applied to.
FAMILIES = {"bert": _bert(), "gpt2": _gpt2(), "llama": _llama(),
            "qwen2": _llama()}


def family_name(plan: Plan) -> str:
    """Returns the name of the family of a plan's model.

    >>> import mtplan
    >>> family_name(mtplan.plan("examples/tiny-llama.json", gpus=1))
    'llama'
    """
    name: str = json.loads(plan.to_json())["model"]["family"]
    return name
