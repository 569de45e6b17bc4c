package fronts

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// The options of curl 7.88. Which take a value decides what of the command line is a URL.
const (
	curlValued = "abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config connect-timeout connect-to continue-at cookie " +
		"cookie-jar create-file-mode crlfile curves data data-ascii data-binary data-raw data-urlencode delegation dns-interface dns-ipv4-addr " +
		"dns-ipv6-addr dns-servers doh-url dump-header egd-file engine etag-compare etag-save expect100-timeout form form-string ftp-account " +
		"ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms header hostpubmd5 hostpubsha256 hsts interface " +
		"json keepalive-time key key-type krb libcurl limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs " +
		"max-time netrc-file noproxy oauth2-bearer output output-dir parallel-max pass pinnedpubkey preproxy proto proto-default proto-redir proxy " +
		"proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type proxy-pass " +
		"proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 pubkey quote " +
		"random-file range rate referer request request-target resolve retry retry-delay retry-max-time sasl-authzid service-name socks4 socks4a " +
		"socks5 socks5-gssapi-service socks5-hostname speed-limit speed-time stderr telnet-option tftp-blksize time-cond tls-max tls13-ciphers " +
		"tlsauthtype tlspassword tlsuser trace trace-ascii unix-socket upload-file url url-query user user-agent write-out"
	curlFlags = "anyauth append basic cert-status compressed compressed-ssh create-dirs crlf digest disable disable-eprt disable-epsv " +
		"disallow-username-in-url doh-cert-status doh-insecure fail fail-early fail-with-body false-start form-escape ftp-create-dirs ftp-pasv " +
		"ftp-pret ftp-skip-pasv-ip ftp-ssl ftp-ssl-reqd ftp-ssl-ccc ftp-ssl-control get globoff haproxy-protocol head help http0.9 http1.0 http1.1 http2 " +
		"http2-prior-knowledge http3 http3-only ignore-content-length include insecure ipv4 ipv6 junk-session-cookies list-only location location-trusted " +
		"mail-rcpt-allowfails manual metalink negotiate netrc netrc-optional next alpn buffer clobber keepalive progress-meter npn sessionid ntlm " +
		"ntlm-wb parallel parallel-immediate path-as-is post301 post302 post303 progress-bar proxy-anyauth proxy-basic proxy-digest proxy-insecure " +
		"proxy-negotiate proxy-ntlm proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tlsv1 proxytunnel raw remote-header-name remote-name " +
		"remote-name-all remote-time remove-on-error retry-all-errors retry-connrefused sasl-ir show-error silent socks5-basic socks5-gssapi " +
		"socks5-gssapi-nec ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort sslv2 sslv3 styled-output " +
		"suppress-connect-headers tcp-fastopen tcp-nodelay tftp-no-options tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace-time use-ascii " +
		"verbose version xattr"
	// A letter and its name, one behind the other.
	curlLetters = "0 http1.0 1 tlsv1 2 sslv2 3 sslv3 4 ipv4 6 ipv6 a append A user-agent b cookie B use-ascii c cookie-jar C continue-at d data " +
		"D dump-header e referer E cert f fail F form g globoff G get H header h help i include I head j junk-session-cookies J remote-header-name " +
		"k insecure K config l list-only L location m max-time M manual n netrc N no-buffer o output O remote-name p proxytunnel P ftp-port " +
		"q disable Q quote r range R remote-time s silent S show-error t telnet-option T upload-file u user U proxy-user v verbose V version " +
		"w write-out x proxy X request y speed-time Y speed-limit z time-cond Z parallel : next # progress-bar"
	curlNumbers = " connect-timeout max-time retry retry-delay retry-max-time max-redirs speed-time speed-limit keepalive-time expect100-timeout parallel-max "
)

// curlError ends curl before any request: with a text, and the exit code.
type curlError struct {
	text string
	code int
}

// curlRun is what the options of one curl command line amount to.
type curlRun struct {
	silent, showError bool
	failEarly         bool
	answer            string // help or version
	groups            []*curlGroup
}

// curlGroup is the part of the command line up to --next.
type curlGroup struct {
	urls              []string
	method            string
	head, get, noGlob bool
	post              string // the option that made it one: "-d, --data"
	uploads           []string
	writeOut          string
	read              []string // files that a request would send
	form              bool
}

func curl(ctx context.Context, c *cmd.Call) int {
	run := &curlRun{}
	if err := run.parse(c, c.Args); err != nil {
		if err.text != "" {
			say(c, "curl: %s", err.text)
		}
		if err.code == 2 || err.code == 26 {
			say(c, "curl: try 'curl --help' or 'curl --manual' for more information")
		}
		return err.code
	}
	switch run.answer {
	case "help":
		io.WriteString(c.Stdout, "Usage: curl [options...] <url>\nRequests are made by the host, which denies what is not granted.\n")
		return 0
	case "version":
		io.WriteString(c.Stdout, "curl 7.88.1 (exthost)\nProtocols: http https\nFeatures: none, requests are made by the host\n")
		return 0
	}
	code := 0
	any := false
	number := 0
	for _, g := range run.groups {
		for _, u := range g.urls {
			any = true
			urls, err := curlGlob(u, g.noGlob)
			if err != nil {
				run.report(c, err)
				code = err.code
			}
			for _, one := range urls {
				cmd.Check(ctx)
				code = run.transfer(ctx, c, g, one, number)
				number++
				if code != 0 && run.failEarly {
					return code
				}
			}
		}
	}
	if !any {
		say(c, "curl: no URL specified!")
		say(c, "curl: try 'curl --help' or 'curl --manual' for more information")
		return 2
	}
	return code
}

func (run *curlRun) report(c *cmd.Call, err *curlError) {
	if err.text != "" && (!run.silent || run.showError) {
		say(c, "curl: (%d) %s", err.code, err.text)
	}
}

// transfer is one request: it asks the host, and tells of the refusal.
func (run *curlRun) transfer(ctx context.Context, c *cmd.Call, g *curlGroup, raw string, number int) int {
	method, err := g.verb(raw, number)
	t := target{}
	if err == nil {
		t, err = curlTarget(raw)
	}
	if err == nil {
		err = g.sendable(ctx, c)
	}
	if err == nil {
		why := reason(askHTTP(method, t.String()))
		err = &curlError{fmt.Sprintf("Failed to connect to %s port %s: %s", t.host, t.portOr(), why), 7}
	}
	run.report(c, err)
	if g.writeOut != "" && err.code != 2 {
		curlWriteOut(ctx, c, g.writeOut, map[string]string{
			"errormsg": err.text, "exitcode": strconv.Itoa(err.code), "method": method, "url": raw, "url_effective": raw, "urlnum": strconv.Itoa(number),
		})
	}
	return err.code
}

// verb is the method of a request.
func (g *curlGroup) verb(raw string, number int) (string, *curlError) {
	upload := number < len(g.uploads) && g.uploads[number] != ""
	asked := []string{}
	if g.head {
		asked = append(asked, "HEAD (-I, --head)")
	}
	if g.post != "" && !g.get {
		if g.form {
			asked = append([]string{"multipart formpost (-F, --form)"}, asked...)
		} else {
			asked = append([]string{"POST (-d, --data)"}, asked...)
		}
	}
	if len(asked) > 1 {
		return "", &curlError{"You can only select one HTTP request method! You asked for both " + asked[0] + " and " + asked[1] + ".", 2}
	}
	switch {
	case g.method != "":
		return g.method, nil
	case g.head:
		return "HEAD", nil
	case g.post != "" && !g.get:
		return "POST", nil
	case upload:
		return "PUT", nil
	}
	return "GET", nil
}

// sendable reads what a request would send from files: as curl does before it connects, and so that a pipeline in front of
// it is not cut off.
func (g *curlGroup) sendable(ctx context.Context, c *cmd.Call) *curlError {
	for _, name := range g.read {
		if name == "-" {
			io.Copy(io.Discard, cmd.Reader(ctx, c.Stdin))
			continue
		}
		f, err := c.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			return &curlError{"Failed to open/read local data from file/application", 26}
		}
		f.Close()
	}
	g.read = nil
	return nil
}

// curlTarget checks a URL as curl does before it connects.
func curlTarget(raw string) (target, *curlError) {
	bad := &curlError{"URL using bad/illegal format or missing URL", 3}
	if raw == "" {
		return target{}, bad
	}
	t := parseURL(raw)
	if t.host == "" && t.scheme != "file" {
		return t, bad
	}
	for i := range len(t.host) {
		if t.host[i] <= ' ' || strings.IndexByte("\"<>\\^`{|}%", t.host[i]) >= 0 {
			return t, bad
		}
	}
	if strings.ContainsAny(t.path, " \t\r\n") {
		return t, bad
	}
	if t.scheme == "" {
		t.scheme = "http"
		for _, s := range []string{"ftp", "dict", "ldap", "imap", "smtp", "pop3"} {
			if strings.HasPrefix(strings.ToLower(t.host), s+".") {
				t.scheme = s
			}
		}
	}
	if n, err := strconv.Atoi(t.port); t.port != "" && (err != nil || n < 0 || n > 65535) {
		return t, bad
	}
	if t.scheme != "http" && t.scheme != "https" {
		return t, &curlError{fmt.Sprintf("Protocol \"%s\" not supported or disabled in libcurl", t.scheme), 1}
	}
	t.host = strings.ToLower(t.host)
	return t, nil
}

// parse reads the command line.
func (run *curlRun) parse(c *cmd.Call, args []string) *curlError {
	group := &curlGroup{}
	run.groups = []*curlGroup{group}
	return run.read(c, args, 0)
}

func (run *curlRun) read(c *cmd.Call, args []string, depth int) *curlError {
	operands := false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if operands || len(a) < 2 || a[0] != '-' {
			g := run.groups[len(run.groups)-1]
			g.urls = append(g.urls, a)
			continue
		}
		if a == "--" {
			operands = true
			continue
		}
		if strings.HasPrefix(a, "--") {
			name, valued, err := curlOption(a[2:])
			if err == "" && valued && len(args) == 0 {
				err = "requires parameter"
			}
			if err != "" {
				return &curlError{fmt.Sprintf("option %s: %s", curlShown(a), err), 2}
			}
			value := ""
			if valued {
				value, args = args[0], args[1:]
			}
			if e := run.set(c, a, name, value, depth); e != nil {
				return e
			}
			continue
		}
		for i := 1; i < len(a); i++ {
			letter := a[i : i+1]
			name, ok := curlLetter(letter)
			if !ok {
				return &curlError{fmt.Sprintf("option -%s: is unknown", letter), 2}
			}
			full, valued, _ := curlOption(name)
			value := ""
			if valued {
				if value = a[i+1:]; value == "" {
					if len(args) == 0 {
						return &curlError{fmt.Sprintf("option -%s: requires parameter", letter), 2}
					}
					value, args = args[0], args[1:]
				}
			}
			if e := run.set(c, "-"+letter, full, value, depth); e != nil {
				return e
			}
			if valued {
				break
			}
		}
	}
	return nil
}

// curlShown is an unknown option as it may be shown: without a value that was attached to it.
func curlShown(a string) string {
	name, _, _ := strings.Cut(a, "=")
	if len(name) > 40 {
		name = name[:40]
	}
	return name
}

func curlLetter(letter string) (string, bool) {
	words := strings.Fields(curlLetters)
	for i := 0; i < len(words); i += 2 {
		if words[i] == letter {
			return words[i+1], true
		}
	}
	return "", false
}

// curlOption finds a long option, which may be shortened while it is unambiguous; "no-" before a flag is part of the name
// that it returns.
func curlOption(name string) (full string, valued bool, problem string) {
	if name == "" {
		return "", false, "is unknown"
	}
	var found []string
	look := func(names, prefix string, isValued bool) bool {
		for _, n := range strings.Fields(names) {
			n = prefix + n
			if n == name {
				found, valued = []string{n}, isValued
				return true
			}
			if strings.HasPrefix(n, name) {
				found = append(found, n)
				valued = isValued
			}
		}
		return false
	}
	if look(curlValued, "", true) || look(curlFlags, "", false) || strings.HasPrefix(name, "no-") && look(curlFlags, "no-", false) {
		return found[0], valued, ""
	}
	switch len(found) {
	case 0:
		return "", false, "is unknown"
	case 1:
		return found[0], valued, ""
	}
	return "", false, "is ambiguous"
}

func (run *curlRun) set(c *cmd.Call, shown, name, value string, depth int) *curlError {
	g := run.groups[len(run.groups)-1]
	if strings.Contains(curlNumbers, " "+name+" ") {
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return &curlError{fmt.Sprintf("option %s: expected a proper numerical parameter", shown), 2}
		}
	}
	switch name {
	case "silent", "no-silent":
		run.silent = name == "silent"
	case "show-error", "no-show-error":
		run.showError = name == "show-error"
	case "fail-early":
		run.failEarly = true
	case "help", "manual":
		run.answer = "help"
	case "version":
		run.answer = "version"
	case "next":
		run.groups = append(run.groups, &curlGroup{})
	case "url":
		g.urls = append(g.urls, value)
	case "request":
		g.method = value
	case "head", "no-head":
		g.head = name == "head"
	case "get", "no-get":
		g.get = name == "get"
	case "globoff", "no-globoff":
		g.noGlob = name == "globoff"
	case "write-out":
		g.writeOut = value
	case "data", "data-ascii", "data-binary", "json":
		g.post, g.form = name, false
		if file, ok := strings.CutPrefix(value, "@"); ok {
			g.sends(c, file, true)
		}
	case "data-urlencode":
		g.post, g.form = name, false
		if i := strings.IndexAny(value, "@="); i >= 0 && value[i] == '@' {
			g.sends(c, value[i+1:], true)
		}
	case "data-raw":
		g.post, g.form = name, false
	case "form-string":
		g.post, g.form = name, true
	case "form":
		g.post, g.form = name, true
		if _, content, ok := strings.Cut(value, "="); !ok {
			return &curlError{fmt.Sprintf("option %s: is badly used here", shown), 2}
		} else if content != "" && (content[0] == '@' || content[0] == '<') {
			file, _, _ := strings.Cut(content[1:], ";")
			g.sends(c, file, false)
		}
	case "upload-file":
		g.uploads = append(g.uploads, value)
		if value == "-" || value == "." {
			g.sends(c, "-", false)
		} else if f, err := c.OpenFile(value, os.O_RDONLY, 0); value != "" && err != nil {
			return &curlError{fmt.Sprintf("Can't open '%s'!", value), 26}
		} else if err == nil {
			f.Close()
		}
	case "config":
		return run.config(c, value, depth)
	}
	return nil
}

// sends notes a file that a request would send. Data from a file that is not there is empty, with a warning; that of a
// form is an error later.
func (g *curlGroup) sends(c *cmd.Call, name string, data bool) {
	if data && name != "-" {
		f, err := c.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			say(c, "Warning: Couldn't read data from file \"%s\", this makes an empty POST.", name)
			return
		}
		f.Close()
		return
	}
	g.read = append(g.read, name)
}

// config reads a file of options: one a line, with or without dashes, its value behind a blank, = or :, and quoted if it
// has blanks itself.
func (run *curlRun) config(c *cmd.Call, name string, depth int) *curlError {
	failed := &curlError{"option -K: error encountered when reading a file", 2}
	f, err := c.Open(name)
	if err != nil || depth > 8 {
		say(c, "curl: cannot read config from '%s'", name)
		return failed
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return failed
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.IndexAny(line, " \t=:")
		option, value := line, ""
		if i >= 0 {
			option, value = line[:i], strings.TrimLeft(line[i:], " \t=:")
		}
		if strings.HasPrefix(value, `"`) {
			var b strings.Builder
			for j := 1; j < len(value) && value[j] != '"'; j++ {
				if value[j] == '\\' && j+1 < len(value) {
					j++
					switch value[j] {
					case 'n':
						b.WriteByte('\n')
						continue
					case 't':
						b.WriteByte('\t')
						continue
					case 'r':
						b.WriteByte('\r')
						continue
					case 'v':
						b.WriteByte('\v')
						continue
					}
				}
				b.WriteByte(value[j])
			}
			value = b.String()
		} else {
			value, _, _ = strings.Cut(value, " ")
		}
		if !strings.HasPrefix(option, "-") {
			option = "--" + option
		}
		args := []string{option}
		if long, ok := strings.CutPrefix(option, "--"); ok {
			if _, valued, _ := curlOption(long); valued {
				args = append(args, value)
			}
		} else if value != "" {
			args = append(args, value)
		}
		if e := run.read(c, args, depth+1); e != nil {
			return e
		}
	}
	return nil
}

// curlGlob expands {a,b} and [1-3] in a URL. So many as this are not denied one by one.
const curlMost = 100

func curlGlob(u string, off bool) ([]string, *curlError) {
	if off {
		return []string{u}, nil
	}
	var parts [][]string
	add := func(words []string) { parts = append(parts, words) }
	for i := 0; i < len(u); i++ {
		switch b := u[i]; {
		case b == '\\' && i+1 < len(u) && strings.IndexByte("{}[]", u[i+1]) >= 0:
			i++
			add([]string{u[i : i+1]})
		case b == '{':
			end := strings.IndexByte(u[i:], '}')
			if end < 0 {
				return nil, curlGlobError("unmatched brace", u, i+1)
			}
			if end == 1 {
				return nil, curlGlobError("empty string within braces", u, i+2)
			}
			add(strings.Split(u[i+1:i+end], ","))
			i += end
		case b == '[':
			end := strings.IndexByte(u[i:], ']')
			if end < 0 {
				return nil, curlGlobError("bad range", u, i+2)
			}
			if strings.ContainsAny(u[i+1:i+end], ":") { // an IPv6 address
				add([]string{u[i : i+end+1]})
				i += end
				continue
			}
			words, ok := curlRange(u[i+1 : i+end])
			if !ok {
				return nil, curlGlobError("bad range", u, i+2)
			}
			add(words)
			i += end
		case b == '}' || b == ']':
			return nil, curlGlobError("unmatched close brace/bracket", u, i+1)
		default:
			end := i + 1
			for end < len(u) && strings.IndexByte("\\{}[]", u[end]) < 0 {
				end++
			}
			add([]string{u[i:end]})
			i = end - 1
		}
	}
	// The last part changes first. Nothing is put together twice: a URL may be long and of very many parts.
	var done []string
	at := make([]int, len(parts))
	for len(done) < curlMost {
		var one strings.Builder
		for i, words := range parts {
			one.WriteString(words[at[i]])
		}
		done = append(done, one.String())
		i := len(parts) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(parts[i]) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			break
		}
	}
	return done, nil
}

func curlGlobError(what, u string, position int) *curlError {
	// The URL itself, which curl shows here, may hold a secret.
	return &curlError{fmt.Sprintf("%s in URL position %d", what, position), 3}
}

func curlRange(s string) ([]string, bool) {
	s, stepText, has := strings.Cut(s, ":")
	step := 1
	if has {
		n, err := strconv.Atoi(stepText)
		if err != nil || n < 1 {
			return nil, false
		}
		step = n
	}
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		return nil, false
	}
	var words []string
	if len(from) == 1 && len(to) == 1 && !('0' <= from[0] && from[0] <= '9') {
		for b := int(from[0]); b <= int(to[0]); b += step {
			words = append(words, string(rune(b)))
		}
		return words, len(words) > 0
	}
	a, err := strconv.Atoi(from)
	b, err2 := strconv.Atoi(to)
	if err != nil || err2 != nil || a > b {
		return nil, false
	}
	width := 0
	if len(from) > 1 && from[0] == '0' {
		width = len(from)
	}
	for n := a; n <= b && len(words) < curlMost; n += step {
		words = append(words, fmt.Sprintf("%0*d", width, n))
	}
	return words, true
}

// curlWriteOut writes what -w asks for, as after a connection that failed.
func curlWriteOut(ctx context.Context, c *cmd.Call, format string, known map[string]string) {
	if name, ok := strings.CutPrefix(format, "@"); ok {
		f, err := c.Open(name)
		if err != nil {
			say(c, "curl: cannot read the format from '%s'", name)
			return
		}
		defer f.Close()
		text, _ := io.ReadAll(io.LimitReader(cmd.Reader(ctx, f), 1<<20))
		format = string(text)
	}
	out := c.Stdout
	var b strings.Builder
	flush := func() {
		io.WriteString(out, b.String())
		b.Reset()
	}
	for i := 0; i < len(format); i++ {
		rest := format[i:]
		switch {
		case strings.HasPrefix(rest, "%%"):
			b.WriteByte('%')
			i++
		case strings.HasPrefix(rest, "%{") && strings.Contains(rest, "}"):
			end := strings.IndexByte(rest, '}')
			name := rest[2:end]
			i += end
			switch value, ok := curlVariable(name, known); {
			case ok:
				b.WriteString(value)
			case name == "stderr":
				flush()
				out = c.Stderr
			case name == "stdout":
				flush()
				out = c.Stdout
			case name == "onerror":
			default:
				say(c, "curl: unknown --write-out variable: '%s'", name)
			}
		case rest[0] == '\\' && len(rest) > 1:
			i++
			switch rest[1] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteString(rest[:2])
			}
		default:
			b.WriteByte(rest[0])
		}
	}
	flush()
}

func curlVariable(name string, known map[string]string) (string, bool) {
	if v, ok := known[name]; ok {
		return v, true
	}
	switch name {
	case "http_code", "response_code", "http_connect":
		return "000", true
	case "http_version", "local_port", "num_certs", "num_connects", "num_headers", "num_redirects", "proxy_ssl_verify_result", "remote_port",
		"size_download", "size_header", "size_request", "size_upload", "speed_download", "speed_upload", "ssl_verify_result":
		return "0", true
	case "time_appconnect", "time_connect", "time_namelookup", "time_pretransfer", "time_redirect", "time_starttransfer", "time_total":
		return "0.000000", true
	case "certs", "content_type", "filename_effective", "ftp_entry_path", "local_ip", "redirect_url", "referer", "remote_ip", "scheme":
		return "", true
	case "header_json":
		return "{\n}", true
	case "json":
		return fmt.Sprintf(`{"errormsg":%s,"exitcode":%s,"http_code":0,"method":%s,"num_connects":0,"response_code":0,"size_download":0,`+
			`"time_total":0.000000,"url":%s,"url_effective":%s,"urlnum":%s}`, quoteJSON(known["errormsg"]), known["exitcode"],
			quoteJSON(known["method"]), quoteJSON(known["url"]), quoteJSON(known["url_effective"]), known["urlnum"]), true
	}
	return "", false
}

func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
