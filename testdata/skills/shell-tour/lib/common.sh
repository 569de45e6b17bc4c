# Shared by the scripts of the tour.
log() { local IFS=' '; echo "log: $*"; }
