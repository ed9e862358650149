local letters = {"b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "x", "c", "s", "!", "<", ">", " ", "i1", "i2", "i3", "I5", "i6", "i8",
  "I8", "i9", "i12", "i16", "I16", "i31", "c0", "c1", "c3", "!1", "!2", "!4", "!8", "!16", "bc0"}
for i = 1, CASES do
  local format, arguments = {}, {}
  for k = 1, random(8) do
    local letter = pick(letters)
    if random(60) == 1 then letter = pick{"i0", "i33", "!3", "!0", "z", "%", "5", "\0", "c99", "\200", "i99999999999"} end
    format[k] = letter
    if letter:find("^c") then arguments[#arguments + 1] = random(3) == 1 and number() or text()
    elseif letter == "s" then arguments[#arguments + 1] = text()
    elseif letter == "bc0" then
      arguments[#arguments + 1] = random(4)
      arguments[#arguments + 1] = ("abcd"):sub(1, arguments[#arguments])
    elseif letter:find("^%a") and letter ~= "x" then arguments[#arguments + 1] = random(40) == 1 and "no number" or number() end
  end
  if random(30) == 1 then arguments[#arguments] = nil end
  format = table.concat(format)
  case(struct.size, format)
  local ok, s = pcall(struct.pack, format, unpack(arguments))
  line(format, ok, s)
  if not ok then s = text() end
  case(struct.unpack, format, s)
  case(struct.unpack, format, s, random(#s + 3) - 2)
  if #s > 0 then case(struct.unpack, format, damage(s), random(9)) end
  case(struct.unpack, format, text())
end
