# What a script can learn of the machine that runs it: paths in error texts, links, resolved names, the environment.
#
# expect: exit 0
import os
import platform
import socket
import sys


def show(what, value):
    print(what, value)


show("cwd", os.getcwd())
show("argv", sys.argv[0])
show("path", sys.path)
show("prefix", sys.prefix)
show("environ", dict(os.environ))
show("platform", platform.platform() if hasattr(os, "uname") else sys.platform)
for path in ("/workspace/out", "/workspace/outabs", "/workspace/procl", "/ro/outabs", "/overlay/outabs", "/workspace/inner"):
    for call in (os.path.realpath, os.readlink, open, os.listdir, os.stat):
        try:
            show(call.__name__, call(path))
        except Exception as e:
            show(call.__name__, repr(e) + str(e))
for call in (lambda: os.path.expanduser("~"), lambda: os.getlogin(), lambda: os.getpid(), lambda: socket.gethostname(), lambda: os.listdir("/"),
             lambda: os.listdir("/dev"), lambda: os.listdir("/home"), lambda: os.listdir("/usr"), lambda: os.scandir("/proc")):
    try:
        show("asked", call())
    except Exception as e:
        show("refused", repr(e))
