package wire

// peekArgs is the largest number of arguments of a request that Peek looks into.
const peekArgs = 64

// Peek returns the first two arguments, most often a name and a key, of the array request at the start of buf, and the request's length
// n. key is nil if there is only one. Peek is for a caller that looks ahead of Next, and may know less than Next: n is 0 if the request
// is not complete, has another form, or has many arguments. It does not check the limits of a Parser. The arguments alias buf.
// O(arguments).
func Peek(buf []byte) (name, key []byte, n int) {
	if len(buf) < 4 || buf[0] != '*' {
		return nil, nil, 0
	}
	count, i := shortHeader(buf, 1)
	if i == 0 || count == 0 || count > peekArgs {
		return nil, nil, 0
	}
	for arg := range count {
		if i >= len(buf) || buf[i] != '$' {
			return nil, nil, 0
		}
		size, start := shortHeader(buf, i+1)
		if start == 0 || size > len(buf)-start-2 {
			return nil, nil, 0
		}
		end := start + size
		switch arg {
		case 0:
			name = buf[start:end:end]
		case 1:
			key = buf[start:end:end]
		}
		i = end + 2
	}
	return name, key, i
}
