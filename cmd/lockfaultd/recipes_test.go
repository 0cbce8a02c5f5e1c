package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The recipes name no flag that run has not: only some of them are run by a test.
func TestFlagsOfTheRecipesExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range newOptions().runFlags() {
		names = append(names, f.Names()...)
	}
	found := 0
	for _, word := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(string(page), -1) {
		if strings.HasPrefix(word, "--health") { // of docker
			continue
		}
		found++
		if !slices.Contains(names, word[2:]) {
			t.Errorf("run has no flag %s", word)
		}
	}
	if found < 20 {
		t.Errorf("%d flags found on the page", found)
	}
}
