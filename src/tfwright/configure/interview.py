"""One run of ./configure: who asks, what is answered, and how the answers go in."""

from dataclasses import dataclass
from typing import Literal

from tfwright.configure.dialect import Dialect
from tfwright.configure.prompt import Answers, Prompt
from tfwright.documents.release import Release

By = Literal["dialogue", "environment"]
"""How the answers go in; the file that ./configure writes differs a little with it."""


@dataclass(frozen=True)
class Interview:
    """All that decides what ./configure asks and writes."""

    dialect: Dialect
    answers: Answers
    by: By = "dialogue"
    python: str = "3"
    """Version of the target Python; some lines of the file name its first digit."""

    def unanswered(self) -> list[Prompt]:
        """Return the prompts that must be expected and that have no answer."""
        return [prompt for prompt in self.dialect.prompts if self._lacks(prompt)]

    def _lacks(self, prompt: Prompt) -> bool:
        if prompt.variable in self.answers or prompt.optional or prompt.environment:
            return False
        # A prompt that depends on a yes is not asked after a no.
        return prompt.applies(self.answers)

    def exports(self) -> dict[str, str]:
        """Return the answers that ./configure is to find in its environment.

        In a dialogue these are the ones that it reads from there only, and those that it looks for
        there before it asks. A repository with an interface of its own gets all of them.
        """
        wanted = self._wanted()
        return {
            variable: self._exported(variable) for variable in self.answers if variable in wanted
        }

    def _wanted(self) -> set[str]:
        everything = self.by == "environment"
        # tfwright does not know what an interface of the repository's own reads.
        if self.dialect.own:
            return set(self.answers) if everything else self._unasked()
        # An answer that the version does not ask for is left out: some would still act.
        return {
            prompt.variable
            for prompt in self.dialect.prompts
            if self._is_exported(prompt, everything=everything)
        }

    def _is_exported(self, prompt: Prompt, *, everything: bool) -> bool:
        no = self.answers.get(prompt.variable) is False
        if prompt.stated or (prompt.presence and no):
            return False
        return everything or prompt.environment or prompt.preset

    def _unasked(self) -> set[str]:
        asked = {prompt.variable for prompt in self.dialect.prompts if prompt.asked}
        return set(self.answers) - asked

    def _exported(self, variable: str) -> str:
        # 1.5 takes any text that is not empty for a yes, here alone.
        line = self.dialect.release
        empty_for_no = variable == "TF_SET_ANDROID_WORKSPACE" and line == Release(1, 5)
        return as_text(self.answers[variable], "1", "" if empty_for_no else "0")


def as_text(value: bool | str, yes: str, no: str) -> str:  # noqa: FBT001 an answer, not a switch
    """Spell an answer."""
    # The dialogue types y or n; the environment takes 1 or 0.
    if isinstance(value, str):
        return value
    return yes if value else no
