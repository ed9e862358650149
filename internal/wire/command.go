package wire

import "strconv"

// AppendCommand appends a request: an array of bulk strings.
func AppendCommand[T []byte | string](dst []byte, args ...T) []byte {
	dst = appendHeader(dst, '*', len(args))
	for _, a := range args {
		dst = appendHeader(dst, '$', len(a))
		dst = append(dst, a...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

func appendHeader(dst []byte, sigil byte, n int) []byte {
	dst = append(dst, sigil)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
