"""One run of ./configure: who asks, what is answered, and how the answers go in."""

from dataclasses import dataclass
from typing import Literal

from tfwright.configure.catalogue import Answers, Prompt
from tfwright.configure.dialect import Dialect
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
        return [
            prompt
            for prompt in self.dialect.prompts
            if not (prompt.variable in self.answers or prompt.optional or prompt.environment)
            # A prompt that depends on a yes is not asked after a no.
            and prompt.applies(self.answers)
        ]

    def exports(self) -> dict[str, str]:
        """Return the answers that ./configure is to find in its environment.

        In a dialogue these are the ones that it reads from there only, and those that it looks for
        there before it asks. A repository with an interface of its own gets all of them.
        """
        everything = self.by == "environment"
        prompts = self.dialect.prompts
        # tfwright does not know what an interface of the repository's own reads.
        if self.dialect.own:
            asked = set() if everything else {each.variable for each in prompts if each.asked}
            wanted = set(self.answers) - asked
        else:
            # An answer that the version does not ask for is left out: some would still act.
            wanted = {
                prompt.variable
                for prompt in prompts
                if (everything or prompt.environment or prompt.preset)
                and not prompt.stated
                and not (prompt.presence and self.answers.get(prompt.variable) is False)
            }
        exported = dict[str, str]()
        for variable, answer in self.answers.items():
            if variable in wanted:
                # 1.5 takes any text that is not empty for a yes, here alone.
                here = variable == "TF_SET_ANDROID_WORKSPACE"
                no = "" if here and self.dialect.release == Release(1, 5) else "0"
                exported[variable] = as_text(answer, "1", no)
        return exported


def as_text(value: bool | str, yes: str, no: str) -> str:  # noqa: FBT001 an answer, not a switch
    """Spell an answer."""
    # The dialogue types y or n; the environment takes 1 or 0.
    if isinstance(value, str):
        return value
    return yes if value else no
