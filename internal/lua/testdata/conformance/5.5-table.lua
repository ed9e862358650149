-- # concat
emit(table.concat({}), table.concat({1, 2, 3}), table.concat({"a", "b"}, ", "), table.concat({1, 2, 3, 4}, "-", 2), table.concat({1, 2, 3, 4}, "-", 2, 3), table.concat({1, 2}, "x", 3), table.concat({1.5, "x"}, 0))
emit(pcall(table.concat, {1, {}, 3}))
emit(pcall(table.concat, {1, 2}, "", 1, 3))
emit(pcall(table.concat, {true}))
emit(pcall(table.concat, {}, {}))
emit(pcall(table.concat))
--> "" "123" "a, b" "2-3-4" "2-3" "" "1.50x"
--> false "invalid value (table) at index 2 in table for 'concat'"
--> false "invalid value (nil) at index 3 in table for 'concat'"
--> false "invalid value (boolean) at index 1 in table for 'concat'"
--> false "bad argument #2 to '?' (string expected, got table)"
--> false "bad argument #1 to '?' (table expected, got no value)"
--> returned

-- # insert
local t = {1, 2, 3}
table.insert(t, 4)
table.insert(t, 1, 0)
table.insert(t, 3, "mid")
table.insert(t, 10, "far")
emit(t, #t)
emit(pcall(table.insert, t))
emit(pcall(table.insert, t, 1, 2, 3))
emit(pcall(table.insert, 1, 2))
emit(pcall(table.insert, t, "x", 2))
--> #6:{0,1,"mid",2,3,4,[10]="far"} 6
--> false "wrong number of arguments to 'insert'"
--> false "wrong number of arguments to 'insert'"
--> false "bad argument #1 to '?' (table expected, got number)"
--> false "bad argument #2 to '?' (number expected, got string)"
--> returned

-- # remove
local t = {"a", "b", "c", "d"}
emit(table.remove(t), table.remove(t, 1), t, table.remove(t, 5), table.remove({}), table.remove({}, 1), #t)
local u = {[0] = "zero"}
emit(table.remove(u), table.remove(u, 0), u)
--> "d" "a" {"b","c"} nil nil nil 2
--> nil nil #0:{[0]="zero"}
--> returned

-- # maxn, getn, setn
emit(table.maxn({}), table.maxn({1, 2, [10] = 3}), table.maxn({[1.5] = 1, [-3] = 2}), table.getn({1, 2, 3}))
emit(pcall(table.setn, {}, 3))
emit(pcall(table.getn, 1))
--> 0 10 1.5 3
--> false "'setn' is obsolete"
--> false "bad argument #1 to '?' (table expected, got number)"
--> returned

-- # foreach and foreachi
emit(table.foreach({10, 20}, function(k, v) emit(k, v) end))
emit(table.foreachi({10, 20, 30}, function(i, v) if i == 2 then return "found", v end end))
emit(pcall(table.foreach, {}, 1))
--> 1 10
--> 2 20
-->
--> "found"
--> false "bad argument #2 to '?' (function expected, got number)"
--> returned

-- # sort
local t = {3, 1, 2, 10, -5, 1}
table.sort(t)
emit(t)
table.sort(t, function(a, b) return a > b end)
emit(t)
local s = {"banana", "apple", "Cherry", "date"}
table.sort(s)
emit(s)
table.sort(s, function(a, b) return a:lower() < b:lower() end)
emit(s)
--> {-5,1,1,2,3,10}
--> {10,3,2,1,1,-5}
--> {"Cherry","apple","banana","date"}
--> {"apple","banana","Cherry","date"}
--> returned

-- # sort: many, with few values
local t = {}
for i = 1, 100 do t[i] = (i * 37) % 11 end
table.sort(t)
local ok = true
for i = 2, 100 do ok = ok and t[i - 1] <= t[i] end
emit(ok, t[1], t[100])
--> true 0 10
--> returned

-- # sort is not stable, in a known way
local t = {}
for i = 1, 12 do t[i] = {k = i % 3, i = i} end
table.sort(t, function(a, b) return a.k < b.k end)
local r = {}
for i, v in ipairs(t) do r[i] = v.k .. ":" .. v.i end
emit(table.concat(r, " "))
--> "0:12 0:9 0:3 0:6 1:1 1:4 1:7 1:10 2:2 2:8 2:11 2:5"
--> returned

-- # sort: errors
emit(pcall(table.sort, {3, "x", 1}))
emit(pcall(table.sort, {1, 2, 3}, 1))
emit(pcall(table.sort, {3, 1, 2, 5, 4}, function(a, b) return true end))
emit(pcall(table.sort, {{}, {}}))
emit(pcall(table.sort, {1, 2, nil, 4}))
emit(pcall(table.sort, {3, 1, 2}, function(a, b) error("cmp") end))
emit(pcall(table.sort))
--> false "attempt to compare string with number"
--> false "bad argument #2 to '?' (function expected, got number)"
--> false "invalid order function for sorting"
--> false "attempt to compare two table values"
--> false "attempt to compare nil with number"
--> false "p:6: cmp"
--> false "bad argument #1 to '?' (table expected, got no value)"
--> returned

-- # holes and the length
emit(#{1, nil}, #{nil}, #{nil, 2}, #{1, nil, 3}, #{1, nil, 3, nil}, #{n = 1, 1, 2, [4] = 4})
local t = {}
for i = 1, 10 do t[i] = i end
for i = 10, 4, -1 do t[i] = nil end
emit(#t)
t[5] = nil
t[3] = nil
emit(#t)
--> 1 0 2 3 1 2
--> 3
--> 2
--> returned

-- # the length after filling from the back
local t = {}
for i = 8, 1, -1 do t[i] = i end
emit(#t)
t[9] = 9
emit(#t)
t[11] = 11
emit(#t)
--> 8
--> 9
--> 9
--> returned

-- # the order of pairs: small hashes
for _, keys in ipairs({{"a", "b", "c"}, {"x", "y", "z", "w"}, {"name", "age", "city", "zip", "id"}, {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}}) do
	local t = {}
	for i, k in ipairs(keys) do t[k] = i end
	emit(t)
end
--> #0:{a=1,c=3,b=2}
--> #0:{y=2,x=1,w=4,z=3}
--> #0:{city=3,zip=4,id=5,age=2,name=1}
--> #0:{four=4,seven=7,eight=8,nine=9,six=6,two=2,three=3,five=5,one=1}
--> returned

-- # the order of pairs: collisions, removals and numbers
local t = {}
for i = 1, 20 do t[i * 3] = i end
for i = 1, 20, 2 do t[i * 3] = nil end
t.x, t[1.5], t[-1], t[true], t[2^40] = 1, 2, 3, 4, 5
emit(t)
--> #0:{[30]=10,[60]=20,[18]=6,[36]=12,[42]=14,[1.5]=2,[6]=2,[12]=4,[24]=8,[48]=16,[-1]=3,x=1,[54]=18,[true]=4,[1099511627776]=5}
--> returned

-- # the order of pairs: long keys [redis-server]
local t = {}
for i = 1, 12 do t[("prefix:"):rep(8) .. i .. (":suffix"):rep(6)] = i end
local r = {}
for _, v in pairs(t) do r[#r + 1] = v end
emit(table.concat(r, " "))
--> "7 6 11 4 12 3 5 10 1 9 2 8"
--> returned

-- # the order of pairs: a constructor's fields
emit({a = 1, b = 2, c = 3, d = 4}, {d = 4, c = 3, b = 2, a = 1}, {1, 2, x = 3, y = 4, 5})
--> #0:{a=1,d=4,c=3,b=2} #0:{a=1,d=4,c=3,b=2} #3:{1,2,5,y=4,x=3}
--> returned
