"""C++ and CUDA text as the compiler's first phases see it: lines spliced, comments gone, directives told from code.

Pure text work on text that may be hostile: every text gives some tokens, in time linear in its length.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")  # gcc splices over blanks behind the backslash, too
_LEXEME = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>(?:u8|[uUL])?(?:R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"|"(?:[^"\\\n]|\\.)*"))
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
    |(?P<word>[^\W\d][\w$]*|\$[\w$]*)
    |(?P<line>\n)
    |(?P<blank>[^\S\n]+)
    |(?P<sign>%:%:|%:|\#\#|::|->|\[\[|\]\]|.)""",
    re.DOTALL | re.VERBOSE,
)
# With the break before it, which is found many times as fast as every beginning of a line in megabytes of headers.
_MARKER = re.compile(r'\n#(?:[ \t]*line)?[ \t]+(\d+)[ \t]+"([^"\\\n]*(?:\\.[^"\\\n]*)*)"[ \t\d]*$', re.MULTILINE)


@dataclass(frozen=True)
class Token:
    """One token: its kind (word, number, string, char, sign), its text, and where it began."""

    kind: str
    text: str
    line: int

    @property
    def content(self) -> str:
        """What stands inside a string literal, without prefix, quotes and fence."""
        inside = self.text[self.text.index('"') + 1 : -1]
        if "R" in self.text[: self.text.index('"')]:
            fence = inside.index("(")
            return inside[fence + 1 : len(inside) - fence - 1]
        return inside


@dataclass(frozen=True)
class Directive:
    """One preprocessor line: its name (empty for a line marker), its text behind the name, its tokens there."""

    name: str
    rest: str
    tokens: tuple[Token, ...]
    line: int


@dataclass
class Text:
    """The directives of a file, and its code; the bodies of its macros count as code."""

    directives: list[Directive] = field(default_factory=list[Directive])
    code: list[Token] = field(default_factory=list[Token])

    def extend(self, other: "Text") -> None:
        """Put another piece of the same file behind this one."""
        self.directives += other.directives
        self.code += other.code


def read(text: str, first_line: int = 1) -> Text:
    """Tokens and directives of ``text``, whose first line has the number ``first_line``."""
    spliced, line_of = _spliced(text, first_line)
    found, row, fresh = Text(), list[tuple[Token, int, int]](), True
    directive = False
    for match in [*_LEXEME.finditer(spliced + "\n")]:
        kind = match.lastgroup if match.lastgroup != "fence" else "string"
        assert kind is not None
        if kind == "line":
            if directive:
                _close(found, row, spliced)
            row, fresh, directive = [], True, False
        elif kind not in ("comment", "blank"):
            token = Token(kind, match.group(), line_of(match.start()))
            if fresh and token.text in ("#", "%:"):
                directive = True
            elif directive:
                row.append((token, match.start(), match.end()))
            else:
                found.code.append(token)
            fresh = False
    return found


def _spliced(text: str, first_line: int) -> tuple[str, "_Lines"]:
    pieces: list[str] = []
    joints: list[int] = []
    at = size = 0
    for match in _SPLICE.finditer(text):
        pieces.append(text[at : match.start()])
        size += match.start() - at
        joints.append(size)
        at = match.end()
    pieces.append(text[at:])
    whole = "".join(pieces)
    return whole, _Lines(whole, joints, first_line)


class _Lines:
    """The line number at an offset of spliced text."""

    def __init__(self, text: str, joints: list[int], first: int) -> None:
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._joints = joints
        self._first = first

    def __call__(self, at: int) -> int:
        return self._first + bisect_right(self._breaks, at - 1) + bisect_right(self._joints, at)


def _close(found: Text, row: list[tuple[Token, int, int]], spliced: str) -> None:
    """Take over one finished directive."""
    if not row:
        return
    (head, start, after), end = row[0], row[-1][2]
    named = head.kind == "word"
    tokens = tuple(token for token, _, _ in row[1 if named else 0 :])
    rest = spliced[after if named else start : end].strip()
    found.directives.append(Directive(head.text if named else "", rest, tokens, head.line))
    if named and head.text == "define":
        found.code += tokens[1:]


def pieces(expanded: str) -> Iterator[tuple[str, int, str]]:
    """What a preprocessor's output takes from each file: name, number of the first line, and the lines."""
    text = f"\n{expanded}"
    name, line, at = "", 1, 1
    for match in _MARKER.finditer(text):
        if match.start() + 1 > at:
            yield name, line, text[at : match.start() + 1]
        line, name, at = int(match.group(1)), match.group(2), match.end() + 1
    yield name, line, text[at:]
