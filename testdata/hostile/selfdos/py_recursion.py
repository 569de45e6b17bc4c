# A call of itself without end, with the interpreter's own guard switched off.
#
# expect: limit memory|limit time
import sys

sys.setrecursionlimit(10**9)


def f(n):
    return f(n + 1)


f(0)
