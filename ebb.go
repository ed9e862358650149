package ebb

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
)

// The types of packages conn and embed, under the names that programs use.
type (
	// Conn is an open backend. Its methods are safe for concurrent use. Close it.
	Conn = conn.Conn
	// Value is a reply.
	Value = conn.Value
	// Batch is a list of commands for Conn.Pipeline and Conn.Tx.
	Batch = conn.Batch
	// Watched is the connection that Conn.Watch gives to its function.
	Watched = conn.Watched
	// Capabilities says what a backend can do beyond Redis's commands.
	Capabilities = conn.Capabilities
	// SetOptions are the options of Conn.Set: expiration and conditions.
	SetOptions = conn.SetOptions
	// Scored is a member of a sorted set and its score.
	Scored = conn.Scored
	// HashField is a field of a hash and its value.
	HashField = conn.HashField
	// Message is a message that a Subscription receives.
	Message = conn.Message
	// Subscription receives the messages of its channels in order.
	Subscription = conn.Subscription
	// Script is a Lua script that backends run as one command.
	Script = conn.Script
	// Codec turns the values of an object into the bytes that the backend keeps, and back.
	Codec[T any] = conn.Codec[T]
	// ReplyError is an error reply, for errors.As. Its first word is the code.
	ReplyError = conn.ReplyError
	// Engine is an embedded engine with its commands; see EngineOf.
	Engine = embed.Engine
)

// Forever is the result of TTL for a key without a deadline.
const Forever = conn.Forever

// The errors of package conn, which describes them.
var (
	ErrNil           = conn.ErrNil           // there is no such key, or no such element
	ErrNotSet        = conn.ErrNotSet        // the condition of Conn.Set, NX or XX, did not hold
	ErrConflict      = conn.ErrConflict      // a watched key has changed; nothing was done
	ErrClosed        = conn.ErrClosed        // the call came after Close
	ErrUnavailable   = conn.ErrUnavailable   // the backend cannot be reached, or is not ready
	ErrNotReplicated = conn.ErrNotReplicated // the command has run, but is not on enough replicas
	ErrInterrupted   = conn.ErrInterrupted   // the subscription's connection was lost; messages may be lost
	ErrFiles         = conn.ErrFiles         // an engine in this process cannot use its files
	ErrURL           = conn.ErrURL           // Open cannot use this URL
	ErrStateful      = conn.ErrStateful      // the command changes its connection
	ErrArgument      = conn.ErrArgument      // the caller has passed an argument that the call does not accept
	ErrValue         = conn.ErrValue         // stored data cannot be read
	ErrRemote        = conn.ErrRemote        // an embedded engine is needed
)

// Temporary reports whether an error may go away by itself, and the same call is worth
// another try; see conn.Temporary.
func Temporary(err error) bool { return conn.Temporary(err) }

// NewScript returns a script with the given text. A text that does not compile fails at
// its first run.
func NewScript(text string) *Script { return conn.NewScript(text) }

// CodecOf returns the codec that objects use when none is given: it stores strings and
// byte slices as they are, types with their own text or binary marshalling in that form,
// and all other types as JSON.
func CodecOf[T any]() Codec[T] { return conn.CodecOf[T]() }

// JSON is the codec of encoding/json.
func JSON[T any]() Codec[T] { return conn.JSON[T]() }
