// Package examples holds services that know nothing of lockfaultd, to be put
// under it: python/ and go/. docs/examples.md says how, and what to expect.
//
// python/stock.py and go/ guard a read-modify-write of one row by a lease lock, in
// three forms: without a fence, with one that is compared when writing, and with one
// that is claimed when reading. python/orders.py has many tasks in a process and a
// lock for each row; python/seats.py has threads, and locks of Postgres. They share no code with the project, or with each
// other, as services would not. There is nothing to import here; the tests show
// that without faults they lose nothing.
//
// ci/ has a project each for pytest, go test and Jest whose tests run a service under
// lockfaultd, as docs/ci.md shows. The tests here run them.
package examples
