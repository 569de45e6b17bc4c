# A sleep of an hour.
#
# time: 3s
# expect: limit time
import time

time.sleep(3600)
