#!/usr/bin/env python3
"""Check that only dispatched functions have instructions beyond the baseline x86-64 processor.

Everything is built for the baseline processor, and chooses functions for AVX2 and AVX-512 at run
time (docs/decisions/0030-run-time-dispatch.md). This disassembles programs or libraries that have
symbols, and lists all other functions with such instructions.

    python .ci/instructions.py FILE...
"""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

# AVX and later begin with v; the others are BMI, LZCNT, POPCNT, SSSE3, SSE4 and their relatives.
BEYOND = re.compile(
    r"\t(?:v(?!err\b|erw\b|m)\w+|andn|bextr|bls\w+|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|adcx|adox"
    r"|lzcnt|popcnt|crc32\w?|pclmul\w+|pshufb|palignr|ph(?:add|sub)\w+|pblend\w+|pmov[sz]x\w+|ptest"
    r"|pmulld|pmuldq|pextr[bdq]|pinsr[bdq]|p(?:min|max)(?:sb|sd|ud|uw)|packusdw|round[sp][sd]|aes\w+"
    r"|sha\d\w+|lddqu|movddup|movs[hl]dup|addsubp\w)(?= |$)"
)
SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")
OURS = "ambar-codec's copies for AVX2 and AVX-512"
# Functions that are called only where the processor has their instructions.
DISPATCHED = {
    OURS: r"\bambar_codec::.*(?:::avx2|::avx512|_avx2::|_avx512::|::compact::bmi2::)",
    "crc-fast, crc32fast": r"^<?(?:crc_fast|crc32fast)::",
    "zstd": r"^(?:FSE|HUF|ZSTD)_\w*(?:_bmi2|_fast\w*)(?:\.\w+)*$",
    "memchr, half, httparse, chacha20": r"^(?:memchr::arch|half::binary16::arch|httparse::simd"
    r"|chacha20::backends)::",
    "compiler-builtins": r"^compiler_builtins::math::libm_math::arch::x86::fma::",
    # Assembly, whose local labels are symbols too.
    "ring": r"^(?:ring_core_\w+|__bn_\w+|__ecp_nistz256_\w+|_aesni_\w+|_vpaes_\w+|mulx4x_internal"
    r"|process_extra_in_trailer)$",
}


def find(path: Path) -> dict[str, set[str]]:
    """Return the functions with instructions beyond the baseline, and these instructions."""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", str(path)]
    found: dict[str, set[str]] = defaultdict(set)
    name = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        for line in process.stdout or ():
            if symbol := SYMBOL.match(line):
                name = symbol[1]
            elif match := BEYOND.search(line):
                found[name].add(match[0].strip())
    if process.returncode:
        raise SystemExit(f"objdump cannot disassemble {path}")
    return found


def problems(found: dict[str, set[str]]) -> list[str]:
    """Return what is wrong with a file of which `find` returned this."""
    lines, counts = [], Counter[str]()
    for name, instructions in sorted(found.items()):
        reasons = (why for why, names in DISPATCHED.items() if re.search(names, name))
        if reason := next(reasons, None):
            counts[reason] += 1
        else:
            lines.append(f"{name} has {', '.join(sorted(instructions)[:5])}, but is not dispatched")
    if not counts[OURS]:
        lines.append(f"found none of {OURS}: the file needs symbols")
    return lines


def main() -> int:
    """Check the files; return 1 if one has a problem."""
    lines = [f"{path}: {line}" for path in sys.argv[1:] for line in problems(find(Path(path)))]
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
