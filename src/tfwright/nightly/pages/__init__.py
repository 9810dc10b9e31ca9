"""The pages of a build host: static HTML that needs no server, no JavaScript and no network."""

from tfwright.nightly.pages.site_pages import write_pages

__all__ = ["write_pages"]
