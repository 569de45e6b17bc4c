# A loop that never ends.
#
# time: 3s
# expect: limit time
while True:
    pass
