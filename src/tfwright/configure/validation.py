"""What is wrong with a recipe's answers, as far as the recipe alone shows it."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tfwright.configure import catalogue
from tfwright.configure.catalogue import Answer, Prompt
from tfwright.configure.interview import Interview
from tfwright.documents.names import HERMETIC_PYTHON_NAMES
from tfwright.documents.release import ExactRelease, Release, range_start
from tfwright.printable import nearest

LONGEST_LINE = 4095
"""Bytes of a line that a terminal passes on; the kernel drops the rest."""
RESERVED = {"HOME", "LANG", "LC_ALL", "PATH", "SOURCE_DATE_EPOCH", "TZ"}
"""Variables that decide which programs run, or that make builds reproducible."""
FROM_THE_HOST = {
    "PYTHON_BIN_PATH",
    "PYTHON_LIB_PATH",
    "CUDA_TOOLKIT_PATH",
    "CUDNN_INSTALL_PATH",
    "TF_CUDA_PATHS",
}
"""Answers that the host file and the host add, whether or not the release asks for them."""


@dataclass(frozen=True)
class AnswerFault:
    """One answer that cannot be what its author meant."""

    variable: str
    what: str
    remedy: str
    harmless: bool = False
    """Whether the build does what the answer says in spite of it."""
    now: str = ""
    """The variable that the release asks for instead; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.variable}: {self.what}"


def faults(interview: Interview) -> list[AnswerFault]:
    """Return all faults of the answers, in the order of the recipe."""
    found = list[AnswerFault]()
    for variable, answer in interview.answers.items():
        # The host adds them for every release: the recipe cannot be blamed for them.
        if variable not in FROM_THE_HOST:
            found += _answer_faults(interview, variable, answer)
    dialect, answers = interview.dialect, interview.answers
    # Two GPU platforms at once are refused by configure, after all its questions. ROCm came with
    # 1.12; before, OpenCL and CUDA could be answered yes together.
    chosen = [name for name in _PLATFORMS if answers.get(name) is True]
    if len(chosen) > 1 and not dialect.own and dialect.release >= Release(1, 12):
        what = f"excludes {' and '.join(chosen[1:])} in {dialect}"
        found.append(AnswerFault(chosen[0], what, "Answer only one of them with true."))
    by_environment = interview.by == "environment"
    if by_environment and dialect.traits.get("python_library_always_asked", False):
        what = f"{dialect} asks for it whatever the environment says"
        remedy = 'Set by = "dialogue" in [configure].'
        found.append(AnswerFault("PYTHON_LIB_PATH", what, remedy))
    return found


def _answer_faults(interview: Interview, variable: str, answer: Answer) -> Iterator[AnswerFault]:
    dialect = interview.dialect
    prompts = [prompt for prompt in dialect.prompts if prompt.variable == variable]
    if variable in RESERVED:
        what = "is a variable that tfwright sets for every program it starts"
        yield AnswerFault(variable, what, f"Remove {variable} from the recipe.")
    if prompts:
        yield from _value_faults(interview, prompts[0], answer)
        if not any(prompt.applies(interview.answers) for prompt in prompts):
            what = f"{dialect} asks for it only with {prompts[0].when}"
            remedy = f"Remove {variable} from the recipe, or answer what it depends on."
            yield AnswerFault(variable, what, remedy, harmless=answer is not True)
    elif not dialect.own:
        yield _fault_not_asked(interview, variable, answer)


def _fault_not_asked(interview: Interview, variable: str, answer: Answer) -> AnswerFault:
    """Say of a variable that this version does not read what is known of it elsewhere."""
    dialect = interview.dialect
    known = catalogue.prompts_of_variable(variable)
    if not known:
        return _fault_unknown(interview, variable)
    if any(prompt.belongs_to(dialect.version, dialect.system) for prompt in known):
        what = f"the ./configure of this commit, unlike others of {dialect}, does not ask for it"
    else:
        what = f"{dialect} on {dialect.system} does not ask for it ({_releases_that_ask(known)})"
    # A no that the release ignores is a lie only if the feature is built in: 1.12 dropped the
    # questions for GCP, HDFS, AWS and Kafka, and built them in.
    became = catalogue.afterwards(variable, dialect.version)
    if became:
        what += f"; {became.says}"
    harmless = answer is False and "built in" not in what
    now = (became and became.now) or ""
    return AnswerFault(variable, what, f"Remove {variable} from the recipe.", harmless, now)


def _fault_unknown(interview: Interview, variable: str) -> AnswerFault:
    if variable in HERMETIC_PYTHON_NAMES:
        what = f"Bazel reads it, and no ./configure of {interview.dialect}"
        flag = f"--repo_env={variable}=VERSION"
        remedy = f'Remove {variable} from the answers, and add "{flag}" to compile.flags.'
        return AnswerFault(variable, what, remedy)
    names = [prompt.variable for prompt in interview.dialect.prompts]
    # A typing error, as TF_NEED_CUDNN, is more likely than a variable of another program.
    near = nearest(variable, names)
    guess = f"; did you mean {near}?" if near else ""
    what = f"no ./configure of {interview.dialect} reads it{guess}"
    remedy = (
        f"Correct or remove {variable}. If a patch or a fork asks for it, "
        "describe the question in [[configure.prompts]]."
    )
    return AnswerFault(variable, what, remedy)


def _releases_that_ask(prompts: list[Prompt]) -> str:
    """Say which releases ask, in lines: ``1.4 to 1.9 did``."""
    spans = list[tuple[Release, Release]]()
    # A question is catalogued once for each wording; a reader only wants to know when it
    # came and went.
    for prompt in sorted(prompts, key=lambda prompt: range_start(prompt.since)):
        since = ExactRelease.parse(prompt.since).line
        until = ExactRelease.parse(prompt.until).line
        if spans:
            before, last = spans[-1]
            last_of_series = last in {Release(0, 12), Release(1, 15)}
            after = Release(last.major + 1, 0) if last_of_series else (last.major, last.minor + 1)
            if since <= after:
                spans[-1] = (before, max(last, until))
                continue
        spans.append((since, until))
    systems = {prompt.system for prompt in prompts}
    where = f" on {systems.pop()}" if len(systems) == 1 and "any" not in systems else ""
    shown = [
        str(since)
        if since == until
        else f"{since} and later"
        if until >= NEVER
        else f"{since} to {until}"
        for since, until in spans
    ]
    return f"{', '.join(shown)} did{where}" if shown else ""


NEVER = Release(99, 0)
"""The end of a range in the catalogue that has none."""


def _value_faults(interview: Interview, prompt: Prompt, answer: Answer) -> Iterator[AnswerFault]:
    """Judge one answer by what its prompt takes."""
    if prompt.yes_no:
        # A text that is not empty would count as a yes, even "no".
        if isinstance(answer, str):
            yield AnswerFault(
                prompt.variable,
                f"{answer!r} is neither true nor false",
                f"Write {prompt.variable} = true or {prompt.variable} = false, without quotes.",
            )
        return
    if isinstance(answer, bool):
        remedy = f'Write a text in quotes: {prompt.variable} = "...".'
        yield AnswerFault(prompt.variable, "takes a text, not true or false", remedy)
        return
    if not answer.strip() and not (prompt.empty or prompt.environment):
        yield AnswerFault(
            prompt.variable,
            "is empty, so configure would use whatever its default is",
            f'Write the value that you want: {prompt.variable} = "...".',
        )
    elif answer:
        yield from _text_faults(interview, prompt, answer)


def _text_faults(interview: Interview, prompt: Prompt, text: str) -> Iterator[AnswerFault]:
    what = {
        "version": _version_fault,
        "capabilities": _capability_fault,
        "flags": _flag_fault,
        "word": _word_fault,
        "any": _quote_fault,
    }[prompt.takes](interview, text)
    if what:
        yield AnswerFault(prompt.variable, *what)
    if interview.by == "dialogue" and len(text.encode()) > LONGEST_LINE:
        yield AnswerFault(
            prompt.variable,
            f"is longer than the {LONGEST_LINE} bytes that a terminal takes as one line",
            'Set by = "environment" in [configure].',
        )


def _quote_fault(interview: Interview, text: str) -> tuple[str, str] | None:
    """Refuse what ends the quotes that configure writes around a text for Bazel."""
    # What another repository writes is not known.
    found = None if interview.dialect.own else re.search(r'["\\]', text)
    if found is None:
        return None
    what = f"configure writes it in double quotes, where Bazel reads {found[0]} as something else"
    return what, "Use a path without this character, such as a link to it."


def _word_fault(_interview: Interview, text: str) -> tuple[str, str] | None:
    """Refuse what Bazel takes apart: configure writes these texts without quotes."""
    found = re.search(r"[\s\"'#\\]", text)
    if found is None:
        return None
    what = f"configure writes it without quotes, so Bazel takes {text!r} apart at {found[0]!r}"
    return what, "Use a path without this character, such as a link to it."


def _version_fault(_interview: Interview, text: str) -> tuple[str, str] | None:
    if re.fullmatch(r"\d+(\.\d+)*", text):
        return None
    return f"{text!r} is not a version", "Write numbers with dots, such as 10.1."


def _capability_fault(interview: Interview, text: str) -> tuple[str, str] | None:
    """Refuse what configure refuses, crashes on, or takes for something else."""
    traits = interview.dialect.traits
    release = interview.dialect.release
    if traits["capabilities_joined"]:
        text = "".join(text.split())
    remedy = "Separate compute capabilities by commas, such as 3.5,7.0."
    for capability in text.split(","):
        prefixed = re.fullmatch(r"(sm|compute)_([0-9]{1,3})([0-9])", capability)
        plain = re.fullmatch(r"([0-9]{1,3})\.[0-9]{1,3}", capability)
        if prefixed and not traits["capabilities_with_prefix"]:
            what = f"{interview.dialect} does not know the spelling {capability!r}"
            return what, f"Write {prefixed[2]}.{prefixed[3]}."
        if not prefixed and not plain:
            return f"{capability!r} is not a compute capability", remedy
        major = int((prefixed and prefixed[2]) or (plain and plain[1]) or 0)
        # configure.py prints a warning and asks again; the bash scripts before 1.4 take any.
        if major < OLDEST_CAPABILITY and release >= Release(1, 4):
            what = f"TensorFlow does not accept {capability}, only 3.0 and higher"
            return what, f"Remove {capability} from the list."
    return None


OLDEST_CAPABILITY = 3


def _flag_fault(interview: Interview, text: str) -> tuple[str, str] | None:
    """Refuse quotes that do not survive: configure splits at blanks, whatever is quoted."""
    script = not interview.dialect.own and interview.dialect.release < Release(1, 4)
    # As configure does; Bazel then reads each word of the file by the shell's rules.
    for word in text.split():
        if script and re.search(r"[*?\[]", word):
            what = f"the shell script of {interview.dialect} takes {word} for names of files"
            return what, "Use compile.flags, which takes any flag of Bazel's."
        # Neither the comparison nor ./configure would notice: both files hold the same line.
        if "#" in re.sub(r"'[^']*'|\"[^\"]*\"", "", word):
            what = f"Bazel takes all behind the # of {word} for a comment"
            return what, "Put the word in quotes, or use compile.flags."
        try:
            shlex.split(word)
        except ValueError:
            what = f"configure splits flags at blanks, so the quotes of {word} do not match"
            return (
                what,
                "Use flags without blanks inside; compile.flags takes any flag of Bazel's.",
            )
    return None


_PLATFORMS = ("TF_NEED_CUDA", "TF_NEED_ROCM", "TF_NEED_OPENCL_SYCL")
