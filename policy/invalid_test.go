package policy

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expectations of testdata/policies/invalid")

const wantPrefix = "# want "

// splitWant separates the leading comment lines that name the expected errors from the rest of the file.
func splitWant(data []byte) (want []string, body []byte) {
	body = data
	for bytes.HasPrefix(body, []byte(wantPrefix)) {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		want = append(want, string(line[len(wantPrefix):]))
		body = rest
	}
	return want, body
}

func wanted(err error) []string {
	var errs Errors
	if !errors.As(err, &errs) {
		return nil
	}
	var out []string
	for _, e := range errs {
		s := fmt.Sprintf("line %d: %s: %s", e.Line, e.Code, e.Msg)
		if e.Hint != "" {
			s += " (" + e.Hint + ")"
		}
		out = append(out, s)
	}
	return out
}

// TestInvalidPoliciesReportEveryFaultWithItsLine holds each file of testdata/policies/invalid against the errors that its
// leading comment lists: all of them, in the order of the file, and no others.
func TestInvalidPoliciesReportEveryFaultWithItsLine(t *testing.T) {
	names, err := filepath.Glob(examples + "/invalid/*.yaml")
	if err != nil || len(names) < 30 {
		t.Fatalf("only %d invalid policies: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, body := splitWant(data)
			if *update {
				// Lines count the comment, whose length is the number of errors.
				n := len(wanted(parseOnly("f", body)))
				data = append(bytes.Repeat([]byte("#\n"), n), body...)
				var b bytes.Buffer
				for _, w := range wanted(parseOnly("f", data)) {
					fmt.Fprintf(&b, "%s%s\n", wantPrefix, w)
				}
				b.Write(body)
				if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(want) == 0 {
				t.Fatalf("the file names no expected error")
			}
			p, err := Parse("f", data)
			if p != nil || err == nil {
				t.Fatalf("the policy was accepted")
			}
			if got := wanted(err); !slices.Equal(got, want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
		})
	}
}

func parseOnly(file string, data []byte) error {
	_, err := Parse(file, data)
	return err
}

func TestAFileAboveTheSizeLimitIsRefused(t *testing.T) {
	if _, err := Parse("f", bytes.Repeat([]byte("#"), maxFile+1)); err == nil || !strings.Contains(err.Error(), "256 KiB") {
		t.Errorf("got %v", err)
	}
	if _, err := Parse("f", append([]byte(head), bytes.Repeat([]byte("#"), maxFile-len(head))...)); err != nil {
		t.Errorf("a file of just the limit: %v", err)
	}
}

func TestBinaryInputIsRefusedWithItsLine(t *testing.T) {
	_, err := Parse("f", []byte("version: 1\nextension: \"\xff\"\n"))
	if err == nil || !strings.Contains(err.Error(), "f:2:1: file is not UTF-8") {
		t.Errorf("got %v", err)
	}
	for _, s := range []string{"version: 1\x00\n", "\xfe\xffv", strings.Repeat("[", 20000), strings.Repeat("a: {", 5000)} {
		if p, err := Parse("f", []byte(s)); err == nil || p != nil {
			t.Errorf("%.20q was accepted", s)
		}
	}
}

func TestErrorsAreCapped(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	for i := range 500 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, err := Parse("f", []byte(b.String()))
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != maxErrors+1 || !strings.Contains(errs[maxErrors].Msg, "and 450 more errors") {
		t.Errorf("got %d errors, the last %v", len(errs), errs[len(errs)-1])
	}
	var one Error
	if !errors.As(err, &one) || one.Line != 3 {
		t.Errorf("the first error is not found: %v", one)
	}
}
