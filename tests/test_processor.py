"""The check of the processor before the library is loaded."""

import subprocess
import sys

from ambar.processor import missing_flags

OLD = """processor\t: 0
model name\t: Old
flags\t\t: fpu sse sse2 ssse3 sse4_1 sse4_2 avx
"""


def test_an_old_processor_is_told_what_it_lacks():
    assert missing_flags(OLD) == ["avx2", "bmi1", "bmi2", "fma", "movbe", "abm"]
    assert missing_flags(OLD.replace("avx\n", "avx avx2 bmi1 bmi2 fma movbe abm\n")) == []
    assert missing_flags("processor\t: 0\n") == []


def test_import_fails_with_a_message_instead_of_a_crash():
    program = """
import pathlib, io
opened = pathlib.Path.open
def other(path, *args, **kwargs):
    if str(path) == "/proc/cpuinfo":
        return io.StringIO("flags : fpu sse2")
    return opened(path, *args, **kwargs)
pathlib.Path.open = other
try:
    import ambar
except ImportError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "x86-64-v3" in run.stdout
