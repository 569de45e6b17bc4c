package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// console is the controlling terminal. Questions go there and answers come from there, never from stdin: a pipe into
// exthost is no person.
type console struct {
	in, out *os.File
	lines   *bufio.Reader
}

// Close releases the terminal.
func (c *console) Close() error {
	if c.in == c.out {
		return c.in.Close()
	}
	return errors.Join(c.in.Close(), c.out.Close())
}

// ask puts a question and returns the answer in lower case without white space around it. The end of input is an error.
func (c *console) ask(question string) (string, error) {
	if _, err := io.WriteString(c.out, question); err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	if c.lines == nil {
		c.lines = bufio.NewReaderSize(c.in, 1024)
	}
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	return strings.ToLower(strings.TrimSpace(line)), nil
}

// say prints for the person. The text must be printable.
func (c *console) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(c.out, format, args...); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// needTTY opens the controlling terminal or fails with a code.
func needTTY(code int, what, hint string) (*console, error) {
	c, err := openTTY()
	if err != nil {
		return nil, fail(code, hint, "%s needs a terminal, and there is none", what)
	}
	return c, nil
}
