#!/bin/sh
# Make or mend .venv with the pinned packages of requirements-dev.lock. Called by make.
# PYTHON=python3.12 make … chooses an interpreter; otherwise the first that is new enough.
set -eu
venv=${1:-.venv}

fail() {
    printf 'zero-mem set-up: %s\n' "$@" >&2
    exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>&1) || found="no ${PYTHON:-python3} that runs"
    fail "Python 3.11 or newer is needed; found: $found" \
        "On Debian 12, Ubuntu 24.04 or newer: apt-get install python3 python3-venv" \
        "Elsewhere: make PYTHON=/path/to/python3.11 …"
}

if ! new_enough "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    "$python" -c 'import venv, ensurepip' 2>/dev/null || fail \
        "$python cannot make a virtual environment: ensurepip is missing." \
        "On Debian or Ubuntu: apt-get install python3-venv"
    echo "zero-mem set-up: $("$python" --version) in $venv (downloads packages once)"
    "$python" -m venv --clear "$venv"
fi

pip="$venv/bin/python -m pip --disable-pip-version-check --no-input -q"
$pip install -r requirements-dev.lock
$pip install --no-deps --no-build-isolation --editable .
