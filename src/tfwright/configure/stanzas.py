"""The lines of TOML that a message asks its reader to add to the recipe."""

import json
import re
from collections.abc import Iterable, Mapping

from tfwright.configure import catalogue
from tfwright.configure.bazelrc import BazelrcDifference
from tfwright.configure.catalogue import Prompt
from tfwright.configure.validation import RESERVED
from tfwright.documents.recipe import MOST_WILDCARDS
from tfwright.rules.configurations import Setting

WHERE = "(below a header that it has already)"
"""TOML refuses a table that is written twice."""
MOST_LINES = 4
"""Lines of a text that may belong to one question."""
FEWEST_LETTERS = 3
"""Letters and digits without which a line by itself is not a question."""
LONGEST_QUESTION = 1500
"""Characters of a question that are written down."""
INDENT = "    "
_ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])?")
"""What a terminal takes for a colour or another command."""
NEAR = 200
"""Characters before a question's words in which its call names the variable."""


def answers(prompts: Iterable[Prompt]) -> str:
    """Return the table of answers with a line for each prompt."""
    lines = ["[configure.answers]"]
    for prompt in prompts:
        example = f'"{_EXAMPLES.get(prompt.variable, "...")}"'
        lines.append(f"{prompt.variable} = {'false' if prompt.yes_no else example}")
    return _indent(lines)


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
    return f"{_indent(lines)}\n{_indent(['[configure.answers]', answer])}"


def table(question: str, variable: str, *, yes_no: bool) -> list[str]:
    """Return the lines of ``[[configure.prompts]]`` for a question."""
    kind = ['kind = "yes-no"'] if yes_no else []
    return [
        "[[configure.prompts]]",
        f'variable = "{variable}"',
        f"question = {json.dumps(question_pattern(question), ensure_ascii=False)}",
        *kind,
    ]


def question_in(text: str) -> str:
    """Return the question at the end of a text: its last line, or more where that says nothing."""
    lines = text.rstrip("\n").split("\n")
    # Only the last line: what comes before it may be a report of the host.
    for number in range(1, min(len(lines), MOST_LINES) + 1):
        question = "\n".join(lines[-number:])
        # "? " or "> " alone would be found at the end of any question.
        if len(re.sub(r"\W", "", question_pattern(question))) >= FEWEST_LETTERS:
            break
    return question + text[len(text.rstrip("\n")) :]


def question_pattern(question: str) -> str:
    """Return a question as a recipe can hold it: asterisks for what differs, or cannot be typed."""
    # The default is often a path of this host.
    text = re.sub(r"(\[Default is:? )[^\n]*(\])", r"\1*\2", question)
    # Colours and other escape sequences, and asterisks of its own.
    text = _ESCAPE.sub("*", text)
    text = "".join(part if part == "\n" or part.isprintable() else "*" for part in text)
    parts = re.split(r"\*+", text)
    # A question is looked for at the end of what was printed, so that its beginning may be left
    # out.
    if len(parts) > MOST_WILDCARDS + 1:
        parts = parts[-MOST_WILDCARDS - 1 :]
    return "*".join(parts)[-LONGEST_QUESTION:]


def variable_in(script: str, question: str) -> str:
    """Return the variable that a script in Python names next to the words of a question.

    Empty if it names none there.
    """
    feature = re.search(r"TensorFlow with (.+?) support", question)
    words = feature[1] if feature else question.partition("[")[0].strip()
    if not words:
        return ""
    # Colours stand in a script as \x1b and the like; the words between them are plain.
    plain = max(_ESCAPE.sub("*", words).split("*"), key=len).strip()
    searched = [words, plain] if len(plain) >= FEWEST_LETTERS else [words]
    return next(filter(None, (_variable_before(script, text) for text in searched)), "")


def _variable_before(script: str, words: str) -> str:
    # configure.py calls set_build_var(environ_cp, 'TF_NEED_X', 'words', ...): variable, then words.
    for found in re.finditer(re.escape(words), script):
        named = re.findall(r"['\"]([A-Z][A-Z0-9_]{3,})['\"]", script[: found.start()][-NEAR:])
        usable = [name for name in named if name not in RESERVED]
        if usable:
            return str(usable[-1])
    return ""


def variable_of(question: str) -> str:
    """Return the variable that another release asks this for, or else a guess.

    TensorFlow names most variables after the feature that the question names.
    """
    known = catalogue.match_question(question, catalogue.all_prompts())
    if known:
        return known.variable
    plain = _ESCAPE.sub("", question)
    feature = re.search(r"TensorFlow with (.+?) support", plain)
    if not feature:
        return "VARIABLE_THAT_CONFIGURE_READS"
    words = re.sub(r"[^A-Z0-9]+", "_", feature[1].upper()).strip("_")
    return f"TF_NEED_{words}" if words else "VARIABLE_THAT_CONFIGURE_READS"


def difference(found: BazelrcDifference, places: Mapping[str, str]) -> str:
    """Return the table that makes the rendered file agree with the written one.

    A place of this host, given with its variable, is spelled ``@VARIABLE@``.
    """
    lines = ["[configure.bazelrc]"]
    for key, settings in (("adds", found.only_written), ("omits", found.only_rendered)):
        if settings:
            quoted = (
                json.dumps(portable_line(each, places), ensure_ascii=False) for each in settings
            )
            lines += [f"{key} = [", *(f"{INDENT}{text}," for text in quoted), "]"]
    return _indent(lines)


def portable_line(setting: Setting, places: Mapping[str, str]) -> str:
    """Return a line of a bazelrc with ``@NAME@`` for each place of this host."""
    text = str(setting)
    # The longest path first: a shorter one may be its beginning.
    for variable, place in sorted(places.items(), key=lambda item: -len(item[1])):
        if place:
            text = text.replace(place, f"@{variable}@")
    return text


def _indent(lines: Iterable[str]) -> str:
    return "\n".join(f"{INDENT}{line}" for line in lines)
