#!/bin/sh
# Starts scrubjay: that of the clone this plugin is in, that of the environment it was installed into, or the one on the
# search path, which is what is left when the client keeps a copy of the plugin elsewhere.
here=$(cd "$(dirname "$0")/.." && pwd)
for one in "$here/../../../../.venv/bin/scrubjay" "$here/../../../../../../bin/scrubjay"; do
    [ -x "$one" ] && exec "$one" "$@"
done
command -v scrubjay > /dev/null && exec scrubjay "$@"
[ "$1" = hook ] && exit 0 # a hook never stops a session
echo "scrubjay is not installed, or not on the search path." >&2
exit 1
