package text

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var columnOpts = cmd.Opts{
	{Short: 't', Long: "table"}, {Short: 'N', Long: "table-columns", Arg: cmd.Value}, {Short: 'n', Long: "table-name", Arg: cmd.Value},
	{Short: 'O', Long: "table-order", Arg: cmd.Value}, {Short: 'R', Long: "table-right", Arg: cmd.Value},
	{Short: 'H', Long: "table-hide", Arg: cmd.Value}, {Short: 'd', Long: "table-noheadings"},
	{Short: 'L', Long: "keep-empty-lines"}, {Short: 'l', Long: "table-columns-limit", Arg: cmd.Value},
	{Short: 'E', Long: "table-noextreme", Arg: cmd.Value}, {Short: 'e', Long: "table-header-repeat"},
	{Short: 'J', Long: "json"}, {Short: 'W', Long: "table-wrap", Arg: cmd.Value}, {Short: 'T', Long: "table-truncate", Arg: cmd.Value},
	{Short: 'c', Long: "output-width", Arg: cmd.Value}, {Short: 'o', Long: "output-separator", Arg: cmd.Value},
	{Short: 's', Long: "separator", Arg: cmd.Value}, {Short: 'x', Long: "fillrows"},
}

// columnTable is what column -t is asked for.
type columnTable struct {
	names    []string
	right    string
	hide     string
	order    string
	out      string
	limit    int
	headings bool
	json     bool
	name     string
}

func column(t *call) int {
	given, names, code := t.parse(columnOpts, "[options] [<file>...]", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		table, keep, fillRows bool
		sep                   string
		hasSep                bool
		width                 = 80
		tab                   = columnTable{out: "  ", headings: true, name: "table"}
	)
	if n, err := strconv.Atoi(t.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	} else if f, ok := t.Stdout.(strict); ok {
		if f, ok := f.w.(*os.File); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				width = w
			}
		}
	}
	for _, g := range given {
		switch g.Key {
		case "t":
			table = true
		case "N":
			tab.names = strings.Split(g.Value, ",")
		case "n":
			tab.name = g.Value
		case "O":
			tab.order = g.Value
		case "R":
			tab.right = g.Value
		case "H":
			tab.hide = g.Value
		case "d":
			tab.headings = false
		case "L":
			keep = true
		case "l":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n <= 0 {
				return t.fail(1, "columns limit must be greater than zero")
			}
			tab.limit = n
		case "J":
			tab.json = true
		case "E", "W", "T", "e":
			// They matter only where a table is wider than a terminal, and these tables are never made narrower.
		case "c":
			if g.Value == "unlimited" {
				width = 1 << 30
				break
			}
			n, err := strconv.Atoi(g.Value)
			if err != nil || n <= 0 {
				return t.fail(1, "invalid columns argument: '%s'", g.Value)
			}
			width = n
		case "o":
			tab.out = g.Value
		case "s":
			sep, hasSep = g.Value, true
		case "x":
			fillRows = true
		}
	}
	if tab.json {
		table = true
		if tab.names == nil {
			return t.fail(1, "option --table-columns required for --json")
		}
	}
	if !table && (tab.names != nil || tab.order != "" || tab.right != "" || tab.hide != "") {
		return t.fail(1, "option --table required for all --table-*")
	}
	var rows []string
	failed := t.each(names, func(_ string, r *source) error {
		l := newLines(r, '\n')
		for {
			line, err := l.next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if keep || strings.TrimSpace(string(line)) != "" {
				rows = append(rows, string(line))
			}
		}
	})
	if len(rows) == 0 && !tab.json {
		return failed
	}
	switch {
	case !table:
		columnFill(t, rows, width, fillRows)
	default:
		split := func(line string) []string {
			if !hasSep {
				return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
			}
			if sep == "" {
				return []string{line}
			}
			return splitAny(line, sep)
		}
		var cells [][]string
		for _, r := range rows {
			f := split(r)
			if tab.limit > 0 && len(f) >= tab.limit {
				f = limitFields(r, f, tab.limit, sep, hasSep)
			}
			cells = append(cells, f)
		}
		if code := tab.print(t, cells); code > 0 {
			return code
		}
	}
	return failed
}

// splitAny splits at each of the characters of sep: an empty field is a field.
func splitAny(line, sep string) []string {
	var f []string
	for {
		i := strings.IndexAny(line, sep)
		if i < 0 {
			return append(f, line)
		}
		f = append(f, line[:i])
		_, n := utf8.DecodeRuneInString(line[i:])
		line = line[i+n:]
	}
}

// limitFields keeps what is behind the last column that may be in that column.
func limitFields(line string, f []string, limit int, sep string, hasSep bool) []string {
	rest := line
	if !hasSep {
		sep = " \t"
	}
	for range limit - 1 {
		if !hasSep {
			rest = strings.TrimLeft(rest, sep)
		}
		rest = rest[strings.IndexAny(rest, sep)+1:]
	}
	return append(f[:limit-1:limit-1], rest)
}

func (c *columnTable) print(t *call, rows [][]string) int {
	n := len(c.names)
	for _, r := range rows {
		n = max(n, len(r))
	}
	find := func(list string) (map[int]bool, bool) {
		set := map[int]bool{}
		if list == "" {
			return set, true
		}
		for _, name := range strings.Split(list, ",") {
			switch i, err := strconv.Atoi(name); {
			case name == "-" && list != "-":
			case name == "-":
				for k := len(c.names); k < n; k++ {
					set[k] = true
				}
			case slices.Contains(c.names, name):
				set[slices.Index(c.names, name)] = true
			case err == nil && i > 0 && i <= n:
				set[i-1] = true
			case name == "0":
				for k := range n {
					set[k] = true
				}
			default:
				t.Errorf("undefined column name '%s'", name)
				return nil, false
			}
		}
		return set, true
	}
	right, ok1 := find(c.right)
	hidden, ok2 := find(c.hide)
	if !ok1 || !ok2 {
		return 1
	}
	var order []int
	if c.order != "" {
		for _, name := range strings.Split(c.order, ",") {
			i := slices.Index(c.names, name)
			if i < 0 {
				k, err := strconv.Atoi(name)
				if err != nil || k < 1 || k > n {
					return t.fail(1, "undefined column name '%s'", name)
				}
				i = k - 1
			}
			order = append(order, i)
		}
	}
	ordered := map[int]bool{}
	for _, i := range order {
		ordered[i] = true
	}
	for i := range n {
		if !ordered[i] {
			order = append(order, i)
		}
	}
	order = slices.DeleteFunc(order, func(i int) bool { return hidden[i] })
	if c.json {
		for i, r := range rows {
			if len(r) > len(c.names) {
				return t.fail(1, "line %d: for JSON the name of the column %d is required", i+1, len(c.names)+1)
			}
		}
		c.printJSON(t, rows, order)
		return 0
	}
	widths := make([]int, n)
	cell := func(r []string, i int) string {
		if i < len(r) {
			return r[i]
		}
		return ""
	}
	if c.names != nil && c.headings {
		rows = append([][]string{c.names}, rows...)
	}
	for _, r := range rows {
		for i, s := range r {
			widths[i] = max(widths[i], textWidth(visible(s)))
		}
	}
	for _, r := range rows {
		for k, i := range order {
			s := visible(cell(r, i))
			pad := max(widths[i]-textWidth(s), 0)
			last := k == len(order)-1
			if right[i] {
				fmt.Fprintf(t.out, "%*s", pad, "")
				t.out.WriteString(s)
			} else {
				t.out.WriteString(s)
				if !last {
					fmt.Fprintf(t.out, "%*s", pad, "")
				}
			}
			if !last {
				t.out.WriteString(c.out)
			}
		}
		t.out.WriteByte('\n')
	}
	return 0
}

// visible shows control characters, and bytes that are no characters, as \xNN: they would break the table.
func visible(s string) string {
	clean := func(r rune) bool { return r >= ' ' && r != 0x7f && r != utf8.RuneError }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if clean(r) || r == utf8.RuneError && n > 1 {
			b.WriteString(s[:n])
		} else {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		}
		s = s[n:]
	}
	return b.String()
}

func (c *columnTable) printJSON(t *call, rows [][]string, order []int) {
	fmt.Fprintf(t.out, "{\n   %s: [\n", jsonString(c.name))
	for k, r := range rows {
		if k == 0 {
			t.out.WriteString("      {\n")
		} else {
			t.out.WriteString(",{\n")
		}
		for j, i := range order {
			name := ""
			if i < len(c.names) {
				name = strings.ToLower(c.names[i])
			}
			value := "null"
			if i < len(r) && r[i] != "" {
				value = jsonString(r[i])
			}
			fmt.Fprintf(t.out, "         %s: %s", jsonString(name), value)
			if j < len(order)-1 {
				t.out.WriteByte(',')
			}
			t.out.WriteByte('\n')
		}
		t.out.WriteString("      }")
	}
	t.out.WriteString("\n   ]\n}\n")
}

func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// columnFill sets lines in columns of the same width, with tabs between.
func columnFill(t *call, rows []string, width int, across bool) {
	longest := 0
	for i, r := range rows {
		parts := strings.Split(r, "\t") // tabs stay, and count for nothing
		for k := range parts {
			parts[k] = visible(parts[k])
		}
		rows[i] = strings.Join(parts, "\t")
		longest = max(longest, textWidth(rows[i]))
	}
	longest = (longest + 8) / 8 * 8
	if longest >= width {
		for _, r := range rows {
			t.out.WriteString(r + "\n")
		}
		return
	}
	columns := max(width/longest, 1)
	lines := (len(rows) + columns - 1) / columns
	if across {
		at := 0
		for i, r := range rows {
			t.out.WriteString(r)
			at += textWidth(r)
			switch {
			case (i+1)%columns == 0 || i == len(rows)-1:
				t.out.WriteByte('\n')
				at = 0
			default:
				for stop := (i%columns + 1) * longest; at < stop; {
					t.out.WriteByte('\t')
					at = (at/8 + 1) * 8
				}
			}
		}
		return
	}
	for l := range lines {
		at := 0
		for c := 0; ; c++ {
			i := c*lines + l
			t.out.WriteString(rows[i])
			at += textWidth(rows[i])
			if i+lines >= len(rows) {
				break
			}
			for stop := (c + 1) * longest; at < stop; {
				t.out.WriteByte('\t')
				at = (at/8 + 1) * 8
			}
		}
		t.out.WriteByte('\n')
	}
}
