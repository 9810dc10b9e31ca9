"""What one tree's ./configure asks and writes, on one system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tfwright.configure import catalogue, traits
from tfwright.configure.catalogue import Prompt, from_recipe
from tfwright.configure.traits import Scripts
from tfwright.documents.recipe import PromptTable
from tfwright.documents.release import ExactRelease, Release
from tfwright.errors import RecipeError

FIRST_KNOWN = Release(0, 8)
"""The oldest release whose questions the catalogue has."""


@dataclass(frozen=True)
class Dialect:
    """The questions of a ./configure, and the traits of the file that it writes."""

    version: ExactRelease
    system: str
    """As ``uname -s`` names it."""
    prompts: tuple[Prompt, ...]
    scripts: Scripts = field(default_factory=dict)
    """The files of the tree that show what TensorFlow's own script writes, if they are known."""
    own: bool = False
    """Whether only the recipe knows this interface, and no release of TensorFlow has it."""

    # Read only where the file is written: the check of most answers needs none of them.
    @cached_property
    def traits(self) -> Mapping[str, bool]:
        """What it writes that others do not; none are known of an interface of its own."""
        return {} if self.own else traits.traits_of(self.version, self.scripts)

    @property
    def release(self) -> Release:
        """The release line, by which most rules go."""
        return self.version.line

    def __str__(self) -> str:
        # Without the patch level of the first version of a line.
        first = self.version == ExactRelease(*self.release)
        named = self.release if first else self.version
        return "this repository" if self.own else f"TensorFlow {named}"


def of_tensorflow(
    version: ExactRelease,
    system: str,
    own: Sequence[PromptTable] = (),
    scripts: Scripts | None = None,
) -> Dialect:
    """Return what a version of TensorFlow speaks, with the recipe's own prompts in front.

    `scripts` are the tree's files that show what they write, `traits.files_with_signs`, once it is
    there. Raises RecipeError for a release that is older than the catalogue.
    """
    if version.line < FIRST_KNOWN:
        raise RecipeError(
            f"tfwright does not know what the ./configure of TensorFlow {version.line} asks; "
            f"the oldest that it knows is that of {FIRST_KNOWN}",
            remedy=f"Build TensorFlow {FIRST_KNOWN} or later, or describe this ./configure in the "
            "recipe, as docs/other-repositories.md says.",
        )
    added = tuple(from_recipe(table) for table in own)
    replaced = {prompt.variable for prompt in added}
    # A program by other authors lacks the signs, which would then read as missing features.
    shown = scripts if scripts and traits.are_of_tensorflow(scripts) else {}
    # The recipe's own wording of a question takes the place of the catalogue's.
    catalogued = _catalogued_prompts(version, system, shown.get(traits.SCRIPT))
    known = [prompt for prompt in catalogued if prompt.variable not in replaced]
    return Dialect(version, system, (*added, *known), shown)


def _catalogued_prompts(version: ExactRelease, system: str, script: str | None) -> list[Prompt]:
    """Return the catalogue's prompts of a version, corrected by what its script shows.

    A release candidate may lack a feature that the release has; a commit of a development branch
    may ask for one of the next release, which the recipe then need not answer to be checked.
    """
    prompts = catalogue.prompts(version, system)
    if script is None:
        return [*prompts]
    asked = {name for pair in _ASKED.findall(script) for name in pair}
    named = set(_WORD.findall(script))
    found, variables = list[Prompt](), set[str]()
    for prompt in prompts:
        # Without the features for which its script does not ask.
        if prompt.feature and prompt.variable not in asked:
            continue
        # A recipe need not answer what this script never names.
        unnamed = prompt.asked and prompt.variable not in named
        found.append(prompt.changed(optional=True) if unnamed else prompt)
        variables.add(prompt.variable)
    # With the prompts of other versions that the script has as well.
    for prompt in catalogue.all_prompts():
        fits = prompt.system in {"any", system} and prompt not in prompts
        if fits and prompt.asked and prompt.variable in asked:
            changes: dict[str, object] = {"optional": True}
            # Another wording of a question that the version has decides nothing more.
            if prompt.variable in variables:
                changes["feature"] = ""
            found.append(prompt.changed(**changes))
    return found


_WORD = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
"""How configure.py names a variable."""
_ASKED = re.compile(
    r"(?:set_build_var|set_action_env_var|get_var|get_from_env_or_user_or_default)"
    r"\(\s*environ_cp,\s*'(\w+)'|var_name='(\w+)'"
)
"""How configure.py asks a question, whose variable it spells as plain text."""


def of_recipe(system: str, own: Sequence[PromptTable]) -> Dialect:
    """Return what a repository with an interface of its own asks."""
    prompts = tuple(from_recipe(table) for table in own)
    return Dialect(ExactRelease(0, 0), system, prompts, own=True)
