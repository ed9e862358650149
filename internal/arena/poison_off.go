//go:build !race && !ebbpoison

package arena

const poison = false
