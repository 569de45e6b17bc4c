# Lines of 64 KiB without end.
#
# expect: limit output
import sys

while True:
    sys.stdout.write("y" * 65536 + "\n")
