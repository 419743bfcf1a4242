"""Single faults that tools/mutate sweep finds in C++ by itself: operators, constants, conditions, statements.

Sources are read as clang-format leaves them: a binary operator has spaces around it, the bracket of a template none.
A fault is a few edits, each (place, characters to take away, text to put there) with {n} for the fault's number;
mutate.d/sweep_fault.h has the operators and functions that the edited text uses. Faults of one file may nest."""
import random
import re
from dataclasses import dataclass

from cpp_text import blanked, function_bodies

HEADER = '#include "base/vt_fault.h"\n'
WEIGHTS = {"relation": 4, "equality": 3, "arithmetic": 3, "sum": 3, "constant": 3, "boolean": 3, "extreme": 4, "if": 1,
           "choice": 2, "operand": 3, "not": 1, "check": 4, "statement": 3, "jump": 3}
OTHERS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
          "%": "/"}
OPERATOR = re.compile(r"(?<= )(<=|>=|<|>|==|!=|[-+*/%])(?=[ \n])")
SUM = re.compile(r"(?<= )([-+*|&]=)(?=[ \n])")
NUMBER = re.compile(r"(?<![\w.'])(?:0x[0-9a-fA-F']+|\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?)[fuUlLzZ]*(?![\w.'])")
BOOLEAN = re.compile(r"\b(true|false)\b")
EXTREME = re.compile(r"\bstd::(min|max)_*(?=\()")
IF = re.compile(r"\bif \(")
CHECK = re.compile(r"\bVT_(?:CHECK|REQUIRE)\(")
LOGICAL = re.compile(r"(?<= )(&&|\|\||\?)(?=[ \n])")
NOT = re.compile(r"!(?=[\w(*:])")
BEFORE_NOT = re.compile(r"(?:[(,{=?:]|&&|\|\||\breturn)\s*$")
JUMP = re.compile(r"\b(break|continue|return);(?!\s*else\b)")
STATEMENT = re.compile(r"[;{}]\s*|\belse\s+")
CONTROLLED = re.compile(r"\b(?:if|for|while) \(")
EXPRESSION = re.compile(r"(?:\+\+|--|\*)?(?:::)?[A-Za-z_][\w:]*")
NO_EXPRESSION = re.compile(r"(?:return|throw|delete|if|for|while|switch|do|else|goto|case|default|using|static_assert|"
                           r"new|try|catch|static|const|auto|break|continue|VT_\w+)\b")
MEMBER = re.compile(r"\s*(?:\.|->)\w+")
ASSIGNMENT = re.compile(r" (?:[-+*/|&%]|<<|>>)?=[ \n]")
# What the compiler computes, or what is no code.
FIXED = [re.compile(r"\bcase\b(?:[^:;]|::)*:(?!:)"), re.compile(r"\bconstexpr\b[^;]*;"), re.compile(r"\bstatic_assert\b[^;]*;"),
         re.compile(r"\[\[[^\]]*\]\]"), re.compile(r"\benum\b[^;]*;"), re.compile(r"\btemplate <[^;{]*")]
OPEN, CLOSE = "([{", ")]}"
ENDS = {"&&": ("&&", "||", "?", ":"), "||": ("||", "?", ":"), "?": ("?", ":")}  # of operands, beside , ; and =
BLOCK_END = re.compile(r"\}\s+(?=[\w!(*:~-])")
RETURN = re.compile(r"\breturn\b")
AFTER_END = re.compile(r"(?:&&|\|\||return|.)\s*")


@dataclass
class Fault:
    kind: str
    file: str
    line: int
    before: str
    after: str
    edits: list
    number: int = 0


def masked(text):
    """The text without what may hold no fault; the arguments of templates become part of a name."""
    text = blanked(text)
    for found in FIXED:
        text = found.sub(lambda m: re.sub(r"[^\n(){}\[\]]", " ", m.group(0)), text)
    letters = list(text)
    for match in re.finditer(r"(?<=\w)<(?=[\w:(])", text):
        depth = 0
        for at in range(match.start(), min(len(text), match.start() + 300)):
            depth += (text[at] == "<") - (text[at] == ">" and text[at - 1] != "-")
            if text[at] in ";{":
                break
            if depth == 0:
                letters[match.start():at + 1] = "_" * (at + 1 - match.start())
                break
    return "".join(letters)


def closing(text, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in OPEN) - (text[i] in CLOSE)
        if depth == 0:
            return i
    return len(text)


def is_end(text, at, ends):
    """Whether an operand cannot hold what stands at `at`: an operator that binds less, the end of a block."""
    if text[at] == ":":
        return ":" in ends and text[at - 1] != ":" and text[at + 1] != ":"
    if text[at] == "=":
        return text[at - 1] in " +-*/|&" and text[at + 1] in " \n"
    return text[at] in ",;" or text.startswith(ends, at) or bool(BLOCK_END.match(text, at) or RETURN.match(text, at))


def operand(text, at, step, ends):
    """How far the operand reaches that begins (step 1) or ends (-1) at `at`."""
    depth, i = 0, at
    opening, ending = (OPEN, CLOSE) if step > 0 else (CLOSE, OPEN)
    while 0 < i < len(text) - 1:
        if depth == 0 and (text[i] in ending or is_end(text, i, ends)):
            break
        depth += (text[i] in opening) - (text[i] in ending)
        i += step
    if step > 0:
        return len(text[:i].rstrip())
    return AFTER_END.match(text, i).end()


def wrapped(begin, end, before, after):
    return [(begin, 0, before), (end, 0, after)]


def operators(text):
    for match in OPERATOR.finditer(text):
        sign, at = match.group(1), match.start()
        kind = "equality" if sign in ("==", "!=") else "relation" if sign[0] in "<>" else "arithmetic"
        yield kind, at, match.end(), OTHERS[sign], [(at, len(sign), f"{sign} ::VtOp<{{n}}>{{{{}}}} {sign}")]
    for match in SUM.finditer(text):
        sign = match.group(1)
        yield "sum", match.start(), match.end(), "=", [
            (match.start(), len(sign), f"{sign} ::VtSum<{{n}}>{{{{}}}} {sign}")]


def literals(text):
    for match in NUMBER.finditer(text):
        yield "constant", *match.span(), "@ + 1", wrapped(*match.span(), "(", " + ::vt_fault({n}))")
    for match in BOOLEAN.finditer(text):
        is_true = match.group(0) == "true"
        yield "boolean", *match.span(), "false" if is_true else "true", [
            (match.start(), len(match.group(0)), "(!::vt_fault({n}))" if is_true else "(::vt_fault({n}))")]


def extremes(text):
    for match in EXTREME.finditer(text):
        given = match.end() - match.start() - len("std::min")  # of types in angle brackets
        yield "extreme", match.start(), match.start() + 8, "std::max" if match.group(1) == "min" else "std::min", [
            (match.start(), 8 + (given > 0), f"::vt_{match.group(1)}<{{n}}" + (", " if given else ">"))]


def conditions(text):
    for match in IF.finditer(text):
        begin, end = match.end(), closing(text, match.end() - 1)
        if ";" not in text[begin:end] and " = " not in text[begin:end]:
            yield "if", begin, end, "!(@)", wrapped(begin, end, "::vt_fault({n}) != static_cast<bool>(", ")")
    for match in CHECK.finditer(text):
        end = operand(text, match.end(), 1, ())
        yield "check", match.end(), end, "true", wrapped(match.end(), end, "::vt_fault({n}) || (", ")")
    for match in NOT.finditer(text):
        if BEFORE_NOT.search(text[max(0, match.start() - 80):match.start()]):
            yield "not", *match.span(), "", [(match.start(), 0, "::vt_fault({n}) != ")]


def operands(text):
    for match in LOGICAL.finditer(text):
        sign, at = match.group(1), match.start()
        begin, end = operand(text, at - 1, -1, ENDS[sign]), len(text[:at].rstrip())
        if sign == "?":
            yield "choice", begin, end, "!(@)", wrapped(begin, end, "(::vt_fault({n}) != static_cast<bool>(", "))")
            continue
        neutral = "(::vt_fault({n}) || (" if sign == "&&" else "(!::vt_fault({n}) && ("
        yield "operand", begin, match.end(), "", wrapped(begin, end, neutral, "))")
        begin = match.end() + len(re.match(r"\s*", text[match.end():]).group(0))
        end = operand(text, begin, 1, ENDS[sign])
        yield "operand", at, end, "", wrapped(begin, end, neutral, "))")


def expression_end(text, at):
    """The place of the ; that ends a call or an assignment that begins at `at`; None for other statements."""
    begin = EXPRESSION.match(text, at)
    if not begin or NO_EXPRESSION.match(text, at):
        return None
    at, last = begin.end(), ""
    while at < len(text):
        member = MEMBER.match(text, at)
        if member:
            at, last = member.end(), member.group(0)
        elif text[at] in "([":
            last, at = last + text[at], closing(text, at) + 1
        else:
            break
    if ASSIGNMENT.match(text, at):
        while at < len(text) and text[at] not in ";}":
            at = closing(text, at) + 1 if text[at] in OPEN else at + 1
        return at if text[at:at + 1] == ";" else None
    calls = last.endswith("(") and not last.startswith(".reserve") or begin.group(0)[:2] in ("++", "--")
    return at if text[at:at + 1] == ";" and calls else None


def statements(text):
    loops = [(m.end(), closing(text, m.end() - 1)) for m in re.finditer(r"\bfor \(", text)]
    begins = {m.end() for m in STATEMENT.finditer(text)}
    for match in CONTROLLED.finditer(text):
        after = closing(text, match.end() - 1) + 1
        begins.add(after + len(re.match(r"\s*", text[after:]).group(0)))
    for at in sorted(begins):
        end = expression_end(text, at)
        if end and not any(begin <= at < stop for begin, stop in loops):
            yield "statement", at, end + 1, ";", wrapped(at, end, "(::vt_fault({n}) ? void() : (void)(", "))")
    for match in JUMP.finditer(text):
        yield "jump", *match.span(), ";", [(match.start(), 0, "if (!::vt_fault({n})) ")]


def candidates(file, raw):
    """Every fault that could stand in a file, in the order of their places."""
    text = masked(raw)
    bodies = [(brace, end) for first, brace, end in function_bodies(blanked(raw))
              if not re.search(r"\bconst(?:expr|eval)\b", raw[first:brace])]
    found = [one for of_kind in (operators, literals, extremes, conditions, operands, statements)
             for one in of_kind(text) if any(brace < one[1] < end for brace, end in bodies)]
    for kind, begin, end, after, edits in sorted(found):
        before = " ".join(raw[begin:end].split())
        yield Fault(kind, file, raw.count("\n", 0, begin) + 1, before, after.replace("@", before), edits)


def drawn(file, raw, density, seed):
    """About one fault in `density` lines, no two of them on a line: the same ones for the same text and seed."""
    dice = random.Random(f"{seed} {file} {len(raw)}")
    lines, found, chosen = raw.count("\n"), list(candidates(file, raw)), []
    wanted = int(lines / density + dice.random())
    for i in range(wanted):
        free = [fault for fault in found if i * lines < fault.line * wanted <= (i + 1) * lines
                and all(abs(fault.line - other.line) > 1 for other in chosen)]
        kinds = sorted({fault.kind for fault in free})
        if kinds:
            kind = dice.choices(kinds, [WEIGHTS[one] for one in kinds])[0]
            chosen.append(dice.choice([fault for fault in free if fault.kind == kind]))
    return chosen


def planted(raw, faults):
    """The text with all faults in it, asleep. Of edits at one place the inner of two that end there comes first, and
    the outer of two that begin there."""
    edits = []
    for fault in faults:
        first, last = fault.edits[0][0], fault.edits[-1][0]
        for i, (place, taken, text) in enumerate(fault.edits):
            order = (place, 1, first - last) if i == 0 else (place, 0, last - first)
            edits.append((order, taken, text.format(n=fault.number)))
    for (place, _, _), taken, new in sorted(edits, reverse=True):
        raw = raw[:place] + new + raw[place + taken:]
    return HEADER + raw if edits else raw
