#!/usr/bin/env python3
"""Checks that no file of src/, cli/ and reproduce/ has over 400 lines, and no function over 60.

A function's lines are those from the first of its signature to its closing brace. The only way out is
a line of the comment at the head of the file that says why:

    // Over 400 lines: the grammar is one table.
    // Over 60 lines: parse_all, print: one case for each kind.

Prints one line a violation, `file:line: message`, and exits with 1 when there is any. A way out that
is not needed is a violation too.
"""

import re
import sys

sys.dont_write_bytecode = True
import findings  # noqa: E402

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 60

# Comments, literals and preprocessor lines: what is in them is no code.
NO_CODE = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | R"(?P<fence>[^()\s\\]*)\(.*?\)(?P=fence)"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'
      | "(?:\\.|[^"\\\n])*"
      | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)

ACCESS = re.compile(r"^\s*(?:public|protected|private)\s*:")
TEMPLATE = re.compile(r"^\s*template\b")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum)\b|\bextern\s*$")
NAME = re.compile(r"(~?\w+|operator\s*\S{1,3}?)\s*(?=\()")
AFTER_MEMBER = re.compile(r"\s*[,{]")
WAY_OUT = re.compile(r"//\s*Over (\d+) lines: (.*)")


def blank(match):
    """As many lines of nothing."""
    return "\n" * match[0].count("\n") or " "


def balanced(text, opening, closing):
    """`text` without what stands between brackets, inner ones too."""
    out, depth = [], 0
    for c in text:
        depth += c == opening
        if depth == 0:
            out.append(c)
        depth -= c == closing and depth > 0
        if depth == 0 and c == closing:
            out.append(opening + closing)
    return "".join(out)


def is_scope(head):
    """Does the `{` behind `head` begin a namespace or a type, with functions of its own?"""
    bare = balanced(re.sub(r"^\s*template\s*<", "<", head), "<", ">")
    return bool(SCOPE.search(bare)) and "(" not in balanced(bare, "[", "]").replace("alignas(", "")


def function_name(head):
    """The name of the function whose body begins behind `head`; None: it begins something else."""
    outside = balanced(head, "(", ")")
    without_operator = re.sub(r"operator\s*[^\s(\w]+", "operator_", outside)
    if "(" not in outside or re.search(r"=(?!=)", without_operator):
        return None
    match = NAME.search(outside)
    return match[1] if match else None


def functions(source):
    """Triples (name, first line, last line) of the functions with a body, outermost ones only."""
    code = NO_CODE.sub(blank, source)
    scopes = 0        # namespaces and types that are open
    inside = None     # (name, first line, depth) of the function that is open
    other = 0         # depth of braces that begin neither: initialisers
    start, line, depth = 0, 1, 0
    parens = 0        # a `;` or `{` in parentheses ends no head
    for i, c in enumerate(code):
        if c == "\n":
            line += 1
        elif c == "(":
            parens += 1
        elif c == ")":
            parens -= 1
        elif c == "{":
            depth += 1
            if inside or other or parens:
                other += not inside
                continue
            head = ACCESS.sub("", code[start:i])
            if is_scope(head):
                scopes += 1
                start = i + 1
            elif name := function_name(head):
                lead = len(code[start:i]) - len(head.lstrip())
                first = code.count("\n", 0, start + lead) + 1
                inside = (name, first, depth)
            else:
                other += 1
        elif c == "}":
            if inside and inside[2] == depth:
                # `: a_{1}, b_{2} {`: a member, and the constructor's head goes on.
                if not AFTER_MEMBER.match(code, i + 1):
                    yield inside[0], inside[1], line
                    start = i + 1
                inside = None
            elif not inside and other:
                other -= 1
            elif not inside:
                scopes -= 1
                start = i + 1
            depth -= 1
        elif c == ";" and not inside and not other and not parens:
            start = i + 1


def ways_out(source):
    """What the comment at the head of the file allows: {limit: (line, text)}."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        if not line.startswith("//"):
            break
        if match := WAY_OUT.match(line):
            found[int(match[1])] = (number, match[2])
    return found


def violations(source):
    """Pairs (line, message)."""
    allowed = ways_out(source)
    lines = len(source.splitlines())
    if lines > MOST_FILE_LINES and MOST_FILE_LINES not in allowed:
        yield 1, f"{lines} lines, more than {MOST_FILE_LINES}"
    if lines <= MOST_FILE_LINES and MOST_FILE_LINES in allowed:
        yield allowed[MOST_FILE_LINES][0], f"not over {MOST_FILE_LINES} lines: nothing to allow"
    names = allowed.get(MOST_FUNCTION_LINES, (0, ""))[1].split(":")[0]
    excused = {name.strip() for name in names.split(",") if name.strip()}
    needed = set()
    for name, first, last in functions(source):
        length = last - first + 1
        if length <= MOST_FUNCTION_LINES:
            continue
        needed.add(name)
        if name not in excused:
            yield first, f"{name} has {length} lines, more than {MOST_FUNCTION_LINES}"
    for name in sorted(excused - needed):
        yield allowed[MOST_FUNCTION_LINES][0], f"{name} is not over {MOST_FUNCTION_LINES} lines: nothing to allow"


def main():
    return findings.run(__doc__.splitlines()[0], ["src", "cli", "reproduce"],
                        lambda file, _: violations(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
