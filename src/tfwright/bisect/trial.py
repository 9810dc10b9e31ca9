"""One trial of a bisection: a build that ends with the stage that failed."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tfwright.bisect.halving import TrialAnswer
from tfwright.documents import host_file
from tfwright.documents.host_file import HostFile
from tfwright.documents.stages import NAMES
from tfwright.errors import HostError, TfwrightError
from tfwright.nightly import targets
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.inputs import KeptInputs
from tfwright.pipeline import engine
from tfwright.pipeline.job import BuildRequest
from tfwright.pipeline.results import Published
from tfwright.progress import SILENCE, Listener
from tfwright.smoke import smoking
from tfwright.tools import files
from tfwright.wheel.inspect import inspection

FOLDER = "bisect"
"""Below build_out: trials share the vault and the caches, and leave the recipe's own tree alone."""
LAST = NAMES[-1]


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
        failed = [line for line in build.smoke if line.status == "failed"]
        names = tuple(line.program for line in failed)
        return cls("smoke", names, failed[0].detail if failed else "")

    @property
    def until(self) -> str:
        """The last stage of the pipeline that a trial runs."""
        return self.stage if self.stage in NAMES else LAST


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
        self._host_file = _host_file()
        self._target = target
        self._symptom = symptom
        self._listener = listener
        self._known = _read(self._journal)
        self.ran = 0
        """Trials that were built."""
        self.remembered = 0
        """Trials whose result an earlier run left."""

    @property
    def place(self) -> Path:
        """The directory of this target's trials."""
        return self._host_file.build_out / self._target

    @property
    def _journal(self) -> Path:
        return self._host_file.build_out / f"{self._target}.trials.json"

    def __call__(self, inputs: KeptInputs) -> TrialResult:
        """Return what a trial of these inputs gives, from an earlier run if there was one.

        Raises HostError if this host cannot build the recipe at all.
        """
        request = self._request(inputs)
        key = self._key(request)
        if key in self._known:
            self.remembered += 1
            return self._known[key]
        result = _tried(request, self._symptom)
        self.ran += 1
        self._known[key] = result
        self._write()
        return result

    def _request(self, inputs: KeptInputs) -> BuildRequest:
        """Return the request to build from some inputs, up to the stage that failed."""
        return BuildRequest(
            recipe=inputs.recipe,
            host_file=self._host_file.of(inputs.recipe),
            listener=self._listener,
            until=self._symptom.until,
            locked=inputs.locked,
        )

    def _key(self, request: BuildRequest) -> str:
        """Return what a result holds for: the inputs, this host's toolchain, and the symptom."""
        decides = [targets.fingerprint(request), asdict(self._symptom)]
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def _write(self) -> None:
        files.write(self._journal, _JOURNAL.dump_json(self._known, indent=1))

    def clear(self) -> None:
        """Remove the tree of the trials; what they gave stays."""
        # A tree of TensorFlow with Bazel's output takes tens of gigabytes.
        files.remove(self.place)


def _read(journal: Path) -> dict[str, TrialResult]:
    """Return the results of earlier runs; none if their file cannot be read."""
    try:
        return _JOURNAL.validate_json(files.content(journal))
    except (OSError, ValidationError):
        return {}


def _host_file() -> HostFile:
    """Return the host file of trials: other trees, the same vault, clones and cache."""
    host = host_file.read()
    place = host.build_out / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    # Stages look for both below build_out; the links let trials share downloads and clones.
    for name in ("vault", "git"):
        _share(host.build_out / name, place / name)
    cache = host.cache.changed(directory=host.cache_directory)
    return host.changed(build_out=place, cache=cache)


def _share(shared: Path, link: Path) -> None:
    """Make a link to a directory, which need not exist yet."""
    shared.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(shared, target_is_directory=True)


def _tried(request: BuildRequest, symptom: Symptom) -> TrialResult:
    """Build up to the stage that failed, then look for the symptom."""
    try:
        made = engine.build(request)
    except HostError:
        # Not an answer about the recipe: the disk is full, or a program is missing.
        raise
    except TfwrightError as fault:
        # A failure in another stage is another fault, and says nothing about this one.
        same = fault.stage == symptom.stage
        return TrialResult("bad" if same else "skip", fault.stage or "", _line(fault))
    if isinstance(made, Published) and symptom.stage not in NAMES:
        return _looked_at(request, made.wheel.path, symptom)
    return TrialResult("good")


def _looked_at(request: BuildRequest, wheel: Path, symptom: Symptom) -> TrialResult:
    """Do to a trial's wheel what a night does after the pipeline."""
    try:
        inspection.insist(inspection.inspect(wheel))
    except TfwrightError as fault:
        answer: TrialAnswer = "bad" if symptom.stage == "inspect" else "skip"
        return TrialResult(answer, "inspect", _line(fault))
    if symptom.stage != "smoke":
        return TrialResult("good")
    try:
        stores = request.places.stores if request.offline else ()
        wanted = smoking.Request.of(request.recipe, request.host_file, wheel, stores)
        report = smoking.smoke(wanted, lambda _: None)
    except HostError:
        raise
    except TfwrightError as fault:
        # The wheel cannot be installed; a night calls this program "install".
        answer = "bad" if "install" in symptom.programs else "skip"
        return TrialResult(answer, "smoke", _line(fault))
    for outcome in report.failures:
        if outcome.program in symptom.programs:
            return TrialResult("bad", "smoke", f"{outcome.program}: {outcome.reason}")
    return TrialResult("good")


def _line(fault: TfwrightError) -> str:
    """Return the line that says what broke: the log's, where the stage has one."""
    log = fault.evidence.log
    if log and log.is_file():
        from tfwright.diagnosis import reader

        found = reader.diagnose(str(log))
        if found.first:
            return found.first.what
    return fault.what
