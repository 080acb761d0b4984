"""Finds values that a change in place makes wrong for later readers.

``torch.export`` keeps operators such as ``mul_``. Readers of the changed tensor
itself read the operator's result; readers of another view of the same memory read
a node from before the change.
"""

from __future__ import annotations

from typing import Any


def is_in_place(target: Any) -> bool:
    """Returns whether an operator of ATen changes its first operand.

    >>> is_in_place(len)
    False
    """
    schema = getattr(target, "_schema", None)
    arguments = schema.arguments if schema is not None else []
    return bool(arguments and arguments[0].alias_info is not None
                and arguments[0].alias_info.is_write)


def aliases(node: Any) -> bool:
    """Returns whether a node's result may share the memory of its first operand.

    >>> class Node: op = "placeholder"
    >>> aliases(Node())
    False
    """
    if node.op != "call_function" or not node.args:
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        # Tensors that one operator makes have different memory.
        made = node.args[0]
        return getattr(node.target, "__name__", "") == "getitem" and (
            not hasattr(getattr(made, "target", None), "_schema") or aliases(made))
    # In eval mode, dropout returns its operand.
    return schema.name == "aten::dropout" or any(
        one.alias_info is not None for one in schema.returns)


def reads_old_memory(node: Any) -> bool:
    """Returns whether memory that a node changes in place is read after it
    through another view.

    >>> class Node: op, users, args = "placeholder", {}, ()
    >>> Node.args = (Node(),)
    >>> reads_old_memory(Node())
    False
    """
    root = node.args[0]
    while aliases(root) and hasattr(root.args[0], "op"):
        root = root.args[0]
    views, pending = [], [root]
    while pending:
        one = pending.pop()
        views.append(one)
        pending += [user for user in one.users
                    if user is not node and aliases(user) and user.args[0] is one]
    return any(user > node for view in views for user in view.users)
