-- Scripts that clients run, one after the other. A line "--- name keys / args"
-- opens each; one whose name begins with "ro-" runs in the read-only form.

--- returns counter / 5 hello
local n = redis.call('INCRBY', KEYS[1], ARGV[1])
return {n, KEYS[1], ARGV[2]}

--- types / one 2
return {1, -3.99, 'text', true, false, {ok = 'FINE'}, {4, {5, ARGV[2] + 1}}, #KEYS, nil, 'never seen'}

--- nothing missing /
return redis.call('GET', KEYS[1])

--- status word / abc
return redis.call('SET', KEYS[1], ARGV[1])

--- numbers /
return table.concat({tostring(0.1 + 0.2), 1e15, 2 ^ 53, 1 / 0, 10 % 3, tonumber('0x10'), string.format('%5.1f|%q', 3.14159, 'x')}, ' ')

--- error /
return redis.error_reply('MY problem')

--- command-fails word /
return redis.call('INCR', KEYS[1])

--- protected word /
local reply = redis.pcall('INCR', KEYS[1])
local ok, why = pcall(redis.call, 'LPUSH', KEYS[1], 'x')
return {reply.err, tostring(ok), type(why) == 'table' and why.err or why}

--- global /
return nosuch

--- raises /
local t = {}
return t.x.y

--- does-not-compile /
return return

--- unknown-command /
return redis.call('NOSUCHCOMMAND')

--- libraries / {"list":[1,2,{"deep":null}],"n":1.5}
local v = cjson.decode(ARGV[1])
return {cjson.encode({v.list[2], v.n, 'é"'}), v.list[3].deep == cjson.null and 'null' or 'lost', cmsgpack.unpack(cmsgpack.pack({1, 'two'}))[2],
	struct.unpack('>I2', struct.pack('>I2', 258)), bit.band(0xff0, bit.lshift(1, 5)), redis.sha1hex('')}

--- resp3 hash board / Ada
redis.call('HSET', KEYS[1], 'name', ARGV[1])
redis.call('ZADD', KEYS[2], 1.5, ARGV[1])
redis.setresp(3)
return {redis.call('HGETALL', KEYS[1]).map.name, tostring(redis.call('ZSCORE', KEYS[2], ARGV[1]).double)}

--- sorted many /
for i = 1, 300 do redis.call('RPUSH', KEYS[1], (i * 7919) % 1000) end
local all = redis.call('LRANGE', KEYS[1], 0, -1)
table.sort(all, function(a, b) return tonumber(a) < tonumber(b) end)
return {#all, all[1], all[300], #redis.call('SORT', KEYS[1])}

--- undeclared /
redis.call('SET', 'made:' .. 1, 'up')
return redis.call('GET', 'made:1')

--- shebang word /
#!lua flags=no-writes
return redis.call('GET', KEYS[1])

--- shebang-writes word /
#!lua flags=no-writes
return redis.call('SET', KEYS[1], 'x')

--- ro-reads word /
return redis.call('GET', KEYS[1])

--- ro-writes word /
return redis.call('SET', KEYS[1], 'x')
