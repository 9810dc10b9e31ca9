"""A small recipe all of whose inputs are on this host, as bundles need it too."""

from tests.bundle.conftest import brought, document, small_job, tree

__all__ = ["brought", "document", "small_job", "tree"]
