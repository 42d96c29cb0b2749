#!/usr/bin/env python3
"""Check that the modules of the Rust crates and of the Python package import downward only.

`.ci/layers.toml` lists the layers of each, the highest first. Modules of a layer may import lower
layers and their own; modules must not import each other in a cycle, whatever their layers. A layer
may name a module that is inside one of another layer. In Python, imports inside functions count,
those for type checkers do not, and no folder may have more than 15 modules. Tests are not checked:
they may import everything.

    python .ci/imports.py            check all crates and the package
    python .ci/imports.py --graph    print what each module imports
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]

MAX_MODULES = 15
"""The largest number of Python modules in a folder."""

ROOT = Path(__file__).parent.parent
COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?"(?:\\.|[^"\\])*"|r(\#*)".*?"\1|b?'(?:\\.[^']*|[^'\\])'""", re.S
)
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"\b((?:crate|self|super)(?:::\w+)+)")
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")


def without_tests(text: str) -> tuple[str, set[str]]:
    """Return the text without what only tests have, and the names of modules of tests."""
    modules = set()
    while match := TEST_ITEM.search(text):
        declared = re.compile(r"(?:pub\S*\s+)?mod\s+(\w+)\s*;").match(text, match.end())
        if declared:
            modules.add(declared[1])
        end = depth = 0
        for end in range(match.end(), len(text)):
            depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(text[end], 0)
            if depth < 0 or (depth == 0 and text[end] in ";}"):
                break
        text = text[: match.start()] + text[end + (depth >= 0) :]
    return text, modules


def split_at_commas(text: str) -> list[str]:
    """Split the inside of braces at its outer commas."""
    parts, depth = [""], 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def expand(tree: str) -> list[tuple[Module, str]]:
    """Return the paths of a use declaration, each with the name it is known by."""
    tree = " ".join(tree.split())
    brace = tree.find("{")
    if brace < 0:
        path, _, name = tree.partition(" as ")
        segments = tuple(path.strip().split("::"))
        if segments[-1] == "self":
            segments = segments[:-1]
        return [(segments, name.strip() or (segments[-1] if segments else ""))]
    prefix = tuple(part.strip() for part in tree[:brace].split("::") if part.strip())
    inside = [expand(part) for part in split_at_commas(tree[brace + 1 : tree.rindex("}")])]
    return [(prefix + path, name or prefix[-1]) for paths in inside for path, name in paths]


class Graph:
    """Modules and their imports."""

    imports: dict[Module, set[Module]]
    separator = "::"
    root = "lib"

    def shown(self, module: Module) -> str:
        """Return the path of a module as the language writes it."""
        return self.separator.join(module) or self.root

    def cycles(self) -> list[set[Module]]:
        """Return the sets of modules that import each other, directly or not."""
        reach: dict[Module, set[Module]] = {}
        for module in self.imports:
            seen: set[Module] = set()
            todo = [module]
            while todo:
                new = self.imports[todo.pop()] - seen
                seen |= new
                todo.extend(new)
            reach[module] = seen
        cycles: list[set[Module]] = []
        for module in self.imports:
            cycle = {other for other in reach[module] if module in reach[other]}
            if cycle and cycle not in cycles:
                cycles.append(cycle)
        return cycles


class Crate(Graph):
    """The modules of a crate, and what they import."""

    def __init__(self, source: Path) -> None:
        self.texts: dict[Module, str] = {}
        tests: set[Module] = set()
        for file in sorted(source.rglob("*.rs")):
            module = file.relative_to(source).with_suffix("").parts
            if module[-1] in ("mod", "lib"):
                module = module[:-1]
            text = COMMENT_OR_STRING.sub(" ", file.read_text())
            self.texts[module], names = without_tests(text)
            tests |= {(*module, name) for name in names}
        for module in list(self.texts):
            if any(module[: len(test)] == test for test in tests):
                del self.texts[module]
        # The names that each module imports, and whether it does so only to export them again.
        self.names: dict[Module, dict[str, Module]] = {}
        self.imports = {}
        for module, text in self.texts.items():
            uses = [
                (bool(use[1]), self.absolute(module + self.nested(text, use.start()), path), name)
                for use in USE.finditer(text)
                for path, name in expand(use[2])
            ]
            self.names[module] = {name: path for _, path, name in uses if path is not None}
            paths = [path for exported, path, _ in uses if not exported and path is not None]
            rest = USE.sub(" ", text)
            inline = [
                self.absolute(module + self.nested(rest, path.start()), tuple(path[1].split("::")))
                for path in PATH.finditer(rest)
            ]
            self.imports[module] = {path for path in [*paths, *inline] if path is not None}
        for module, paths in self.imports.items():
            self.imports[module] = {self.defined_in(path) for path in paths} - {module}

    def nested(self, text: str, at: int) -> Module:
        """Return the names of the modules in braces that a place in a file is in."""
        names = []
        for match in re.finditer(r"\bmod\s+(\w+)\s*\{", text[:at]):
            inside = text[match.end() : at]
            if inside.count("}") <= inside.count("{"):
                names.append(match[1])
        return tuple(names)

    def absolute(self, module: Module, path: Module) -> Module | None:
        """Return a path from the crate's root; None if it belongs to another crate."""
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return module + path[1:]
        while path and path[0] == "super":
            module, path = module[:-1], path[1:]
            if not path or path[0] != "super":
                return module + path
        return module + path if (*module, path[0]) in self.texts else None

    def defined_in(self, path: Module, depth: int = 0) -> Module:
        """Return the module that defines what a path names, which others may export again."""
        known = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in self.texts)
        rest = path[len(known) :]
        target = self.names[known].get(rest[0]) if rest else None
        if target is None or depth > 8:
            return known
        return self.defined_in(target + rest[1:], depth + 1)


class Package(Graph):
    """The modules of a Python package, and their imports of each other, also inside functions."""

    separator = "."
    root = "__init__"

    def __init__(self, source: Path) -> None:
        self.name = source.name
        self.files: dict[Module, Path] = {}
        for file in sorted(source.rglob("*.py")):
            module = file.relative_to(source).with_suffix("").parts
            self.files[module[:-1] if module[-1] == "__init__" else module] = file
        self.imports = {
            module: set(self.imported(ast.parse(file.read_text()))) - {module}
            for module, file in self.files.items()
        }

    def imported(self, tree: ast.AST) -> Iterator[Module]:
        """Yield the modules of the package that a syntax tree imports."""
        if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
            tree = ast.Module(tree.orelse, [])
        paths = []
        if isinstance(tree, ast.Import):
            paths = [alias.name for alias in tree.names]
        elif isinstance(tree, ast.ImportFrom) and tree.module and not tree.level:
            paths = [f"{tree.module}.{alias.name}" for alias in tree.names]
        for path in paths:
            first, *module = path.split(".")
            if first == self.name and module[:1] != ["_core"]:
                yield tuple(module) if tuple(module) in self.files else tuple(module[:-1])
        for child in ast.iter_child_nodes(tree):
            yield from self.imported(child)

    def crowded(self) -> list[str]:
        """Return the folders that have too many modules."""
        folders = Counter(file.parent for file in self.files.values() if file.name != "__init__.py")
        return [
            f"{folder.relative_to(ROOT)}: {number} modules; expected at most {MAX_MODULES}: "
            "divide the folder by concept"
            for folder, number in folders.items()
            if number > MAX_MODULES
        ]


def listed(module: Module, layer: dict[Module, int]) -> Module | None:
    """Return the innermost module around `module`, or itself, that is in a layer."""
    around = (module[:n] for n in range(len(module), 0, -1))
    return next((path for path in around if path in layer), None)


def check(
    name: str, crate: Graph, rules: dict[str, list[list[str]]]
) -> tuple[list[str], list[str]]:
    """Return the violations of a crate's rules, and the exceptions that are not needed any more."""
    layer = {
        tuple(module.split(crate.separator)): number
        for number, modules in enumerate(rules["layers"])
        for module in modules
    }
    root = layer.pop((crate.root,), -1)  # of Rust, above everything
    upward = {(above, below) for above, below in rules.get("upward", [])}
    allowed = [set(cycle) for cycle in rules.get("cycles", [])]
    found, used = [], set()
    for module, imports in crate.imports.items():
        if not module:
            continue
        own = listed(module, layer)
        if own is None:
            found.append(f"{name}: module {module[0]} is in no layer of .ci/layers.toml")
            continue
        for other in imports:
            top = listed(other, layer) if other else ()
            if top is None or (layer[top] if top else root) >= layer[own]:
                continue
            pair = crate.shown(own), crate.shown(top)
            if pair in upward:
                used.add(pair)
            else:
                found.append(f"{name}: {crate.shown(module)} imports upward: {crate.shown(other)}")
    kept = []
    for cycle in crate.cycles():
        names = {crate.shown(module) for module in cycle}
        known = [one for one in allowed if names <= one]
        kept += known
        if not known:
            found.append(f"{name}: import each other in a cycle: {', '.join(sorted(names))}")
    stale = [f"{name}: no import of {b} by {a} any more" for a, b in sorted(upward - used)]
    gone = [cycle for cycle in allowed if cycle not in kept]
    stale += [f"{name}: no cycle any more of {', '.join(sorted(cycle))}" for cycle in gone]
    return sorted(set(found)), stale


def main() -> int:
    """Check all crates and the Python package; print what is wrong."""
    layers = tomllib.loads((ROOT / ".ci/layers.toml").read_text())
    package = Package(ROOT / "python/ambar")
    found = package.crowded()
    for name, rules in layers.items():
        crate = package if name == "python" else Crate(ROOT / "crates" / name / "src")
        if "--graph" in sys.argv:
            for module, imports in crate.imports.items():
                print(
                    name,
                    crate.shown(module),
                    "->",
                    *sorted(crate.shown(other) for other in imports),
                )
        wrong, stale = check(name, crate, rules)
        found += wrong
        for line in stale:
            print(f"{line}: remove the exception from .ci/layers.toml")
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
