echo "source=${BASH_SOURCE[0]##*/} main=${BASH_SOURCE[1]##*/} zero=${0##*/} args=$#"
