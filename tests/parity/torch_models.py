"""Defines GPT-2, BERT, Llama, Gemma 2, Mixtral, T5 and ViT in plain PyTorch,
after their papers and the published models. No code here follows mtplan's
operators.

Modules have the names of mtplan's parameter labels, so that state names are
labels. Every model maps the inputs of one micro-batch (a dictionary of tensors)
to logits without the padding rows of the vocabulary.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def attend(q, k, v, heads, kv_heads, causal, scale=None, cap=None):
    """Returns softmax(q k^T / sqrt(d)) v for each head. Groups of query heads share
    keys and values. `scale` replaces 1 / sqrt(d), and `cap` bounds scores by tanh."""
    batch, length = q.shape[:2]

    def by_head(x, count):
        return x.view(batch, length, count, -1).transpose(1, 2)

    q, k, v = by_head(q, heads), by_head(k, kv_heads), by_head(v, kv_heads)
    k = k.repeat_interleave(heads // kv_heads, dim=1)
    v = v.repeat_interleave(heads // kv_heads, dim=1)
    scores = q @ k.transpose(-2, -1)
    scores = scores / math.sqrt(q.shape[-1]) if scale is None else scores * scale
    if cap:
        scores = cap * torch.tanh(scores / cap)
    if causal:
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    mixed = scores.softmax(dim=-1) @ v
    return mixed.transpose(1, 2).reshape(batch, length, -1)


class Attention(nn.Module):
    """Is the attention of GPT-2 (causal), BERT and ViT."""

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
    """Is a layer with pre-norm (before the branches) or post-norm (after the
    sums)."""

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
    """Follows Radford et al. 2019: norms first, GELU by tanh, tied head."""

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

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)[..., : self.vocabulary]


class Bert(nn.Module):
    """Follows Devlin et al. 2019: norms after the sums, GELU by erf, a
    transform before the logits."""

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
    """Is causal attention with grouped keys and values and without biases.
    Features i and i + d/2 of a head rotate by position * theta^(-2i/d), as in
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
        self.scale = c["query_pre_attn_scalar"] ** -0.5 if "query_pre_attn_scalar" in c else None
        self.cap = c.get("attn_logit_softcapping")

    def turn(self, x):
        """Rotates complex numbers whose real parts are a head's first half."""
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
        return self.proj(attend(q, k, self.v(x), self.heads, self.kv_heads, causal=True,
                                scale=self.scale, cap=self.cap))


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
    """Follows Touvron et al. 2023, with the grouped keys and values of Llama 2
    and 3."""

    def __init__(self, c):
        super().__init__()
        hidden = c["hidden_size"]
        self.vocabulary = c["vocab_size"]
        self.wte = nn.Embedding(c["padded_vocab_size"], hidden)
        self.h = nn.ModuleList(LlamaBlock(c) for _ in range(c["num_hidden_layers"]))
        self.ln_f = RmsNorm(hidden, c["rms_norm_eps"])
        self.lm_head = nn.Linear(hidden, c["padded_vocab_size"], bias=False)

    def forward(self, ids):
        x = self.wte(ids)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))[..., : self.vocabulary]


class GeGlu(SwiGlu):
    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


class Gemma2Block(nn.Module):
    """Is a layer with norms before and after each branch."""

    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["hidden_size"], c["rms_norm_eps"]
        self.attn, self.mlp = RotaryAttention(c), GeGlu(hidden, c["intermediate_size"])
        self.ln_1, self.ln_1_post, self.ln_2, self.ln_2_post = (
            RmsNorm(hidden, epsilon) for _ in range(4))

    def forward(self, x):
        x = x + self.ln_1_post(self.attn(self.ln_1(x)))
        return x + self.ln_2_post(self.mlp(self.ln_2(x)))


class Gemma2(nn.Module):
    """Follows Gemma Team 2024, for sequences within the sliding window:
    embeddings times the square root of the width, tied logits within a soft
    cap."""

    def __init__(self, c):
        super().__init__()
        hidden = c["hidden_size"]
        self.vocabulary, self.cap = c["vocab_size"], c["final_logit_softcapping"]
        self.wte = nn.Embedding(c["padded_vocab_size"], hidden)
        self.h = nn.ModuleList(Gemma2Block(c) for _ in range(c["num_hidden_layers"]))
        self.ln_f = RmsNorm(hidden, c["rms_norm_eps"])

    def forward(self, ids):
        x = self.wte(ids) * self.wte.embedding_dim ** 0.5
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)[..., : self.vocabulary]
        return self.cap * torch.tanh(logits / self.cap)


class MixtureOfExperts(nn.Module):
    """Every token goes to the experts with its largest router logits (Jiang et al.
    2024), weighted by a softmax over those. An expert has a capacity of tokens per
    sample: first choices in order of position come before second choices, and
    tokens beyond the capacity are dropped (Lepikhin et al. 2020). The auxiliary
    loss balances experts (Fedus et al. 2021, equation 4)."""

    def __init__(self, c):
        super().__init__()
        self.count, self.chosen = c["num_local_experts"], c["num_experts_per_tok"]
        hidden, inner = c["hidden_size"], c["intermediate_size"]
        length = c["max_position_embeddings"]
        self.room = math.ceil(length * self.chosen / self.count * c["capacity_factor"])
        self.balance = c["router_aux_loss_coef"]
        self.router = nn.Linear(hidden, self.count, bias=False)
        self.gate, self.up, self.down = (
            nn.ParameterDict({"weight": torch.zeros(self.count, *shape)})
            for shape in ((hidden, inner), (hidden, inner), (inner, hidden)))

    def expert(self, number, x):
        gate, up, down = (m["weight"][number] for m in (self.gate, self.up, self.down))
        return (F.silu(x @ gate) * (x @ up)) @ down

    def route(self, x):
        """Returns the output and the balance loss of one sample [sequence, hidden]."""
        logits = self.router(x)
        best, experts = logits.topk(self.chosen, dim=-1)
        weights = best.softmax(dim=-1)
        rows = [torch.zeros_like(x[0]) for _ in x]
        taken = [0] * self.count
        for choice in range(self.chosen):
            for position, number in enumerate(experts[:, choice].tolist()):
                taken[number] += 1
                if taken[number] <= self.room:
                    rows[position] = rows[position] + weights[position, choice] * self.expert(
                        number, x[position])
        share = torch.tensor(taken) / len(x)
        loss = self.balance * self.count * (share * logits.softmax(dim=-1).mean(0)).sum()
        return torch.stack(rows), loss

    def forward(self, x):
        """Stores the balance loss in `auxiliary`, summed over samples and times
        the tokens of one sample."""
        outputs, losses = zip(*map(self.route, x))
        self.auxiliary = sum(losses) * x.shape[1]
        return torch.stack(outputs)


class MixtralBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["hidden_size"], c["rms_norm_eps"]
        self.ln_1, self.attn = RmsNorm(hidden, epsilon), RotaryAttention(c)
        self.ln_2, self.moe = RmsNorm(hidden, epsilon), MixtureOfExperts(c)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.moe(self.ln_2(x))


class Mixtral(Llama):
    """Follows Jiang et al. 2024: Llama with experts in place of its MLP."""

    def __init__(self, c):
        super().__init__(c)
        self.h = nn.ModuleList(MixtralBlock(c) for _ in range(c["num_hidden_layers"]))

    def auxiliary(self):
        """Returns the balance loss of the last micro-batch, times its tokens."""
        return sum(block.moe.auxiliary for block in self.h)


def bucket_of(distance, buckets, farthest, both):
    """Returns the row of T5's table for a key `distance` positions after its query (Raffel
    et al. 2020, section 2.1), by counting through the boundaries."""
    row = 0
    if both:
        buckets //= 2
        row = buckets if distance > 0 else 0
    past = abs(distance) if both else max(0, -distance)
    exact = buckets // 2
    if past < exact:
        return row + past
    ratio = farthest / exact
    steps = [exact * ratio ** (k / (buckets - exact)) for k in range(1, buckets - exact)]
    return row + exact + sum(past >= step - 1e-9 for step in steps)


class RelativeAttention(nn.Module):
    """Is T5's attention: scores are not scaled, and the caller gives a bias."""

    def __init__(self, c):
        super().__init__()
        hidden, self.heads = c["d_model"], c["num_heads"]
        width = self.heads * c["d_kv"]
        self.q, self.k, self.v = (nn.Linear(hidden, width, bias=False) for _ in range(3))
        self.proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x, memory, bias):
        def by_head(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k, v = by_head(self.q(x)), by_head(self.k(memory)), by_head(self.v(memory))
        scores = q @ k.transpose(-2, -1) + bias
        mixed = scores.softmax(dim=-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(-2))


class T5Mlp(nn.Module):
    """Is an MLP gated by the tanh GELU, as in T5 v1.1."""

    def __init__(self, c):
        super().__init__()
        hidden, inner = c["d_model"], c["d_ff"]
        self.gate, self.up = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


class T5Layer(nn.Module):
    def __init__(self, c, crosses):
        super().__init__()
        hidden, epsilon = c["d_model"], c["layer_norm_epsilon"]
        self.attn, self.mlp = RelativeAttention(c), T5Mlp(c)
        self.cross = RelativeAttention(c) if crosses else None
        self.ln_1, self.ln_2 = RmsNorm(hidden, epsilon), RmsNorm(hidden, epsilon)
        if crosses:
            self.ln_3 = RmsNorm(hidden, epsilon)

    def forward(self, x, bias, memory=None):
        own = self.ln_1(x)
        x = x + self.attn(own, own, bias)
        if self.cross:
            x = x + self.cross(self.ln_2(x), memory, 0.0)
            return x + self.mlp(self.ln_3(x))
        return x + self.mlp(self.ln_2(x))


class T5Stack(nn.Module):
    """Holds layers that share one table of relative position biases."""

    def __init__(self, c, layers, decodes):
        super().__init__()
        for number in range(layers):
            self.add_module(str(number), T5Layer(c, decodes))
        self.layers = layers
        self.buckets = c["relative_attention_num_buckets"]
        self.farthest = c["relative_attention_max_distance"]
        self.decodes = decodes
        self.bias = nn.Embedding(self.buckets, c["num_heads"])

    def forward(self, x, memory=None):
        length = x.shape[1]
        rows = torch.tensor([[bucket_of(key - query, self.buckets, self.farthest,
                                        not self.decodes)
                              for key in range(length)] for query in range(length)])
        bias = self.bias(rows).permute(2, 0, 1)
        if self.decodes:
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            bias = bias.masked_fill(future, -math.inf)
        for number in range(self.layers):
            x = self.get_submodule(str(number))(x, bias, memory)
        return x


class T5(nn.Module):
    """Follows Raffel et al. 2020 with the tied logits of the first version."""

    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["d_model"], c["layer_norm_epsilon"]
        self.vocabulary = c["vocab_size"]
        self.wte = nn.Embedding(c["padded_vocab_size"], hidden)
        self.encoder = T5Stack(c, c["num_layers"], decodes=False)
        self.encoder.ln_f = RmsNorm(hidden, epsilon)
        self.decoder = T5Stack(c, c["num_decoder_layers"], decodes=True)
        self.ln_f = RmsNorm(hidden, epsilon)

    def forward(self, ids, decoder_ids):
        memory = self.encoder.ln_f(self.encoder(self.wte(ids)))
        y = self.ln_f(self.decoder(self.wte(decoder_ids), memory))
        y = y * y.shape[-1] ** -0.5
        return F.linear(y, self.wte.weight)[..., : self.vocabulary]


class Vit(nn.Module):
    """Follows Dosovitskiy et al. 2021: maps images to the class logits of the
    class token."""

    def __init__(self, c):
        super().__init__()
        hidden, epsilon = c["hidden_size"], c["layer_norm_eps"]
        self.classes = c["num_labels"]
        height, width = c["image_size"]
        size = c["patch_size"]
        self.patch = nn.Conv2d(c["num_channels"], hidden, size, stride=size)
        self.cls_token = nn.ParameterDict({"weight": torch.zeros(hidden)})
        self.wpe = nn.Embedding(1 + height // size * (width // size), hidden)
        self.h = nn.ModuleList(
            Block(Attention(hidden, c["num_attention_heads"], causal=False),
                  Mlp(hidden, c["intermediate_size"], "none"), hidden, epsilon,
                  norm_first=True)
            for _ in range(c["num_hidden_layers"]))
        self.ln_f = nn.LayerNorm(hidden, eps=epsilon)
        self.classifier = nn.Linear(hidden, c["padded_vocab_size"])

    def forward(self, images):
        patches = self.patch(images).flatten(2).transpose(1, 2)
        first = self.cls_token["weight"].expand(len(images), 1, -1)
        x = torch.cat((first, patches), dim=1) + self.wpe.weight
        for block in self.h:
            x = block(x)
        return self.classifier(self.ln_f(x[:, 0]))[..., : self.classes]


MODELS = {"gpt2": Gpt2, "bert": Bert, "llama": Llama, "gemma2": Gemma2,
          "mixtral": Mixtral, "t5": T5, "vit": Vit}
