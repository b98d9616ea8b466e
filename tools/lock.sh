#!/bin/sh
# Resolve the ranges of pyproject.toml on the oldest Python into requirements-dev.lock.
set -eu
python=${PYTHON:-python3.11}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo 'lock: needs Python 3.11, the oldest one supported (PYTHON=/path/to/python3.11)' >&2
    exit 1
}
"$python" -m venv "$work/venv"
pip="$work/venv/bin/python -m pip --disable-pip-version-check --no-input -q"
$pip install 'pip>=25.1'
# Not `all`: models with their weights inside are too large for every set-up.
$pip install --group dev --editable '.[cli]'
{
    echo '# Written by `make lock` from the ranges in pyproject.toml; what make and CI install.'
    $pip freeze --exclude-editable
} > "$work/lock"
cp "$work/lock" requirements-dev.lock
