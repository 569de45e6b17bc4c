# A call of itself without end, with the interpreter's own guard switched off.
#
# expect: trap stack-overflow|limit memory|trap memory-out-of-bounds
import sys

sys.setrecursionlimit(10**9)


def f(n):
    return f(n + 1)


f(0)
