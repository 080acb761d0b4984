"""Defines Llama as modules of Flax, with names of transformers' Flax models."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax_models import (SIZES, attention, cross_entropy, divided, rms_norm,
                        rotated)

FLAX = {"embed_tokens": "embedding", "norm": "scale", "input_layernorm":
        "scale", "post_attention_layernorm": "scale"}


class Norm(nn.Module):
    """Divides by the root of the mean square."""

    @nn.compact
    def __call__(self, x):
        return rms_norm(x, self.param("scale", nn.initializers.ones,
                                      x.shape[-1:]))


class Attention(nn.Module):
    """Attends to earlier positions."""

    @nn.compact
    def __call__(self, x):
        size = SIZES["hidden"] // SIZES["heads"]
        q, k, v = (divided(nn.Dense(width, use_bias=False, name=name)(x), size)
                   for name, width in (("q_proj", 64), ("k_proj", 32),
                                       ("v_proj", 32)))
        mixed = attention(rotated(q), rotated(k), v)
        return nn.Dense(SIZES["hidden"], use_bias=False, name="o_proj")(mixed)


class Gated(nn.Module):
    """Is the gated MLP."""

    @nn.compact
    def __call__(self, x):
        gate, up = (nn.Dense(192, use_bias=False, name=name)(x)
                    for name in ("gate_proj", "up_proj"))
        return nn.Dense(SIZES["hidden"], use_bias=False, name="down_proj")(
            nn.silu(gate) * up)


class Layer(nn.Module):
    """Is a layer of Llama."""

    @nn.compact
    def __call__(self, x):
        x = x + Attention(name="self_attn")(Norm(name="input_layernorm")(x))
        return x + Gated(name="mlp")(Norm(name="post_attention_layernorm")(x))


class Decoder(nn.Module):
    """Is Llama without its head."""

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(SIZES["vocabulary"], SIZES["hidden"],
                     name="embed_tokens")(tokens)
        for number in range(SIZES["layers"]):
            x = Layer(name=f"layers_{number}")(x)
        return Norm(name="norm")(x)


class Llama(nn.Module):
    """Returns the logits."""

    @nn.compact
    def __call__(self, tokens):
        return nn.Dense(SIZES["vocabulary"], use_bias=False, name="lm_head")(
            Decoder(name="model")(tokens))


def loss(variables, batch, shardings):
    """Returns the mean loss of a batch."""
    with nn.intercept_methods(shardings.intercept):
        logits = Llama().apply(variables, batch["tokens"])
    return cross_entropy(shardings, logits, batch["targets"])


def variables(params):
    """Returns the variables of the module for parameters of ``jax_models``."""
    def renamed(name, part):
        if "weight" in part:
            return {FLAX.get(name, "kernel"): part["weight"]}
        return {key: renamed(key, one) for key, one in part.items()}

    model = dict(params["model"])
    for number, layer in enumerate(model.pop("layers")):
        model[f"layers_{number}"] = layer
    return {"params": renamed("", {**params, "model": model})}


def gradients(tree):
    """Turns a tree of the variables into one like that of ``jax_models``."""
    def renamed(part):
        if not isinstance(next(iter(part.values())), dict):
            return {"weight": next(iter(part.values()))}
        return {key: renamed(one) for key, one in part.items()}

    found = renamed(tree["params"])
    model = found["model"]
    model["layers"] = [model.pop(f"layers_{number}")
                       for number in range(SIZES["layers"])]
    return jax.tree.map(jnp.asarray, found)
