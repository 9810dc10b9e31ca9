"""Which CPU a library for x86-64 needs, as far as its machine code tells.

Where the compiler may use an extension, it uses it all over the library. Code for better CPUs that
a library chooses at run time is in few functions, and often their names say so (``xnn_…__avx2``,
``sha1_block_data_order_avx``). But some libraries, such as OpenBLAS, hold whole sets of functions
for CPUs that they ask for, under names that no list holds. So this is decided in three steps:

1. Functions spread evenly over the library are disassembled. An extension that one in a hundred or
   more of those with vector registers use is common.
2. A common extension is needed, unless the library asks the CPU what it has (``cpuid``, or
   functions that the loader lets choose). Then it is needed only if functions of TensorFlow, Eigen
   and protobuf use it, which choose nothing, or if nearly all functions do. Otherwise it is
   unknown whether it is needed.
3. All code is searched for the encodings of the other extensions. One that is found, and is there
   when the function is disassembled, is needed as well where the function is TensorFlow's,
   Eigen's or protobuf's; elsewhere the library is assumed to choose.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tfwright.facts.compatibility import LEVELS
from tfwright.wheel.binary.machine_code import Code, MachineFunction

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
    r"sse[34s]|avx|fma|f16c|xop|bmi|mulx|aes|gcm|sha\d|clmul|haswell|skylake|zen|xnn_|rsaz"
    r"|ecp_nist|chacha|bn_|cpuid|hwy|highwayhash",
    re.IGNORECASE,
)
"""In the names of functions that are run only where the CPU has what they need."""
UNCONDITIONAL = re.compile(r"10tensorflow|5Eigen|6google8protobuf")
"""In the mangled names of functions that are compiled for the oldest CPU the wheel is for."""

LOOKED_AT = 4000
"""Functions, spread over the library, that are looked at in the first step."""
SAMPLE = 400
"""Those of them that are disassembled: spread over all that may have vector registers."""
LONGEST = 1024
"""Bytes of each."""
SHARE = 0.01
FEWEST = 3
"""Functions that have to use an extension in the first step."""
NEARLY_ALL = 0.9
"""Of the sampled functions: a compiler with AVX has it in every function with vector registers."""
ENOUGH = 30
"""Functions of TensorFlow's with vector registers that the sample needs to speak for a library."""
MOST = 20_000
"""Places that are disassembled for a level in the last step; a TensorFlow has some 5,000."""
TRIES = 16
"""Those in one function."""
MOST_QUESTIONS = 500
"""Places that are disassembled to learn whether the library asks the CPU."""
_INSTRUCTION = 15
"""The most bytes of an instruction."""
_BACK = 512
"""Bytes before a place at which one begins to disassemble in a long function.

From anywhere, the sequence of instructions is found again within a few.
"""
_QUESTION = re.compile(rb"\x0f(?:\xa2|\x01\xd0)")
"""How ``cpuid`` and ``xgetbv`` are encoded, by which a program asks the CPU what it has."""
_QUESTIONS = {"cpuid", "xgetbv"}


def _byte_set(*numbers: int | range) -> bytes:
    """Return a set of bytes for a regular expression."""
    every = set[int]()
    for number in numbers:
        every.update(number if isinstance(number, range) else (number,))
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(every)) + b"]"


# The three bytes before an opcode (Intel's manual, volume 2, 2.3.5 and 2.7.1); the
# second of them says the opcode's map.
_VEX_2, _VEX_3 = (_byte_set(*(high << 5 | number for high in range(8))) for number in (2, 3))
_OPCODES_2 = _byte_set(
    0x16, 0x36, range(0x45, 0x48), range(0x58, 0x5B), 0x78, 0x79, 0x8C, 0x8E, range(0x90, 0x94)
)
_FUSED_2 = _byte_set(range(0x96, 0xA0), range(0xA6, 0xB0), range(0xB6, 0xC0))
_BITS_2 = _byte_set(0xF2, 0xF3, range(0xF5, 0xF8))
_OPCODES_3 = _byte_set(0, 1, 2, 0x38, 0x39, 0x46, 0xF0)
_EVEX_1 = _byte_set(*(number for number in range(256) if number & 12 == 0 and number & 3))
_EVEX_2 = _byte_set(*(number for number in range(256) if number & 4))
_SSE_38 = _byte_set(
    range(0x0C),
    0x10,
    0x14,
    0x15,
    0x17,
    range(0x1C, 0x1F),
    range(0x20, 0x26),
    range(0x28, 0x2C),
    range(0x30, 0x42),
)
_SSE_3A = _byte_set(
    range(8, 16), range(0x14, 0x18), range(0x20, 0x23), range(0x40, 0x43), range(0x60, 0x64)
)
_AVX2 = rb"\xc4(?:%b.(?:%b|%b|%b)|%b.%b)"
_SSE3 = (
    rb"[\xf2\xf3][\x40-\x4f]?\x0f\x12|\xf3[\x40-\x4f]?\x0f\x16"
    rb"|[\xf2\x66][\x40-\x4f]?\x0f[\x7c\x7d\xd0]|\xf2[\x40-\x4f]?\x0f\xf0"
)
_VECTOR = rb"[\x10-\x17\x28-\x2f\x50-\x7f\xc2\xc4-\xc6\xd0-\xff]"
MAY_BE_VECTOR = re.compile(
    rb"\x0f(?:%b|[\x38\x3a])|\xc5.%b|\xc4[\x01-\xe3]|%b" % (_VECTOR, _VECTOR, rb"\x62%b" % _EVEX_1),
    re.DOTALL,
)
"""Bytes of every function with vector registers; those without them are not disassembled."""
PATTERNS = {
    # vzeroupper, which compilers put at the end of what uses the long registers.
    "avx": re.compile(rb"\xc5\xf8\x77"),
    "avx2": re.compile(
        _AVX2 % (_VEX_2, _OPCODES_2, _FUSED_2, _BITS_2, _VEX_3, _OPCODES_3), re.DOTALL
    ),
    "avx512": re.compile(rb"\x62%b%b" % (_EVEX_1, _EVEX_2), re.DOTALL),
    "sse3": re.compile(_SSE3),
    "sse4.2": re.compile(rb"\x0f(?:\x38%b|\x3a%b)" % (_SSE_38, _SSE_3A)),
}
"""How instructions of the extensions begin, by the level up to which they are of interest."""


@dataclass(frozen=True)
class Use:
    """An extension that a library needs, or may need."""

    extension: str
    function: str
    """A function that uses it, as the linker knows it; empty where the library keeps no names."""
    decided: str


@dataclass(frozen=True)
class Cpu:
    """What a library needs of an x86-64 CPU."""

    level: str
    """One of `LEVELS`: what it needs for certain."""
    needs: tuple[Use, ...]
    """Most demanding first."""
    unknown: tuple[Use, ...] = ()
    """What it uses, and may need or choose at run time: the code does not tell."""


def read(code: Code) -> Cpu:
    """Say what the CPU must have that runs a library."""
    decoder = _Decoder(code)
    sampled = Sample(code, decoder.sample_uses())
    common = sampled.common_extensions()
    needs, unknown = common, dict[str, Use]()
    # A library that never asks runs its common instructions on every CPU.
    if _level_index(common) and (code.choosers or decoder.asks_the_cpu()):
        certain = sampled.unconditional()
        needs = certain.common_extensions()
        for name, use in common.items():
            # gcc -mavx recodes every SSE instruction, so nothing but a build for AVX comes near.
            if sampled.count(name) >= NEARLY_ALL * sampled.vector_count:
                needs.setdefault(name, use)
        # Where enough of the sample is TensorFlow's, the others are assumed to choose, as in the
        # search of all code: a TensorFlow holds XNNPACK, oneDNN and BoringSSL, which all do.
        if certain.vector_count < ENOUGH:
            unknown = {name: use for name, use in common.items() if name not in needs}
    # A TensorFlow brings XNNPACK and oneDNN, whose kernels for AVX-512 are only called where the
    # CPU has it.
    for name, function in decoder.search_all_code(_level_index(needs)):
        if UNCONDITIONAL.search(function) and not CHOSEN.search(function):
            needs.setdefault(name, Use(name, function, "found by a search of all code"))
    return Cpu(
        LEVELS[_level_index(needs)],
        _most_demanding_first(needs.values()),
        _most_demanding_first(use for name, use in unknown.items() if name not in needs),
    )


def _most_demanding_first(uses: Iterable[Use]) -> tuple[Use, ...]:
    return tuple(sorted(uses, key=lambda use: (-_level_index([use.extension]), use.extension)))


def _level_index(extensions: Iterable[str]) -> int:
    """Return how far up in `LEVELS` a CPU with all these extensions is."""
    return max((LEVELS.index(EXTENSIONS[name]) for name in extensions), default=0)


@dataclass(frozen=True)
class Sample:
    """Functions of a library that were disassembled."""

    code: Code
    uses: Mapping[MachineFunction, set[str]]
    """What each uses; ``vector`` are the registers that every x86-64 has."""

    @property
    def vector_count(self) -> int:
        """How many use vector registers."""
        return sum(map(bool, self.uses.values()))

    def count(self, extension: str) -> int:
        """Return how many use an extension."""
        return sum(extension in found for found in self.uses.values())

    def unconditional(self) -> "Sample":
        """Return those whose names say that they run on every CPU."""
        named = {
            function: found
            for function, found in self.uses.items()
            if UNCONDITIONAL.search(self.code.name(function))
        }
        return Sample(self.code, named)

    def common_extensions(self) -> dict[str, Use]:
        """Return the extensions that so many functions use that they are the rule.

        Each with the name of one of these functions, TensorFlow's before others.
        """
        common = {}
        for extension in EXTENSIONS:
            count = self.count(extension)
            # One function with AVX proves nothing: memcpy and SHA-1 are often written by hand.
            if count >= max(FEWEST, SHARE * self.vector_count):
                users = [function for function, found in self.uses.items() if extension in found]
                names = [self.code.name(function) for function in users]
                example = next((name for name in names if "10tensorflow" in name), names[0])
                decided = f"{count} of {self.vector_count} sampled functions with vector registers"
                common[extension] = Use(extension, example, decided)
        return common


class _Decoder:
    """A disassembler, and what it knows already."""

    def __init__(self, code: Code) -> None:
        # Here, since importing it takes long and only this needs it.
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs

        self.code = code
        self.plain = Cs(CS_ARCH_X86, CS_MODE_64)
        # Without it capstone stops at the first bytes that it cannot decode.
        self.plain.skipdata = True
        self.detailed = Cs(CS_ARCH_X86, CS_MODE_64)
        # Only this one knows the groups of an instruction, at several times the cost.
        self.detailed.detail = True
        self.known: dict[tuple[str, bool, bool], set[str]] = {}
        self.boundary = -1, 0
        """The function of the place that was looked at last, and where its instruction begins."""

    def sample_uses(self) -> dict[MachineFunction, set[str]]:
        """Return what each function of the sample uses, but for those whose names say a choice.

        They lie at even distances among those that may use vector registers.
        """
        functions = self.code.functions
        candidates = [
            MachineFunction(*function)
            for function in functions[:: max(-(-len(functions) // LOOKED_AT), 1)]
            if MAY_BE_VECTOR.search(
                self.code.content, function[0], function[0] + min(function[1], LONGEST)
            )
        ]
        return {
            function: self._extensions_used(function)
            for function in candidates[:: max(-(-len(candidates) // SAMPLE), 1)]
            if not CHOSEN.search(self.code.name(function))
        }

    def _extensions_used(self, function: MachineFunction) -> set[str]:
        """Return the extensions of a function's instructions with vector registers."""
        end = function.start + min(function.size, LONGEST)
        content = bytes(self.code.content[function.start : end])
        found = set[str]()
        for address, size, mnemonic, operands in self.plain.disasm_lite(content, 0):
            # Instructions without vector registers (xmm, ymm, zmm) hardly ever need an extension.
            if "mm" not in operands:
                continue
            # The same mnemonic is another extension with longer registers: vpaddd is AVX, AVX2 or
            # AVX-512.
            kind = mnemonic, "ymm" in operands, "zmm" in operands
            if kind not in self.known:
                own = self._extensions(content[address : address + size])
                self.known[kind] = {"vector", *own}
            found |= self.known[kind]
        return found

    def _extensions(self, instruction: bytes) -> set[str]:
        """Return the extensions that one instruction belongs to."""
        decoded = next(self.detailed.disasm(instruction, 0, 1), None)
        if decoded is None:
            return set()
        names = {decoded.group_name(group) for group in decoded.groups}
        groups = {_GROUPS[name] for name in names if name in _GROUPS}
        # capstone puts these into no group.
        return groups or ({"fma"} if decoded.mnemonic.startswith(_FUSED) else set())

    def asks_the_cpu(self) -> bool:
        """Say whether some code asks the CPU what it has."""
        for count, place in enumerate(self._matches(_QUESTION), 1):
            function = self.code.function_at(place)
            # The same bytes may be part of a constant.
            if function and self._instruction_at(function, place)[1] in _QUESTIONS:
                return True
            # So much code that its names decide, as in a TensorFlow.
            if count == MOST_QUESTIONS:
                return True
        return False

    def search_all_code(self, above: int) -> Iterator[tuple[str, str]]:
        """Return extensions above a level that any code uses, with a function that does."""
        tries = Counter[tuple[int, str]]()
        for level, pattern in PATTERNS.items():
            left = MOST if LEVELS.index(level) > above else 0
            for place in self._matches(pattern) if left else ():
                function = self.code.function_at(place)
                if function is None or tries[function.start, level] >= TRIES:
                    continue
                found = [
                    name
                    for name in self._extensions(self._instruction_at(function, place)[0])
                    if LEVELS.index(EXTENSIONS[name]) > above
                ]
                tries[function.start, level] += TRIES if found else 1
                yield from ((name, self.code.name(function)) for name in found)
                # Short patterns also occur by chance: in a TensorFlow at some 5,000 places.
                left -= 1
                if not left:
                    break

    def _matches(self, pattern: re.Pattern[bytes]) -> Iterator[int]:
        """Return where a pattern occurs in the code, as bytes of an instruction or by chance."""
        for start, end in self.code.ranges:
            for match in pattern.finditer(self.code.content, start, end):
                yield match.start()

    def _instruction_at(self, function: MachineFunction, place: int) -> tuple[bytes, str]:
        """Return the instruction that a place is in, and its name; empty where there is none."""
        # x86 instructions have 1 to 15 bytes: where one begins is only known from before.
        start = function.start if place - function.start <= _BACK else place - _BACK
        # Places come in order, and where one instruction begins all that follow it are known to.
        known, begin = self.boundary
        if known == function.start and start < begin <= place:
            start = begin
        content = bytes(self.code.content[start : place + _INSTRUCTION])
        for address, size, mnemonic, _ in self.plain.disasm_lite(content, 0):
            if start + address <= place < start + address + size:
                self.boundary = function.start, start + address
                return content[address : address + size], mnemonic
        return b"", ""
