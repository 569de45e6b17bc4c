# A number with a hundred million digits.
#
# time: 3s
# expect: limit time|limit memory
import sys

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
print(len(str(10 ** 10 ** 8)))
