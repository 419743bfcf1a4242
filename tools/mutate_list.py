"""The list of faults that tools/mutate plants, and how a source file is made to hold them all at once.

A list file, tools/mutate.d/LAYER.txt:
  programs: test_ops test_train       nearest first; one that fails ends a fault's trial
  filter: *                           gtest's, * without the line
  device: cuda                        the faults lie in code of the GPU's plugin
  file: src/ops/average.cpp           of the faults that follow
  average-grad: MultiplyOp>([-0.5-]{+1.0+})
  ~ constexpr Row kRows => const Row kRows
A fault is a name and a piece of the file, found there once, in which one expression or statement is marked as
wdiff marks changes: what stands there, and the fault. A line with ~ is a change that is always made, so that what
the compiler would compute can be chosen at run time. A piece may go on in the next line: \\n stands for its end.
Comments begin with #."""
import re
from dataclasses import dataclass, field

MARKED = re.compile(r"\[-(.*?)-\]\{\+(.*?)\+\}", re.DOTALL)
OPERAND = re.compile(r"\s*[^\s+*/%<>=&|-]|\s*([-+*&]|--|\+\+)\S")  # how an expression begins; an operator ends none


class ListError(Exception):
    """What is wrong with a list, or no longer fits the sources."""


@dataclass
class Fault:
    name: str
    layer: str
    file: str
    before: str
    original: str
    mutated: str
    after: str
    number: int = 0

    def source(self):
        return self.before + self.original + self.after

    def chosen(self):
        """What stands for the marked piece: the fault if it is chosen, else what was there."""
        if self.original.endswith(";"):
            return f"if (::vt_fault({self.number})) {{ {self.mutated} }} else {{ {self.original} }}"
        return f"(::vt_fault({self.number}) ? ({self.mutated}) : ({self.original}))"


@dataclass
class Layer:
    name: str
    programs: list = field(default_factory=list)
    filter: str = "*"
    device: bool = False
    faults: list = field(default_factory=list)
    always: list = field(default_factory=list)  # (file, from, to)


def parse(name, text):
    """The layer that a list file describes."""
    layer, file = Layer(name), None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, rest = line.partition(": ")
        key, rest = key.strip(), rest.replace("\\n", "\n")
        if line.startswith("~ "):
            old, arrow, new = line[2:].partition(" => ")
            if not arrow or file is None:
                raise ListError(f"{name}.txt:{number}: expected ~ FROM => TO below a file")
            layer.always.append((file, old, new))
        elif not colon:
            raise ListError(f"{name}.txt:{number}: expected NAME: and a piece of a file")
        elif key == "programs":
            layer.programs = rest.split()
        elif key == "filter":
            layer.filter = rest.strip()
        elif key == "device":
            layer.device = True
        elif key == "file":
            file = rest.strip()
        else:
            marks = list(MARKED.finditer(rest))
            if len(marks) != 1 or file is None:
                raise ListError(f"{name}.txt:{number}: expected one [-original-]{{+fault+}} below a file")
            mark = marks[0]
            if not all(OPERAND.match(piece) for piece in mark.groups()):
                raise ListError(f"{name}.txt:{number}: expected whole expressions or statements between the marks")
            layer.faults.append(Fault(key, name, file, rest[:mark.start()], mark.group(1), mark.group(2),
                                      rest[mark.end():]))
    if not layer.programs:
        raise ListError(f"{name}.txt: no line says which programs: test it")
    return layer


def load(folder, numbers=None):
    """All layers of a folder of lists, their faults numbered from 1. A fault has the number that `numbers` knows by
    its name; new ones are added there."""
    numbers = {} if numbers is None else numbers
    layers = [parse(path.stem, path.read_text()) for path in sorted(folder.glob("*.txt"))]
    faults = [fault for layer in layers for fault in layer.faults]
    for fault in faults:
        fault.number = numbers.setdefault(fault.name, max(numbers.values(), default=0) + 1)
    names = [fault.name for fault in faults]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ListError(f"named twice: {', '.join(twice)}")
    return layers


def place_of(text, piece, what):
    if text.count(piece) != 1:
        raise ListError(f"{what}: found {text.count(piece)} times, expected once: {piece}")
    return text.index(piece)


def planted(path, text, layers):
    """The text of a file with every fault of it, each asleep until it is chosen. Faults may not overlap."""
    edits = []
    for layer in layers:
        for fault in layer.faults:
            if fault.file != path:
                continue
            at = place_of(text, fault.source(), f"{path}: {fault.name}") + len(fault.before)
            edits.append((at, at + len(fault.original), fault.chosen()))
        for file, old, new in layer.always:
            if file == path:
                at = place_of(text, old, f"{path}: ~")
                edits.append((at, at + len(old), new))
    edits.sort()
    for (_, end, _), (begin, _, _) in zip(edits, edits[1:]):
        if begin < end:
            raise ListError(f"{path}: two faults overlap at: {text[begin:end]}")
    for begin, end, new in reversed(edits):
        text = text[:begin] + new + text[end:]
    return '#include "base/vt_fault.h"\n' + text if edits else text


def line_of(fault, text):
    return text.count("\n", 0, text.index(fault.source()) + len(fault.before)) + 1
