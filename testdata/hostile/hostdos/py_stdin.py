# A read of a standard input that stays open and says nothing.
#
# stdin: silent
# time: 3s
# expect: limit time
import sys

sys.stdin.read()
