"""The small recipe of tests/bundle, all of whose inputs are on this host."""

from tests.bundle.conftest import brought, document, small_job, tree

__all__ = ["brought", "document", "small_job", "tree"]
