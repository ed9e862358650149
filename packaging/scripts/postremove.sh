#!/bin/sh
# dpkg --purge removes the data and the user; other removals leave both.
set -e
if [ "$1" = purge ]; then
	rm -rf /var/lib/ebb /etc/ebb
	if getent passwd ebb >/dev/null; then
		userdel ebb 2>/dev/null || deluser ebb || true
	fi
	if getent group ebb >/dev/null; then
		groupdel ebb 2>/dev/null || delgroup ebb || true
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
