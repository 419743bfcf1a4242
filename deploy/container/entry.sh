#!/bin/sh
# The image's entry: `sshd` waits for mpirun, everything else is a command of vitrail.
set -eu
if [ "${1:-}" = sshd ]; then
  ssh-keygen -A >/dev/null # a pod's own keys; none are in the image
  shift
  exec /usr/sbin/sshd -D -e "$@"
fi
[ "${1:-}" != vitrail ] || shift
exec /usr/local/bin/vitrail "$@"
