package config

import "regexp"

var (
	// What is before the last @ may be a password, but for an address to listen
	// on and a scheme.
	userinfo = regexp.MustCompile(`(?is)^([\w.\-*:\[\]]*:\d+=)?([a-z][a-z0-9+.\-]*://)?.*@`)
	// Options of a URL, and words of libpq's connection strings.
	password = regexp.MustCompile(`(?i)((?:^|[\s?&])\w*pass\w*\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&]*)`)
)

// WithoutSecrets hides what may be a password in an address, a URL, a proxy
// flag or a connection string.
func WithoutSecrets(text string) string {
	return userinfo.ReplaceAllString(password.ReplaceAllString(text, "$1..."), "$1$2...@")
}

// showAddress is show for what may have a password in it.
func showAddress(s string) string { return show(WithoutSecrets(s)) }
