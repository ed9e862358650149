package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/routing"
)

// RoutingFile and StreamFile are the generated Go files, below the repository's root.
const (
	RoutingFile = "internal/routing/data.go"
	StreamFile  = "internal/oplog/data.go"
)

const goMarker = "// Code generated from the commands' Specs by `make docs`; DO NOT EDIT.\n\n"

// Sources returns the contents of the generated Go files by their names below the
// repository's root. They hold data for packages that must not import the commands.
func Sources(t *command.Table) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, write := range map[string]func(*command.Table) ([]byte, error){RoutingFile: routingSource, StreamFile: streamSource} {
		text, err := write(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if files[name], err = format.Source(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

func routingSource(t *command.Table) ([]byte, error) {
	all, err := Routing(t)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(goMarker + "package routing\n\nimport \"time\"\n\nvar commands = [...]Command{\n")
	for i := range all {
		b.WriteString("\t")
		writeFields(&b, reflect.ValueOf(all[i]))
		b.WriteString(",\n")
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// Routing returns the data of the table's commands that clients need, by name.
func Routing(t *command.Table) ([]routing.Command, error) {
	var all []routing.Command
	for id := range t.Len() {
		s := t.Spec(id)
		c := routing.Command{Name: s.Name, Flags: routingFlags(s), FanOut: fanOut[s.FanOut], Wait: routing.Timeout(s.Timeout())}
		if o := s.KeyOptions; o != nil {
			c.Options = &routing.KeyOptions{First: o.First.Pos, Instead: o.Instead, Only: o.Only, From: o.From,
				Take: routing.Take(o.Take), Pairs: o.Pairs}
			for _, x := range o.Options {
				c.Options.Options = append(c.Options.Options, routing.KeyOption{Word: x.Word, Args: x.Args, Key: x.Key != 0, Before: x.Before})
			}
			all = append(all, c)
			continue
		}
		for _, k := range s.AllKeySpecs() {
			rule, err := keyRule(&k)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			c.Keys = append(c.Keys, rule)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b routing.Command) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// fanOut are a client's ways to run a command for those of a Spec.
var fanOut = map[command.FanOut]routing.FanOut{
	command.FanOutNone: routing.FanOutNone, command.FanOutOne: routing.FanOutNone, command.FanOutLast: routing.FanOutLast,
	command.FanOutSum:  routing.FanOutSum,
	command.FanOutJoin: routing.FanOutJoin, command.FanOutAny: routing.FanOutAny, command.FanOutScan: routing.FanOutScan,
}

func routingFlags(s *command.Spec) (f routing.Flags) {
	for _, x := range []struct {
		flag routing.Flags
		is   bool
	}{
		{routing.Write, s.MayWrite()},
		{routing.Stateful, s.Client&command.Stateful != 0},
		{routing.Pipelined, s.AutoPipelined()},
		{routing.Container, len(s.Sub) > 0},
		{routing.NoKeys, s.Has(command.NoMandatoryKeys)},
	} {
		if x.is {
			f |= x.flag
		}
	}
	return f
}

func keyRule(k *command.KeySpec) (r routing.KeyRule, err error) {
	r = routing.KeyRule{Index: k.Index, Keyword: k.Keyword, Last: k.Last, Half: k.Limit == 2}
	if k.Step != 1 {
		r.Step = k.Step
	}
	switch {
	case k.Begin == command.BeginUnknown || k.Find == command.FindUnknown:
		return r, fmt.Errorf("a key spec is unknown to clients: give the Spec KeyOptions")
	case k.Find == command.FindKeyNum && k.First < 1, k.Limit > 2, k.Step < 1:
		return r, fmt.Errorf("a client's rule cannot express %+v", *k)
	case k.Find == command.FindKeyNum:
		r.First, r.Count, r.Last = k.First, k.Count, 0
	}
	return r, nil
}

// writeFields writes a struct's fields that are not zero, in braces.
func writeFields(b *bytes.Buffer, v reflect.Value) {
	b.WriteString("{")
	first := true
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		b.WriteString(v.Type().Field(i).Name + ": ")
		writeField(b, f)
	}
	b.WriteString("}")
}

func writeField(b *bytes.Buffer, f reflect.Value) {
	switch x := f.Interface().(type) {
	case routing.Flags:
		b.WriteString(flagNames(x))
		return
	case routing.FanOut:
		b.WriteString([...]string{"FanOutNone", "FanOutLast", "FanOutSum", "FanOutJoin", "FanOutAny", "FanOutScan"}[x])
		return
	case routing.Take:
		b.WriteString([...]string{"TakeAll", "TakeLast", "TakeFirst"}[x])
		return
	case time.Duration:
		b.WriteString(map[time.Duration]string{time.Second: "time.Second", time.Millisecond: "time.Millisecond"}[x])
		return
	}
	switch f.Kind() {
	case reflect.Struct:
		b.WriteString(f.Type().Name())
		writeFields(b, f)
	case reflect.Pointer:
		b.WriteString("&" + f.Type().Elem().Name())
		writeFields(b, f.Elem())
	case reflect.Slice:
		b.WriteString("[]" + f.Type().Elem().Name() + "{")
		for i := range f.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			if f.Type() == reflect.TypeFor[[]routing.KeyOption]() { // a line each
				b.WriteString("\n")
			}
			writeFields(b, f.Index(i))
		}
		b.WriteString("}")
	default:
		fmt.Fprintf(b, "%#v", f.Interface())
	}
}

// flagNames writes flags as their names.
func flagNames(f routing.Flags) string {
	var names []string
	for i, name := range []string{"Write", "Stateful", "Pipelined", "Container", "NoKeys"} {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " | ")
}

// streamSource returns the Go file with the commands of a plain replica's stream: see
// oplog.Plain.
func streamSource(t *command.Table) ([]byte, error) {
	redis, newer := map[string]bool{}, map[string]string{}
	for id := range t.Len() {
		s := t.Spec(id)
		name, _, _ := strings.Cut(s.Name, "|")
		switch inStream := s.Has(command.Write) || s.Has(command.MayReplicate) || s.Stream&command.StreamControl != 0; {
		case !inStream || s.OfEbb():
		case has(redis70, s.Name):
			redis[name] = true
		default:
			newer[name] = fmt.Sprintf("{lowest: %s, logged: %v}", lowest(s.Name), s.Stream&command.StreamEffect != 0)
		}
	}
	var b bytes.Buffer
	b.WriteString(goMarker + "package oplog\n\n// plainNames are the commands in a stream that Redis 7.0 knows.\n" +
		"var plainNames = map[string]bool{\n")
	for _, name := range slices.Sorted(maps.Keys(redis)) {
		fmt.Fprintf(&b, "\t%q: true,\n", strings.ToUpper(name))
	}
	b.WriteString("}\n\n// newerNames are the commands about plain data that Redis 7.0 does not know.\n" +
		"var newerNames = map[string]newerName{\n")
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		fmt.Fprintf(&b, "\t%q: %s,\n", strings.ToUpper(name), newer[name])
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// lowest returns the name of the first of oplog's dialects whose server knows a command.
func lowest(name string) string {
	switch {
	case has(redis80, name):
		return "Redis8"
	case has(valkey91, name):
		return "Valkey9"
	}
	return "noDialect"
}

// has reports whether a server's list has a command.
func has(commands, name string) bool {
	for x := range strings.FieldsSeq(commands) {
		if x == name {
			return true
		}
	}
	return false
}
