#!lua name=shelf
local function put(keys, args)
	redis.call('RPUSH', keys[1], unpack(args))
	return redis.call('LLEN', keys[1])
end

redis.register_function('put', put)
redis.register_function{function_name = 'peek', callback = function(keys) return redis.call('LRANGE', keys[1], 0, -1) end, flags = {'no-writes'}}
redis.register_function{function_name = 'endless', callback = function() while true do end end, flags = {'no-writes'}}
