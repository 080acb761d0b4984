"""Finds equal layers, and divides a graph into mtplan's segments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mtplan._torch_graph import NUMBER, Graph, Op, Value

# Limits the number of operators of a repeated layer. No known model has more.
LONGEST = 400


@dataclass
class Run:
    """Is a sequence of ``count`` equal layers of ``length`` operators.

    ``carried`` has an entry for each value that a layer takes from the layer
    before: the value that the first layer takes, and the operator (as an index
    within a layer) and the number of its result that the next layer takes.
    ``fixed`` are the values that all layers read, and ``last`` the values that
    the last layer passes on. ``stars`` says which number in a parameter's name
    is the layer number.

    >>> Run(3, 10, 2).stop
    23
    """

    start: int
    length: int
    count: int
    carried: list[tuple[Value, int, int]] = field(default_factory=list)
    fixed: list[Value] = field(default_factory=list)
    last: list[Value] = field(default_factory=list)
    stars: dict[Value, int] = field(default_factory=dict)
    first: int = 0

    @property
    def stop(self) -> int:
        """Returns the index after the last operator.

        >>> Run(0, 5, 2).stop
        10
        """
        return self.start + self.length * self.count


@dataclass
class Segment:
    """Is a part of the model: its operators, and the values it takes and yields.

    ``takes`` are values that the segment before yields; a value may occur twice.
    ``stars`` says which number in a parameter's name is the layer number.

    >>> Segment("embed", [], [], []).repeat
    1
    """

    name: str
    ops: list[Op]
    takes: list[Value]
    yields: list[Value]
    repeat: int = 1
    first: int = 0
    stars: dict[Value, int] = field(default_factory=dict)


def pattern(label: str) -> str:
    """Returns a name with a star for each number.

    >>> pattern("h.3.attn.q.weight")
    'h.*.attn.q.weight'
    """
    return NUMBER.sub("*", label)


def key_of(op: Op) -> tuple[Any, ...]:
    """Returns the properties that operators of equal layers have in common.

    >>> key_of(Op("add", [], {}, label="h.3.add")) == key_of(
    ...     Op("add", [], {}, label="h.4.add"))
    True
    """
    operands = tuple(
        (value.type, tuple(value.shape),
         pattern(value.op.label) if value.op and value.op.is_leaf else "")
        for value in op.operands)
    attributes = tuple(sorted((key, str(value))
                              for key, value in op.attributes.items()))
    results = tuple((value.type, tuple(value.shape)) for value in op.results)
    return op.kind, attributes, operands, results


def step_of(one: str, other: str) -> tuple[int, int] | None:
    """Returns which number in a name grows by one, and its value in ``one``.

    Returns (-1, 0) for equal names, and None for any other difference.

    >>> step_of("h.3.attn.0.w", "h.4.attn.0.w"), step_of("wte", "wte")
    ((0, 3), (-1, 0))
    >>> step_of("h.3", "h.5") is None
    True
    """
    if one == other:
        return -1, 0
    first, second = NUMBER.findall(one), NUMBER.findall(other)
    if len(first) != len(second) or pattern(one) != pattern(other):
        return None
    changed = [index for index, (a, b) in enumerate(zip(first, second)) if a != b]
    if len(changed) != 1:
        return None
    index = changed[0]
    if int(second[index]) != int(first[index]) + 1:
        return None
    return index, int(first[index])


def runs_of(ops: list[Op]) -> list[Run]:
    """Returns the sequences of equal layers, in order.

    >>> runs_of([])
    []
    """
    keys: list[Any] = [key_of(op) for op in ops]
    numbers: dict[Any, int] = {}
    ids = [numbers.setdefault(key, len(numbers)) for key in keys]
    index = {value: (place, number) for place, op in enumerate(ops)
             for number, value in enumerate(op.results)}
    read = readers_of(ops)
    found: list[Run] = []
    _search(ops, ids, index, read, 0, len(ops), found)
    return sorted(found, key=lambda run: run.start)


def readers_of(ops: list[Op]) -> dict[Value, int]:
    """Returns the index of the last operator that reads each value.

    >>> readers_of([])
    {}
    """
    return {value: place for place, op in enumerate(ops) for value in op.operands}


def _search(ops: list[Op], ids: list[int], index: dict[Value, tuple[int, int]],
            read: dict[Value, int], low: int, high: int, found: list[Run]) -> None:
    count = high - low
    candidates: list[tuple[int, int, int]] = []  # covered, length, place
    for length in range(1, min(count // 2, LONGEST) + 1):
        place = low
        while place + length < high:
            end = place
            while end + length < high and ids[end] == ids[end + length]:
                end += 1
            copies = (end - place) // length + 1
            if copies > 1:
                candidates.append((copies * length, -length, place))
            place = end + 1
    # The longest run comes first; among equally long runs, the shortest layer.
    for _, negative, place in sorted(candidates, reverse=True):
        length = -negative
        end = place
        while end + length < high and ids[end] == ids[end + length]:
            end += 1
        best = _best_start(ops, index, read, place, end + length, length)
        if best is not None:
            found.append(best)
            _search(ops, ids, index, read, low, best.start, found)
            _search(ops, ids, index, read, best.stop, high, found)
            return


def _best_start(ops: list[Op], index: dict[Value, tuple[int, int]],
                read: dict[Value, int], low: int, high: int, length: int
                ) -> Run | None:
    copies = (high - low) // length
    best: tuple[int, Run] | None = None
    for start in range(low, high - copies * length + 1):
        run = _checked(ops, index, read, Run(start, length, copies))
        if run is not None:
            crossing = len(run.carried) + len(run.fixed)
            if best is None or crossing < best[0]:
                best = crossing, run
    if best is None and copies > 2:
        return _best_start(ops, index, read, low, high - length, length)
    return best[1] if best else None


def _checked(ops: list[Op], index: dict[Value, tuple[int, int]],
             read: dict[Value, int], run: Run) -> Run | None:
    """Adds to a run the values that layers pass on; None if the layers differ."""
    carried: dict[tuple[int, int], Value] = {}
    fixed: list[Value] = []
    firsts: set[int] = set()
    length = run.length
    for offset in range(length):
        layers = [ops[run.start + copy * length + offset].operands
                  for copy in range(run.count)]
        for values in zip(*layers):
            leaf = values[0].op
            if leaf is not None and leaf.is_leaf:
                labels = [value.op.label for value in values if value.op]
                star = _counted(labels)
                if star is None:
                    return None
                if star[0] >= 0:
                    firsts.add(star[1])
                    run.stars[values[0]] = star[0]
                continue
            if not _position(index, run, values, carried, fixed):
                return None
    if len(firsts) > 1:
        return None
    run.first = firsts.pop() if firsts else 0
    for (offset, number), start in carried.items():
        run.carried.append((start, offset, number))
        run.last.append(ops[run.stop - length + offset].results[number])
    run.fixed = fixed
    last = {place + run.stop - length: number for place, number in carried}
    for offset in range(length * run.count):
        place = run.start + offset
        for value in ops[place].results:
            later = read.get(value, -1) >= run.stop
            is_carried = (place - run.stop + length, index[value][1]) in carried
            if later and not (place in last and is_carried):
                return None
    return run


def _counted(labels: list[str]) -> tuple[int, int] | None:
    """Returns which number in the labels is the layer number, and its value in
    the first layer.

    Returns (-1, 0) for equal labels, and None for any other difference.
    """
    steps = [step_of(one, other) for one, other in zip(labels, labels[1:])]
    places = {None if step is None else step[0] for step in steps}
    return steps[0] if len(places) == 1 else None


def _position(index: dict[Value, tuple[int, int]], run: Run,
              values: tuple[Value, ...], carried: dict[tuple[int, int], Value],
              fixed: list[Value]) -> bool:
    places = [index[value] for value in values]
    low, length = run.start, run.length
    inside = [place - low - copy * length for copy, (place, _) in enumerate(places)]
    if all(0 <= offset < length for offset in inside):
        return len(set(inside)) == 1 and len({one for _, one in places}) == 1
    if all(value is values[0] for value in values) and places[0][0] < low:
        if values[0] not in fixed:
            fixed.append(values[0])
        return True
    later = [offset + length for offset in inside[1:]]
    if places[0][0] >= low or len(set(later)) != 1 or not 0 <= later[0] < length:
        return False
    if len({number for _, number in places[1:]}) != 1:
        return False
    key = (later[0], places[1][1])
    return carried.setdefault(key, values[0]) is values[0]


def segments_of(graph: Graph) -> list[Segment]:
    """Returns the segments of a graph, one for each sequence of equal layers.

    >>> segments_of(Graph())
    []
    """
    ops = [op for op in graph.ops if not op.is_leaf]
    if not ops:
        return []
    runs = runs_of(ops)
    read = readers_of(ops)
    place = {value: at for at, op in enumerate(ops) for value in op.results}

    def live(at: int) -> list[Value]:
        """Returns values made before operator ``at`` and read by it or later."""
        return sorted((value for value, made in place.items()
                       if made < at <= read.get(value, -1)),
                      key=lambda value: (place[value], value.index))

    result: list[Segment] = []
    takes: list[Value] = []
    at = 0
    for run in runs:
        if at < run.start:
            needed = _taken(run, live(run.stop))
            result.append(Segment("", ops[at:run.start], takes, needed))
            takes = needed
        elif takes != _taken(run, live(run.stop)):
            # Two adjacent runs take values in different orders. A segment without
            # operators between the two runs changes the order.
            result.append(Segment("", [], takes, _taken(run, live(run.stop))))
            takes = _taken(run, live(run.stop))
        yields, after = _yielded(run, ops, takes)
        result.append(Segment(name_of(run.stars),
                              ops[run.start:run.start + run.length], takes,
                              yields, run.count, run.first, run.stars))
        takes, at = after, run.stop
    result.append(Segment("", ops[at:], takes, []))
    _name(result)
    return result


def _taken(run: Run, later: list[Value]) -> list[Value]:
    """Returns the values that a run takes: carried, fixed, and passed through."""
    starts = [start for start, _, _ in run.carried]
    own = starts + run.fixed
    return own + [value for value in later
                  if value not in run.fixed and value not in run.last]


def _yielded(run: Run, ops: list[Op], takes: list[Value]
             ) -> tuple[list[Value], list[Value]]:
    first, last = [], []
    for number, value in enumerate(takes):
        if number < len(run.carried):
            _, offset, result = run.carried[number]
            first.append(ops[run.start + offset].results[result])
            last.append(ops[run.stop - run.length + offset].results[result])
        else:
            first.append(value)
            last.append(value)
    return first, last


def name_of(stars: dict[Value, int]) -> str:
    """Returns the name of repeated layers, from the name of a parameter.

    >>> from mtplan._torch_graph import Source
    >>> name_of({Graph().parameter(Source("encoder.block.0.q"), [4]): 0})
    'encoder_block'
    """
    for value, index in stars.items():
        label = value.op.label if value.op else ""
        parts = label[:list(NUMBER.finditer(label))[index].start()].split(".")
        return "_".join(part for part in parts[-3:] if part) or "layers"
    return "layers"


def _name(segments: list[Segment]) -> None:
    """Names the segments between the layers, and makes all names different."""
    if len(segments) == 1:
        segments[0].name = "model"
    else:
        for number, one in enumerate(segments):
            one.name = one.name or ("embed" if number == 0 else "head" if
                                    number == len(segments) - 1 else "bridge")
    counts: Counter[str] = Counter()
    for one in segments:
        counts[one.name] += 1
        if counts[one.name] > 1:
            one.name = f"{one.name}_{counts[one.name]}"
