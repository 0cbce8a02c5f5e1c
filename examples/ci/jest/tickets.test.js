// The tickets service, paused at the worst moment, as tests of Jest.
//
// Needs lockfaultd in PATH, REDIS_URL and DATABASE_URL. Run it with: npx jest
const { spawnSync } = require('child_process');
const { mkdtempSync } = require('fs');
const { tmpdir } = require('os');
const { join } = require('path');
const { Client } = require('pg');

// Runs three processes of the service, one of them paused, and returns what it came to.
function underLockfaultd(env, ...flags) {
  const run = spawnSync(
    'lockfaultd',
    ['run', '--out', mkdtempSync(join(tmpdir(), 'lf-')), '--timeout', '1m',
      '--lock', 'lock:tickets=tickets.fence',
      '--counter', 'SELECT sold FROM tickets WHERE id = 1',
      '--freeze-before', 'write(tickets)#5=until:lease-expired+next-write', ...flags,
      '--', 'sh', '-c', 'for i in 1 2 3; do node service.js & done; wait'],
    { cwd: __dirname, env: { ...process.env, ...env }, encoding: 'utf8' });
  if (run.error) throw run.error;
  return { exit: run.status, said: run.stdout + run.stderr };
}

beforeAll(async () => {
  const pg = new Client({ connectionString: process.env.DATABASE_URL });
  await pg.connect();
  await pg.query('CREATE TABLE IF NOT EXISTS tickets (id int PRIMARY KEY, sold bigint NOT NULL, fence bigint NOT NULL)');
  await pg.query('INSERT INTO tickets VALUES (1, 0, 0) ON CONFLICT DO NOTHING');
  await pg.end();
});

// With what it said beside the status, Jest shows the summary of a test that fails.
test('a paused holder loses nothing', () => {
  expect(underLockfaultd({ FENCE: 'claim' })).toEqual({ exit: 0, said: expect.any(String) });
}, 60000);

// Without its fence the service loses an update. A test that cannot fail shows nothing.
test('the pause would be noticed', () => {
  expect(underLockfaultd({ FENCE: 'none' }, '--expect', 'lost-update')).toEqual({ exit: 0, said: expect.any(String) });
}, 60000);
