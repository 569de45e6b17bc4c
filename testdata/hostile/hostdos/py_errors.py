# The same on standard error.
#
# expect: limit output
import sys

while True:
    sys.stderr.write("y" * 65536 + "\n")
