// Package arch holds the project's walls: its tests fail when a package imports
// what the table of arch.go does not allow it, when a package is not in the
// table, when one has no package comment, or two, and when there is an init
// function or an eBPF library anywhere. It has no code for the product.
package arch
