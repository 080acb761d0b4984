"""Tests forms that only look like known ones, if torch is installed."""

import unittest

import mtplan
from mtplan._torch_import import Importer
from mtplan._torch_rotation import theta_of
from mtplan._torch_values import Slice
from torch_test import HAS_TORCH


@unittest.skipUnless(HAS_TORCH, "no torch")
class LookAlikes(unittest.TestCase):
    """Checks that unknown forms are refused, and not taken for known ones."""

    def refused(self, module, inputs, reason):
        with self.assertRaises(mtplan.Error) as raised:
            mtplan.from_torch(module, inputs)
        self.assertIn(reason, str(raised.exception))

    def test_what_only_looks_like_a_known_form(self):
        import torch
        from torch.nn import functional as F
        x = torch.randn(2, 4, 8)
        shapes = {"gain": (8,), "table": (8, 4), "square": (8, 8), "mixing": (2, 2),
                  "halves": (2, 4)}

        def norm(m, y):
            return y * (y.square().mean(-1, keepdim=True) + 1e-3) ** -1 * m.gain

        def doubled(_, y):
            y.view(2, 4, 2, 4).mul_(2.0)
            return y

        class Module(torch.nn.Module):
            def __init__(self, function):
                super().__init__()
                self.layer, self.function = torch.nn.Linear(8, 8), function
                for name, shape in shapes.items():
                    setattr(self, name, torch.nn.Parameter(torch.randn(*shape)))

            def forward(self, x):
                return self.function(self, self.layer(x))

        for function, reason in {
                norm: "a power of a mean",
                lambda m, y: y + m.table.t(): "table with exchanged dimensions",
                lambda m, y: F.layer_norm(y, [8], m.gain, m.halves.t().reshape(8)):
                    "halves with exchanged dimensions",
                doubled: "a change in place",
                lambda m, y: y.to(torch.int32).to(torch.float32): "integers or booleans",
                lambda m, y: y * torch.empty(1).uniform_(): "random numbers",
                lambda m, y: F.relu(y) - F.relu(y - 10): "no known activation",
                lambda m, y: F.leaky_relu(y, 0.2): "no known activation",
                lambda m, y: torch.div(y, 3.0, rounding_mode="floor"):
                    "div is not known with these arguments",
                lambda m, y: y + torch.linalg.inv(torch.zeros(1, 1)):
                    "a constant that cannot be computed",
                lambda m, y: torch.tensor_split(y, 3, -1)[0]: "tensor_split is not known",
                lambda m, y: torch.addmm(y[:, 0], y[:, 0], m.square):
                    "biases or positions that are computed",
                lambda m, y: F.linear(y.transpose(0, 2), m.mixing).transpose(0, 2):
                    "a product over the samples"}.items():
            with self.subTest(reason):
                self.refused(Module(function), (x,), reason)

    def test_the_theta_of_rounded_tables_is_the_nearest(self):
        import torch
        importer = Importer(1)
        part = Slice(importer.input("x", [1, 16, 2, 64]), 3, 0, 64)
        for theta in (1.25e6, 1.2e6, 1e4):
            angles = torch.arange(16.0)[:, None] * theta ** -(
                torch.arange(0, 64, 2) / 64)
            tables = [torch.cat([one, one], -1)[:, None].bfloat16()
                      for one in (angles.cos(), angles.sin())]
            with self.subTest(theta):
                self.assertEqual(theta_of(importer, part, *tables), theta)

    def test_scores_after_the_softmax(self):
        import torch
        x, mask = torch.randn(2, 4, 8), torch.full((4, 4), -1e9).triu(1)

        class Module(torch.nn.Module):
            def __init__(self, function):
                super().__init__()
                self.layer, self.function = torch.nn.Linear(8, 8), function

            def forward(self, x):
                return self.function(self.layer(x))

        def attention(probabilities):
            def mixed(y):
                heads = y.view(2, 4, 2, 4).transpose(1, 2)
                scores = heads @ heads.transpose(-1, -2)
                return probabilities(scores.softmax(-1)) @ heads
            return Module(mixed)
        for function, reason in {
                lambda p: p.softmax(-1): "a softmax of attention's softmax",
                lambda p: p + mask: "a sum after attention's softmax",
                lambda p: p.masked_fill(mask < 0, -1e9):
                    "a sum after attention's softmax",
                lambda p: p.masked_fill(mask < 0, float("nan")): "replaced by nan"
                }.items():
            with self.subTest(reason):
                self.refused(attention(function), (x,), reason)

    def test_targets_that_are_no_class_of_each_row(self):
        import torch
        from torch.nn import functional as F

        class Model(torch.nn.Module):
            def __init__(self, targets_of):
                super().__init__()
                self.layer, self.targets_of = torch.nn.Linear(8, 4), targets_of

            def forward(self, x, labels):
                return F.cross_entropy(self.layer(x), self.targets_of(labels))
        for targets_of, shape in ((lambda given: given, (2, 4)),
                                  (lambda given: F.one_hot(given, 4).float(), (2,))):
            x = torch.randn(*shape, 8)
            self.refused(Model(targets_of), (x, torch.ones(shape).long()),
                         "a cross entropy of logits")

    def test_an_input_without_samples(self):
        import torch

        class Model(torch.nn.Module):
            def forward(self, x, y):
                return x * y
        self.refused(Model(), (torch.randn(2, 8), torch.randn(8)),
                     "must count the samples")

    def test_images_in_another_order(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self, patches):
                super().__init__()
                self.stem, self.patches = torch.nn.Conv2d(3, 8, 4, 4), patches
                self.first = torch.nn.Parameter(torch.zeros(1, 1, 8))

            def forward(self, image, other):
                return self.patches(self, image, other)

        def rows(one):
            return one.flatten(2).transpose(1, 2)
        for patches, reason in {
                lambda m, x, _: rows(m.stem(x.transpose(2, 3))):
                    "a convolution of a computed tensor",
                lambda m, x, _: torch.cat([m.first.expand(2, -1, -1), rows(
                    m.stem(x).transpose(2, 3))], 1): "a concatenation",
                lambda m, x, _: rows(torch.nn.functional.conv2d(
                    x, m.stem.weight.transpose(2, 3), m.stem.bias, 4)):
                    "stem.weight with exchanged dimensions",
                lambda m, x, y: rows(m.stem(x)) * rows(m.stem(y)):
                    "windows of two images"}.items():
            with self.subTest(reason):
                self.refused(Model(patches),
                             (torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)), reason)

    def test_only_tokens_are_named_ids(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self, ids_of):
                super().__init__()
                self.tokens, self.ids_of = torch.nn.Embedding(16, 8), ids_of
                self.places, self.head = torch.nn.Embedding(16, 8), torch.nn.Linear(8, 8)

            def forward(self, x):
                return self.head(self.ids_of(self, x))
        ids, x = torch.zeros(2, 4, dtype=torch.long), torch.randn(2, 4, 8)
        for given, ids_of, label in (
                (ids, lambda m, x: m.tokens(x), "ids"),
                (ids, lambda m, x: m.tokens(x.view(2, 4).long()), "ids"),
                (ids, lambda m, x: m.tokens(x.flip(1)), "computed_ids"),
                (x, lambda m, x: x + m.places(torch.arange(4) + 2), "positions")):
            labels = [op.label for op in mtplan.from_torch(Model(ids_of), (given,)).inputs]
            self.assertIn(label, labels)
            self.assertEqual("ids" in labels, label == "ids")

    def test_a_buffer_is_not_changed(self):
        import torch

        class Counter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8)
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls += 1
                return self.layer(x)
        module = Counter()
        mtplan.from_torch(module, (torch.randn(2, 8),))
        self.assertEqual(float(module.calls), 0.0)

    def is_computed(self, module, inputs, targets):
        from torch_parity import errors
        loss, gradient, imported = errors(module.eval(), inputs, targets)
        self.assertLess(loss, 1e-10)
        self.assertLess(gradient, 1e-10)
        mtplan.plan(imported, gpus=1, global_batch=4)

    def test_logits_that_share_their_dimension_with_activations(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self, logits):
                super().__init__()
                self.one, self.other = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
                self.logits = logits

            def forward(self, x):
                return self.logits(self, x)
        x = {"x": torch.randn(2, 4, 8, dtype=torch.float64)}
        targets = torch.randint(0, 8, (2, 4))

        def residual(model, x):
            y = model.one(x)
            return y + model.other(torch.relu(y))
        for logits in (residual, lambda model, x: model.one(x) + model.other(x),
                       lambda model, x: 2 * torch.nn.functional.gelu(
                           model.other(torch.tanh(model.one(x))))):
            self.is_computed(Model(logits), x, targets)

    def test_positions_and_concatenated_features(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self, rows):
                super().__init__()
                self.one, self.other = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
                self.head, self.rows = torch.nn.Linear(16, 8), rows

            def forward(self, x):
                one = self.one(x)
                return self.head(torch.cat([self.rows(one), self.other(one[:, 0])], -1))
        x = {"x": torch.randn(2, 4, 8, dtype=torch.float64)}
        targets = torch.randint(0, 8, (2,))
        for rows in (lambda y: y.mean(1), lambda y: y[:, -1], lambda y: y[:, 1:].mean(1),
                     lambda y: y.transpose(1, 2).mean(-1, keepdim=True).flatten(1)):
            self.is_computed(Model(rows), x, targets)

    def test_ranges_of_each_head(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self, parts):
                super().__init__()
                self.qkv, self.parts = torch.nn.Linear(8, 24), parts

            def forward(self, x):
                return torch.nn.functional.scaled_dot_product_attention(*(
                    one.transpose(1, 2) for one in self.parts(self.qkv(x)))
                ).transpose(1, 2).flatten(2)
        x = {"x": torch.randn(2, 4, 8, dtype=torch.float64)}
        targets = torch.randint(0, 8, (2, 4))
        for parts in (lambda y: y.view(2, 4, 2, 12).chunk(3, -1),
                      lambda y: y.view(2, 4, 2, 3, 4).unbind(3),
                      lambda y: (y.view(2, 4, 6, 4)[:, :, ids]
                                 for ids in ([0, 1], [2, 3], [-2, -1]))):
            self.is_computed(Model(parts), x, targets)

    def test_a_constant_of_zeros_is_nothing(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self, number):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8)
                self.register_buffer("bias", torch.full((1, 8), number))

            def forward(self, x):
                return self.layer(x) + self.bias
        x = torch.randn(2, 4, 8, dtype=torch.float64)
        self.is_computed(Model(0.0), {"x": x}, torch.randint(0, 8, (2, 4)))
        with self.assertRaisesRegex(mtplan.Error, "a constant tensor where"):
            mtplan.from_torch(Model(1.0), (x.float(),))

    def test_a_part_that_only_gives_its_shape(self):
        import torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8)

            def forward(self, x):
                y = self.layer(x)
                return y * y[:, :, -1].shape[1]
        x = {"x": torch.randn(2, 4, 8, dtype=torch.float64)}
        self.is_computed(Model(), x, torch.randint(0, 8, (2, 4)))

    def test_reshaped_and_shifted_parameters(self):
        import torch
        from torch.nn import functional as F

        class Biased(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8, bias=False)
                self.bias = torch.nn.Parameter(torch.zeros(4, 2))

            def forward(self, x):
                return F.linear(x, self.layer.weight, self.bias.reshape(8))

        class Shifted(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.stem, self.head = torch.nn.Conv2d(3, 8, 4, 4), torch.nn.Linear(8, 8)

            def forward(self, pixel_values):
                y = F.conv2d(pixel_values, self.stem.weight + 1, self.stem.bias,
                             4)
                return self.head(y.flatten(2).transpose(1, 2)[:, 0])
        targets = torch.randint(0, 8, (2, 4))
        self.is_computed(Biased(), {"x": torch.randn(2, 4, 8, dtype=torch.float64)}, targets)
        image = torch.randn(2, 3, 8, 8, dtype=torch.float64)
        self.is_computed(Shifted(), {"pixel_values": image}, targets[:, 0])


if __name__ == "__main__":
    unittest.main()
