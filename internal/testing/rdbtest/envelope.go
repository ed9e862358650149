package rdbtest

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// fatal has the methods that testing.TB and rapid.T share.
type fatal interface{ Fatal(args ...any) }

// LZ4 compresses a file as a whole, in an envelope, as Valkey 9.2 does: independent blocks of
// 64 KiB and all checksums, unless options say otherwise.
func LZ4(t fatal, file []byte, options ...lz4.Option) []byte {
	return envelope(t, 1, file, func(w io.Writer) (io.WriteCloser, error) {
		z := lz4.NewWriter(w)
		err := z.Apply(append([]lz4.Option{lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true)},
			options...)...)
		return z, err
	})
}

// Zstandard does the work of LZ4 with the other algorithm.
func Zstandard(t fatal, file []byte, options ...zstd.EOption) []byte {
	return envelope(t, 2, file, func(w io.Writer) (io.WriteCloser, error) {
		return zstd.NewWriter(w, append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, options...)...)
	})
}

func envelope(t fatal, algorithm byte, file []byte, begin func(io.Writer) (io.WriteCloser, error)) []byte {
	var b bytes.Buffer
	b.Write([]byte{'V', 'C', 'S', 1, algorithm, 0, 1})
	w, err := begin(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
