package cache

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func metaOf(f *os.File) (meta, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return meta{}, os.NewSyscallError("fstat", err)
	}
	return meta{Inode: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}, nil
}

func oneOwnName(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1 && st.Uid == uint32(os.Geteuid())
}

// Sealed copies size bytes of r into unnamed memory that nobody can change any more, and returns it open for reading
// from its start.
func Sealed(name string, r io.Reader, size int64) (*os.File, error) {
	return sealed(name, r, size, nil)
}

// sealed also writes what it copied to sum, if that is not nil.
func sealed(name string, r io.Reader, size int64, sum io.Writer) (*os.File, error) {
	fd, err := unix.MemfdCreate("exthost-"+name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := fill(f, r, size, sum); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func fill(f *os.File, r io.Reader, size int64, sum io.Writer) error {
	n, err := io.Copy(f, io.LimitReader(r, size))
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, n, size)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if sum == nil {
		return nil
	}
	// What is hashed is the sealed copy: it cannot differ from what runs.
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	return nil
}
