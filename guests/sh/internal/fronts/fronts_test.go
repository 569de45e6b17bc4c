package fronts

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/ask"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

// asked records what the host is asked for, and refuses it.
func asked(t testing.TB) *[]string {
	t.Helper()
	var list []string
	oldHTTP, oldProgram := askHTTP, askProgram
	t.Cleanup(func() { askHTTP, askProgram = oldHTTP, oldProgram })
	askHTTP = func(method, url string) error {
		list = append(list, method+" "+url)
		return &ask.Denied{Reason: "no network grant"}
	}
	askProgram = func(name string, args []string) error {
		list = append(list, strings.Join(append([]string{"program", name}, args...), " "))
		return &ask.Denied{Reason: "no program grant"}
	}
	return &list
}

func TestAttemptsAreDeniedWithTheirTarget(t *testing.T) {
	for _, c := range []struct {
		name, line, want string // targets, divided by " | "
		code             int
		stderr           string // part of it; "-": nothing at all
	}{
		{"curl gets", "curl https://api.example.com/v1/x", "GET https://api.example.com/v1/x", 7, "curl: (7) Failed to connect to api.example.com port 443: denied by exthost: no network grant"},
		{"curl -s says nothing", "curl -s http://a.example/", "GET http://a.example/", 7, "-"},
		{"curl -sS says why", "curl -sS http://a.example/", "GET http://a.example/", 7, "curl: (7) "},
		{"curl -fsSL is no other", "curl -fsSL https://a.example/i.sh", "GET https://a.example/i.sh", 7, "curl: (7) "},
		{"the scheme is http unless said", "curl -s a.example", "GET http://a.example/", 7, "-"},
		{"data makes it a POST", "curl -s -d x=1 http://a.example/p", "POST http://a.example/p", 7, "-"},
		{"JSON too", "curl -s --json {} http://a.example/p", "POST http://a.example/p", 7, "-"},
		{"a form too", "curl -s -F a=b http://a.example/p", "POST http://a.example/p", 7, "-"},
		{"-G makes it a GET again", "curl -s -G --data-urlencode q=x http://a.example/p", "GET http://a.example/p", 7, "-"},
		{"-I is HEAD", "curl -sI http://a.example/p", "HEAD http://a.example/p", 7, "-"},
		{"-X wins", "curl -s -X DELETE -d x http://a.example/p", "DELETE http://a.example/p", 7, "-"},
		{"-XPUT attached", "curl -sXPUT http://a.example/p", "PUT http://a.example/p", 7, "-"},
		{"-T is PUT", "curl -s -T - http://a.example/p", "PUT http://a.example/p", 7, "-"},
		{"headers are no target", "curl -s -H Authorization:secret --header X:secret http://a.example/", "GET http://a.example/", 7, "-"},
		{"values of options are no target", "curl -s -o out -D h -m 5 -u me:secret -A b --max-time 3 --connect-timeout 2 -b c --retry 3 http://a.example/", "GET http://a.example/", 7, "-"},
		{"users, queries and fragments are cut", "curl -s https://me:secret@a.example:8443/p?key=secret#secret", "GET https://a.example:8443/p", 7, "-"},
		{"several URLs are several attempts", "curl -s http://a.example/1 --url http://a.example/2", "GET http://a.example/1 | GET http://a.example/2", 7, "-"},
		{"patterns are several too", "curl -s http://a.example/{a,b}[1-2]", "GET http://a.example/a1 | GET http://a.example/a2 | GET http://a.example/b1 | GET http://a.example/b2", 7, "-"},
		{"-g takes them as they are", "curl -sg http://a.example/{a}", "GET http://a.example/{a}", 7, "-"},
		{"--next forgets the options", "curl -s -d x http://a.example/1 --next http://a.example/2", "POST http://a.example/1 | GET http://a.example/2", 7, "-"},
		{"--fail-early ends at the first", "curl -s --fail-early http://a.example/1 http://a.example/2", "GET http://a.example/1", 7, "-"},
		{"long options may be shortened", "curl -s --user-a POST http://a.example/", "GET http://a.example/", 7, "-"},
		{"an unknown option is bad usage", "curl --foo http://a.example/", "", 2, "curl: option --foo: is unknown"},
		{"a value must follow", "curl http://a.example/ -d", "", 2, "curl: option -d: requires parameter"},
		{"a URL must be there", "curl -s", "", 2, "curl: no URL specified!"},
		{"other schemes are unsupported", "curl foo://a.example/", "", 1, `curl: (1) Protocol "foo" not supported`},
		{"an empty host is no URL", "curl http://", "", 3, "curl: (3) URL using bad/illegal format"},
		{"a port out of range is no URL", "curl http://a.example:99999/", "", 3, "curl: (3)"},
		{"two methods are one too many", "curl -d a -I http://a.example/", "", 2, "You can only select one HTTP request method"},
		{"a file to upload must be there", "curl -T nosuch http://a.example/", "", 26, "Can't open 'nosuch'"},
		{"wget gets", "wget https://a.example/f.tgz", "GET https://a.example/f.tgz", 4, "Connecting to a.example:443... failed: denied by exthost: no network grant."},
		{"wget -q says nothing", "wget -qO- http://a.example/?key=secret", "GET http://a.example/", 4, "-"},
		{"wget posts", "wget -q --post-data=x http://a.example/", "POST http://a.example/", 4, "-"},
		{"wget --spider heads", "wget -q --spider http://a.example/", "HEAD http://a.example/", 4, "-"},
		{"wget options take values", "wget -q --header Authorization:secret -t 3 -T 5 -O - a.example/x", "GET http://a.example/x", 4, "-"},
		{"wget needs a URL", "wget -q", "", 1, "wget: missing URL"},
		{"wget refuses unknown options", "wget --foo", "", 2, "wget: unrecognized option '--foo'"},
		{"git clone names the repository", "git clone --depth 1 https://me:secret@github.example/o/r.git dir", "program git clone https://github.example/o/r.git", 128, "fatal: unable to access 'https://github.example/o/r.git': denied by exthost: no program grant"},
		{"git clone by ssh too", "git clone git@github.example:o/r.git", "program git clone ssh://github.example/o/r.git", 128, "fatal: unable to access"},
		{"git's own options are skipped", "git -C /tmp -c a=b --git-dir x push origin main:main", "program git push", 128, "fatal: "},
		{"git asks no more than its verb", "git commit -m secret", "program git commit", 128, "fatal: "},
		{"ssh names host and port", "ssh -i key -o A=b -p 2222 me@h.example ls secret", "program ssh h.example:2222", 255, "ssh: connect to host h.example port 2222: denied by exthost"},
		{"ssh without a host is bad usage", "ssh -v", "", 255, "usage: ssh"},
		{"scp finds the far side", "scp -P 2222 file me@h.example:/tmp", "program scp h.example:2222", 255, "ssh: connect to host h.example port 2222"},
		{"sftp takes a host", "sftp me@h.example", "program sftp h.example", 255, "ssh: connect to host h.example port 22"},
		{"nc names host and port", "nc -w 3 -zv h.example 443", "program nc h.example:443", 1, "nc: connect to h.example port 443 failed"},
		{"nc may listen", "nc -l 8080", "program nc listen", 1, "nc: connect to listen failed"},
		{"sudo names its command", "sudo -n -u root A=b apt-get install x", "program sudo apt-get", 1, "sudo: denied by exthost: no program grant"},
		{"npm names the packages", "npm install -g left-pad @a/b@1", "program npm install left-pad @a/b@1", 1, "npm ERR! denied"},
		{"npm config keeps tokens to itself", "npm config set //r.example/:_authToken secret", "program npm config", 1, "npm ERR!"},
		{"npx names the package", "npx -y cowsay secret", "program npx cowsay", 1, "npm ERR!"},
		{"pip names the packages", "pip install -q --index-url https://me:secret@i.example/ requests==2", "program pip install requests==2", 1, "ERROR: Could not install requests==2"},
		{"docker run names the image", "docker run --rm -it -e KEY=secret -v /a:/b --name x alpine:3 sh", "program docker run alpine:3", 125, "docker: Cannot connect to the Docker daemon"},
		{"docker ps has 1", "docker ps -a", "program docker ps", 1, "docker: Cannot connect"},
		{"python3 names the script", "python3 -u tool.py secret", "program python3 tool.py", 126, "python3: denied"},
		{"python3 names the module", "python3 -m http.server", "program python3 -m http.server", 126, "python3: denied"},
		{"text of a program is not told", "python3 -c secret", "program python3", 126, "python3: denied"},
		{"nor node's", "node -e secret", "program node", 126, "node: denied"},
		{"openssl names the server", "openssl s_client -connect h.example:443", "program openssl s_client h.example:443", 1, "openssl"},
		{"ping names the host", "ping -c 1 h.example", "program ping h.example", 2, "ping: connect: h.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := asked(t)
			got := cmdtest.Run(t, Commands, t.TempDir(), "input", strings.Fields(c.line)...)
			if s := strings.Join(*list, " | "); s != c.want {
				t.Errorf("%s asks for %q, want %q", c.line, s, c.want)
			}
			if got.Code != c.code || got.Stdout != "" {
				t.Errorf("%s: %+v, want exit code %d", c.line, got, c.code)
			}
			if c.stderr == "-" && got.Stderr != "" || c.stderr != "-" && !strings.Contains(got.Stderr, c.stderr) {
				t.Errorf("%s: stderr %q, want %q", c.line, got.Stderr, c.stderr)
			}
			if strings.Contains(got.Stderr+strings.Join(*list, " "), "secret") {
				t.Errorf("%s tells a secret: %q %q", c.line, *list, got.Stderr)
			}
		})
	}
}

func TestCurlWritesOutAsAfterARefusedConnection(t *testing.T) {
	for format, want := range map[string]string{
		"%{http_code}": "000", `\n%{response_code}\t%{size_download}`: "\n000\t0", "%{exitcode} %{url_effective} %{method}": "7 http://a.example/x?k=1 POST", "100%%": "100%",
		"%{time_total}": "0.000000", "a%{nosuch}b": "ab", "%{": "%{",
	} {
		asked(t)
		got := cmdtest.Run(t, Commands, t.TempDir(), "", "curl", "-s", "-o", "/dev/null", "-d", "x", "-w", format, "http://a.example/x?k=1")
		if got.Stdout != want || got.Code != 7 {
			t.Errorf("%q: %+v, want %q", format, got, want)
		}
	}
}

func TestCurlReadsItsConfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c"), []byte("# a comment\nsilent\nurl = \"http://a.example/x\"\nheader: \"A: secret\"\n-X PUT\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := asked(t)
	got := cmdtest.Run(t, Commands, dir, "", "curl", "-K", "c")
	if len(*list) != 1 || (*list)[0] != "PUT http://a.example/x" || got.Code != 7 || got.Stderr != "" {
		t.Errorf("%q %+v", *list, got)
	}
}

func TestWgetMakesItsFileBeforeItConnects(t *testing.T) {
	asked(t)
	dir := t.TempDir()
	cmdtest.Run(t, Commands, dir, "", "wget", "-q", "-O", "out", "http://a.example/")
	if info, err := os.Stat(filepath.Join(dir, "out")); err != nil || info.Size() != 0 {
		t.Error(info, err)
	}
}

func TestMissingProgramsAreReported(t *testing.T) {
	list := asked(t)
	for name, want := range map[string]bool{"ffmpeg": true, "gst-launch-1.0": true, "7z": true, "g++": true, "": false, "./x": false, "a/b": false, "1.5": false, "-x": false, "a b": false, strings.Repeat("a", 41): false} {
		if got := Foreign(name); got != want {
			t.Errorf("Foreign(%q) = %v", name, got)
		}
		if code := Missing(t.Context(), &cmd.Call{Name: name}); code != 127 {
			t.Errorf("%q: exit code %d", name, code)
		}
	}
	if len(*list) != 4 {
		t.Errorf("%q", *list)
	}
}

func TestOpenSSLDoesWhatNeedsNoKeys(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"openssl dgst", "SHA256(stdin)= ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"},
		{"openssl sha256 -r", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad *stdin\n"},
		{"openssl dgst -sha256 -hmac k", "SHA2-256(stdin)= 342e519ce0ad6c03a36b98eeb3f1d130db4813b9df4d1160eda488d712dc78ee\n"},
		{"openssl md5", "MD5(stdin)= 900150983cd24fb0d6963f7d28e17f72\n"},
		{"openssl base64", "YWJj\n"}, {"openssl base64 -A", "YWJj"}, {"openssl enc -base64", "YWJj\n"},
	} {
		list := asked(t)
		if got := cmdtest.Run(t, Commands, t.TempDir(), "abc", strings.Fields(c.line)...); got.Stdout != c.want || got.Code != 0 || len(*list) > 0 {
			t.Errorf("%s: %+v", c.line, got)
		}
	}
	for line, n := range map[string]int{"openssl rand -hex 16": 33, "openssl rand -base64 48": 65, "openssl rand 7": 7} {
		if got := cmdtest.Run(t, Commands, t.TempDir(), "", strings.Fields(line)...); len(got.Stdout) != n || got.Code != 0 {
			t.Errorf("%s: %d bytes, %+v", line, len(got.Stdout), got)
		}
	}
}

// FuzzCurl: no command line panics, targets are whole URLs, and values of headers and users never get into one.
func FuzzCurl(f *testing.F) {
	f.Add("-s\x00http://a.example/{1,2}\x00-X\x00PUT", "http://u:p@b.example/?q")
	f.Add("-d\x00@x\x00--next\x00-F\x00a=@b;type=c\x00[1-9]", "[::1]:80/x")
	f.Fuzz(func(t *testing.T, args, target string) {
		list := asked(t)
		const secret = "TopSecretValue"
		argv := append([]string{"curl", "-H", "Authorization: " + secret, "-u", "me:" + secret, "--oauth2-bearer", secret, "-b", secret}, strings.Split(args, "\x00")...)
		argv = append(argv, target, "https://me:"+secret+"@c.example/x?k="+secret+"#"+secret)
		for _, a := range argv[1:] {
			if strings.HasPrefix(a, "-K") || strings.Contains(a, "config") {
				return // it would read files of the machine
			}
		}
		got := cmdtest.Run(t, Commands, t.TempDir(), "", argv...)
		if strings.Contains(strings.Join(*list, " "), secret) || strings.Contains(got.Stderr, secret) {
			t.Errorf("%q: %q %q", argv, *list, got.Stderr)
		}
		for _, one := range *list {
			_, u, _ := strings.Cut(one, " ")
			if parsed, err := url.Parse(u); err == nil && (parsed.User != nil || parsed.RawQuery != "") {
				t.Errorf("%q asks for %q", argv, one)
			}
		}
	})
}

func TestCurlGlobIsBounded(t *testing.T) {
	long := strings.Repeat("{a}", 200000)
	for _, u := range []string{long, "[1-1000000000]{1,2}", "[1-9]" + long, "[a-z][a-z][a-z]"} {
		got, err := curlGlob(u, false)
		if err != nil || len(got) == 0 || len(got) > curlMost {
			t.Errorf("%.30s: %d URLs, %v", u, len(got), err)
		}
	}
	got, err := curlGlob("{1,2}/[a-b]", false)
	if want := "1/a 1/b 2/a 2/b"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}
