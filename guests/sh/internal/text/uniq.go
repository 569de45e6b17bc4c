package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var uniqOpts = cmd.Opts{
	{Short: 'c', Long: "count"}, {Short: 'd', Long: "repeated"}, {Short: 'D'}, {Long: "all-repeated", Arg: cmd.Optional},
	{Short: 'f', Long: "skip-fields", Arg: cmd.Value}, {Long: "group", Arg: cmd.Optional}, {Short: 'i', Long: "ignore-case"},
	{Short: 's', Long: "skip-chars", Arg: cmd.Value}, {Short: 'u', Long: "unique"}, {Short: 'z', Long: "zero-terminated"},
	{Short: 'w', Long: "check-chars", Arg: cmd.Value},
}

func uniq(t *call) int {
	args := slices.Clone(t.Args)
	// The old spellings: -N skips fields, +N characters.
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if a := args[i]; len(a) > 1 && strings.Trim(a[1:], "0123456789") == "" {
			if a[0] == '-' {
				args[i] = "-f" + a[1:]
			} else if a[0] == '+' {
				args[i] = "-s" + a[1:]
			}
		}
	}
	given, names, code := t.parse(uniqOpts, "[OPTION]... [INPUT [OUTPUT]]", 1, args)
	if code >= 0 {
		return code
	}
	var (
		count, repeated, unique, all, fold bool
		fields, chars, width               = 0, 0, -1
		delimit, group                     string
		sep                                = byte('\n')
	)
	for _, g := range given {
		number := func(what string) (int, bool) {
			n, err := strconv.ParseUint(g.Value, 10, 64)
			if err != nil && !strings.Contains(err.Error(), "range") {
				t.Errorf("%s: invalid number of %s", g.Value, what)
				return 0, false
			}
			return int(min(n, 1<<40)), true
		}
		ok := true
		switch g.Key {
		case "c":
			count = true
		case "d":
			repeated = true
		case "D", "all-repeated":
			repeated, all, delimit = true, true, "none"
			if g.Has {
				words := []string{"none", "prepend", "separate"}
				if delimit = complete(g.Value, words...); delimit == "" {
					return t.badWord(g.Value, "--all-repeated", words...)
				}
			}
		case "f":
			fields, ok = number("fields to skip")
		case "group":
			group = "separate"
			if g.Has {
				words := []string{"prepend", "append", "separate", "both"}
				if group = complete(g.Value, words...); group == "" {
					return t.badWord(g.Value, "--group", words...)
				}
			}
		case "i":
			fold = true
		case "s":
			chars, ok = number("bytes to skip")
		case "u":
			unique = true
		case "w":
			width, ok = number("bytes to compare")
		case "z":
			sep = 0
		}
		if !ok {
			return 1
		}
	}
	if group != "" && (count || repeated || unique) {
		return t.usage(1, "--group is mutually exclusive with -c/-d/-D/-u")
	}
	if all && count {
		return t.usage(1, "printing all duplicated lines and repeat counts is meaningless")
	}
	if len(names) > 2 {
		return t.usage(1, "extra operand %s", cmd.Quote(names[2]))
	}
	in := "-"
	if len(names) > 0 {
		in = names[0]
	}
	r, err := t.open(in)
	if err != nil {
		return t.Fail(in, err)
	}
	defer r.Close()
	if len(names) > 1 && names[1] != "-" {
		if err := t.into(names[1]); err != nil {
			return t.Fail(names[1], err)
		}
	}
	key := func(line []byte) []byte {
		for n := 0; n < fields && len(line) > 0; n++ {
			for len(line) > 0 && isBlankOrEnd(line[0]) {
				line = line[1:]
			}
			for len(line) > 0 && !isBlankOrEnd(line[0]) {
				line = line[1:]
			}
		}
		line = line[min(chars, len(line)):]
		if width >= 0 {
			line = line[:min(width, len(line))]
		}
		return line
	}
	put := func(line []byte) {
		t.out.Write(line)
		t.out.WriteByte(sep)
	}
	var first, before []byte // of the run; the line before, with -uD
	n := int64(0)            // lines in the run
	groups := 0
	flush := func() {
		if n == 0 || all || group != "" || unique && n > 1 || repeated && n == 1 {
			return
		}
		if count {
			fmt.Fprintf(t.out, "%7d ", n)
		}
		put(first)
	}
	start := func() {
		if groups++; groups > 1 && group != "append" && (group != "" || delimit == "separate") ||
			group == "prepend" || group == "both" || delimit == "prepend" {
			t.out.WriteByte(sep)
		}
	}
	l := newLines(r, sep)
	for {
		line, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t.fail(1, "error reading '%s': %s", in, cmd.Reason(err))
		}
		same := n > 0 && compareBytesEqual(fold, key(first), key(line))
		if !same {
			flush()
			if group == "append" && n > 0 {
				t.out.WriteByte(sep)
			}
			first, n = append(first[:0], line...), 0
		}
		n++
		if all && unique { // all of a run but the last
			if n == 2 {
				start()
			}
			if n > 1 {
				put(before)
			}
			before = append(before[:0], line...)
			continue
		}
		switch {
		case group != "":
			if n == 1 {
				start()
			}
			put(line)
		case all && n == 2:
			start()
			put(first)
			put(line)
		case all && n > 2:
			put(line)
		}
	}
	flush()
	if n > 0 && (group == "append" || group == "both") {
		t.out.WriteByte(sep)
	}
	return 0
}

func compareBytesEqual(fold bool, a, b []byte) bool {
	return len(a) == len(b) && compareBytes(fold, a, b) == 0
}

var commOpts = cmd.Opts{
	{Short: '1'}, {Short: '2'}, {Short: '3'}, {Long: "check-order"}, {Long: "nocheck-order"},
	{Long: "output-delimiter", Arg: cmd.Value}, {Long: "total"}, {Short: 'z', Long: "zero-terminated"},
}

// ordered watches that lines come in order, as comm and join need it.
type ordered struct {
	last    []byte
	any     bool
	line    []byte
	more    bool
	l       *lines
	n       int
	faulted bool
}

// advance goes to the next line. disorder tells that it should have come before the last one.
func (o *ordered) advance(compare func(a, b []byte) int) (disorder bool, err error) {
	if o.more {
		o.last, o.any = append(o.last[:0], o.line...), true
	}
	line, err := o.l.next()
	o.line, o.more = line, err == nil
	o.n++
	if err == io.EOF {
		err = nil
	}
	return o.more && o.any && compare(o.last, line) > 0, err
}

func comm(t *call) int {
	given, names, code := t.parse(commOpts, "[OPTION]... FILE1 FILE2", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		hide  [3]bool
		check = 'd' // d: complain when it mattered, c: always, n: never
		total bool
		delim = "\t"
		sep   = byte('\n')
		set   bool
	)
	for _, g := range given {
		switch g.Key {
		case "1", "2", "3":
			hide[g.Key[0]-'1'] = true
		case "check-order":
			check = 'c'
		case "nocheck-order":
			check = 'n'
		case "output-delimiter":
			if set && delim != g.Value {
				return t.fail(1, "multiple output delimiters specified")
			}
			if delim, set = g.Value, true; delim == "" {
				delim = "\x00"
			}
		case "total":
			total = true
		case "z":
			sep = 0
		}
	}
	switch {
	case len(names) == 0:
		return t.usage(1, "missing operand")
	case len(names) == 1:
		return t.usage(1, "missing operand after %s", cmd.Quote(names[0]))
	case len(names) > 2:
		return t.usage(1, "extra operand %s", cmd.Quote(names[2]))
	}
	var files [2]ordered
	for i, name := range names {
		r, err := t.open(name)
		if err != nil {
			return t.Fail(name, err)
		}
		defer r.Close()
		files[i].l = newLines(r, sep)
	}
	unpaired := false
	var failure int
	advance := func(i int) bool {
		f := &files[i]
		disorder, err := f.advance(bytes.Compare)
		if err != nil {
			failure = t.Fail(names[i], err)
			return false
		}
		if disorder && check != 'n' && (check == 'c' || unpaired) && !f.faulted {
			f.faulted = true
			t.flush()
			t.Errorf("file %d is not in sorted order", i+1)
			if check == 'c' {
				failure = 1
				return false
			}
		}
		return true
	}
	if !advance(0) || !advance(1) {
		return failure
	}
	var counts [3]int64
	column := [3]string{"", delim, delim + delim}
	if hide[0] {
		column[1], column[2] = "", delim
	}
	if hide[1] {
		column[2] = strings.TrimPrefix(column[2], delim)
	}
	put := func(i int, line []byte) {
		counts[i]++
		if !hide[i] {
			t.out.WriteString(column[i])
			t.out.Write(line)
			t.out.WriteByte(sep)
		}
	}
	for files[0].more || files[1].more {
		c := 0
		switch {
		case !files[0].more:
			c = 1
		case !files[1].more:
			c = -1
		default:
			c = bytes.Compare(files[0].line, files[1].line)
		}
		ok := true
		switch {
		case c == 0:
			put(2, files[0].line)
			ok = advance(0) && advance(1)
		case c < 0:
			unpaired = true
			put(0, files[0].line)
			ok = advance(0)
		default:
			unpaired = true
			put(1, files[1].line)
			ok = advance(1)
		}
		if !ok {
			return failure
		}
	}
	if total {
		fmt.Fprintf(t.out, "%d%s%d%s%d%stotal%c", counts[0], delim, counts[1], delim, counts[2], delim, sep)
	}
	if files[0].faulted || files[1].faulted {
		t.flush()
		return t.fail(1, "input is not in sorted order")
	}
	return 0
}

var joinOpts = cmd.Opts{
	{Short: 'a', Arg: cmd.Value}, {Short: 'e', Arg: cmd.Value}, {Short: 'i', Long: "ignore-case"}, {Short: 'j', Arg: cmd.Value},
	{Short: 'o', Arg: cmd.Value}, {Short: 't', Arg: cmd.Value}, {Short: 'v', Arg: cmd.Value}, {Short: '1', Arg: cmd.Value},
	{Short: '2', Arg: cmd.Value}, {Long: "check-order"}, {Long: "nocheck-order"}, {Long: "header"},
	{Short: 'z', Long: "zero-terminated"},
}

// joinField is a field of join -o: of file 1 or 2, or the join field (file 0).
type joinField struct{ file, field int }

type joiner struct {
	key     [2]int // the join fields, from 0
	tab     []byte // nil: blanks
	whole   bool   // -t '': lines are fields
	fold    bool
	empty   string
	format  []joinField
	auto    bool
	counts  [2]int // fields of the first lines, for -o auto
	sep     byte
	between []byte
}

// row is a line in fields.
type row struct {
	line   []byte
	fields [][]byte
}

func (j *joiner) split(line []byte) row {
	r := row{line: line}
	switch {
	case j.whole:
		r.fields = [][]byte{line}
	case j.tab != nil:
		if len(line) > 0 {
			r.fields = bytes.Split(line, j.tab)
		}
	default:
		r.fields = bytes.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' || c == '\n' })
	}
	return r
}

func (r row) field(n int) []byte {
	if n < len(r.fields) {
		return r.fields[n]
	}
	return nil
}

func (j *joiner) compare(a, b row) int {
	return compareBytes(j.fold, a.field(j.key[0]), b.field(j.key[1]))
}

// write prints a pair; one of it may be nil.
func (j *joiner) write(t *call, rows [2]*row) {
	first := true
	put := func(b []byte) {
		if !first {
			t.out.Write(j.between)
		}
		first = false
		if len(b) == 0 {
			t.out.WriteString(j.empty)
		} else {
			t.out.Write(b)
		}
	}
	joinKey := func() []byte {
		for i, r := range rows {
			if r != nil {
				return r.field(j.key[i])
			}
		}
		return nil
	}
	others := func(i int) {
		n := 0
		if rows[i] != nil {
			n = len(rows[i].fields)
		}
		if j.auto {
			n = j.counts[i]
		}
		for f := range n {
			if f == j.key[i] {
				continue
			}
			if rows[i] == nil {
				put(nil)
			} else {
				put(rows[i].field(f))
			}
		}
	}
	if j.format == nil {
		put(joinKey())
		others(0)
		others(1)
	} else {
		for _, f := range j.format {
			switch {
			case f.file == 0:
				put(joinKey())
			case rows[f.file-1] == nil:
				put(nil)
			default:
				put(rows[f.file-1].field(f.field))
			}
		}
	}
	t.out.WriteByte(j.sep)
}

func (j *joiner) parseFormat(t *call, s string) bool {
	if s == "auto" {
		j.auto = true
		return true
	}
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		if f == "0" {
			j.format = append(j.format, joinField{})
			continue
		}
		file, field, ok := strings.Cut(f, ".")
		if file != "1" && file != "2" {
			t.Errorf("invalid file number in field spec: %s", cmd.Quote(f))
			return false
		}
		n, err := strconv.Atoi(field)
		if !ok || err != nil || n < 1 {
			t.Errorf("invalid field number: %s", cmd.Quote(field))
			return false
		}
		j.format = append(j.format, joinField{int(file[0] - '0'), n - 1})
	}
	return true
}

func join(t *call) int {
	j := &joiner{sep: '\n', between: []byte{' '}}
	args := slices.Clone(t.Args)
	// -o takes several words: they are one list, as far as they look like fields.
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		if args[i] != "-o" {
			continue
		}
		for i+2 < len(args) && (args[i+2] == "0" || len(args[i+2]) > 2 && (args[i+2][0] == '1' || args[i+2][0] == '2') && args[i+2][1] == '.') {
			args[i+1] += "," + args[i+2]
			args = slices.Delete(args, i+2, i+3)
		}
	}
	given, names, code := t.parse(joinOpts, "[OPTION]... FILE1 FILE2", 1, args)
	if code >= 0 {
		return code
	}
	var (
		unpaired [2]bool
		paired   = true
		check    = 'd'
		header   bool
	)
	for _, g := range given {
		switch g.Key {
		case "a", "v":
			if g.Value != "1" && g.Value != "2" {
				return t.fail(1, "invalid field number: %s", cmd.Quote(g.Value))
			}
			unpaired[g.Value[0]-'1'] = true
			paired = paired && g.Key == "a"
		case "e":
			j.empty = g.Value
		case "i":
			j.fold = true
		case "j", "1", "2":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 1 {
				return t.fail(1, "invalid field number: %s", cmd.Quote(g.Value))
			}
			if g.Key != "2" {
				j.key[0] = n - 1
			}
			if g.Key != "1" {
				j.key[1] = n - 1
			}
		case "o":
			if !j.parseFormat(t, g.Value) {
				return 1
			}
		case "t":
			switch {
			case g.Value == "":
				j.whole, j.between = true, []byte{'\n'}
			case g.Value == `\0`:
				j.tab = []byte{0}
			case len(g.Value) > 1:
				return t.fail(1, "multi-character tab %s", cmd.Quote(g.Value))
			default:
				j.tab = []byte(g.Value)
			}
			if j.tab != nil {
				j.between = j.tab
			}
		case "check-order":
			check = 'c'
		case "nocheck-order":
			check = 'n'
		case "header":
			header = true
		case "z":
			j.sep = 0
		}
	}
	switch {
	case len(names) == 0:
		return t.usage(1, "missing operand")
	case len(names) == 1:
		return t.usage(1, "missing operand after %s", cmd.Quote(names[0]))
	case len(names) > 2:
		return t.usage(1, "extra operand '%s'", names[2])
	case names[0] == "-" && names[1] == "-":
		return t.fail(1, "both files cannot be standard input")
	}
	var files [2]ordered
	for i, name := range names {
		r, err := t.open(name)
		if err != nil {
			return t.Fail(name, err)
		}
		defer r.Close()
		files[i].l = newLines(r, j.sep)
	}
	var (
		failure   int
		sawSingle bool
	)
	next := func(i int) bool {
		f := &files[i]
		disorder, err := f.advance(func(a, b []byte) int {
			return compareBytes(j.fold, j.split(a).field(j.key[i]), j.split(b).field(j.key[i]))
		})
		if err != nil {
			failure = t.Fail(names[i], err)
			return false
		}
		if disorder && check != 'n' && (check == 'c' || sawSingle) && !f.faulted {
			f.faulted = true
			t.flush()
			t.Errorf("%s:%d: is not sorted: %s", names[i], f.n, f.line)
			if check == 'c' {
				failure = 1
				return false
			}
		}
		return true
	}
	if !next(0) || !next(1) {
		return failure
	}
	if j.auto {
		for i := range files {
			if files[i].more {
				j.counts[i] = len(j.split(files[i].line).fields)
			}
		}
	}
	if header && (files[0].more || files[1].more) {
		var rows [2]*row
		for i := range files {
			if files[i].more {
				r := j.split(files[i].line)
				rows[i] = &r
			}
		}
		j.write(t, rows)
		for i := range files {
			if files[i].more {
				files[i].more = false // headers take no part in the order
				if !next(i) {
					return failure
				}
			}
		}
	}
	for files[0].more && files[1].more {
		a, b := j.split(files[0].line), j.split(files[1].line)
		switch c := j.compare(a, b); {
		case c < 0:
			sawSingle = true
			if unpaired[0] {
				j.write(t, [2]*row{&a, nil})
			}
			if !next(0) {
				return failure
			}
		case c > 0:
			sawSingle = true
			if unpaired[1] {
				j.write(t, [2]*row{nil, &b})
			}
			if !next(1) {
				return failure
			}
		default:
			// All lines of file 2 with this key are held; those of file 1 pass by.
			b = j.split(bytes.Clone(files[1].line))
			group := []row{b}
			for {
				if !next(1) {
					return failure
				}
				if !files[1].more {
					break
				}
				r := j.split(files[1].line)
				if j.compare(a, r) != 0 {
					break
				}
				group = append(group, j.split(bytes.Clone(files[1].line)))
			}
			for {
				a = j.split(files[0].line)
				if j.compare(a, b) != 0 {
					break
				}
				if paired {
					for i := range group {
						j.write(t, [2]*row{&a, &group[i]})
					}
				}
				if !next(0) {
					return failure
				}
				if !files[0].more {
					break
				}
			}
		}
	}
	for i := range files {
		for files[i].more {
			sawSingle = true
			if unpaired[i] {
				r := j.split(files[i].line)
				var rows [2]*row
				rows[i] = &r
				j.write(t, rows)
			} else if check == 'n' || files[i].faulted {
				break
			}
			if !next(i) {
				return failure
			}
		}
	}
	if files[0].faulted || files[1].faulted {
		t.flush()
		return t.fail(1, "input is not in sorted order")
	}
	return 0
}
