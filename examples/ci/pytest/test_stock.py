"""The stock service, paused at the worst moment, as tests of pytest.

Needs lockfaultd in PATH, REDIS_URL and DATABASE_URL. Run it with: python3 -m pytest
"""
import os
import pathlib
import subprocess
import sys

import pytest

SERVICE = pathlib.Path(__file__).parents[2] / "python" / "stock.py"


@pytest.fixture(scope="module", autouse=True)
def table():
    """The service's table is there before, as that of a service mostly is."""
    subprocess.run([sys.executable, SERVICE], env={**os.environ, "DURATION_S": "0"}, check=True)


def under_lockfaultd(out, *flags, **env):
    """Runs three processes of the service, one of them paused, and returns what it came to."""
    run = subprocess.run(
        ["lockfaultd", "run", "--out", out, "--timeout", "1m",
         "--lock", "lock:stock:1=stock.fence",
         "--counter", "SELECT reserved FROM stock WHERE id = 1",
         "--freeze-before", "write(stock)#5=until:lease-expired+next-write", *flags,
         "--", "sh", "-c", f'for i in 1 2 3; do "{sys.executable}" "{SERVICE}" & done; wait'],
        env={**os.environ, "LEASE_MS": "300", "DURATION_S": "2", **env},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(run.stdout)  # which pytest shows of a test that fails
    return run.returncode


def test_a_paused_holder_loses_nothing(tmp_path):
    assert under_lockfaultd(tmp_path, FENCE="claim") == 0


def test_the_pause_would_be_noticed(tmp_path):
    """Without its fence the service loses an update. A test that cannot fail shows nothing."""
    assert under_lockfaultd(tmp_path, "--expect", "lost-update", FENCE="none") == 0
