"""The business of these services: a row in Postgres is read, something is done that takes
time, and the row is written. What guards it is each service's own affair. The environment says
how much, as in ../go/work.
"""
import json
import os
import sys
import time

DATABASE_URL = os.environ["DATABASE_URL"]
REDIS_URL = os.environ.get("REDIS_URL")
LEASE = int(os.environ.get("LEASE_MS", "5000")) / 1000
RENEW = os.environ.get("RENEW") == "1"
SECTIONS = int(os.environ.get("SECTIONS", "10"))
ATTEMPTS = int(os.environ.get("ATTEMPTS", "0"))
RETRY = int(os.environ.get("RETRY_MS", "5")) / 1000
THINK = int(os.environ.get("THINK_MS", "2")) / 1000

READ = "SELECT value FROM counter WHERE id = 1"


class Lost(Exception):
    """The lock is gone."""


class Counts(dict):
    """What the service believes that happened."""

    def __init__(self):
        names = "granted refused renewed unrenewed released unreleased lost wrote"
        super().__init__({name: 0 for name in names.split()})

    def more(self):
        tried = self["granted"] + self["refused"]
        return self["granted"] < SECTIONS and (ATTEMPTS == 0 or tried < ATTEMPTS)

    def note(self, name, why=None):
        if why is not None:
            print(name + ":", repr(why), file=sys.stderr)
        self[name] += 1

    def finish(self):
        print(json.dumps(self))


def there(file):
    return not file or os.path.exists(file)


def ready():
    """Says that the service could begin."""
    if os.environ.get("READY_FILE"):
        open(os.environ["READY_FILE"], "w").close()


def wait(name):
    """Waits for a file, twenty seconds at most."""
    end = time.monotonic() + 20
    while not there(os.environ.get(name)) and time.monotonic() < end:
        time.sleep(0.01)


def think(counts, renew):
    time.sleep(THINK)
    if RENEW and renew is not None:
        try:
            renew()
        except Exception as e:
            counts.note("unrenewed", e)
            raise Lost() from e
        counts.note("renewed")
    wait("WAIT_FILE")


def count(db, counts, renew=None):
    """One section's work, on a connection of psycopg2."""
    with db.cursor() as c:
        c.execute(READ)
        value = c.fetchone()[0]
        think(counts, renew)
        c.execute("UPDATE counter SET value = %s WHERE id = 1", (value + 1,))
    counts.note("wrote")
