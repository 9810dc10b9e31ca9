"""What one tree's ./configure asks and writes, on one system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tfwright.configure import catalogue, traits
from tfwright.configure.prompt import Prompt, from_recipe
from tfwright.configure.traits import Scripts
from tfwright.documents.recipe import PromptTable
from tfwright.documents.release import ExactRelease, Release


@dataclass(frozen=True)
class Dialect:
    """The questions of a ./configure, and the traits of the file that it writes."""

    version: ExactRelease
    system: str
    """As ``uname -s`` names it."""
    prompts: tuple[Prompt, ...]
    traits: Mapping[str, bool] = field(default_factory=dict)
    own: bool = False
    """Whether only the recipe knows this interface, and no release of TensorFlow has it."""

    @property
    def release(self) -> Release:
        """The release line, by which most rules go."""
        return self.version.line

    def __str__(self) -> str:
        return "this repository" if self.own else f"TensorFlow {_short(self.version)}"


def _short(version: ExactRelease) -> str:
    """Leave out the patch level of the first version of a line."""
    return str(version) if version.patch or version.fork else str(version.line)


def of_tensorflow(
    version: ExactRelease,
    system: str,
    own: Sequence[PromptTable] = (),
    scripts: Scripts | None = None,
) -> Dialect:
    """Return what a version of TensorFlow speaks, with the recipe's own prompts in front.

    `scripts` are the tree's files that show what they write (see `traits.files`), once it is there.
    """
    added = tuple(from_recipe(table) for table in own)
    replaced = {prompt.variable for prompt in added}
    shown = scripts or {}
    # The recipe's own wording of a question takes the place of the catalogue's.
    known = [
        prompt
        for prompt in catalogue.prompts(version, system)
        if prompt.variable not in replaced and _is_in(prompt, shown)
    ]
    return Dialect(version, system, (*added, *known), traits.of(version, shown))


def _is_in(prompt: Prompt, scripts: Scripts) -> bool:
    """Say whether a script has a question, which a release candidate may lack; yes without one."""
    script = scripts.get(traits.SCRIPT)
    return script is None or not prompt.feature or prompt.variable in script


def of_recipe(system: str, own: Sequence[PromptTable]) -> Dialect:
    """Return what a repository speaks whose interface is none of TensorFlow's."""
    prompts = tuple(from_recipe(table) for table in own)
    return Dialect(ExactRelease(0, 0), system, prompts, own=True)
