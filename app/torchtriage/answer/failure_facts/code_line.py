"""Finds what failed in the line of code that a traceback shows. Input: the line and the message. Output: facts such as
`operand`."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.python_statement import Statement, parsed
from torchtriage.domain.event import Frame
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

Values = dict[str, str | None]
OperandRule = Callable[[Statement, re.Match[str]], Values]
_NONE: frozenset[str] = frozenset()
FILE_FUNCTIONS = "file-functions"  # the vocabulary's list: functions that take the path of a file
_FILE_NAME = lazy_regex(r"/|\w\.[A-Za-z]\w{1,11}$")
_RAISE = lazy_regex(r"raise\b|self\._(?:format_and_)?raise|$")
_Names = ast.Tuple | ast.List  # the target of an unpacking
_OF_LIBRARY = ("operand", "collection", "index", "condition", "target", "source")
# These never refer to a call.
_NO_CALL = frozenset({"NameError", "UnboundLocalError", "AssertionError", "KeyboardInterrupt"})
_OPERATORS: dict[str, type[ast.AST]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "@": ast.MatMult,
    "**": ast.Pow, "**orpow()": ast.Pow, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor,
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip


def code_line(failure: Failure) -> Iterator[Fact]:
    """Yields facts about the line of code that failed. Facts that the line does not show for certain are left out.

    `operand` is the expression in the user's line that the message is about (`batch['ids']`), and `operand_type` is its
    type as the message names it (NoneType, list). `other_operand` and `other_type` describe the other side of an
    operator. `possible_operands` are the expressions of which one has the type `possible_type`, if the line does not
    show which. Others are `attribute`; `collection`, `key` and `index` of a subscript; `condition` of an assertion;
    `target` and `source` of an unpacking, and `items_of` if a loop unpacks each item; `imported`, the module of an
    import statement; `called`, the call that failed (`torch.load`), and its first `argument`.

    If the failing line belongs to a library, the names are `library_operand`, `library_collection`, `library_index`,
    `library_condition`, `library_target` and `library_source`. `code_names` are the variables in the line (`x,
    self.weight`). `passed_name` is the operand's name in the line of the caller that passes it.
    """
    found = _values(failure)
    for name, value in found.items():
        if value:
            yield failure.fact(name, value)
    passed = _passed([frame for frame in failure.frames_without_lookups if failure.is_user_frame(frame)])
    if passed is not None and passed in (found.get("operand") or found.get("argument") or "").split("."):
        yield failure.fact("passed_name", passed)
    frame = next((frame for frame in reversed(failure.frames) if failure.is_user_frame(frame)), None)
    if failure.raised is not None and frame is not None and (names := _variables(frame.code, frame.marked)):
        yield failure.fact("code_names", ", ".join(names))


@lru_cache(maxsize=256)
def _variables(code: str, marked: str) -> list[str]:
    """Returns the variables that a user's line uses and that a print statement above it could show. `marked` is the
    part that Python underlined."""
    statement = parsed(code, marked)
    if statement is None or _RAISE.match(code.strip()):
        return []
    called = {id(node) for call in statement.all(ast.Call) for node in ast.walk(call.func)}
    stored = {id(node) for node in statement.nodes if isinstance(getattr(node, "ctx", None), ast.Store)}
    inside = {id(node.value) for node in statement.nodes if isinstance(node, ast.Attribute)}
    nodes = [node for node in statement.all(ast.Attribute, ast.Name) if id(node) not in called | stored | inside]
    sources = (statement.source(node) for node in nodes)
    names = dict.fromkeys(name for name in sources if name and name not in _CONSTANTS and "_cut_" not in name)
    return list(names)[:_MAX_NAMES]


_CONSTANTS = frozenset({"self", "None", "True", "False"})
_MAX_NAMES = 3


def _values(failure: Failure) -> Values:
    """Returns the facts by name. The value of an unknown fact is None."""
    raised = failure.raised
    if raised is None:
        return {}
    shown = failure.frames_without_lookups
    own = max((place for place, frame in enumerate(shown) if failure.is_user_frame(frame)), default=-1)
    below = shown[own + 1 :]
    kind, message = raised.type.rpartition(".")[2], raised.message
    types = _types(kind, message)
    openers = frozenset(failure.reading.matcher.patterns.vocabulary.words(FILE_FUNCTIONS))
    values = dict(types)
    if below and not _RAISE.match(below[-1].code.strip()):
        in_library = _operands(below[-1], kind, message, openers)
        values |= {f"library_{name}": in_library.get(name) for name in _OF_LIBRARY}
    elif own >= 0:
        values.update(_operands(shown[own], kind, message, openers))
    if own >= 0 and kind not in _NO_CALL and (below or not values):
        for name, value in _call(shown[own], below[0].function if below else "").items():
            values.setdefault(name, value)
    return values


def _passed(own: list[Frame]) -> str | None:
    """Returns the variable in the user's innermost line that its caller passes to the function under the same name."""
    if len(own) < 2:
        return None
    line, call = parsed(own[-1].code, own[-1].marked), parsed(own[-2].code, own[-2].marked)
    if line is None or call is None or _RAISE.match(own[-1].code.strip()):
        return None
    calls = [each for each in call.all(ast.Call) if _name(each.func) == own[-1].function]
    given = {
        each.id
        for one in calls
        for each in (*one.args, *(word.value for word in one.keywords))
        if isinstance(each, ast.Name)
    }
    named = next((each.id for each in line.all(ast.Name) if each.id in given), None)
    return named or (_only_argument(line) if len(calls) == 1 and _is_one_path(calls[0]) else None)


def _is_one_path(call: ast.Call) -> bool:
    """Returns whether a call has one argument, in which a file's name or a path is written out."""
    if len(call.args) != 1 or call.keywords:
        return False
    texts = (each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant))
    return any(isinstance(text, str) and _FILE_NAME.search(text) for text in texts)


def _only_argument(line: Statement) -> str | None:
    """Returns the variable that is the first argument of the line's first call that has one."""
    firsts = (each.args[0] for each in line.all(ast.Call) if each.args)
    return next((first.id for first in firsts if isinstance(first, ast.Name)), None)


def _operands(frame: Frame, kind: str, message: str, openers: frozenset[str]) -> Values:
    """Returns what the message is about in a frame's line. The result is empty if the line only raises an exception."""
    if _RAISE.match(frame.code.strip()):
        return {}
    statement = parsed(frame.code, frame.marked)
    return operands(statement, kind, message, openers) if statement else {}


def operands(statement: Statement, kind: str, message: str, openers: frozenset[str] = _NONE) -> Values:
    """Returns the facts that a statement and the exception's message show together, by name. The value of an unknown
    fact is None. `openers` are names of functions that take the path of a file."""
    if kind == "AssertionError":
        asserted = statement.all(ast.Assert)
        return {"condition": statement.source(asserted[0].test) if asserted else None}
    for pattern, kinds, rule in _rules(openers):
        if (not kinds or kind in kinds) and (found := pattern.search(message)):
            return rule(statement, found)
    return {}


def _types(kind: str, message: str) -> Values:
    """Returns the types of the operands, if the message names them."""
    for pattern in _TYPES:
        if found := pattern.search(message):
            return found.groupdict()
    return {"operand_type": "module"} if kind == "AttributeError" and message.startswith("module '") else {}


def _call(frame: Frame, callee: str) -> Values:
    """Returns the call in a user's line that led into a library's function, and its first argument."""
    statement = parsed(frame.code, frame.marked)
    if statement is None or (callee.startswith("__") and callee not in _CALLED):
        return {}
    calls = statement.all(ast.Call)
    named = [call for call in calls if _name(call.func) == callee] or (calls if len(calls) == 1 else [])
    if len(named) != 1:
        return {}
    return _of_call(statement, named[0])


# Methods that a call runs; any other method belongs to an operator or an attribute.
_CALLED = ("__init__", "__call__", "__new__")


def _of_call(statement: Statement, call: ast.Call) -> Values:
    if _name(call.func) == "_cut_":
        return {}
    first = next((given for given in call.args[:1] if not isinstance(given, ast.Starred)), None)
    return {"called": statement.source(call.func), "argument": statement.source(first)}


def _name(node: ast.AST) -> str:
    """Returns the last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _common_source(statement: Statement, nodes: Iterable[ast.AST]) -> str | None:
    """Returns the source text that all nodes share. If they differ, it is unknown which one failed, and the result is
    None."""
    texts = {statement.source(node) for node in nodes}
    return texts.pop() if len(texts) == 1 else None


def _attribute(statement: Statement, found: re.Match[str]) -> Values:
    name = found["name"]
    nodes = [node.value for node in statement.all(ast.Attribute) if node.attr == name]
    if not nodes:  # getattr(args, "lr")
        nodes = [
            call.args[0]
            for call in statement.all(ast.Call)
            if _name(call.func) in ("getattr", "delattr", "setattr") and call.args
        ]
    return {"operand": _common_source(statement, nodes), "attribute": name}


def _subscripts(statement: Statement) -> list[ast.Subscript]:
    return statement.all(ast.Subscript)


def _key(statement: Statement, found: re.Match[str]) -> Values:
    key = found["key"]
    nodes = _subscripts(statement)
    same = [node for node in nodes if isinstance(node.slice, ast.Constant) and repr(node.slice.value) == key]
    others = [node for node in nodes if not isinstance(node.slice, ast.Constant)]
    if len(others) > 1:  # text[:, 3] needs a tensor: a dict has no slices
        others = [node for node in others if not _is_sliced(node)] or others
    chosen = same or others
    values = {"key": key.strip("'\""), "collection": _common_source(statement, (node.value for node in chosen))}
    if not chosen:  # batch.pop("ids")
        return {**values, **_method_of(("pop", "remove"))(statement, found)}
    return {
        **values,
        "operand": _common_source(statement, chosen),
        "index": None if same else _common_source(statement, (node.slice for node in chosen)),
    }


def _is_sliced(node: ast.Subscript) -> bool:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Slice) for part in parts)


def _index(statement: Statement, found: re.Match[str]) -> Values:
    nodes = [
        node
        for node in _subscripts(statement)
        if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str))
    ]
    if len(nodes) > 1:
        nodes = [
            node for node in nodes if not isinstance(node.slice, ast.Slice)
        ] or nodes  # a slice is never out of range
    if len(nodes) != 1:
        return _method_of(("pop",))(statement, found) if not nodes else {}
    return {
        "operand": statement.source(nodes[0]),
        "collection": statement.source(nodes[0].value),
        "index": statement.source(nodes[0].slice),
    }


def _subscripted(statement: Statement, found: re.Match[str]) -> Values:
    nodes = _subscripts(statement)
    inner = [node for node in nodes if isinstance(node.value, ast.Subscript)]
    if len(nodes) > 1 and not inner and statement.start == 0:
        return {"operand": _common_source(statement, (node.value for node in nodes))}
    if len(nodes) == 1 or (nodes and statement.start):
        outer = nodes[0]
        return {"operand": statement.source(outer.value), "index": statement.source(outer.slice)}
    return {}


def _called(statement: Statement, found: re.Match[str]) -> Values:
    calls = [call for call in statement.all(ast.Call) if _name(call.func) != "_cut_"]
    return {"operand": _common_source(statement, (call.func for call in calls))}


def _iterated(statement: Statement, found: re.Match[str]) -> Values:
    nodes: list[ast.AST] = []
    for node in statement.all(ast.AST):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            nodes.append(node.iter)
        elif isinstance(node, (ast.Starred, ast.YieldFrom)) or (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List))
        ):
            nodes.append(node.value)
        elif isinstance(node, ast.Call) and node.args and _name(node.func) in _TAKES_ITERABLES:
            nodes.append(node.args[0])
    return {"operand": _common_source(statement, itertools.chain.from_iterable(map(_iterated_expressions, nodes)))}


def _iterated_expressions(node: ast.AST) -> list[ast.AST]:
    """Returns the expressions there that must be iterable. A generator expression, zip(a, b) or enumerate(a) is never
    None itself."""
    if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
        return [node.generators[0].iter]
    if isinstance(node, ast.Call) and _name(node.func) in _NEVER_NONE and node.args:
        return [inner for argument in node.args for inner in _iterated_expressions(argument)]
    return [node]


_NEVER_NONE = frozenset({"zip", "enumerate", "list", "tuple", "set", "sorted", "reversed", "iter"})
_TAKES_ITERABLES = frozenset(
    {"list", "tuple", "set", "sorted", "sum", "enumerate", "iter", "max", "min", "any", "all", "dict", "join"}
)


def _contained(statement: Statement, found: re.Match[str]) -> Values:
    nodes = [
        compare.comparators[-1]
        for compare in statement.all(ast.Compare)
        if isinstance(compare.ops[-1], (ast.In, ast.NotIn))
    ]
    return {"operand": _common_source(statement, nodes)}


def _binary(statement: Statement, found: re.Match[str]) -> Values:
    groups = found.groupdict()
    operator = _OPERATORS.get((groups.get("operator") or "+").replace(" ", "").removesuffix("="))
    pairs: list[tuple[ast.AST, ast.AST]] = []
    for node in statement.all(ast.BinOp, ast.AugAssign, ast.Compare):
        if isinstance(node, ast.BinOp) and operator and isinstance(node.op, operator):
            pairs.append((node.left, node.right))
        elif isinstance(node, ast.AugAssign) and operator and isinstance(node.op, operator):
            pairs.append((node.target, node.value))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and operator and isinstance(node.ops[0], operator):
            pairs.append((node.left, node.comparators[0]))
    if "operator" not in groups:  # the message names the right side's type, which is not that of a text
        pairs = [pair for pair in pairs if not isinstance(pair[1], (ast.JoinedStr, ast.Constant))] or pairs
    return _matching_pair(statement, found, pairs)


def _compared(statement: Statement, found: re.Match[str]) -> Values:
    wanted = _OPERATORS.get(found["operator"])
    nodes = [node for node in statement.all(ast.Compare) if wanted and isinstance(node.ops[0], wanted)]
    return _matching_pair(statement, found, [(node.left, node.comparators[0]) for node in nodes])


def _matching_pair(statement: Statement, found: re.Match[str], pairs: list[tuple[ast.AST, ast.AST]]) -> Values:
    """Returns the operands of the pair that can have the types in the message, if only one pair can."""
    types = _types("TypeError", found.string)
    left, right = types.get("operand_type"), types.get("other_type")
    able = [pair for pair in pairs if _can_be(pair[0], left) and _can_be(pair[1], right)]
    if len(able) != 1:
        return _possible(statement, able, left, right)
    return {"operand": statement.source(able[0][0]), "other_operand": statement.source(able[0][1])}


def _possible(
    statement: Statement, pairs: list[tuple[ast.AST, ast.AST]], left: str | None, right: str | None
) -> Values:
    """Returns the expressions that can have the type in the message, if several pairs can: those on the side of None,
    or on the only side that differs between the pairs."""
    if not pairs:
        return {}
    sides = [list(dict.fromkeys(filter(None, map(statement.source, side)))) for side in zip(*pairs, strict=True)]
    nones, several = [name == "NoneType" for name in (left, right)], [len(side) > 1 for side in sides]
    marked = nones if any(nones) else several
    if sum(marked) != 1:
        return {}
    place = marked.index(True)
    if not 1 < len(sides[place]) <= _MAX_NAMES:
        return {}
    return {"possible_operands": ", ".join(sides[place]), "possible_type": (left, right)[place]}


def _can_be(node: ast.AST, name: str | None) -> bool:
    """Returns whether the value of an expression can have a type, judged by its source text."""
    known = _type_of(node)
    return name is None or known is None or known == name


def _type_of(node: ast.AST) -> str | None:
    """Returns the built-in type of a literal, or of a call to a function with a known return type."""
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _RETURNS.get(node.func.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        left = _type_of(node.left)
        return left if left in _KEEPS_TYPE else None
    return next((name for kinds, name in _DISPLAYS if isinstance(node, kinds)), None)


_RETURNS = {"len": "int", "repr": "str", "sorted": "list", "ord": "int", "chr": "str"} | {
    kind.__name__: kind.__name__ for kind in (bool, bytes, dict, float, frozenset, int, list, range, set, str, tuple)
}
_KEEPS_TYPE = ("str", "list", "tuple", "bytes")  # adding to a value of one of these types gives the same type
_DISPLAYS: tuple[tuple[tuple[type[ast.AST], ...], str], ...] = (
    ((ast.JoinedStr,), "str"), ((ast.List, ast.ListComp), "list"), ((ast.Tuple,), "tuple"),
    ((ast.Dict, ast.DictComp), "dict"), ((ast.Set, ast.SetComp), "set"), ((ast.GeneratorExp,), "generator"),
)  # fmt: skip


def _divided(statement: Statement, found: re.Match[str]) -> Values:
    by = (ast.Div, ast.FloorDiv, ast.Mod)
    nodes: list[ast.AST] = [node.right for node in statement.all(ast.BinOp) if isinstance(node.op, by)]
    nodes += [node.value for node in statement.all(ast.AugAssign) if isinstance(node.op, by)]
    return {"operand": _common_source(statement, nodes)}


def _unary(statement: Statement, found: re.Match[str]) -> Values:
    return {"operand": _common_source(statement, (node.operand for node in statement.all(ast.UnaryOp)))}


def _argument_of(*names: str) -> Callable[[Statement, re.Match[str]], Values]:
    """Returns a rule that finds the first argument of a call to one of these functions, or to the function in the
    message."""

    def rule(statement: Statement, found: re.Match[str]) -> Values:
        wanted = {*names, found.groupdict().get("called") or ""}
        calls = [call for call in statement.all(ast.Call) if _name(call.func) in wanted and call.args]
        if not calls:
            return {}
        called = _common_source(statement, (call.func for call in calls))
        return {"operand": _common_source(statement, (call.args[0] for call in calls)), "called": called}

    return rule


def _method_of(names: tuple[str, ...]) -> Callable[[Statement, re.Match[str]], Values]:
    """Returns a rule that finds the object on which a method with one of these names is called."""

    def rule(statement: Statement, found: re.Match[str]) -> Values:
        owners = [
            call.func.value
            for call in statement.all(ast.Call)
            if isinstance(call.func, ast.Attribute) and call.func.attr in names
        ]
        return {"collection": _common_source(statement, owners)}

    return rule


def _mapped(statement: Statement, found: re.Match[str]) -> Values:
    nodes = [keyword.value for call in statement.all(ast.Call) for keyword in call.keywords if keyword.arg is None]
    return {"operand": _common_source(statement, nodes)}


def _entered(statement: Statement, found: re.Match[str]) -> Values:
    nodes = [
        item.context_expr
        for node in statement.all(ast.With, ast.AsyncWith)
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
    ]
    return {"operand": _common_source(statement, nodes)}


def _unpacked(statement: Statement, found: re.Match[str]) -> Values:
    pairs: list[tuple[_Names, ast.expr, bool]] = []
    for node in statement.all(ast.Assign, ast.For, ast.AsyncFor, ast.comprehension):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            pairs.append((node.targets[0], node.value, False))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and isinstance(
            node.target, (ast.Tuple, ast.List)
        ):
            pairs.append((node.target, node.iter, True))
    if len(pairs) != 1:
        return {}
    target, source, loop = pairs[0]
    counted = _counted(source)
    if loop and counted is not None and isinstance(target.elts[-1], (ast.Tuple, ast.List)):
        target, source = target.elts[-1], counted  # enumerate always gives a pair, so the item in the pair failed
    values = {"target": (statement.source(target) or "").strip("()"), "source": statement.source(source)}
    return values | {"items_of": values["source"]} if loop else values


def _counted(node: ast.expr) -> ast.expr | None:
    """Returns the argument of `enumerate`."""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "enumerate"
    return node.args[0] if isinstance(node, ast.Call) and named and node.args else None


def _bad_call(statement: Statement, found: re.Match[str]) -> Values:
    """Returns the call that a function rejected: found by the function's name, or by the keyword that it does not
    accept."""
    parts = (
        found["function"].rpartition("(")[0].split(".")
        if found["function"].endswith("(")
        else found["function"].split(".")
    )
    names = {parts[-1]} | (
        {parts[-2]} if parts[-1] in ("__init__", "__new__", "__call__", "forward") and len(parts) > 1 else set()
    )
    keyword = found.groupdict().get("keyword")
    calls = [call for call in statement.all(ast.Call) if _name(call.func) != "_cut_"]
    named = [call for call in calls if _name(call.func) in names]
    if keyword and not named:
        named = [call for call in calls if any(given.arg == keyword for given in call.keywords)]
    chosen = named or (calls if len(calls) == 1 else [])
    if len(chosen) != 1:
        return {}
    value = next((given.value for given in chosen[0].keywords if keyword and given.arg == keyword), None)
    return {"called": statement.source(chosen[0].func), "argument": statement.source(value)}


def _imported(statement: Statement, found: re.Match[str]) -> Values:
    for node in statement.all(ast.ImportFrom, ast.Import):
        if isinstance(node, ast.ImportFrom):
            return {"imported": "." * node.level + (node.module or "")}
        if isinstance(node, ast.Import):
            return {"imported": node.names[0].name}
    return {}


def _opened(openers: frozenset[str]) -> OperandRule:
    """Returns the rule that finds the call that reads or writes a file. `openers` are the names of functions that do
    so."""

    def of(statement: Statement, found: re.Match[str]) -> Values:
        calls = [call for call in statement.all(ast.Call) if _name(call.func) != "_cut_"]
        opens = [call for call in calls if _name(call.func) in openers] or (calls if len(calls) == 1 else [])
        return _of_call(statement, opens[0]) if len(opens) == 1 else {}

    return of


_OS = frozenset(
    {"FileNotFoundError", "PermissionError", "IsADirectoryError", "NotADirectoryError", "FileExistsError", "OSError"}
)
_TYPE, _VALUE = frozenset({"TypeError"}), frozenset({"ValueError"})


@cache
def _rules(openers: frozenset[str]) -> tuple[tuple[re.Pattern[str], frozenset[str], OperandRule], ...]:
    """Returns the rules in the order in which they are tried: a regex for the message, the exceptions it applies to,
    and the function that finds the place in the line. The first rule that matches decides."""
    opened = _opened(openers)
    rules: tuple[tuple[str, frozenset[str], OperandRule], ...] = (
        (r"has no attribute '(?P<name>\w+)'", _NONE, _attribute),
        (r"attribute '(?P<name>\w+)' is read-only", _NONE, _attribute),
        (r"^(?P<key>.{1,200})$", frozenset({"KeyError"}), _key),
        (
            r"index out of range$|is out of bounds for axis|invalid index|too many indices|empty list",
            frozenset({"IndexError"}),
            _index,
        ),
        (
            r"is not subscriptable|support item (?:assignment|deletion)|object does not support indexing",
            _TYPE,
            _subscripted,
        ),
        (r"indices must be|unhashable type|index must be", _TYPE, _subscripted),
        (r"is not callable", _TYPE, _called),
        (r"argument of type '\w+' is not (?:iterable|a container)", _TYPE, _contained),
        (r"object is not iterable|cannot unpack non-iterable|is not an async iterable", _TYPE, _iterated),
        (r"object is not an iterator", _TYPE, _argument_of("next")),
        (r"(?:argument after \*\* must be a mapping)", _TYPE, _mapped),
        (r"unsupported operand type\(s\) for (?P<operator>[^:]{1,15}):", _TYPE, _binary),
        (r"can only concatenate|must be str, not|can't multiply sequence", _TYPE, _binary),
        (r"'(?P<operator>[<>]=?)' not supported between", _TYPE, _compared),
        (r"bad operand type for unary", _TYPE, _unary),
        (r"has no len\(\)", _TYPE, _argument_of("len")),
        (r"context manager protocol|__enter__", _NONE, _entered),
        (r"^(?P<called>int|float|complex)\(\) argument must be", _TYPE, _argument_of()),
        (r"^(?P<called>\w+)\(\) argument must be str, bytes", _TYPE, _argument_of()),
        (r"expected str, bytes or os\.PathLike", _TYPE, opened),
        (r"^(?P<function>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<keyword>\w+)'", _TYPE, _bad_call),
        (
            r"^(?P<function>[\w.<>]+)\(\) got multiple values for (?:keyword )?argument '(?P<keyword>\w+)'",
            _TYPE,
            _bad_call,
        ),
        (r"^(?P<function>[\w.<>]+)\(\) (?:missing|takes|got some|expected)", _TYPE, _bad_call),
        (r"values to unpack", _VALUE, _unpacked),
        (r"could not convert string to float", _VALUE, _argument_of("float")),
        (r"invalid literal for int\(\)", _VALUE, _argument_of("int")),
        (r"^(?P<called>max|min)\(\) (?:arg is an empty|iterable argument is empty)", _VALUE, _argument_of()),
        (r"not in (?:list|deque|tuple)", _VALUE, _method_of(("index", "remove"))),
        (r"by zero|modulo", frozenset({"ZeroDivisionError"}), _divided),
        (r"", frozenset({"ImportError", "ModuleNotFoundError"}), _imported),
        (r"", _OS, opened),
    )
    return tuple((lazy_regex(pattern), kinds, rule) for pattern, kinds, rule in rules)


_TYPES = tuple(
    lazy_regex(pattern)
    for pattern in (
        r"^unsupported operand type\(s\) for [^:]{1,15}: '(?P<operand_type>[\w.]+)' and '(?P<other_type>[\w.]+)'",
        r"not supported between instances of '(?P<operand_type>[\w.]+)' and '(?P<other_type>[\w.]+)'",
        r"^can only concatenate (?P<operand_type>\w+) \(not \"(?P<other_type>[\w.]+)\"\)",
        r"^'(?P<operand_type>[\w.]+)' object ",
        r"^type object '(?P<operand_type>[\w.]+)' has no attribute",
        r"^object of type '(?P<operand_type>[\w.]+)'",
        r"^argument of type '(?P<operand_type>[\w.]+)'",
        r"^cannot unpack non-iterable (?P<operand_type>[\w.]+) object",
        r"^bad operand type for unary .{1,3}: '(?P<operand_type>[\w.]+)'",
        r"^unhashable type: '(?P<operand_type>[\w.]+)'",
        r"argument must be .{1,80}, not '?(?P<operand_type>[\w.]+)'?$",
        r"PathLike object, not '?(?P<operand_type>[\w.]+)'?$",
        r"^(?P<operand_type>\w+) indices must be",
    )
)
