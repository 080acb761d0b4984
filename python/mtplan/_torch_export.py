"""Exports a module with torch.export, and walks through the program."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mtplan import _torch_alias as alias
from mtplan import _torch_curves as curves
from mtplan import _torch_experts as experts
from mtplan import _torch_operators as operators
from mtplan._errors import Error
from mtplan._torch_configs import exportable
from mtplan._torch_graph import Origin
from mtplan._torch_import import HANDLERS, PARTIAL, Importer
from mtplan._torch_values import Curve, Data, Loss, Refusal, Scores, Tensor
from mtplan import _torch_views as views

# Matches a line of a stack trace of Python.
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# Lists operators that check something and compute nothing.
CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async",
          "sym_constrain_range", "sym_constrain_range_for_size", "sym_size")
NOT_GIVEN = "is on the device meta and has no value: create it on the CPU"


class Missing:
    """Is a constant whose value is not known.

    >>> Missing("the buffer mask").what
    'the buffer mask'
    """

    def __init__(self, what: str) -> None:
        self.what = what


def export(module: Any, example: Any) -> Any:
    """Returns the exported program. Raises ``Error`` if PyTorch cannot export it.

    >>> export(None, ())  # doctest: +SKIP
    """
    torch = importlib.import_module("torch")
    arguments, named = split_example(example)
    try:
        with exportable(module):
            return torch.export.export(module, arguments, named, strict=False)
    except Exception as fault:
        first = str(fault).strip().splitlines() or [type(fault).__name__]
        raise Error(f"{type(module).__name__}: torch.export cannot export the "
                    f"module: {first[0]}") from fault


def split_example(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments and the named arguments of an example.

    >>> split_example({"x": 1}), split_example([1, 2]), split_example(3)
    (((), {'x': 1}), ((1, 2), {}), ((3,), {}))
    """
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, (tuple, list)):
        return tuple(example), {}
    return (example,), {}


def samples_of(example: Any) -> int:
    """Returns the number of samples of an example, at least 1.

    >>> samples_of(())
    1
    """
    arguments, named = split_example(example)
    for one in (*arguments, *named.values()):
        if hasattr(one, "shape") and len(one.shape):
            return int(one.shape[0])
    return 1


def of_two_samples(example: Any) -> Any:
    """Repeats the sample of an example that has only one.

    A batch of one sample could not be told from other dimensions of size 1.

    >>> of_two_samples(())
    ()
    """
    if samples_of(example) != 1:
        return example

    def twice(one: Any) -> Any:
        if hasattr(one, "shape") and len(one.shape) and one.shape[0] == 1:
            return one.repeat(2, *[1] * (len(one.shape) - 1))
        return one
    if isinstance(example, Mapping):
        return {key: twice(one) for key, one in example.items()}
    if isinstance(example, (tuple, list)):
        return tuple(twice(one) for one in example)
    return twice(example)


class Walk:
    """Imports the nodes of an exported program one after the other.

    >>> Walk(None, None, 2).importer.batch             # doctest: +SKIP
    2
    """

    def __init__(self, module: Any, program: Any, samples: int) -> None:
        self.module = module
        self.program = program
        self.torch = importlib.import_module("torch")
        self.importer = Importer(samples)
        self.names = canonical_names(module)

    def run(self) -> list[Any]:
        """Imports all nodes, and returns the outputs.

        Raises ``Error`` that names the Python line of the node that cannot be
        imported.

        >>> Walk.run is not None
        True
        """
        graph = self.program.graph_module.graph
        given = {node.name: self._placeholder(node)
                 for node in graph.nodes if node.op == "placeholder"}
        return self._inside(self.program.graph_module, given)

    def _placeholder(self, node: Any) -> Any:
        """Returns what an input of the program is: a parameter, a constant, data.

        >>> Walk._placeholder is not None
        True
        """
        signature = self.program.graph_signature
        name = node.name
        if name in signature.inputs_to_parameters:
            return self._parameter(signature.inputs_to_parameters[name], node)
        if name in signature.inputs_to_buffers:
            return self._buffer(signature.inputs_to_buffers[name])
        if name in signature.inputs_to_lifted_tensor_constants:
            constant = self.program.constants[
                signature.inputs_to_lifted_tensor_constants[name]]
            return self._known(constant, "a constant tensor")
        value = node.meta.get("val")
        if not hasattr(value, "dtype"):
            return value
        if value.dtype.is_floating_point:
            try:
                return self.importer.input(name, list(value.shape), source=node)
            except Refusal as refusal:
                raise Error(f"{type(self.module).__name__}: {refusal}") from None
        return Data(node, tuple(value.shape))

    def _parameter(self, name: str, node: Any) -> Any:
        from mtplan._torch_graph import Source
        shape = list(node.meta["val"].shape)
        if not self.module.get_parameter(name).requires_grad:
            raise Error(f"{type(self.module).__name__}: the parameter {name} is "
                        "frozen (requires_grad is False); mtplan trains every "
                        "parameter that the loss reads")
        value = self.importer.graph.parameter(
            Source(self.names.get(name, name)), shape)
        return Tensor(value, views.whole(shape))

    def _buffer(self, name: str) -> Any:
        owner, _, leaf = name.rpartition(".")
        tensor = self.module.get_submodule(owner)._buffers.get(leaf)
        if tensor is None:
            tensor = self.program.constants.get(name,
                                                self.program.state_dict.get(name))
        if is_unknown(tensor):
            tensor = rebuilt(self.module, owner, leaf)
        return self._known(tensor, f"the buffer {name}")

    def _known(self, tensor: Any, what: str) -> Any:
        if tensor is None or is_unknown(tensor):
            return Missing(what)
        return tensor.detach().cpu().clone()

    def _inside(self, graph_module: Any, given: dict[str, Any]) -> list[Any]:
        values: dict[Any, Any] = {}
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                values[node] = given[node.name]
            elif node.op == "get_attr":
                values[node] = self._attribute(graph_module, node.target)
            elif node.op == "output":
                return list(self._flat(self._taken(node.args[0], values)))
            elif not node.users and not alias.is_in_place(node.target):
                continue  # the node is there for its shape only
            else:
                self.importer.origin = origin_of(node)
                try:
                    values[node] = self._settled(node, self._call(node, values))
                    self.importer.made[id(values[node])] = (
                        values[node], self.importer.origin)
                except Refusal as refusal:
                    raise Error(self._message(node, str(refusal))) from None
        return []

    def _attribute(self, graph_module: Any, target: str) -> Any:
        found = graph_module
        for part in target.split("."):
            found = getattr(found, part)
        if hasattr(found, "graph"):
            return found
        return self._known(found, f"the constant {target}")

    def _taken(self, given: Any, values: dict[Any, Any]) -> Any:
        if isinstance(given, self.torch.fx.Node):
            return values[given]
        if isinstance(given, (list, tuple)):
            return [self._taken(one, values) for one in given]
        if isinstance(given, dict):
            return {key: self._taken(one, values) for key, one in given.items()}
        return given

    def _flat(self, given: Any) -> Iterator[Any]:
        if isinstance(given, (list, tuple)):
            for one in given:
                yield from self._flat(one)
        elif isinstance(given, dict):
            yield from self._flat(list(given.values()))
        else:
            yield given

    def _call(self, node: Any, values: dict[Any, Any]) -> Any:
        name = name_of(node.target)
        arguments = self._taken(list(node.args), values)
        named = self._taken(dict(node.kwargs), values)
        if name == "getitem":
            return arguments[0][arguments[1]]
        if name in ("wrap_with_set_grad_enabled", "wrap_with_autocast"):
            return self._wrapped(name, arguments)
        if name in CHECKS:
            return None
        everything = list(self._flat([arguments, named]))
        missing = next((one for one in everything if isinstance(one, Missing)), None)
        computed = [one for one in everything
                    if isinstance(one, (Tensor, *PARTIAL))]
        data = [one for one in everything if isinstance(one, Data)]
        if (alias.is_in_place(node.target) and alias.reads_old_memory(node)
                and (computed or data) and not isinstance(arguments[0], Data)):
            raise Refusal(f"{name}: a change in place of memory that is read "
                          "through another view afterwards")
        if not computed and data:
            value = node.meta.get("val")
            if hasattr(value, "shape"):
                return Data(node, tuple(value.shape))
            if isinstance(value, (list, tuple)):
                return [Data(node, tuple(one.shape)) for one in value]
            return None
        if missing is not None:
            if computed:
                raise Refusal(f"{missing.what} {NOT_GIVEN}")
            return missing
        if not computed:
            return self._folded(node, arguments, named)
        routed = any(isinstance(one, experts.ROUTED) for one in computed)
        handler = HANDLERS.get(experts.PREFIX + name if routed else name)
        if handler is None:
            raise Refusal(experts.unknown(name) if routed else unknown(name))
        made = node.meta.get("val")
        if hasattr(made, "dtype") and not (made.dtype.is_floating_point
                                           or experts.are_numbers(computed)):
            raise Refusal(f"{name}: integers or booleans that are computed have no "
                          "gradient")
        if name in ("to", "_to_copy", "clone", "contiguous"):
            named = {}
        try:
            return handler(self.importer, *arguments, **named)
        except (TypeError, ValueError, AttributeError, IndexError) as fault:
            raise Refusal(f"the operator {name} is not known with these "
                          "arguments") from fault

    def _wrapped(self, name: str, arguments: list[Any]) -> Any:
        if name == "wrap_with_set_grad_enabled":
            enabled, inner, *operands = arguments
        else:
            _, _, enabled, _, inner, *operands = arguments
            enabled = True
        names = [node.name for node in inner.graph.nodes
                 if node.op == "placeholder"]
        results = self._inside(inner, dict(zip(names, operands)))
        if not enabled and any(isinstance(one, (Tensor, *PARTIAL))
                               for one in results):
            raise Refusal("a part without gradients: mtplan differentiates "
                          "everything that is computed from parameters or inputs")
        return results

    def _folded(self, node: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
        if self.torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Refusal("random numbers outside dropout")
        if "device" in named:
            named["device"] = "cpu"
        named.pop("pin_memory", None)
        arguments = [self.torch.device("cpu") if isinstance(one, self.torch.device)
                     else one for one in arguments]
        try:
            with self.torch.no_grad():
                return node.target(*arguments, **named)
        except (RuntimeError, TypeError, ValueError, IndexError) as fault:
            raise Refusal(f"a constant that cannot be computed: {fault}") from fault

    def _settled(self, node: Any, value: Any) -> Any:
        """Emits a known function at once if it has several readers.

        >>> Walk._settled is not None
        True
        """
        if (not isinstance(value, Curve) or isinstance(value.base, Scores)
                or len(node.users) < 2):
            return value
        if value.factor == 1.0:
            return value.base
        if value.factor is not None or curves.activation_of(
                value.function) is not None:
            return self.importer.tensor(value)
        return value

    def _message(self, node: Any, what: str) -> str:
        origin = origin_of(node)
        where = origin.place or type(self.module).__name__
        inside = f" (in {origin.module})" if origin.module else ""
        return f"{where}: {what}{inside}"


def unknown(name: str) -> str:
    """Returns a message about an unknown operator, with the nearest known one.

    >>> unknown("gelu2")
    'the operator gelu2 is not known; the nearest known one is gelu'
    """
    if name in experts.OTHER_WAYS:
        return experts.unknown(name)
    import difflib
    near = difflib.get_close_matches(name, sorted(HANDLERS), 1, 0.5)
    end = f"; the nearest known one is {near[0]}" if near else ""
    return f"the operator {name} is not known{end}"


def name_of(target: Any) -> str:
    """Returns the name of an operator without its library and variant.

    >>> name_of(len)
    'len'
    """
    packet = getattr(target, "_opname", None) or getattr(
        getattr(target, "overloadpacket", None), "_qualified_op_name", None)
    if packet is None:
        packet = getattr(target, "__name__", str(target))
    return str(packet).split("::")[-1].split(".")[0]


def origin_of(node: Any) -> Origin:
    """Returns the module and the Python line of a node.

    >>> class Node: meta = {"stack_trace": 'File "m.py", line 7, in forward'}
    >>> origin_of(Node())
    Origin(module='', file='m.py', line=7)
    """
    frames = FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if "/torch/" not in frame[0]]
    file, line = (own or frames or [("", "0")])[-1]
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    path = path.removeprefix("L['self']").lstrip(".")
    return Origin(path, file, int(line))


def canonical_names(module: Any) -> dict[str, str]:
    """Returns the first name of each parameter, by each of its names.

    >>> canonical_names(None)
    {}
    """
    if module is None:
        return {}
    first: dict[int, str] = {}
    names: dict[str, str] = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names[name] = first.setdefault(id(tensor), name)
    return names


def is_unknown(tensor: Any) -> bool:
    """Returns whether a tensor has no values: it is None, on meta or a fake.

    >>> class Tensor: is_meta = True
    >>> is_unknown(Tensor())
    True
    """
    return bool(tensor is None or getattr(tensor, "is_meta", False)
                or type(tensor).__name__ == "FakeTensor")


def rebuilt(module: Any, owner: str, leaf: str) -> Any:
    """Returns a buffer of a transformers module on meta, as its initialiser sets it.

    Returns None if no initialiser sets the buffer.

    >>> rebuilt(None, "", "inv_freq") is None
    True
    """
    initialise = getattr(module, "_init_weights", None)
    if initialise is None:
        return None
    torch = importlib.import_module("torch")
    part = module.get_submodule(owner)
    kept = dict(part._buffers)
    try:
        for name, old in kept.items():
            if old is not None:
                fill = float("nan") if old.dtype.is_floating_point else (
                    -12345 if old.dtype != torch.bool else False)
                part._buffers[name] = torch.full(tuple(old.shape), fill,
                                                 dtype=old.dtype)
        with torch.no_grad():
            initialise(part)
        made = part._buffers[leaf]
        assert made is not None
        changed = not bool((made != made).any() if made.dtype.is_floating_point
                           else (made == -12345).any())
        return made if changed and not is_unknown(made) else None
    except (AttributeError, RuntimeError, NotImplementedError, ValueError):
        return None
    finally:
        part._buffers.update(kept)


def loss_among(importer: Importer, outputs: list[Any]) -> Any:
    """Returns the loss among the outputs, or else the loss of the first output that
    is computed, taken as logits.

    Raises ``Refusal`` if there is no loss and no logits.

    >>> loss_among(Importer(2), [Loss("value")])
    'value'
    """
    for one in outputs:
        if isinstance(one, Loss):
            return one.value
    for one in outputs:
        if isinstance(one, (Tensor, *PARTIAL)):
            if not one.shape:
                raise Refusal("the loss is no cross entropy; supported: the mean "
                              "cross entropy of logits, or logits as the output")
            return operators.loss_of(importer, importer.tensor(one), None).value
    raise Refusal("no output is computed from the inputs: the output must be a loss "
                  "or logits [batch, sequence, classes]")
