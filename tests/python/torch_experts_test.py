"""Tests modules with experts as models, if torch is installed."""

import unittest

import mtplan
from torch_test import HAS_TORCH, HAS_TRANSFORMERS, LENGTH, family


@unittest.skipUnless(HAS_TRANSFORMERS, "no transformers")
class Capacity(unittest.TestCase):
    """Checks that experts take all tokens, unless a capacity is given."""

    def test_a_capacity_that_drops_tokens_is_noted(self):
        module = family("mixtral")
        module.config.capacity_factor = 1.25
        with self.assertWarnsRegex(UserWarning, "takes 20 of the 32 tokens"):
            imported = mtplan.from_torch(module, seq=LENGTH, capacity_factor=1.25)
        at = {"gpus": 4, "global_batch": 16}
        one = mtplan.plan(imported, **at)
        other = mtplan.plan(module.config, seq=LENGTH, **at)
        self.assertEqual(one.step_time, other.step_time)
        self.assertEqual(one.memory.by_class, other.memory.by_class)

    def test_a_capacity_for_all_is_not_noted(self):
        imported = mtplan.from_torch(family("mixtral"), seq=LENGTH, capacity_factor=2)
        self.assertEqual(imported.notes, ())
        self.assertEqual(imported.text,
                         mtplan.from_torch(family("mixtral"), seq=LENGTH).text)

    def test_a_capacity_needs_experts(self):
        with self.assertRaisesRegex(mtplan.Error, "the module has none"):
            mtplan.from_torch(family("llama"), seq=LENGTH, capacity_factor=2)
        with self.assertRaisesRegex(mtplan.Error, "above 0, but is 0; 2 drops no"):
            mtplan.from_torch(family("mixtral"), seq=LENGTH, capacity_factor=0)

    def test_a_balance_loss_is_refused(self):
        module = family("mixtral")
        module.config.output_router_logits = True
        with self.assertRaisesRegex(mtplan.Error, r"modeling_mixtral\.py:\d+: "):
            mtplan.from_torch(module, seq=LENGTH)


@unittest.skipUnless(HAS_TORCH, "no torch")
class Forms(unittest.TestCase):
    """Checks that other forms of routing are computed exactly, or refused."""

    def of(self, route):
        import torch

        class Routed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(8, 8)
                self.router = torch.nn.Linear(8, 4, bias=False)
                self.experts = torch.nn.Parameter(torch.randn(4, 8, 6))
                self.back = torch.nn.Parameter(torch.randn(4, 6, 8))
                self.head = torch.nn.Linear(8, 5)

            def forward(self, x):
                hidden = self.first(x).view(-1, 8)
                made = route(self, hidden, self.router(hidden))
                return self.head(made.view(2, 4, 8))
        return Routed().eval()

    def after_topk(self, module, hidden, logits):
        """Takes the softmax of the largest logits, and has weights [in, out]."""
        import torch
        best, numbers = logits.topk(2, -1)
        tokens = hidden.repeat_interleave(2, dim=0)
        inner = torch.bmm(tokens[:, None], module.experts[numbers.view(-1)])
        outer = torch.bmm(inner.relu(), module.back[numbers.view(-1)])
        weights = best.softmax(-1).view(-1, 1)
        return (outer.squeeze(1) * weights).view(-1, 2, 8).sum(1)

    def one_of_four(self, module, hidden, logits):
        """Chooses one expert, whose probability is its weight."""
        import torch
        weight, number = logits.softmax(-1).topk(1, -1)
        inner = torch.bmm(hidden[:, None], module.experts[number[:, 0]])
        outer = torch.bmm(inner.tanh(), module.back[number[:, 0]])
        return (outer[:, 0] * weight).view(-1, 1, 8).sum(1)

    def test_other_forms_are_computed(self):
        import torch
        from torch_parity import errors
        x = {"x": torch.randn(2, 4, 8, dtype=torch.float64)}
        targets = torch.randint(0, 5, (2, 4))
        for route in (self.after_topk, self.one_of_four):
            with self.subTest(route.__doc__):
                loss, gradient, imported = errors(self.of(route), x, targets)
                self.assertLess(loss, 1e-10)
                self.assertLess(gradient, 1e-10)
                mtplan.plan(imported, gpus=2, global_batch=4)

    def test_what_only_looks_like_routing(self):
        import torch

        def weights(module, hidden, logits, change):
            best, numbers = logits.softmax(-1).topk(2, -1)
            best, numbers, tokens = change(best, numbers, hidden)
            made = torch.bmm(tokens[:, None], module.experts[numbers])
            made = torch.bmm(made, module.back[numbers])[:, 0]
            return (made * best[:, None]).view(-1, 2, 8).sum(1)
        flat = torch.flatten
        for change, reason in {
                lambda b, n, h: (flat(b), flat(n), h.repeat(2, 1)):
                    "repeat is not known",
                lambda b, n, h: (flat(b.t()), flat(n), h.repeat_interleave(2, 0)):
                    "t: routing to experts in another form",
                lambda b, n, h: (flat(b.sigmoid()), flat(n), h.repeat_interleave(2, 0)):
                    "sigmoid: routing to experts in another form",
                lambda b, n, h: (flat(b.long()), flat(n), h.repeat_interleave(2, 0)):
                    "integers or booleans that are computed",
                lambda b, n, h: (flat(b / b.view(1, -1).sum(-1, True)), flat(n),
                                 h.repeat_interleave(2, 0)):
                    "sum: routing to experts in another form",
                lambda b, n, h: (flat(b[..., None] / b[..., None].sum(-1, True)),
                                 flat(n), h.repeat_interleave(2, 0)):
                    "sum: routing to experts in another form",
                lambda b, n, h: (flat(b), flat(3 - n), h.repeat_interleave(2, 0)):
                    "rsub: routing to experts in another form"}.items():
            with self.subTest(reason), self.assertRaises(mtplan.Error) as raised:
                mtplan.from_torch(self.of(lambda m, h, z, c=change: weights(m, h, z, c)),
                                  (torch.randn(2, 4, 8),))
            self.assertIn(reason, str(raised.exception))
            self.assertRegex(str(raised.exception), r"torch_experts_test\.py:\d+: ")

    def test_a_softmax_over_all_tokens(self):
        import torch

        def route(module, hidden, logits):
            best, numbers = logits.topk(2, -1)
            tokens = hidden.repeat_interleave(2, dim=0)
            inner = torch.bmm(tokens[:, None], module.experts[numbers.view(-1)])
            outer = torch.bmm(inner, module.back[numbers.view(-1)])[:, 0]
            weights = best.flatten().softmax(-1)
            return (outer * weights[:, None]).view(-1, 2, 8).sum(1)
        with self.assertRaisesRegex(mtplan.Error, "softmax: routing to experts in"):
            mtplan.from_torch(self.of(route), (torch.randn(2, 4, 8),))


if __name__ == "__main__":
    unittest.main()
