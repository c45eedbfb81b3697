"""Runs pytest on the files it is given: the entry point of Bazel's test targets."""

import sys

import pytest

if __name__ == "__main__":
    # Bazel's sandbox is read-only, so there is no place for pytest's cache.
    sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]]))
