#!/bin/sh
# Stops the service when the package goes, and not when a newer one replaces it.
set -e
case "$1" in
upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now ebb.service || true
fi
