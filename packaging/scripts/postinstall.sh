#!/bin/sh
# Creates the user of the server, and starts the service where systemd runs.
set -e
if ! getent group ebb >/dev/null; then
	if command -v groupadd >/dev/null; then groupadd --system ebb; else addgroup -S ebb; fi
fi
if ! getent passwd ebb >/dev/null; then
	if command -v useradd >/dev/null; then
		useradd --system --gid ebb --home-dir /var/lib/ebb --no-create-home --shell /usr/sbin/nologin ebb
	else
		adduser -S -D -H -h /var/lib/ebb -s /sbin/nologin -G ebb ebb
	fi
fi
install -d -o ebb -g ebb -m 0750 /var/lib/ebb
chgrp ebb /etc/ebb/ebb.conf
chmod 0640 /etc/ebb/ebb.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = configure ] && [ -n "$2" ]; then
		systemctl try-restart ebb.service # an upgrade
	fi
fi
