"""GPT-2, BERT and Llama in plain PyTorch, after their papers and the models that
were published: nothing here was made from mtplan's operators.

Modules are called as mtplan labels its parameters, so that state names are
labels. Every model maps (ids, types) [batch, sequence] to logits, those of
padding rows of the vocabulary cut off.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def attend(q, k, v, heads, kv_heads, causal):
    """softmax(q k^T / sqrt(d)) v, by head; a group of query heads shares k, v."""
    batch, length = q.shape[:2]

    def by_head(x, count):
        return x.view(batch, length, count, -1).transpose(1, 2)

    q, k, v = by_head(q, heads), by_head(k, kv_heads), by_head(v, kv_heads)
    k = k.repeat_interleave(heads // kv_heads, dim=1)
    v = v.repeat_interleave(heads // kv_heads, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    mixed = scores.softmax(dim=-1) @ v
    return mixed.transpose(1, 2).reshape(batch, length, -1)


class Attention(nn.Module):
    """Of GPT-2 (causal) and BERT."""

    def __init__(self, hidden, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.proj = (
            nn.Linear(hidden, hidden) for _ in range(4))

    def forward(self, x):
        heads = self.heads, self.heads
        return self.proj(attend(self.q(x), self.k(x), self.v(x), *heads, self.causal))


class Mlp(nn.Module):
    def __init__(self, hidden, inner, gelu):
        super().__init__()
        self.gelu = gelu
        self.fc1, self.fc2 = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate=self.gelu))


class Block(nn.Module):
    """One layer with two layer norms, which lie before the branches or behind
    the sums."""

    def __init__(self, attn, mlp, hidden, epsilon, norm_first):
        super().__init__()
        self.attn, self.mlp, self.norm_first = attn, mlp, norm_first
        self.ln_1 = nn.LayerNorm(hidden, eps=epsilon)
        self.ln_2 = nn.LayerNorm(hidden, eps=epsilon)

    def forward(self, x):
        if self.norm_first:
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))
        x = self.ln_1(x + self.attn(x))
        return self.ln_2(x + self.mlp(x))


class Gpt2(nn.Module):
    """Radford et al. 2019: norms first, GELU by tanh, the head is the embedding."""

    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["n_embd"], c["layer_norm_epsilon"]
        self.vocabulary = c["vocab_size"]
        self.wte = nn.Embedding(c["padded_vocab_size"], hidden)
        self.wpe = nn.Embedding(c["n_positions"], hidden)
        self.h = nn.ModuleList(
            Block(Attention(hidden, c["n_head"], causal=True),
                  Mlp(hidden, c["n_inner"], "tanh"), hidden, epsilon, norm_first=True)
            for _ in range(c["n_layer"]))
        self.ln_f = nn.LayerNorm(hidden, eps=epsilon)

    def forward(self, ids, types):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)[..., : self.vocabulary]


class Bert(nn.Module):
    """Devlin et al. 2019: norms behind, GELU by erf, a transform before the logits."""

    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["hidden_size"], c["layer_norm_eps"]
        self.vocabulary = c["vocab_size"]
        self.wte = nn.Embedding(c["padded_vocab_size"], hidden)
        self.wpe = nn.Embedding(c["max_position_embeddings"], hidden)
        self.wtt = nn.Embedding(c["type_vocab_size"], hidden)
        self.embed = nn.ModuleDict({"norm": nn.LayerNorm(hidden, eps=epsilon)})
        self.h = nn.ModuleList(
            Block(Attention(hidden, c["num_attention_heads"], causal=False),
                  Mlp(hidden, c["intermediate_size"], "none"), hidden, epsilon,
                  norm_first=False)
            for _ in range(c["num_hidden_layers"]))
        self.cls = nn.ModuleDict({"transform": nn.Linear(hidden, hidden),
                                  "norm": nn.LayerNorm(hidden, eps=epsilon)})
        self.lm_head = nn.Linear(hidden, c["padded_vocab_size"])
        self.lm_head.weight = self.wte.weight

    def forward(self, ids, types):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1])) + self.wtt(types)
        x = self.embed["norm"](x)
        for block in self.h:
            x = block(x)
        x = self.cls["norm"](F.gelu(self.cls["transform"](x)))
        return self.lm_head(x)[..., : self.vocabulary]


class RmsNorm(nn.Module):
    def __init__(self, hidden, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(hidden)), epsilon

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon)


class RotaryAttention(nn.Module):
    """Causal, grouped, without biases. Feature i of a head turns with feature
    i + d/2 by position * theta^(-2i/d), as in the models published for
    `transformers`."""

    def __init__(self, c):
        super().__init__()
        hidden, self.dim = c["hidden_size"], c["head_dim"]
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        width, kv_width = self.heads * self.dim, self.kv_heads * self.dim
        self.theta = c["rope_theta"]
        self.q = nn.Linear(hidden, width, bias=False)
        self.k = nn.Linear(hidden, kv_width, bias=False)
        self.v = nn.Linear(hidden, kv_width, bias=False)
        self.proj = nn.Linear(width, hidden, bias=False)

    def turn(self, x):
        """As complex numbers, whose real parts are a head's first half."""
        batch, length, width = x.shape
        half = self.dim // 2
        rates = self.theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
        parts = x.view(batch, length, -1, 2, half)
        z = torch.complex(parts[..., 0, :], parts[..., 1, :])
        z = z * torch.polar(torch.ones_like(angles), angles)[:, None, :]
        return torch.stack((z.real, z.imag), dim=-2).reshape(batch, length, width)

    def forward(self, x):
        q, k = self.turn(self.q(x)), self.turn(self.k(x))
        return self.proj(attend(q, k, self.v(x), self.heads, self.kv_heads, causal=True))


class SwiGlu(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["hidden_size"], c["rms_norm_eps"]
        self.ln_1, self.attn = RmsNorm(hidden, epsilon), RotaryAttention(c)
        self.ln_2, self.mlp = RmsNorm(hidden, epsilon), SwiGlu(hidden, c["intermediate_size"])

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Llama(nn.Module):
    """Touvron et al. 2023, with the grouped keys and values of Llama 2 and 3."""

    def __init__(self, c):
        super().__init__()
        hidden = c["hidden_size"]
        self.vocabulary = c["vocab_size"]
        self.wte = nn.Embedding(c["padded_vocab_size"], hidden)
        self.h = nn.ModuleList(LlamaBlock(c) for _ in range(c["num_hidden_layers"]))
        self.ln_f = RmsNorm(hidden, c["rms_norm_eps"])
        self.lm_head = nn.Linear(hidden, c["padded_vocab_size"], bias=False)

    def forward(self, ids, types):
        x = self.wte(ids)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))[..., : self.vocabulary]


MODELS = {"gpt2": Gpt2, "bert": Bert, "llama": Llama}
