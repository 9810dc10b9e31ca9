"""Which CPU a library for x86-64 needs, told from its machine code.

Where the compiler may use an extension, it uses it all over the library. Code that is only run on
CPUs that have the extension stands in few functions, and their names tell it (``xnn_…__avx2``,
``sha1_block_data_order_avx``). So it is decided in two steps:

1. Functions spread evenly over the library are disassembled. An extension that a hundredth or more
   of those with vector registers use is needed.
2. All code is searched for the encodings of the other extensions. One that is found, and stands
   when the function is disassembled, is needed as well where the function is TensorFlow's,
   Eigen's or protobuf's, which choose nothing at run time; elsewhere the library is taken to choose.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from tfwright.documents.recipe import CpuLevel
from tfwright.wheel.binary.machine_code import Code, MachineFunction

LEVELS = get_args(CpuLevel)
"""What a library may need, each with all that stand before it."""
EXTENSIONS = {
    **{name: name for name in LEVELS[1:]},
    # All came with AVX2, in Haswell, and make up x86-64-v3 with it.
    **dict.fromkeys(("fma", "f16c", "bmi", "bmi2"), "avx2"),
}
"""The level that each extension belongs to."""
_GROUPS = {name.replace(".", ""): name for name in EXTENSIONS} | {
    "fc16": "f16c",
    "vlx": "avx512",
    "bwi": "avx512",
    "dqi": "avx512",
    "cdi": "avx512",
}
"""The extensions by capstone's names."""
_FUSED = ("vfmadd", "vfmsub", "vfnmadd", "vfnmsub")

CHOSEN = re.compile(
    r"sse[34s]|avx|fma|f16c|xop|bmi|mulx|aes|gcm|sha\d|clmul|haswell|skylake|zen|xnn_|rsaz|ecp_nist|chacha|bn_|cpuid|hwy|highwayhash",
    re.IGNORECASE,
)
"""In the names of functions that are run only where the CPU has what they need."""
UNCONDITIONAL = re.compile(r"10tensorflow|5Eigen|6google8protobuf")
"""In the mangled names of functions that are compiled for the oldest CPU the wheel is for."""

SAMPLE = 1000
"""Functions that are disassembled in the first step."""
LONGEST = 2048
"""Bytes of each."""
SHARE = 0.01
FEWEST = 3
"""Functions that have to use an extension in the first step."""
MOST = 20_000
"""Places that are disassembled in the second step; the largest TensorFlow has some 5,000."""
TRIES = 16
"""Those in one function."""
_WINDOW = 8 * 1024**2
_INSTRUCTION = 15
"""The most bytes of an instruction."""
_BACK = 512
"""From how far before a place one disassembles in a long function; from anywhere, the sequence of instructions is found again within a few."""


def _set(*numbers: int | range) -> bytes:
    """Return a set of bytes for a regular expression."""
    every = sorted(
        {one for number in numbers for one in (number if isinstance(number, range) else (number,))}
    )
    return b"[" + b"".join(b"\\x%02x" % one for one in every) + b"]"


# The three bytes before an opcode, Intel's manual, volume 2, 2.3.5 and 2.7.1: the second says the opcode's map.
_VEX_2, _VEX_3 = (_set(*(high << 5 | number for high in range(8))) for number in (2, 3))
_OPCODES_2 = _set(
    0x16, 0x36, range(0x45, 0x48), range(0x58, 0x5B), 0x78, 0x79, 0x8C, 0x8E, range(0x90, 0x94)
)
_FUSED_2, _BITS_2 = (
    _set(range(0x96, 0xA0), range(0xA6, 0xB0), range(0xB6, 0xC0)),
    _set(0xF2, 0xF3, range(0xF5, 0xF8)),
)
_OPCODES_3 = _set(0, 1, 2, 0x38, 0x39, 0x46, 0xF0)
_SSE_38, _SSE_3A = (
    _set(
        range(0x0C),
        0x10,
        0x14,
        0x15,
        0x17,
        range(0x1C, 0x1F),
        range(0x20, 0x26),
        range(0x28, 0x2C),
        range(0x30, 0x42),
    ),
    _set(range(8, 16), range(0x14, 0x18), range(0x20, 0x23), range(0x40, 0x43), range(0x60, 0x64)),
)
PATTERNS = {
    "avx": re.compile(
        rb"\xc5\xf8\x77"
    ),  # vzeroupper, which compilers put at the end of what uses the long registers
    "avx2": re.compile(
        rb"\xc4(?:%b.(?:%b|%b|%b)|%b.%b)"
        % (_VEX_2, _OPCODES_2, _FUSED_2, _BITS_2, _VEX_3, _OPCODES_3),
        re.DOTALL,
    ),
    "avx512": re.compile(
        rb"\x62%b%b"
        % (
            _set(*(n for n in range(256) if n & 12 == 0 and n & 3)),
            _set(*(n for n in range(256) if n & 4)),
        ),
        re.DOTALL,
    ),
    "sse3": re.compile(
        rb"[\xf2\xf3][\x40-\x4f]?\x0f\x12|\xf3[\x40-\x4f]?\x0f\x16|[\xf2\x66][\x40-\x4f]?\x0f[\x7c\x7d\xd0]|\xf2[\x40-\x4f]?\x0f\xf0"
    ),
    "sse4.2": re.compile(rb"\x0f(?:\x38%b|\x3a%b)" % (_SSE_38, _SSE_3A)),
}
"""How instructions of the extensions begin, by the level up to which they are of interest."""


@dataclass(frozen=True)
class Use:
    """An extension that a library needs."""

    extension: str
    function: str
    """One that uses it, as the linker knows it; empty where the library keeps no names."""
    decided: str


@dataclass(frozen=True)
class Cpu:
    """What a library needs of an x86-64 CPU."""

    level: str
    """One of `LEVELS`."""
    needs: tuple[Use, ...]
    """Most demanding first."""
    chosen: tuple[str, ...]
    """Extensions that are only in functions that it chooses at run time."""
    sampled: int
    """Functions that were disassembled."""
    vector: int
    """Those of them with vector registers."""


def read(code: Code) -> Cpu:
    """Say what the CPU must have that runs a library."""
    reader = _Decoder(code)
    sample = reader.sampled()
    needs = _common(code, sample)
    chosen = set[str]()
    for name, function in reader.searched(_rank(needs)):
        if UNCONDITIONAL.search(function) and not CHOSEN.search(function):
            needs.setdefault(name, Use(name, function, "found by a search of all code"))
        else:
            chosen.add(name)
    uses = sorted(needs.values(), key=lambda use: (-_rank([use.extension]), use.extension))
    return Cpu(
        LEVELS[_rank(needs)],
        tuple(uses),
        tuple(sorted(chosen - set(needs))),
        len(sample),
        sum(map(bool, sample.values())),
    )


def _common(code: Code, sample: Mapping[MachineFunction, set[str]]) -> dict[str, Use]:
    """Return the extensions that so many functions of the sample use that the library cannot choose to do without them."""
    vector = sum(map(bool, sample.values()))
    counts = Counter(name for found in sample.values() for name in found if name in EXTENSIONS)
    common = {name: count for name, count in counts.items() if count >= max(FEWEST, SHARE * vector)}
    return {
        name: Use(
            name,
            _example(code, sample, name),
            f"{count} of {vector} sampled functions with vector registers",
        )
        for name, count in common.items()
    }


def _rank(extensions: Iterable[str]) -> int:
    """Return how far up in `LEVELS` a CPU with all these extensions is."""
    return max((LEVELS.index(EXTENSIONS[name]) for name in extensions), default=0)


def _example(code: Code, sample: Mapping[MachineFunction, set[str]], extension: str) -> str:
    """Return the name of a function of the sample that uses an extension, TensorFlow's own before others."""
    names = [code.name(function) for function, found in sample.items() if extension in found]
    return next((name for name in names if "10tensorflow" in name), names[0])


class _Decoder:
    """A disassembler, and what it knows already."""

    def __init__(self, code: Code) -> None:
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs  # noqa: PLC0415 start-up is part of the product

        self.code = code
        self.plain, self.detailed = Cs(CS_ARCH_X86, CS_MODE_64), Cs(CS_ARCH_X86, CS_MODE_64)
        self.plain.skipdata = True
        self.detailed.detail = True
        self.known: dict[tuple[str, bool, bool], set[str]] = {}

    def sampled(self) -> dict[MachineFunction, set[str]]:
        """Return what each function of the sample uses; ``vector`` stands for the registers that every x86-64 has."""
        step = max(len(self.code.functions) // SAMPLE, 1)
        picked = [MachineFunction(*function) for function in self.code.functions[::step]]
        return {
            function: self._uses(function)
            for function in picked
            if not CHOSEN.search(self.code.name(function))
        }

    def _uses(self, function: MachineFunction) -> set[str]:
        """Return the extensions of a function's instructions with vector registers."""
        content, found = self.code.read(function.start, min(function.size, LONGEST)), set[str]()
        place = 0
        for _, size, mnemonic, operands in self.plain.disasm_lite(content, 0):
            if "mm" in operands:
                kind = mnemonic, "ymm" in operands, "zmm" in operands
                if kind not in self.known:
                    self.known[kind] = {"vector", *self._extensions(content[place : place + size])}
                found |= self.known[kind]
            place += size
        return found

    def _extensions(self, instruction: bytes) -> set[str]:
        """Return the extensions that one instruction belongs to."""
        one = next(self.detailed.disasm(instruction, 0, 1), None)
        if one is None:
            return set()
        groups = {
            _GROUPS[name] for group in one.groups if (name := one.group_name(group)) in _GROUPS
        }
        # capstone puts these into no group.
        return groups or ({"fma"} if one.mnemonic.startswith(_FUSED) else set())

    def searched(self, above: int) -> Iterator[tuple[str, str]]:
        """Return extensions above a level that are used anywhere, with the name of a function that does."""
        tries, left = Counter[tuple[int, str]](), MOST
        for place, level in self._places(above):
            function = self.code.at(place)
            if function is None or not left or tries[function.start, level] >= TRIES:
                continue
            tries[function.start, level] += 1
            left -= 1
            found = [
                name
                for name in self._confirmed(function, place)
                if LEVELS.index(EXTENSIONS[name]) > above
            ]
            tries[function.start, level] += TRIES if found else 0
            yield from ((name, self.code.name(function)) for name in found)

    def _places(self, above: int) -> Iterator[tuple[int, str]]:
        """Return the places in the file at which an instruction of an extension may begin, and the level of that."""
        patterns = [
            (level, pattern) for level, pattern in PATTERNS.items() if LEVELS.index(level) > above
        ]
        for start in range(self.code.start, self.code.start + self.code.size, _WINDOW):
            content = self.code.read(
                start, min(_WINDOW + _INSTRUCTION, self.code.start + self.code.size - start)
            )
            for level, pattern in patterns:
                yield from (
                    (start + found.start(), level)
                    for found in pattern.finditer(content)
                    if found.start() < _WINDOW
                )

    def _confirmed(self, function: MachineFunction, place: int) -> set[str]:
        """Return the extensions of the instruction at a place, none where the place is within another one's operands."""
        start = function.start if place - function.start <= _BACK else place - _BACK
        content = self.code.read(start, place - start + _INSTRUCTION)
        for address, size, _, _ in self.plain.disasm_lite(content, start):
            if address + size > place:
                return self._extensions(content[address - start : address - start + size])
        return set()
