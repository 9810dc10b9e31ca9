"""One trial of a bisection: a build that ends with the stage that failed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from tfwright.build import reproduce
from tfwright.documents import host_file
from tfwright.errors import HostError, TfwrightError
from tfwright.nightly import targets
from tfwright.nightly.builder import breakage, smoke_wheel
from tfwright.nightly.builds import KeptInputs, NightlyBuild
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Verdict
from tfwright.progress import SILENCE, STAGES, Listener
from tfwright.tools import files, json_text
from tfwright.tools.process import file_lock
from tfwright.wheel.inspect import inspection

FOLDER = "bisect"
"""Below build_out: trials share the vault and the caches, and leave the recipe's own tree alone."""
TrialAnswer = Literal["good", "bad", "skip"]
"""What a trial gave; ``skip`` where something else is broken, so that it says nothing."""


@dataclass(frozen=True)
class Symptom:
    """How a build failed, so that a trial can tell whether it fails the same way."""

    stage: str
    """A stage of the pipeline, ``inspect`` or ``smoke``."""
    programs: tuple[str, ...] = ()
    """The smoke programs that failed."""
    line: str = ""
    """The line that said it."""

    @classmethod
    def of(cls, build: NightlyBuild) -> "Symptom":
        """Return how a failed build failed."""
        if build.broken:
            return cls(build.broken.stage, line=build.broken.line)
        failed = build.smoke_failures
        names = tuple(line.program for line in failed)
        return cls("smoke", names, failed[0].detail if failed else "")

    @property
    def until(self) -> str:
        """The last stage of the pipeline that a trial runs."""
        return self.stage if self.stage in STAGES else "verify"


@dataclass(frozen=True)
class TrialResult:
    """What a trial gave."""

    answer: TrialAnswer
    stage: str = ""
    """The stage that failed."""
    line: str = ""
    """What it said."""


_JOURNAL = TypeAdapter(dict[str, TrialResult])


class Trials:
    """Tries steps, and remembers what each gave, so that a killed bisection goes on."""

    def __init__(self, target: str, symptom: Symptom, listener: Listener = SILENCE) -> None:
        """Work for one target; its earlier trials are read from the disk."""
        self._host_file = reproduce.relocate(host_file.read(), FOLDER)
        self._symptom = symptom
        self._listener = listener
        self._target = target
        self._journal = self._host_file.build_out / f"{target}.trials.json"
        self._known: dict[str, TrialResult] = {}
        # Without a file that can be read, every trial runs.
        with suppress(OSError, ValidationError):
            self._known = _JOURNAL.validate_json(files.content(self._journal))
        self.ran = 0
        """Trials that were built."""
        self.remembered = 0
        """Trials whose result an earlier run left."""

    @contextmanager
    def directory(self) -> Iterator[None]:
        """Keep the directory of the trials for this process, and remove it at the end.

        What the trials gave stays; a tree of TensorFlow with Bazel's output takes tens of
        gigabytes. Raises LockHeldError if another process has it.
        """
        own = self._host_file.build_out / self._target
        with file_lock.locked(own.with_name(f"{own.name}.lock"), f"trials of {self._target}"):
            try:
                yield
            finally:
                files.remove(own)

    def __call__(self, inputs: KeptInputs, *, was_good: bool = False) -> TrialResult:
        """Return what a trial of these inputs gives, from an earlier run if there was one.

        Of inputs that were good once a failure is not kept: a person mends the host, and asks
        again. Raises HostError if this host cannot build the recipe at all.
        """
        request = RecipeJob(
            recipe=inputs.recipe,
            host_file=self._host_file.of(inputs.recipe),
            listener=self._listener,
            until=self._symptom.until,
            locked=inputs.locked,
        )
        # A result holds for the inputs, this host's toolchain, and the symptom.
        decides = [targets.fingerprint(request), asdict(self._symptom)]
        key = json_text.digest(decides)
        if key in self._known:
            self.remembered += 1
            return self._known[key]
        result = _run_trial(request, self._symptom)
        self.ran += 1
        if result.answer == "good" or not was_good:
            self._known[key] = result
            files.write(self._journal, _JOURNAL.dump_json(self._known, indent=1))
        return result


def _run_trial(request: RecipeJob, symptom: Symptom) -> TrialResult:
    """Build up to the stage that failed, or try the wheel as a night does."""
    stage = ""
    try:
        made = engine.build(request)
        if symptom.stage in STAGES:
            return TrialResult("good")
        wheel, stage = made.of(Verdict).wheel.path, "inspect"
        inspection.check_sound(inspection.inspect(wheel))
        if symptom.stage != "smoke":
            return TrialResult("good")
        stage = "smoke"
        report = smoke_wheel(request, wheel)
    except HostError:
        # Not an answer about the recipe: the disk is full, or a program is missing.
        raise
    except TfwrightError as fault:
        stage = fault.stage or stage
        # A failure in another stage is another fault, and says nothing about this one. A wheel that
        # cannot be installed fails in smoke; a night calls this program "install".
        same = "install" in symptom.programs if stage == "smoke" else stage == symptom.stage
        return TrialResult("bad" if same else "skip", stage, breakage(fault).line)
    for outcome in report.failures:
        if outcome.program in symptom.programs:
            return TrialResult("bad", "smoke", f"{outcome.program}: {outcome.reason}")
    return TrialResult("good")
