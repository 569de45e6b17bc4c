package worker

import "strings"

// Names are checked by hand: regular expressions with counted repetition took 5 ms of every process's start.

// folderName says whether s is a folder name, [a-z0-9][a-z0-9-]{0,62}.
func folderName(s string) bool {
	return plainName(s, 63, "-") && s == strings.ToLower(s)
}

// codeName says whether s is a file name of an engine's cache, [A-Za-z0-9][A-Za-z0-9._-]{0,254}.
func codeName(s string) bool { return plainName(s, 255, "._-") }

func plainName(s string, limit int, others string) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.Contains(others, string(rune(c)))) {
			return false
		}
	}
	return true
}
