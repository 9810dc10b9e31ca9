"""The lines of TOML that a message asks its reader to add to the recipe."""

import json
import re
from collections.abc import Iterable, Mapping

from tfwright.configure import catalogue
from tfwright.configure.bazelrc import BazelrcDifference, Setting
from tfwright.configure.prompt import Prompt

INDENT = "    "
NEAR = 200
"""Characters before a question's words in which its call names the variable."""


def answers(prompts: Iterable[Prompt]) -> str:
    """Return the table of answers with a line for each prompt."""
    return _indented(["[configure.answers]", *(_answer(prompt) for prompt in prompts)])


def _answer(prompt: Prompt) -> str:
    if prompt.yes_no:
        return f"{prompt.variable} = false"
    return f'{prompt.variable} = "{_EXAMPLES.get(prompt.variable, "...")}"'


_EXAMPLES = {
    "CC_OPT_FLAGS": "-march=x86-64",
    "TF_CUDA_VERSION": "9.0",
    "TF_CUDNN_VERSION": "7.0",
    "TF_NCCL_VERSION": "2.2",
    "TF_CUDA_COMPUTE_CAPABILITIES": "3.5,7.0",
    "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc",
}
"""What such an answer looks like; an empty one would take the release's default, unpinned."""


def prompt(question: str, variable: str, *, yes_no: bool) -> str:
    """Return the table for a question that no catalogue knows, with its answer."""
    answer = f"{variable} = false" if yes_no else f'{variable} = "..."'
    lines = table(question, variable, yes_no=yes_no)
    return f"{_indented(lines)}\n{_indented(['[configure.answers]', answer])}"


def table(question: str, variable: str, *, yes_no: bool) -> list[str]:
    """Return the lines of ``[[configure.prompts]]`` for a question."""
    kind = ['kind = "yes-no"'] if yes_no else []
    # The default is often a path of this host.
    text = re.sub(r"(\[Default is:? )[^\n]*(\])", r"\1*\2", question)
    return [
        "[[configure.prompts]]",
        f'variable = "{variable}"',
        f"question = {json.dumps(text, ensure_ascii=False)}",
        *kind,
    ]


def variable_in(script: str, question: str) -> str:
    """Return the variable that a script in Python names next to the words of a question.

    Empty if it names none there.
    """
    feature = re.search(r"TensorFlow with (.+?) support", question)
    words = feature[1] if feature else question.partition("[")[0].strip()
    # configure.py calls set_build_var(environ_cp, 'TF_NEED_X', 'words', ...): variable, then words.
    for found in re.finditer(re.escape(words), script):
        named = re.findall(
            r"['\"]([A-Z][A-Z0-9_]{3,})['\"]", script[: found.start()][-NEAR:]
        )
        if named:
            return str(named[-1])
    return ""


def variable_of(question: str) -> str:
    """Return the variable that another release asks this for, or else a guess.

    TensorFlow names most variables after the feature that the question names.
    """
    known = catalogue.matching(question, catalogue.everything())
    if known:
        return known.variable
    feature = re.search(r"TensorFlow with (.+?) support", question)
    if not feature:
        return "VARIABLE_THAT_CONFIGURE_READS"
    return "TF_NEED_" + re.sub(r"\W+", "_", feature[1]).strip("_").upper()


def difference(found: BazelrcDifference, places: Mapping[str, str]) -> str:
    """Return the table that makes the rendered file agree with the written one.

    A place of this host, given with its variable, is spelled ``@VARIABLE@``.
    """
    lines = ["[configure.bazelrc]"]
    for key, settings in (("adds", found.only_written), ("omits", found.only_rendered)):
        if settings:
            lines += [
                f"{key} = [",
                *(_line(setting, places) for setting in settings),
                "]",
            ]
    return _indented(lines)


def _line(setting: Setting, places: Mapping[str, str]) -> str:
    return f"{INDENT}{json.dumps(portable(setting, places), ensure_ascii=False)},"


def portable(setting: Setting, places: Mapping[str, str]) -> str:
    """Return a line of a bazelrc with ``@NAME@`` for each place of this host."""
    text = str(setting)
    # The longest path first: a shorter one may be its beginning.
    for variable, place in sorted(places.items(), key=lambda item: -len(item[1])):
        if place:
            text = text.replace(place, f"@{variable}@")
    return text


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"{INDENT}{line}" for line in lines)
