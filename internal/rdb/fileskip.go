package rdb

// This file finds the end of a value. The Reader reads counts and lengths, and does not parse
// packed layouts. A count may be wrong, but each element takes at least a byte, so the file's end
// ends every loop.

// skipValue skips a value of type t. module is the name of a module whose value
// it is, or empty.
func (r *Reader) skipValue(t Type) (module string, err error) {
	if t == TypeModule {
		return r.skipModule()
	}
	switch t {
	case TypeString, TypeHashZipmap, TypeListZiplist, TypeSetIntset, TypeZSetZiplist, TypeHashZiplist,
		TypeHashListpack, TypeZSetListpack, TypeSetListpack:
		err = r.skipString()
	case TypeStream, TypeStream2, TypeStream3:
		err = r.skipStream(t)
	case TypeHashTimedOld, TypeHashTimedPackOld, TypeHashTimed, TypeHashTimedPack:
		err = r.skipTimed(t)
	default:
		err = r.skipElements(t)
	}
	return "", err
}

// skipElements skips a container that is a count and its elements.
func (r *Reader) skipElements(t Type) error {
	var element func() error
	switch t {
	case TypeList, TypeSet, TypeQuicklist:
		element = r.skipString
	case TypeHash:
		element = r.skipField
	case TypeZSet:
		element = r.skipTextScored
	case TypeZSet2:
		element = r.skipScored
	case TypeQuicklist2:
		element = r.skipNode
	default:
		return r.unknownType(t)
	}
	return r.each(element)
}

// each reads a count and calls skip that many times.
func (r *Reader) each(skip func() error) error {
	n, err := r.number()
	for ; err == nil && n > 0; n-- {
		err = skip()
	}
	return err
}

// skipString skips a string.
func (w *window) skipString() error {
	n, special, err := w.length()
	if err != nil {
		return err
	}
	if special {
		return w.skipForm(n)
	}
	return w.skip(n)
}

// skipForm skips the rest of a string in a special form.
func (w *window) skipForm(form uint64) error {
	if form <= formInt32 {
		return w.skip(1 << form)
	}
	if form != formLZF {
		return bad("no string has the form %d", form)
	}
	packed, err := w.number()
	if err != nil {
		return err
	}
	if _, err = w.number(); err != nil {
		return err
	}
	return w.skip(packed)
}

// numbers skips n lengths.
func (w *window) numbers(n int) error {
	for range n {
		if _, err := w.number(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) skipField() error {
	if err := r.skipString(); err != nil {
		return err
	}
	return r.skipString()
}

func (r *Reader) skipScored() error {
	if err := r.skipString(); err != nil {
		return err
	}
	return r.skip(8)
}

func (r *Reader) skipTextScored() error {
	if err := r.skipString(); err != nil {
		return err
	}
	n, err := r.byte()
	if err != nil || n >= 253 { // these lengths stand for NaN and the infinities
		return err
	}
	return r.skip(uint64(n))
}

func (r *Reader) skipNode() error {
	if err := r.numbers(1); err != nil {
		return err
	}
	return r.skipString()
}

// skipTimed skips a hash whose fields have deadlines.
func (r *Reader) skipTimed(t Type) error {
	if r.version >= valkeyVersion {
		if t != TypeHashValkey {
			return r.unknownType(t)
		}
		return r.each(func() error {
			if err := r.skipField(); err != nil {
				return err
			}
			return r.skip(8)
		})
	}
	if t == TypeHashTimed || t == TypeHashTimedPack {
		if err := r.skip(8); err != nil {
			return err
		}
	}
	if t == TypeHashTimedPack || t == TypeHashTimedPackOld {
		return r.skipString()
	}
	return r.each(func() error {
		if err := r.numbers(1); err != nil {
			return err
		}
		return r.skipField()
	})
}

// skipStream skips nodes, numbers, and groups with their consumers.
func (r *Reader) skipStream(t Type) error {
	if err := r.each(r.skipField); err != nil {
		return err
	}
	about, group, times := 3, 2, uint64(8)
	if t != TypeStream {
		about, group = 8, 3
	}
	if t == TypeStream3 {
		times = 16
	}
	if err := r.numbers(about); err != nil {
		return err
	}
	return r.each(func() error { return r.skipGroup(group, times) })
}

// skipGroup skips a group, which begins with some numbers, and whose consumers have times bytes of
// times.
func (r *Reader) skipGroup(numbers int, times uint64) error {
	if err := r.skipString(); err != nil {
		return err
	}
	if err := r.numbers(numbers); err != nil {
		return err
	}
	err := r.each(func() error {
		if err := r.skip(idSize + 8); err != nil {
			return err
		}
		return r.numbers(1)
	})
	if err != nil {
		return err
	}
	return r.each(func() error {
		if err := r.skipString(); err != nil {
			return err
		}
		if err := r.skip(times); err != nil {
			return err
		}
		n, err := r.number()
		if err == nil && n > 1<<58 {
			err = bad("%d pending entries", n)
		}
		if err != nil {
			return err
		}
		return r.skip(n * idSize)
	})
}

// skipModule skips a module's value.
func (r *Reader) skipModule() (name string, err error) {
	id, err := r.number()
	if err != nil {
		return "", err
	}
	return moduleName(id), r.moduleParts()
}

// moduleParts skips the data of a module: kinds and values, up to an end mark.
func (r *Reader) moduleParts() error {
	for {
		kind, err := r.number()
		if err != nil {
			return err
		}
		switch kind {
		case moduleEnd:
			return nil
		case moduleInt, moduleUint:
			err = r.numbers(1)
		case moduleFloat:
			err = r.skip(4)
		case moduleDouble:
			err = r.skip(8)
		case moduleString:
			err = r.skipString()
		default:
			err = bad("no part of a module's value is of kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}
