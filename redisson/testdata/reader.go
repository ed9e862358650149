// Package code declares the names that the documentation's code blocks use and do not
// declare. The test compiles the blocks together with it.
package code

import (
	"context"

	"github.com/ebbdb/ebb"
)

var (
	ctx context.Context
	c   *ebb.Conn
)
