"""Defines Llama and GPT-2 as functions of JAX over trees of parameters.

The parameters have the names of Hugging Face's checkpoints, with matrices as
[in, out] and GPT-2's q, k and v apart. ``hooks`` is a plan's ``Shardings``, or
``Plain`` for one device.
"""

import math

import jax
import jax.numpy as jnp

SIZES = {"hidden": 64, "heads": 8, "layers": 2, "vocabulary": 512,
         "length": 32}
CONFIGS = {
    "llama": {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
              "num_attention_heads": 8, "num_key_value_heads": 4,
              "intermediate_size": 192, "max_position_embeddings": 32,
              "vocab_size": 512, "hidden_act": "silu", "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "tie_word_embeddings": False},
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 8,
             "n_positions": 32, "vocab_size": 512,
             "activation_function": "gelu_new", "attn_pdrop": 0.0,
             "embd_pdrop": 0.0, "resid_pdrop": 0.0},
}


class Plain:
    """Has the hooks of a plan for one device: they do nothing."""

    value_and_grad = staticmethod(jax.value_and_grad)

    @staticmethod
    def constrain(name, value):
        return value

    @staticmethod
    def products(names, value, weights):
        return [value @ weight for weight in weights]

    @staticmethod
    def checkpoint(name, function):
        return function


class Apart:
    """Has the hooks of a plan, without ``products``."""

    def __init__(self, hooks):
        self.constrain, self.checkpoint = hooks.constrain, hooks.checkpoint

    def products(self, names, value, weights):
        return [self.constrain(name, value @ weight)
                for name, weight in zip(names, weights)]


def rms_norm(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def layer_norm(x, gain, bias):
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5
                             ) * gain + bias


def rotated(x):
    """Rotates [samples, length, heads, dimension] by its positions."""
    half = x.shape[-1] // 2
    angle = (jnp.arange(x.shape[1])[:, None]
             * 10000.0 ** (-jnp.arange(half) / half))[:, None]
    one, two = x[..., :half], x[..., half:]
    return jnp.concatenate([one * jnp.cos(angle) - two * jnp.sin(angle),
                            two * jnp.cos(angle) + one * jnp.sin(angle)], -1)


def attention(q, k, v):
    """Returns causal attention of [samples, length, heads, dimension]."""
    samples, length, heads, size = q.shape
    groups = k.shape[2]
    q = q.reshape(samples, length, groups, heads // groups, size)
    scores = jnp.einsum("bsgrd,btgd->bgrst", q, k) / math.sqrt(size)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores,
                       -jnp.inf)
    mixed = jnp.einsum("bgrst,btgd->bsgrd", jax.nn.softmax(scores), v)
    return mixed.reshape(samples, length, heads * size)


def divided(x, size):
    """Divides the features into heads."""
    return x.reshape(*x.shape[:2], -1, size)


def cross_entropy(hooks, logits, targets):
    largest = jax.lax.stop_gradient(hooks.constrain(
        "loss.max", jnp.max(logits, -1)))
    total = hooks.constrain("loss.sum_exp", jnp.sum(
        jnp.exp(logits - largest[..., None]), -1))
    picked = hooks.constrain("loss.pick", jnp.take_along_axis(
        logits, targets[..., None], -1)[..., 0])
    return jnp.mean(jnp.log(total) + largest - picked)


def llama_layer(hooks, at, one, x):
    """Returns a layer's result; ``at`` is its label, ``one`` its parameters."""
    size = SIZES["hidden"] // SIZES["heads"]

    def gain(name):
        part = {"ln_1": "input_layernorm",
                "ln_2": "post_attention_layernorm"}[name]
        return hooks.constrain(f"{at}.{name}.weight", one[part]["weight"])

    def row(name, weight, value):
        return hooks.constrain(f"{at}.{name}", value @ hooks.constrain(
            f"{at}.{name}.weight", weight["weight"]))

    own, mlp = one["self_attn"], one["mlp"]
    y = hooks.constrain(f"{at}.ln_1", rms_norm(x, gain("ln_1")))
    q, k, v = hooks.products(
        [f"{at}.attn.{name}" for name in "qkv"], y,
        [own[f"{name}_proj"]["weight"] for name in "qkv"])
    mixed = hooks.checkpoint(f"{at}.attn.core", attention)(
        rotated(divided(q, size)), rotated(divided(k, size)),
        divided(v, size))
    mixed = hooks.constrain(f"{at}.attn.core", mixed)
    x = hooks.constrain(f"{at}.attn.add",
                        x + row("attn.proj", own["o_proj"], mixed))
    y = hooks.constrain(f"{at}.ln_2", rms_norm(x, gain("ln_2")))
    gate, up = hooks.products(
        [f"{at}.mlp.gate", f"{at}.mlp.up"], y,
        [mlp["gate_proj"]["weight"], mlp["up_proj"]["weight"]])
    act = hooks.constrain(f"{at}.mlp.act", jax.nn.silu(gate) * up)
    return hooks.constrain(f"{at}.mlp.add",
                           x + row("mlp.down", mlp["down_proj"], act))


def llama(params, batch, hooks):
    model = params["model"]
    x = hooks.constrain("wte", model["embed_tokens"]["weight"][
        batch["tokens"]])
    if isinstance(model["layers"], list):
        for number, one in enumerate(model["layers"]):
            at = f"h.{number}"
            x = hooks.checkpoint(at, lambda one, x, at=at: llama_layer(
                hooks, at, one, x))(one, x)
    else:
        run = hooks.checkpoint("h.*", lambda one, x: llama_layer(
            hooks, "h.*", one, x))
        x, _ = jax.lax.scan(lambda x, one: (run(one, x), None), x,
                            model["layers"])
    x = hooks.constrain("ln_f", rms_norm(x, model["norm"]["weight"]))
    logits = hooks.constrain("lm_head", x @ params["lm_head"]["weight"])
    return cross_entropy(hooks, logits, batch["targets"])


def gpt2_layer(hooks, at, one, x):
    size = SIZES["hidden"] // SIZES["heads"]

    def norm(name, x):
        return hooks.constrain(f"{at}.{name}", layer_norm(
            x, one[name]["weight"], one[name]["bias"]))

    def row(name, part, value):
        return hooks.constrain(f"{at}.{name}",
                               value @ part["weight"] + part["bias"])

    own = one["attn"]["c_attn"]
    parts = hooks.products([f"{at}.attn.{name}" for name in "qkv"],
                           norm("ln_1", x),
                           [own[name]["weight"] for name in "qkv"])
    mixed = hooks.constrain(f"{at}.attn.core", hooks.checkpoint(
        f"{at}.attn.core", attention)(*(
            divided(part + own[name]["bias"], size)
            for name, part in zip("qkv", parts))))
    x = hooks.constrain(f"{at}.attn.add", x + row(
        "attn.proj", one["attn"]["c_proj"], mixed))
    first = one["mlp"]["c_fc"]
    (wide,) = hooks.products([f"{at}.mlp.fc1"], norm("ln_2", x),
                             [first["weight"]])
    act = hooks.constrain(f"{at}.mlp.act", jax.nn.gelu(wide + first["bias"]))
    return hooks.constrain(f"{at}.mlp.add", x + row(
        "mlp.fc2", one["mlp"]["c_proj"], act))


def gpt2(params, batch, hooks):
    model = params["transformer"]
    x = hooks.constrain("wte", model["wte"]["weight"][batch["tokens"]])
    x = hooks.constrain("wpe", x + model["wpe"]["weight"][
        :batch["tokens"].shape[1]])
    for number, one in enumerate(model["h"]):
        at = f"h.{number}"
        x = hooks.checkpoint(at, lambda one, x, at=at: gpt2_layer(
            hooks, at, one, x))(one, x)
    x = hooks.constrain("ln_f", layer_norm(x, model["ln_f"]["weight"],
                                           model["ln_f"]["bias"]))
    logits = hooks.constrain("lm_head", x @ model["wte"]["weight"].T)
    return cross_entropy(hooks, logits, batch["targets"])


MODELS = {"llama": llama, "gpt2": gpt2}


def random_params(name):
    """Returns a tree of random parameters."""
    key = jax.random.key(1)
    hidden, wide, heads = SIZES["hidden"], 192, 32

    def new(*shape, about=0.0):
        nonlocal key
        key, own = jax.random.split(key)
        return {"weight": about + 0.1 * jax.random.normal(own, shape)}

    def with_bias(part, size):
        return {**part, "bias": new(size)["weight"]}

    rows = SIZES["vocabulary"]
    if name == "llama":
        return {"lm_head": new(hidden, rows), "model": {
            "embed_tokens": new(rows, hidden), "norm": new(hidden, about=1.0),
            "layers": [{
                "input_layernorm": new(hidden, about=1.0),
                "post_attention_layernorm": new(hidden, about=1.0),
                "self_attn": {"q_proj": new(hidden, hidden),
                              "k_proj": new(hidden, heads),
                              "v_proj": new(hidden, heads),
                              "o_proj": new(hidden, hidden)},
                "mlp": {"gate_proj": new(hidden, wide),
                        "up_proj": new(hidden, wide),
                        "down_proj": new(wide, hidden)}}
                for _ in range(SIZES["layers"])]}}

    def norm():
        return with_bias(new(hidden, about=1.0), hidden)

    def square(columns=hidden, rows=hidden):
        return with_bias(new(rows, columns), columns)

    return {"transformer": {
        "wte": new(rows, hidden), "wpe": new(SIZES["length"], hidden),
        "ln_f": norm(), "h": [{
            "ln_1": norm(), "ln_2": norm(),
            "attn": {"c_attn": {part: square() for part in "qkv"},
                     "c_proj": square()},
            "mlp": {"c_fc": square(4 * hidden),
                    "c_proj": square(rows=4 * hidden)}}
            for _ in range(SIZES["layers"])]}}


def stacked(params):
    """Returns Llama's parameters with one array for all layers."""
    layers = params["model"]["layers"]
    return {**params, "model": {**params["model"], "layers": jax.tree.map(
        lambda *parts: jnp.stack(parts), *layers)}}
