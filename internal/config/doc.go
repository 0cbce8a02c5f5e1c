// Package config reads the YAML form of what the flags say: proxies, locks and
// what they protect, rules, and invariants.
//
// [Load] and [Parse] read a whole file, in its order, and stop at the first
// thing that is wrong. A rule is put together as the text of a rule flag and
// compiled by fault.Parse, so that a file and a flag mean the same and are
// refused for the same reasons; where a compiled text is wrong, the error
// points at the field that it came from. Everything is strict: an unknown
// field, a field given twice, an anchor or an alias is an error. An [Error]
// names the file, the line, the column and what was expected, and shows the
// lines. [ParseProxyFlag] and [ParseLockFlag] read the flags that say the same
// as a piece of a file, and [TakeTLS] the options of a URL. Certificates and keys
// are read and checked with the file that names them, and paths in it are
// relative to its folder.
//
// What is returned is the caller's; nothing is kept. The package opens no
// connection and looks up no name. It does not give defaults for what a file
// leaves out (cmd does), and does not arm the rules (fault does).
package config
