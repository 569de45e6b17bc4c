package ask

import (
	"bytes"
	"io"
	"syscall"
)

// exchange opens a device, writes a line and reads the one that answers. It does so with bare system calls: they do not
// yield to another goroutine, so that a shell with many jobs has one device open at a time.
func exchange(device string, line []byte) ([]byte, error) {
	fd, err := syscall.Open("/dev/exthost/"+device, syscall.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	for len(line) > 0 {
		n, err := syscall.Write(fd, line)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrShortWrite
		}
		line = line[n:]
	}
	var answer []byte
	buf := make([]byte, 1024)
	for len(answer) < maxLine {
		n, err := syscall.Read(fd, buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		answer = append(answer, buf[:n]...)
		if i := bytes.IndexByte(answer, '\n'); i >= 0 {
			return answer[:i], nil
		}
	}
	return nil, io.ErrUnexpectedEOF
}
