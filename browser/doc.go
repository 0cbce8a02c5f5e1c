// Package browser has no code but tests: of the pages that lockfaultd and probe
// show, in a browser. It is a module of its own, so that what drives the
// browser is no dependency of the product.
package browser
