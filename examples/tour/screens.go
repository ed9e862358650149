package main

// screens returns all screens, in the order in which the tour plays them.
func screens() []screen {
	return []screen{
		{"hash-field-ttl", "Fields that expire, one by one",
			"One hash, and a deadline for each of its fields. HLEN counts the living.\nAnn buys something at 3 s: that renews her " +
				"cart, and nothing else.", playFields},
		{"rate-limiter", "Five requests a second, for each client",
			"limit.PerSecond(5), one limiter for three clients: ● granted, ○ refused.\nWhat is refused costs nothing, so eve gets her five " +
				"whatever she does.", playLimiter},
		{"unpaid-orders", "Unpaid orders, at most three of each user",
			"Half an hour is three seconds here. One command adds, counts and dates them.\n" +
				"What is not paid expires, and a stream gets its event, once.", playOrders},
		{"encodings", "Sorted sets, compact and large",
			"A leaderboard grows. Up to 128 players it is one block of bytes (listpack),\nbeyond that an ordered index. " +
				"The column shows the bytes for each player.", playEncodings},
		{"expiry-commands", "The commands for deadlines",
			"What may be done to a key's deadline. NX and XX ask whether it has one, GT and\nLT move it in one direction only.", playCommands},
		{"expiry-strategy", "What expires when, and how late",
			"20,000 keys fall due in one instant at 3 s, and 400 one by one. DBSIZE counts\nthe living; a listener hears of each.", playStorm},
		{"expiry-in-files-and-replicas", "Deadlines outlive the program",
			"An engine with files, in this process. It is closed at 2 s, and opened at 4 s:\nwhat expired meanwhile is " +
				"gone, the rest goes on with the time that is left.", playFiles},
		{"lock", "A lock changes hands",
			"Four workers want one lock: █ holds it, ░ waits in line. Tokens only grow.\nworker-2 dies with it at its " +
				"second turn: its lease ends, and the next has it.", playLock},
		{"queue", "A queue on lists that loses nothing",
			"BLMOVE takes a job, and keeps it in the worker's own list until it is done.\nWhen worker-2 has died with a job, that job is still " +
				"there, and goes back.", playList},
		{"pubsub", "Publish and subscribe",
			"A message reaches the listeners of that moment: PUBLISH says how many.\nOne of them listens to a pattern, and " +
				"one comes late.", playPubSub},
		{"delay-queue", "Jobs for later, to the millisecond",
			"Each job has its time, and goes to one worker when it comes. \"report\" fails at\nfirst, and is due again a second later.", playDelay},
		{"stream", "A stream and a group of workers",
			"Each order goes to one of two workers, and is pending until acknowledged.\nworker-2 dies at 3 s: worker-1 claims what it left, two " +
				"seconds later.", playStream},
		{"unique-visitors", "Counting visitors in 12 kB",
			"A HyperLogLog knows how many different visitors there were, within some 0.8 %,\nwhatever the number. It " +
				"keeps none of them.", playUnique},
		{"sign-in-calendar", "A bit for each day",
			"One bitmap for each user and month: 4 bytes. BITCOUNT counts the days, BITPOS\nfinds the first that was " +
				"missed, BITOP the days on which all were there.", playCalendar},
		{"bloom", "A filter that forgets",
			"600 numbers, of which one is added every 10 ms. Green: seen in the last two\nseconds, says the filter. Red: it is wrong. It never " +
				"denies what was seen.", playBloom},
		{"sliding-window", "At most six in any two seconds",
			"The same requests to two limiters. One counts in any two seconds, the other\nfrom one even second to the " +
				"next: around a boundary that lets twelve through.", playWindow},
		{"funnel", "A leaky bucket",
			"Eleven at once, and then five a second: that is how fast it leaks.\nCL.THROTTLE gives five answers.", playFunnel},
		{"nearby", "Drivers near me, seen a moment ago",
			"What a driver reports is good for a second and a half. Green are those within\n800 m. Two stop reporting: " +
				"they are gone, and no client has to remove them.", playNearby},
	}
}
