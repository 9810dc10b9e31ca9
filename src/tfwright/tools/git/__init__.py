"""git: how it is run, what its repositories hold, and the tree that is checked out of them.

GitPython does what it can do within this process: it makes the commits of the bundled trees and
reads git's progress. For nearly everything else it starts git by itself: with the configuration of
the caller and of the repository, without an end when tfwright ends, and its remotes without bounds
for what a server sends. That stays with tools.process.
"""
