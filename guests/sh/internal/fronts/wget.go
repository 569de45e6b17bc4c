package fronts

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// The options of wget 1.21 that take a value, a letter before those that have one.
const (
	wgetValued = "e:execute o:output-file a:append-output report-speed i:input-file B:base config rejected-log t:tries retry-on-http-error O:output-document " +
		"start-pos progress T:timeout dns-timeout connect-timeout read-timeout w:wait waitretry Q:quota bind-address limit-rate restrict-file-names " +
		"prefer-family user password use-askpass local-encoding remote-encoding P:directory-prefix cut-dirs http-user http-password default-page header " +
		"compression max-redirect proxy-user proxy-password referer U:user-agent load-cookies save-cookies post-data post-file method body-data body-file " +
		"secure-protocol certificate certificate-type private-key private-key-type ca-certificate ca-directory crl-file pinnedpubkey ciphers hsts-file " +
		"ftp-user ftp-password warc-file warc-header warc-max-size warc-dedup warc-tempdir l:level backups A:accept R:reject accept-regex reject-regex " +
		"regex-type D:domains exclude-domains follow-tags ignore-tags I:include-directories X:exclude-directories n:"
	wgetFlags = "V:version h:help b:background d:debug q:quiet v:verbose no-verbose F:force-html no-config retry-connrefused no-clobber no-netrc c:continue " +
		"show-progress N:timestamping no-if-modified-since no-use-server-timestamps S:server-response spider random-wait no-proxy no-dns-cache ignore-case " +
		"4:inet4-only 6:inet6-only ask-password no-iri unlink xattr no-directories x:force-directories no-host-directories protocol-directories no-cache " +
		"E:adjust-extension ignore-length save-headers no-http-keep-alive no-cookies keep-session-cookies content-disposition content-on-error " +
		"auth-no-challenge https-only no-check-certificate no-hsts no-remove-listing no-glob no-passive-ftp preserve-permissions retr-symlinks ftps-implicit " +
		"ftps-resume-ssl ftps-clear-data-connection ftps-fallback-to-ftp warc-cdx no-warc-compression no-warc-digests no-warc-keep-log r:recursive " +
		"delete-after k:convert-links convert-file-only K:backup-converted m:mirror p:page-requisites strict-comments follow-ftp H:span-hosts L:relative " +
		"trust-server-names no-parent"
)

func wgetOptions() cmd.Opts {
	var opts cmd.Opts
	add := func(names string, arg cmd.Arg) {
		for _, n := range strings.Fields(names) {
			o := cmd.Opt{Long: n, Arg: arg}
			if letter, long, ok := strings.Cut(n, ":"); ok {
				o.Short, o.Long = rune(letter[0]), long
			}
			opts = append(opts, o)
		}
	}
	add(wgetValued, cmd.Value)
	add(wgetFlags, cmd.Flag)
	return opts
}

func wget(ctx context.Context, c *cmd.Call) int {
	given, urls, err := wgetOptions().Parse(c.Args)
	if err != nil {
		c.Errorf("%v", err)
		say(c, "Usage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.")
		return 2
	}
	method, quiet, terse, output, input, spider := "GET", false, false, "", "", false
	for _, g := range given {
		switch g.Key {
		case "V":
			io.WriteString(c.Stdout, "GNU Wget 1.21.3 compatible (exthost): requests are made by the host\n")
			return 0
		case "h":
			io.WriteString(c.Stdout, "Usage: wget [OPTION]... [URL]...\nRequests are made by the host, which denies what is not granted.\n")
			return 0
		case "q":
			quiet = true
		case "no-verbose":
			terse = true
		case "n":
			terse = terse || strings.Contains(g.Value, "v")
		case "O":
			output = g.Value
		case "i":
			input = g.Value
		case "spider":
			spider = true
		case "post-data", "post-file":
			method = "POST"
		case "method":
			method = strings.ToUpper(g.Value)
		}
	}
	if spider && method == "GET" {
		method = "HEAD"
	}
	if input != "" {
		f, err := c.Open(input)
		if err != nil {
			say(c, "%s: %s", input, cmd.Reason(err))
			say(c, "No URLs found in %s.", input)
			return 1
		}
		defer f.Close()
		lines := bufio.NewScanner(io.LimitReader(cmd.Reader(ctx, f), 1<<20))
		for lines.Scan() {
			if u := strings.TrimSpace(lines.Text()); u != "" && !strings.HasPrefix(u, "#") {
				urls = append(urls, u)
			}
		}
	}
	if len(urls) == 0 {
		c.Errorf("missing URL")
		say(c, "Usage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.")
		return 1
	}
	if output != "" && output != "-" {
		// wget makes the file before it connects.
		f, err := c.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			say(c, "%s: %s", output, cmd.Reason(err))
			return 3
		}
		f.Close()
	}
	code := 0
	for _, u := range urls {
		cmd.Check(ctx)
		t := parseURL(u)
		if t.scheme == "" {
			t.scheme = "http"
		}
		switch {
		case t.scheme != "http" && t.scheme != "https":
			say(c, "%s: Unsupported scheme '%s'.", t, t.scheme)
			code = 1
			continue
		case t.host == "":
			say(c, "%s: Invalid host name.", t)
			code = 1
			continue
		}
		t.host = strings.ToLower(t.host)
		why := reason(askHTTP(method, t.String()))
		switch {
		case quiet:
		case terse:
			c.Errorf("unable to connect to host '%s': %s", t.host, why)
		default:
			say(c, "--%s--  %s\nConnecting to %s:%s... failed: %s.", time.Now().UTC().Format("2006-01-02 15:04:05"), t, t.host, t.portOr(), why)
		}
		code = 4
	}
	return code
}
