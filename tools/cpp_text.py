"""Reading C++ as text, for the check_* tools: finding the files and blanking comments and literals."""
import re
from pathlib import Path

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
