"""The screen of a C++ or CUDA candidate, on its text as written and again as the preprocessor left it. Trusted.

As written, includes, conditions and macro bodies are seen, those of branches that are not taken as well. As
preprocessed, names are seen that were pasted together or hidden in macros. What the task's own copy already does is
permitted: a human wrote it.
"""

import hashlib
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from team.judge.screen import rules
from team.judge.screen.tokens import Directive, Text, Token, pieces, read

_HIDDEN_MARKER = re.compile(r"^\s*#\s*(line\s*)?\d", re.MULTILINE)
_INCLUDES = frozenset({"include", "include_next", "import", "embed"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class Finding:
    """One construct that no kernel needs, and where it stands."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}"


@dataclass(frozen=True)
class Licence:
    """What one task permits beyond the rules: headers, vendors' libraries, loose arithmetic, its own constructs, and
    what a kernel bound by TVM-FFI says of itself."""

    headers: frozenset[str] = frozenset()
    libraries: bool = False
    approximate: bool = False
    own: frozenset[str] = frozenset()
    tvm_ffi: bool = False

    @property
    def identity(self) -> str:
        """Identity of these permissions and of the rules themselves; builds are kept under it."""
        text = [repr((sorted(self.headers), self.libraries, self.approximate, sorted(self.own), self.tvm_ffi))]
        text += [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
        return hashlib.sha256("\0".join(text).encode()).hexdigest()[:16]


def screen_text(files: Mapping[str, str], editable: Collection[str], licence: Licence) -> tuple[Finding, ...]:
    """What is refused in the editable files as they are written; ``files`` may be included by name."""
    found = [
        finding
        for name in sorted(editable)
        for finding in _file(name, read(files[name]), licence, files)
        if finding.what not in licence.own
    ]
    return tuple(found)


def screen_expanded(expanded: str, editable: Collection[str], licence: Licence) -> tuple[Finding, ...]:
    """What is refused in those lines of a preprocessor's output that come from the editable files."""
    texts: dict[str, Text] = {}
    for raw, line, lines in pieces(expanded):
        name = posixpath.normpath(raw)
        if name in editable and lines.strip():
            texts.setdefault(name, Text()).extend(read(lines, line))
    return tuple(
        finding
        for name, text in sorted(texts.items())
        for finding in _file(name, text, licence, None)
        if finding.what not in licence.own
    )


def own_constructs(files: Mapping[str, str], editable: Collection[str], licence: Licence) -> frozenset[str]:
    """What the task's own copy does that the rules would refuse."""
    present = [name for name in editable if name in files]
    return frozenset(finding.what for finding in screen_text(files, present, licence))


def _file(name: str, text: Text, licence: Licence, files: Mapping[str, str] | None) -> Iterator[Finding]:
    """Findings of one file. Without ``files`` the text has been preprocessed, and its line markers are not its own."""
    for directive in text.directives:
        for what in _directive(directive, licence, files, posixpath.dirname(name)):
            yield Finding(name, directive.line, what)
    ours = _defined(text)
    for at, token in enumerate(text.code):
        for what in _token(text.code, at, token, ours, licence):
            yield Finding(name, token.line, what)


def _directive(one: Directive, licence: Licence, files: Mapping[str, str] | None, folder: str) -> Iterator[str]:
    if files is not None:
        if one.name in ("line", ""):
            yield "renumbers its lines"
        elif one.name in _INCLUDES:
            yield from _include(one, licence, files, folder)
        elif one.name in ("if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"):
            yield from (f"asks the compiler's {token.text}" for token in one.tokens if token.text in rules.NAMES)
    if one.name == "pragma":
        yield from _pragma(one.rest, licence)


def _include(one: Directive, licence: Licence, files: Mapping[str, str], folder: str) -> Iterator[str]:
    plain = re.fullmatch(r'<([^<>]+)>|"([^"]+)"', one.rest)
    if one.name != "include" or plain is None:
        yield f"includes by way of #{one.name} {one.rest}"
        return
    path = plain.group(1) or plain.group(2)
    if path.startswith("/") or ".." in path.split("/"):
        yield f"includes a file outside its folder, {path}"
        return
    beside = {posixpath.normpath(posixpath.join(folder, path)), posixpath.normpath(path)}
    if plain.group(2) and beside & set(files):
        return
    known = path in rules.STANDARD_HEADERS or rules.HEADERS.fullmatch(path) or path in licence.headers
    known = known or (licence.tvm_ffi and rules.TVM_FFI_HEADERS.fullmatch(path))
    if not known and not (licence.libraries and re.fullmatch(r"(cublas|cudnn|cusparse|cufft|cusolver)\w*\.h", path)):
        yield f"includes <{path}>, which is not among the headers of a kernel"


def _pragma(rest: str, licence: Licence) -> Iterator[str]:
    rest = rest.strip()
    optimise = rules.OPTIMISE.match(rest)
    if optimise:
        yield from _options(optimise.group(1), licence)
    elif not rules.PRAGMAS.match(rest):
        yield f"uses #pragma {' '.join(rest.split()[:2])}"


def _options(text: str, licence: Licence) -> Iterator[str]:
    """Compiler options given inside the source: only those that keep the arithmetic as it is."""
    for option in re.findall(r"[^\s,\"']+", text):
        if rules.OPTIONS.fullmatch(option) or (licence.approximate and rules.LOOSE_OPTIONS.fullmatch(option)):
            continue
        yield f"changes the compiler's options to {option}"


def _token(code: Sequence[Token], at: int, token: Token, ours: Collection[str], licence: Licence) -> Iterator[str]:
    text = token.text
    if token.kind == "string" and _HIDDEN_MARKER.search(text):
        yield "hides a line marker in a string"
    elif text == "\\":
        yield "spells a name with an escape"
    elif text == "[[":
        yield from _attributes(_until(code, at + 1, "]]"), licence, space=True)
    elif token.kind != "word":
        return
    elif text in ("asm", "__asm__", "__asm"):
        yield from _assembly(code, at)
    elif text in ("__attribute__", "__attribute"):
        yield from _attributes(_inside(code, at + 1)[1:-1], licence, space=False)
    elif text in ("_Pragma", "__pragma"):
        yield from _pragma("".join(_unescaped(one) for one in _inside(code, at + 1) if one.kind == "string"), licence)
    else:
        yield from _name(code, at, text, ours, licence)


def _name(code: Sequence[Token], at: int, text: str, ours: Collection[str], licence: Licence) -> Iterator[str]:
    library = licence.libraries and text.startswith(("cublas", "cudnn"))
    if licence.tvm_ffi and text in rules.TVM_FFI_NAMES:
        yield f"names {text} of TVM-FFI"
    elif text in rules.NAMES or (rules.PREFIXES.fullmatch(text) and not library):
        yield f"names {text}"
    elif rules.DRIVER_CALL.fullmatch(text) and not rules.DRIVER_ALLOWED.fullmatch(text) and text not in ours:
        yield f"names {text} of the driver"
    elif rules.ENTRY_POINTS.fullmatch(text):
        first = next((one for one in code[at + 2 : at + 3] if one.kind == "string"), None)
        if first is None or not rules.DRIVER_ALLOWED.fullmatch(first.content):
            yield f"asks {text} for something else than a tensor map's maker"
    elif text in rules.SYSTEM_CALLS and text not in ours and _means_the_systems(code, at):
        yield f"names {text}"


def _means_the_systems(code: Sequence[Token], at: int) -> bool:
    """Whether a name is neither a member nor of another namespace than the global one and ``std``."""
    before = code[at - 1].text if at else ""
    if before in (".", "->"):
        return False
    qualifier = code[at - 2] if before == "::" and at > 1 else None
    return qualifier is None or qualifier.kind != "word" or qualifier.text in ("std", *rules.NOT_A_TYPE)


def _defined(text: Text) -> set[str]:
    """Names among the doubtful ones that the file gives to something of its own: a macro, a variable, a function."""
    own = {one.tokens[0].text for one in text.directives if one.name == "define" and one.tokens}
    code = text.code
    for at, token in enumerate(code[1:-1], start=1):
        if token.kind != "word" or (token.text not in rules.SYSTEM_CALLS and not token.text.startswith("cu")):
            continue
        before, after = code[at - 1], code[at + 1].text
        typed = before.text in ("*", "&", ">") or (before.kind == "word" and before.text not in rules.NOT_A_TYPE)
        if typed and (after in ("=", ";", ",", ")", "[", "{", ":") or (after == "(" and _has_body(code, at + 1))):
            own.add(token.text)
    return own


def _has_body(code: Sequence[Token], at: int) -> bool:
    """Whether a parameter list that opens at ``at`` is followed by a body rather than by the end of a declaration."""
    behind = at + len(_inside(code, at))
    while behind < len(code) and code[behind].text in ("const", "noexcept", "override"):
        behind += 1
    return behind < len(code) and code[behind].text == "{"


def _assembly(code: Sequence[Token], at: int) -> Iterator[str]:
    """Inline assembly is for arithmetic: no directives, no way out of the process, no label given to a symbol."""
    start = at + 1
    while start < len(code) and code[start].text in ("volatile", "__volatile__", "goto", "inline", "__volatile"):
        start += 1
    inside = _inside(code, start)
    template = [one for one in inside[1:] if one.kind == "string"]
    others = [one for one in inside[1:-1] if one.kind == "word"]
    said = "".join(_unescaped(one) for one in template)
    for rule in (rules.DIRECTIVES, rules.INSTRUCTIONS):
        if match := rule.search(said.replace("\\n", "\n")):
            yield f"puts {match.group().strip()} into inline assembly"
            return
    if not others and re.fullmatch(r"[\w$.]+", said.strip()) and said.strip() not in rules.ALONE:
        yield f"gives a symbol the name {said.strip()}"
    elif not template:
        yield "hides what its inline assembly says"


def _attributes(inside: Sequence[Token], licence: Licence, space: bool) -> Iterator[str]:
    """Names in an attribute list against those that change neither linkage nor semantics."""
    depth = 0
    words: list[tuple[int, Token]] = []
    for number, token in enumerate(inside):
        if token.text in _OPENING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
        elif token.kind == "word" and depth == (0 if space else 1):
            words.append((number, token))
    if space and not words:
        return
    for number, token in words:
        name = token.text.strip("_") or token.text
        if name == "optimize":
            strings = [one.content for one in inside[number:] if one.kind == "string"]
            yield from _options(" ".join(strings), licence)
        elif name == "visibility" and licence.tvm_ffi:
            continue  # of the functions that it exports
        elif name not in rules.ATTRIBUTES and not (space and token.text in rules.ATTRIBUTE_SPACES):
            yield f"uses the attribute {name}"


def _inside(code: Sequence[Token], at: int) -> Sequence[Token]:
    """A bracketed group that opens at ``at``, with its brackets; empty when nothing opens there."""
    if at >= len(code) or code[at].text not in _OPENING:
        return ()
    depth = 0
    for end in range(at, len(code)):
        depth += (code[end].text in _OPENING or code[end].text == "[[") - (code[end].text in _CLOSING)
        depth -= code[end].text == "]]"
        if depth == 0:
            return code[at : end + 1]
    return code[at:]


def _until(code: Sequence[Token], at: int, closing: str) -> Sequence[Token]:
    for end in range(at, len(code)):
        if code[end].text == closing:
            return code[at:end]
    return ()


def _unescaped(token: Token) -> str:
    return token.content if "R" in token.text[: token.text.index('"')] else token.content.replace('\\"', '"')
