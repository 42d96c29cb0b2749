"""The check of the layers of crates and of the Python package finds imports upward and cycles."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.helpers.scripts import load


@pytest.fixture(scope="module")
def imports() -> ModuleType:
    return load("imports")


def crate(imports: ModuleType, folder: Path, **files: str) -> Any:
    for name, text in {"lib": "mod low;\nmod high;\n", **files}.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return imports.Crate(folder)


RULES = {"layers": [["high"], ["low"]]}
PYTHON = {"layers": [["high"], ["low", "other"]]}


def test_imports_upward_are_found_through_names_that_are_exported_again(
    imports: ModuleType, tmp_path: Path
) -> None:
    low = "use crate::{high::{self, Deep as D}, other};\n// use crate::high::Comment;\n"
    files = {"high__mod": "mod deep;\npub use deep::Deep;", "high__deep": "pub struct Deep;"}
    found, _ = imports.check("c", crate(imports, tmp_path, low=low, **files), RULES)
    assert found == [
        "c: low imports upward: high",
        "c: low imports upward: high::deep",
        "c: low imports upward: lib",
    ]


def test_tests_may_import_anything(imports: ModuleType, tmp_path: Path) -> None:
    low = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::high;\n}\n"
    found, _ = imports.check("c", crate(imports, tmp_path, low=low, high=""), RULES)
    assert found == []


def test_cycles_within_a_layer_are_found(imports: ModuleType, tmp_path: Path) -> None:
    files = {
        "high": "mod a;\nmod b;\n",
        "high__a": "fn f() { super::b::g() }",
        "high__b": "use super::a::f;",
        "low": "",
    }
    cyclic = crate(imports, tmp_path, **files)
    found, _ = imports.check("c", cyclic, RULES)
    assert found == ["c: import each other in a cycle: high::a, high::b"]
    allowed = {**RULES, "cycles": [["high::a", "high::b"], ["high", "low"]]}
    assert imports.check("c", cyclic, allowed) == ([], ["c: no cycle any more of high, low"])


def package(imports: ModuleType, folder: Path, **files: str) -> Any:
    for name, text in {"__init__": "", **files}.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return imports.Package(folder)


def test_lazy_imports_of_python_count_and_those_of_type_checkers_do_not(
    imports: ModuleType, tmp_path: Path
) -> None:
    text = "if TYPE_CHECKING:\n    from p.high import A\nelse:\n    from p import other\n"
    low = f"{text}def f():\n    from p.high import g\n"
    found, _ = imports.check(
        "p", package(imports, tmp_path / "p", low=low, high="import p.low", other=""), PYTHON
    )
    assert found == ["p: import each other in a cycle: high, low", "p: low imports upward: high"]


def test_modules_within_a_layer_may_have_one_of_their_own(
    imports: ModuleType, tmp_path: Path
) -> None:
    files = {"high__in__a": "import p", "low": "from p.high import a", "other": "import p.low"}
    rules = {"layers": [["high"], ["__init__"], ["low", "other"], ["high.a"]]}
    found, _ = imports.check("p", package(imports, tmp_path / "p", **files), rules)
    assert found == ["p: high.a imports upward: __init__"]


def test_crowded_folders_are_found(
    imports: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "ROOT", tmp_path)
    files = {f"folder__in__m{n}": "" for n in range(16)}
    assert package(imports, tmp_path / "p", **files).crowded() == [
        "p/folder: 16 modules; expected at most 15: divide the folder by concept"
    ]
