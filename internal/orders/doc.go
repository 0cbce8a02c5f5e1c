// Package orders is the judge's own proof: it draws small histories of which it
// knows how they happened, and says of a history, by trying, what is so in every
// order that it admits.
//
// [Draw] plays a few sections against a model of rows, row locks and transactions,
// and writes down what a proxy would have seen of it, so that at least one order
// explains what it returns. [Judge] goes the other way: it places the effects of a
// history's statements in every order that the intervals, the connections, the row
// locks and the values admit, and looks in each for harm. [Keys] does the same for
// the commands on the key of a lock and the ends of its leases.
//
// It shares the vocabulary of package lock with the judge (probe/check) and no code,
// and knows for certain whose a statement is. It takes time exponential in the
// length of a history and gives up beyond a budget: it is for tests.
package orders
