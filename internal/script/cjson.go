package script

import (
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/lua"
)

// jsonModule is one instance of the library cjson, which behaves as lua-cjson 2.1.0
// (https://kyne.au/~mark/software/lua-cjson-manual.html): its settings, and the encoder
// and the decoder that all instances of a machine share.
type jsonModule struct {
	sparseConvert bool  // excessively sparse arrays become objects, not errors
	sparseRatio   int32 // an array is that if its length is above ratio * items
	sparseSafe    int32 // and above this
	encodeDepth   int32
	decodeDepth   int32
	precision     int32 // digits of a number
	keepBuffer    bool  // has no effect: small buffers are kept, large ones are not
	encodeInvalid int32 // what becomes of infinite numbers and NaNs; see the constants
	decodeInvalid bool  // infinite, hexadecimal numbers, NaN, leading zeros are taken

	encoder *jsonEncoder
	decoder *jsonDecoder
}

// The settings of encode_invalid_numbers, and their names.
const (
	invalidError = iota // "off"
	invalidPrint        // "on"
	invalidNull         // "null"
)

var (
	switchNames  = []string{"off", "on"}
	invalidNames = []string{"off", "on", "null"}
)

// openCJSON adds the library cjson to the globals.
func openCJSON(s *lua.State) {
	t := newJSONModule(s, &jsonEncoder{}, &jsonDecoder{})
	set(s.Globals(), field{"cjson", lua.TableValue(t)})
}

// newJSONModule makes an instance of the library with the default settings.
func newJSONModule(s *lua.State, encoder *jsonEncoder, decoder *jsonDecoder) *lua.Table {
	m := &jsonModule{
		encoder: encoder, decoder: decoder,
		sparseRatio: 2, sparseSafe: 10,
		encodeDepth: 1000, decodeDepth: 1000,
		precision:  14,
		keepBuffer: true, decodeInvalid: true,
	}
	t := s.NewTable(0, 0)
	set(t,
		function("encode", m.encode),
		function("decode", m.decode),
		function("encode_sparse_array", m.setSparseArray),
		function("encode_max_depth", func(c lua.Call) error { return setDepth(c, &m.encodeDepth) }),
		function("decode_max_depth", func(c lua.Call) error { return setDepth(c, &m.decodeDepth) }),
		function("encode_number_precision", m.setPrecision),
		function("encode_keep_buffer", func(c lua.Call) error { return setSwitch(c, &m.keepBuffer) }),
		function("encode_invalid_numbers", m.setEncodeInvalid),
		function("decode_invalid_numbers", func(c lua.Call) error { return setSwitch(c, &m.decodeInvalid) }),
		function("new", m.instance),
		field{"null", lua.Null},
		field{"_NAME", lua.String("cjson")},
		field{"_VERSION", lua.String("2.1.0")})
	return t
}

// jsonModuleSize is the approximate size of an instance besides its table, in bytes.
const jsonModuleSize = 1024

// instance implements cjson.new: another instance, with settings of its own.
func (m *jsonModule) instance(c lua.Call) error {
	if err := c.State().Charge(jsonModuleSize); err != nil {
		return err
	}
	return c.Return(lua.TableValue(newJSONModule(c.State(), m.encoder, m.decoder)))
}

// The functions that change settings: each takes the new values, nil for those
// that stay, and returns the values that are now.

// atMost refuses more than n arguments.
func atMost(c lua.Call, n int) error {
	if c.N() > n {
		return c.ArgError(n+1, "found too many arguments")
	}
	return nil
}

// integerOption changes a setting to argument i, which must be between low and high.
func integerOption(c lua.Call, i int, setting *int32, low, high int32) error {
	if c.Arg(i).IsNil() {
		return nil
	}
	n, err := c.CheckInt(i)
	if err != nil {
		return err
	}
	v := int32(n) // cut off, as lua-cjson does
	if v < low || v > high {
		return c.ArgError(1, fmt.Sprintf("expected integer between %d and %d", low, high))
	}
	*setting = v
	return nil
}

// namedOption changes a setting to argument i: one of the names, or a boolean, true
// being 1.
func namedOption(c lua.Call, i int, setting *int32, names []string) error {
	switch v := c.Arg(i); v.Kind() {
	case lua.KindNil:
		return nil
	case lua.KindBoolean:
		*setting = 0
		if v.Truth() {
			*setting = 1
		}
		return nil
	}
	s, err := c.CheckString(i)
	if err != nil {
		return err
	}
	for n, name := range names {
		if cString(s) == name {
			*setting = int32(n)
			return nil
		}
	}
	return c.ArgError(i, "invalid option '"+cString(s)+"'")
}

func setDepth(c lua.Call, depth *int32) error {
	if err := atMost(c, 1); err != nil {
		return err
	}
	if err := integerOption(c, 1, depth, 1, math.MaxInt32); err != nil {
		return err
	}
	return c.Return(lua.Int(int(*depth)))
}

func setSwitch(c lua.Call, on *bool) error {
	if err := atMost(c, 1); err != nil {
		return err
	}
	if err := chooseSwitch(c, 1, on); err != nil {
		return err
	}
	return c.Return(lua.Bool(*on))
}

func chooseSwitch(c lua.Call, i int, on *bool) error {
	n := int32(0)
	if *on {
		n = 1
	}
	err := namedOption(c, i, &n, switchNames)
	*on = n == 1
	return err
}

func (m *jsonModule) setPrecision(c lua.Call) error {
	if err := atMost(c, 1); err != nil {
		return err
	}
	if err := integerOption(c, 1, &m.precision, 1, 14); err != nil {
		return err
	}
	return c.Return(lua.Int(int(m.precision)))
}

func (m *jsonModule) setSparseArray(c lua.Call) error {
	if err := atMost(c, 3); err != nil {
		return err
	}
	if err := chooseSwitch(c, 1, &m.sparseConvert); err != nil {
		return err
	}
	if err := integerOption(c, 2, &m.sparseRatio, 0, math.MaxInt32); err != nil {
		return err
	}
	if err := integerOption(c, 3, &m.sparseSafe, 0, math.MaxInt32); err != nil {
		return err
	}
	return c.Return(lua.Bool(m.sparseConvert), lua.Int(int(m.sparseRatio)), lua.Int(int(m.sparseSafe)))
}

func (m *jsonModule) setEncodeInvalid(c lua.Call) error {
	if err := atMost(c, 1); err != nil {
		return err
	}
	if err := namedOption(c, 1, &m.encodeInvalid, invalidNames); err != nil {
		return err
	}
	if m.encodeInvalid == invalidNull {
		return c.Return(lua.String("null"))
	}
	return c.Return(lua.Bool(m.encodeInvalid == invalidPrint))
}
