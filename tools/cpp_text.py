"""Reading C++ as text, for the check_* tools: finding the files and blanking comments and literals."""
import re
from pathlib import Path

DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum)\b")
CONTROL = re.compile(r"^\s*(if|for|while|switch|catch|do|else|try|return)\b")
SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}

_TOKENS = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",  # not the separator of 1'000'000
    re.DOTALL)


def files_under(*roots):
    """C++ files below the given folders, sorted."""
    return sorted(p for root in roots for p in Path(root).rglob("*") if p.suffix in SUFFIXES and p.is_file())


def without(text, comments=True, literals=True):
    """The text with comments and/or literals blanked; lines keep their numbers."""
    def blank(match):
        token = match.group(0)
        is_comment = token.startswith(("//", "/*"))
        if not (comments if is_comment else literals):
            return token
        lines = "\n" * token.count("\n")
        return " " + lines if is_comment else '""' + lines
    return _TOKENS.sub(blank, text)


def blanked(text):
    """The text with comments, literals' contents and directives as spaces: every place keeps its number."""
    def spaces(match):
        token, quote = match.group(0), match.group(0)[-1]
        inner = re.sub(r"[^\n]", " ", token)
        is_literal = quote in "\"'" and not token.startswith(("/", "#", " ", "\t"))
        return quote + inner[1:-1] + quote if is_literal else inner
    return DIRECTIVE.sub(spaces, _TOKENS.sub(spaces, text))


def outside_brackets(text):
    depth, kept = 0, []
    for c in text:
        depth -= c in ")]"
        if depth == 0:
            kept.append(c)
        depth += c in "(["
    return "".join(kept)


def is_function(header):
    """Whether a brace after this text (since the last ; { or }) opens a function's body."""
    bare = outside_brackets(re.sub(r"template\s*<[^{};]*?>\s*", "", header))
    if "(" not in bare or CONTROL.match(header):
        return False
    if "operator" not in bare and ("=" in bare or CONTAINER.search(bare.split("(")[0])):
        return False
    return True


def is_value(header):
    """Whether the brace holds a value within a signature: a default argument or a member's initializer."""
    if header.count("(") > header.count(")"):
        return True
    bare = outside_brackets(header).rstrip()
    return re.search(r"\)\s*(noexcept\s*)?:[^:]", bare) is not None and re.search(r"[\w>]$", bare) is not None


def skip_block(text, at):
    """The place after the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    return len(text)


def function_bodies(text):
    """(first place of the signature, of the opening brace, after the closing one) of every outermost function in a
    text without comments, literals and directives."""
    start = at = 0
    while at < len(text):
        if text[at] in ";}" or (text[at] == ":" and re.search(r"\b(public|private|protected)\s*$", text[start:at])):
            start = at + 1
        elif text[at] == "{":
            header = text[start:at]
            if is_value(header):
                at = skip_block(text, at)
                continue
            if is_function(header):
                end = skip_block(text, at)
                yield start + len(header) - len(header.lstrip()), at, end
                at = start = end
                continue
            start = at + 1
        at += 1
