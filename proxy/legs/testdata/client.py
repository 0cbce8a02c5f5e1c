# Writes and reads through REDIS_URL with redis-py, alone, in a pipeline and in
# a subscription.
import os, redis

r = redis.Redis.from_url(os.environ["REDIS_URL"])
value = os.urandom(1 << 20)
assert r.set("python", value, nx=True, px=60000), "not granted"
assert r.get("python") == value
p = r.pipeline(transaction=True)
for n in range(100):
    p.incr("python:n")
assert p.execute() == list(range(1, 101))
s = r.pubsub()
s.subscribe("python:c")
assert s.get_message(timeout=30)["type"] == "subscribe"
r.publish("python:c", "hello")
assert s.get_message(timeout=30)["data"] == b"hello"
s.close()
assert r.delete("python", "python:n") == 2
r.close()
print("ok")
