"""Programs that stand in for podman and skopeo."""

from tests.remedies import conftest

programs = conftest.programs
no_programs = conftest.no_programs
