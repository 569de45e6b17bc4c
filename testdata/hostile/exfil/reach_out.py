# Ways out over the network and into other programs, by what the standard library offers.
#
# expect: denied ENOTCAPABLE ENOTSUP ENOSYS EACCES EPERM ENOENT URLError AttributeError ImportError ModuleNotFoundError OSError gaierror NotImplementedError InvalidURL EPROTONOSUPPORT EAFNOSUPPORT
import os

from attempt import attempt


def connect(address):
    import socket
    s = socket.socket()
    s.connect(address)


def resolve(name):
    import socket
    return socket.getaddrinfo(name, 443)


def fetch(url):
    import urllib.request
    return urllib.request.urlopen(url, timeout=2).read()


def spawn(*argv):
    import subprocess
    return subprocess.run(argv, check=True, capture_output=True)


def system(command):
    if os.system(command) != 0:
        raise OSError(1, "refused")


attempt("connect to a documentation address", lambda: connect(("192.0.2.1", 443)))
attempt("connect to this machine", lambda: connect(("127.0.0.1", 22)))
attempt("connect to the metadata address", lambda: connect(("169.254.169.254", 80)))
attempt("look up a name that carries data", lambda: resolve("secret.data.exfil.invalid"))
attempt("fetch over http", lambda: fetch("http://192.0.2.1/"))
attempt("fetch over https", lambda: fetch("https://example.invalid/"))
attempt("fetch a file", lambda: fetch("file:///etc/hostname"))
attempt("listen", lambda: __import__("socket").create_server(("", 0)))
attempt("start a program", lambda: spawn("/bin/sh", "-c", "id"))
attempt("start this interpreter", lambda: spawn("python3", "-c", "pass"))
attempt("start a shell", lambda: system("id"))
attempt("fork", lambda: os.fork())
attempt("replace this program", lambda: os.execv("/bin/sh", ["sh"]))
attempt("open a pipe to a program", lambda: os.popen("id").read())
attempt("signal the parent", lambda: os.kill(1, 9))
