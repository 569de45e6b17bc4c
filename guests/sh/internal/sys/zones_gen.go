//go:build ignore

// Writes zones.deflate out of the time zone database that the Go tree carries: `go generate`.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"sort"
)

func main() {
	r, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		log.Fatal(err)
	}
	zones := map[string]string{}
	var names []string
	for _, f := range r.File {
		if f.FileInfo().IsDir() {
			continue
		}
		o, err := f.Open()
		if err != nil {
			log.Fatal(err)
		}
		b, err := io.ReadAll(o)
		if err != nil {
			log.Fatal(err)
		}
		zones[f.Name] = string(b)
		names = append(names, f.Name)
	}
	sort.Strings(names)
	// Many names mean the same zone: its data stands once, and the names tell which they mean.
	var index, data []byte
	at := map[string]int{}
	for _, name := range names {
		zone := zones[name]
		n, ok := at[zone]
		if !ok {
			n = len(at)
			at[zone] = n
			data = binary.AppendUvarint(data, uint64(len(zone)))
			data = append(data, zone...)
		}
		index = binary.AppendUvarint(index, uint64(len(name)))
		index = append(index, name...)
		index = binary.AppendUvarint(index, uint64(n))
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	w.Write(binary.AppendUvarint(nil, uint64(len(names))))
	w.Write(index)
	w.Write(data)
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("zones.deflate", out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
