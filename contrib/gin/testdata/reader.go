// Package code is what the blocks of the documentation are compiled with: what they
// leave to who reads them.
package code

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/ebbdb/ebb"
)

var (
	ctx    context.Context
	c      *ebb.Conn
	router *gin.Engine
)
