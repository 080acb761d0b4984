"""Counts the collectives of a compiled program of XLA.

The text of a program lists its computations. A collective names the devices of
its groups by their place in the mesh, in one of three notations. A loop carries
its number of iterations.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from math import prod

from mtplan._collective_table import Calls
from mtplan._errors import Error

_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all",
          "ragged-all-to-all", "collective-permute", "collective-broadcast")
_COLLECTIVE = re.compile(
    r" = (?P<type>.+?) (?P<kind>[\w\-]+?)(?P<start>-start)?\(")
_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_CALLED = re.compile(
    r"(?P<role>calls|to_apply|body|condition|branch_computations|"
    r"true_computation|false_computation)="
    r"\{?(?P<names>%?[\w.\-]+(?:, %?[\w.\-]+(?![\w.\-=]))*)")
_SHAPE = re.compile(r"(?P<type>[a-z]+\d*[a-z\d]*)\[(?P<sizes>[\d,]*)\]")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_LISTED = re.compile(r"replica_groups=\{(?P<groups>[\d,{} ]*)\}")
_COUNTED = re.compile(r"replica_groups=\[(?P<shape>[\d,]+)\]<="
                      r"(?P<order>\[[\d,]+\](?:T\([\d,]+\))?)")
_NAMED = re.compile(r"replica_groups=mesh\[(?P<sizes>[^\]]*)\](?:, device_ids="
                    r"\((?P<order>[^ ]*)\))? \{(?P<axes>[^}]*)\}")
_PART = re.compile(r"'(?P<name>[^']*)'(?::\((?P<major>\d+)\)(?P<size>\d+))?")
_PAIRS = re.compile(r"source_target_pairs=\{(?P<groups>[\d,{} ]*)\}")
_ON_GROUPS = re.compile(r"replica_groups=|source_target_pairs=")
_NAME = re.compile(r'op_name="([^"]*)"')
_ELEMENT = re.compile(r"get-tuple-element\(%?(?P<of>[\w.\-]+)\), "
                      r"index=(?P<at>\d+).*op_name=\"(?P<name>[^\"]*)\"")
_BITS = re.compile(r"\d+")

Groups = frozenset[frozenset[int]]


def collectives_of(text: str, sizes: dict[str, int]) -> Calls:
    """Counts the collectives of one device by phase, kind, axis and bytes.

    ``text`` is the result of ``compiled.as_text()``, ``sizes`` the sizes of the
    mesh's axes, major axis first. The bytes are those that a device passes in.
    The phase follows from the name that JAX gave the operation; in a program
    without derivatives, it is "forward". Groups that belong to no axis are
    counted under the axis "other", and so are unknown operations on groups of
    devices, with 0 bytes. Raises ``Error`` for a collective in a loop whose
    number of iterations is not in the program.

    >>> collectives_of('''ENTRY %main (x: f32[8]) -> f32[8] {
    ...   %a = f32[8]{0} all-reduce(%x), replica_groups={{0,1},{2,3}}
    ... }''', {"dp": 2, "tp": 2})
    Counter({('forward', 'all_reduce', 'tp', 32): 1})
    """
    computations, entry = _computations(text)
    axes = _axes(sizes)
    calls: Calls = Counter()

    def add(name: str, times: int, rest: str, uncounted: str = "") -> None:
        lines = computations.get(name, [])
        elements = _elements(lines)
        for line in lines:
            for key in _collectives(line, axes, prod(sizes.values()),
                                    elements, rest):
                if uncounted:
                    raise Error(f"cannot count {line.strip()[:100]}: the number"
                                f" of iterations of {uncounted.strip()[:100]} "
                                "is unknown; use jax.lax.scan, or fori_loop "
                                "with constant bounds")
                calls[key] += times
            phase = _phase(_name(line), rest)
            trips = _TRIPS.search(line)
            for called in _CALLED.finditer(line):
                loops, unknown = 1, uncounted
                if called["role"] in ("body", "condition"):
                    unknown = uncounted or ("" if trips else line)
                    # The condition is also computed after the last iteration.
                    loops = int(trips[1] if trips else 1) + (
                        called["role"] == "condition")
                for one in called["names"].split(", "):
                    add(one.lstrip("%"), times * loops, phase, unknown)

    add(entry, 1, "update" if "transpose(" in text else "forward")
    return calls


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    """Returns the lines of every computation, and the name of the entry."""
    found, entry, lines = dict[str, list[str]](), "", list[str]()
    for line in text.splitlines():
        head = _COMPUTATION.match(line)
        if head and " = " not in line.partition(" (")[0]:
            lines = found.setdefault(head["name"], [])
            entry = head["name"] if head["entry"] else entry
        else:
            lines.append(line)
    return found, entry


def _axes(sizes: dict[str, int]) -> dict[Groups, str]:
    """Returns the groups of every axis, and of all axes together."""
    names = list(sizes)
    places = list(itertools.product(*(range(size) for size in sizes.values())))
    found = dict[Groups, str]()
    for count in range(len(names), 0, -1):
        for chosen in itertools.combinations(range(len(names)), count):
            groups = dict[tuple[int, ...], list[int]]()
            for number, place in enumerate(places):
                groups.setdefault(tuple(
                    at for axis, at in enumerate(place) if axis not in chosen),
                    []).append(number)
            word = ("all" if count == len(names) > 1
                    else "+".join(names[one] for one in chosen))
            found[frozenset(map(frozenset, groups.values()))] = word
    return found


def _collectives(line: str, axes: dict[Groups, str], devices: int,
                 elements: dict[tuple[str, int], str], rest: str
                 ) -> Iterator[tuple[str, str, str, int]]:
    """Returns the collectives of a line: one for each element of a tuple."""
    match = _COLLECTIVE.search(line)
    if match is None:
        return
    kind = match["kind"]
    if kind not in _KINDS:
        if _ON_GROUPS.search(line) and not kind.endswith(("-done", "-update")):
            yield _phase(_name(line), rest), kind, "other", 0
        return
    groups = _groups(line, devices)
    size = len(next(iter(groups))) if groups else devices
    if size == 1:
        return
    shapes = [_bytes(one) for one in _SHAPE.finditer(match["type"])]
    if match["start"] and kind != "all-reduce":  # operands, then results
        shapes = shapes[:1] if kind == "collective-permute" \
            else shapes[:len(shapes) // 2]
    elif kind == "all-gather":
        shapes = [one // size for one in shapes]
    elif kind == "reduce-scatter":
        shapes = [one * size for one in shapes]
    elif kind == "all-to-all":
        shapes = [sum(shapes)]
    own = line.partition(" = ")[0].split()[-1].lstrip("%")
    for number, one in enumerate(shapes):
        name = (elements.get((own, number)) if len(shapes) > 1 else None
                ) or _name(line)
        yield (_phase(name, rest), kind.replace("-", "_"),
               _axis(groups, axes, kind), one)


def _phase(name: str, rest: str) -> str:
    """Returns the phase that an operation's name states, or else ``rest``.

    >>> _phase("jit(step)/transpose(jvp())/dot", "update")
    'backward'
    """
    return ("backward" if "transpose(" in name else
            "forward" if "jvp(" in name else rest)


def _elements(lines: list[str]) -> dict[tuple[str, int], str]:
    """Returns the names of the elements of tuples.

    XLA combines collectives into one on a tuple, whose elements keep the names
    of the original operations.

    >>> _elements(['%e = f32[2] get-tuple-element(%r), index=1, '
    ...            'metadata={op_name="f/transpose(g)/h"}'])
    {('r', 1): 'f/transpose(g)/h'}
    """
    return {(found["of"], int(found["at"])): found["name"]
            for found in map(_ELEMENT.search, lines) if found}


def _name(line: str) -> str:
    found = _NAME.search(line)
    return found[1] if found else ""


def _bytes(shape: re.Match[str]) -> int:
    bits = 8 if shape["type"] == "pred" else int(_BITS.findall(
        shape["type"])[0])
    return bits * prod(map(int, shape["sizes"].split(",")
                           if shape["sizes"] else [])) // 8


def _groups(line: str, devices: int) -> Groups:
    """Returns the groups of devices, or the pairs that exchange data."""
    counted = _COUNTED.search(line)
    if counted:
        count, size = map(int, counted["shape"].split(","))
        numbers = _numbers(counted["order"])
        return frozenset(frozenset(numbers[one * size:(one + 1) * size])
                         for one in range(count))
    named = _NAMED.search(line)
    if named:
        return _groups_of_axes({
            one["name"]: int(size) for one, size in zip(
                _PART.finditer(named["sizes"]),
                re.findall(r"=(\d+)", named["sizes"]))}, named["axes"],
            _numbers(named["order"] or f"[{devices}]"))
    listed = _LISTED.search(line) or _PAIRS.search(line)
    if listed is None:
        raise Error(f"unknown groups of devices in {line.strip()[:200]}")
    if not listed["groups"]:
        return frozenset([frozenset(range(devices))])
    return frozenset(frozenset(one) for one in json.loads(
        "[" + listed["groups"].replace("{", "[").replace("}", "]") + "]"))


def _numbers(order: str) -> list[int]:
    """Returns the devices in the order that a text of XLA describes.

    >>> _numbers("[2,2]T(1,0)"), _numbers("3,1")
    ([0, 2, 1, 3], [3, 1])
    """
    if not order.startswith("["):
        return [int(one) for one in order.split(",")]
    shape, _, axes = order.partition("T")
    sizes = [int(one) for one in shape.strip("[]").split(",")]
    turned = ([int(one) for one in axes.strip("()").split(",")] if axes
              else list(range(len(sizes))))
    strides = [prod(sizes[number + 1:]) for number in range(len(sizes))]
    return [sum(at * strides[axis] for at, axis in zip(place, turned))
            for place in itertools.product(
                *(range(sizes[axis]) for axis in turned))]


def _groups_of_axes(sizes: dict[str, int], chosen: str, devices: list[int]
                    ) -> Groups:
    """Returns the groups of devices that differ only along parts of axes.

    ``chosen`` is, say, "'b', 'a':(2)4": the axis b, and the part of a that has
    size 4 and comes after a part of size 2.

    >>> sorted(map(sorted, _groups_of_axes({"a": 4}, "'a':(2)2", [0, 2, 1, 3])))
    [[0, 2], [1, 3]]
    """
    parts = list(_PART.finditer(chosen))
    groups = dict[tuple[int, ...], set[int]]()
    for number, place in zip(devices, itertools.product(
            *(range(size) for size in sizes.values()))):
        outside: dict[str, tuple[int, ...]] = {
            name: (at,) for name, at in zip(sizes, place)}
        for one in parts:
            size = sizes[one["name"]]
            major, own = int(one["major"] or 1), int(one["size"] or size)
            minor, at = size // major // own, outside[one["name"]][-1]
            outside[one["name"]] = (at // (minor * own), at % minor)
        groups.setdefault(tuple(itertools.chain(*outside.values())),
                          set()).add(number)
    return frozenset(map(frozenset, groups.values()))


def _axis(groups: Groups, axes: dict[Groups, str], kind: str) -> str:
    if kind != "collective-permute":
        return axes.get(groups, "other")
    # A pair lies within one group of the axis.
    for whole, word in reversed(axes.items()):
        if all(any(pair <= group for group in whole) for pair in groups):
            return word
    return "other"
