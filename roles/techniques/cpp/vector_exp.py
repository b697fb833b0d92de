"""Replace calls of the library's exponential by an inlined polynomial without branches, so that loops vectorise."""

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.effects import math_name
from roles.techniques.cpp.loops import loops_in
from roles.techniques.cpp.render import with_includes
from roles.techniques.cpp.scopes import function_of
from roles.techniques.cpp.syntax import Edit, Source, field, line_of, of_type
from roles.techniques.cpp.value_types import value_type
from roles.techniques.transform import Match, TreeTransform

# Cody-Waite reduction by ln 2 in two parts and a degree-6 polynomial (Cephes expf); about 1 ulp. The magnitude is
# limited as an integer: a comparison of floats would be turned into a branch and the loop would stay scalar.
_FUNCTION = """\
// vector_exp: exp(x) without branches, about 1 ulp; 0 and infinity beyond the range, NaN stays NaN.
static inline float {name}(float x) {{
{0}int bits;
{0}std::memcpy(&bits, &x, sizeof bits);
{0}const int magnitude = bits & 0x7fffffff;
{0}const int limited = std::min(magnitude, 0x42d00000);  // |x| <= 104
{0}const int nan = ((0x7f800000 - magnitude) >> 31) & 0x7fc00000;
{0}const int kept = (bits ^ magnitude) | limited | nan;
{0}float z;
{0}std::memcpy(&z, &kept, sizeof z);
{0}const float shifted = z * 1.44269504f + 12582912.0f;  // z / ln 2, rounded, in the low bits
{0}const float n = shifted - 12582912.0f;
{0}const float t = (z - n * 0.693359375f) + n * 2.12194440e-4f;
{0}float p = 1.9875691500e-4f;
{0}p = p * t + 1.3981999507e-3f;
{0}p = p * t + 8.3334519073e-3f;
{0}p = p * t + 4.1665795894e-2f;
{0}p = p * t + 1.6666665459e-1f;
{0}p = p * t + 5.0000001201e-1f;
{0}p = p * (t * t) + t + 1.0f;
{0}int power;
{0}std::memcpy(&power, &shifted, sizeof power);
{0}power -= 0x4b400000;
{0}const int half = (int)((unsigned)((power >> 1) + 127) << 23);  // two steps reach denormals and infinity
{0}const int rest = (int)((unsigned)(power - (power >> 1) + 127) << 23);
{0}float low, high;
{0}std::memcpy(&low, &half, sizeof low);
{0}std::memcpy(&high, &rest, sizeof high);
{0}return p * low * high;
}}

"""


def exponentials(node: Node) -> list[Node]:
    """Calls of exp or expf on a float."""
    calls = (call for call in of_type(node, "call_expression") if math_name(call) in ("exp", "expf"))
    return [call for call in calls if _on_float(call)]


def _on_float(call: Node) -> bool:
    arguments = field(call, "arguments").named_children
    return len(arguments) == 1 and (math_name(call) == "expf" or value_type(arguments[0]) == "float")


def _top_level(node: Node) -> Node:
    while node.parent is not None and node.parent.type != "translation_unit":
        node = node.parent
    return node


class VectorExp(TreeTransform):
    """All float exponentials in the loops of one function."""

    def matches(self, source: Source) -> Iterator[Match]:
        """One match a function: its exponentials are one change."""
        for function in of_type(source.root, "function_definition"):
            calls: dict[int, Node] = {}
            for loop in loops_in(function):
                for call in exponentials(loop.body):
                    calls[call.id] = call
            owned = [call for call in calls.values() if function_of(call) == function]
            if owned:
                lines = ", ".join(str(line_of(call)) for call in owned)
                evidence = f"line {lines}: a library call in the loop, which the compiler cannot vectorise"
                yield Match(function, "the exponentials in the loops", evidence, owned)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The function is put before the one that uses it; every call is renamed."""
        name = source.fresh("vector_exp")
        calls: list[Node] = match.data
        edits = [Edit(each.start_byte, each.end_byte, name) for each in (field(call, "function") for call in calls)]
        top = _top_level(match.node)
        function = _FUNCTION.format(source.indent_unit, name=name)
        return with_includes(source.replace(Edit(top.start_byte, top.start_byte, function), *edits), _HEADERS)


_HEADERS = ("algorithm", "cstring")
