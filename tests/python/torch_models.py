"""Defines models to import, besides those of transformers."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, causal):
        samples, positions, width = x.shape
        parts = (part.view(samples, positions, self.heads, -1).transpose(1, 2)
                 for part in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(*parts, is_causal=causal)
        return self.out(mixed.transpose(1, 2).reshape(samples, positions, width))


class Mixer(nn.Module):
    """Is an MLP-Mixer without biases of the products over patches."""

    def __init__(self, patches=16, width=32, classes=10, layers=3, biased=False):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "norm2": nn.LayerNorm(width),
            "tokens": nn.Sequential(nn.Linear(patches, 24, bias=biased), nn.GELU(),
                                    nn.Linear(24, patches, bias=biased)),
            "channels": nn.Sequential(nn.Linear(width, 64), nn.GELU(),
                                      nn.Linear(64, width)),
        }) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, pixel_values):
        x = self.stem(pixel_values).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = x + layer["tokens"](layer["norm1"](x).transpose(1, 2)).transpose(1, 2)
            x = x + layer["channels"](layer["norm2"](x))
        return self.head(self.norm(x)[:, 0])


class ParallelBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        # This activation is written out: the tanh form of GELU.
        wide = self.up(y)
        wide = 0.5 * wide * (1 + torch.tanh(0.7978845608028654
                                            * (wide + 0.044715 * wide ** 3)))
        return x + self.attention(y, True) + self.down(wide)


class ParallelDecoder(nn.Module):
    """Is a decoder whose branches read the same norm, as in GPT-J."""

    def __init__(self, classes=50, positions=16, width=32, layers=4):
        super().__init__()
        self.tokens = nn.Embedding(classes, width)
        self.places = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(ParallelBlock(width, 4) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class EncoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.gate, self.up = nn.Linear(width, 48), nn.Linear(width, 48)
        self.down = nn.Linear(48, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x), False)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class TwoTowers(nn.Module):
    """Is a classifier of pairs of texts, which one encoder reads one by one."""

    def __init__(self, classes=3, words=40, positions=16, width=32, layers=3):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.places = nn.Embedding(positions, width)
        self.encoder = nn.ModuleList(EncoderBlock(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def tower(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.encoder:
            x = block(x)
        return x[:, 0]

    def forward(self, first, second):
        return self.head(self.tower(first) * self.tower(second))
