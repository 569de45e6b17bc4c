package wasiabi

import (
	"context"
	"fmt"
	"slices"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// ModuleName is the import module of all functions.
const ModuleName = "wasi_snapshot_preview1"

// call is the body of a function: args has as many entries as the signature has parameters.
type call func(p *Process, m memory, a []uint64) (errno, error)

// plain wraps a body that never unwinds the guest.
func plain(f func(p *Process, m memory, a []uint64) errno) call {
	return func(p *Process, m memory, a []uint64) (errno, error) { return f(p, m, a), nil }
}

const (
	i = I32
	l = I64
)

// Functions lists every function of wasi_snapshot_preview1, in the order of their names. The caller owns the list.
func Functions() []Function {
	type row struct {
		name   string
		params []ValueType
		call   call
	}
	rows := []row{
		{"args_get", []ValueType{i, i}, plain(argsGet)},
		{"args_sizes_get", []ValueType{i, i}, plain(argsSizesGet)},
		{"clock_res_get", []ValueType{i, i}, plain(clockResGet)},
		{"clock_time_get", []ValueType{i, l, i}, plain(clockTimeGet)},
		{"environ_get", []ValueType{i, i}, plain(environGet)},
		{"environ_sizes_get", []ValueType{i, i}, plain(environSizesGet)},
		{"fd_advise", []ValueType{i, l, l, i}, plain(fdAdvise)},
		{"fd_allocate", []ValueType{i, l, l}, plain(fdAllocate)},
		{"fd_close", []ValueType{i}, plain(fdClose)},
		{"fd_datasync", []ValueType{i}, plain(fdDatasync)},
		{"fd_fdstat_get", []ValueType{i, i}, plain(fdFdstatGet)},
		{"fd_fdstat_set_flags", []ValueType{i, i}, plain(fdFdstatSetFlags)},
		{"fd_fdstat_set_rights", []ValueType{i, l, l}, plain(fdFdstatSetRights)},
		{"fd_filestat_get", []ValueType{i, i}, plain(fdFilestatGet)},
		{"fd_filestat_set_size", []ValueType{i, l}, plain(fdFilestatSetSize)},
		{"fd_filestat_set_times", []ValueType{i, l, l, i}, plain(fdFilestatSetTimes)},
		{"fd_pread", []ValueType{i, i, i, l, i}, fdPread},
		{"fd_prestat_dir_name", []ValueType{i, i, i}, plain(fdPrestatDirName)},
		{"fd_prestat_get", []ValueType{i, i}, plain(fdPrestatGet)},
		{"fd_pwrite", []ValueType{i, i, i, l, i}, fdPwrite},
		{"fd_read", []ValueType{i, i, i, i}, fdRead},
		{"fd_readdir", []ValueType{i, i, i, l, i}, plain(fdReaddir)},
		{"fd_renumber", []ValueType{i, i}, plain(fdRenumber)},
		{"fd_seek", []ValueType{i, l, i, i}, plain(fdSeek)},
		{"fd_sync", []ValueType{i}, plain(fdSync)},
		{"fd_tell", []ValueType{i, i}, plain(fdTell)},
		{"fd_write", []ValueType{i, i, i, i}, fdWrite},
		{"path_create_directory", []ValueType{i, i, i}, plain(pathCreateDirectory)},
		{"path_filestat_get", []ValueType{i, i, i, i, i}, plain(pathFilestatGet)},
		{"path_filestat_set_times", []ValueType{i, i, i, i, l, l, i}, plain(pathFilestatSetTimes)},
		{"path_link", []ValueType{i, i, i, i, i, i, i}, plain(pathLink)},
		{"path_open", []ValueType{i, i, i, i, i, l, l, i, i}, plain(pathOpen)},
		{"path_readlink", []ValueType{i, i, i, i, i, i}, plain(pathReadlink)},
		{"path_remove_directory", []ValueType{i, i, i}, plain(pathRemoveDirectory)},
		{"path_rename", []ValueType{i, i, i, i, i, i}, plain(pathRename)},
		{"path_symlink", []ValueType{i, i, i, i, i}, plain(pathSymlink)},
		{"path_unlink_file", []ValueType{i, i, i}, plain(pathUnlinkFile)},
		{"poll_oneoff", []ValueType{i, i, i, i}, pollOneoff},
		{"proc_exit", []ValueType{i}, procExit},
		{"proc_raise", []ValueType{i}, procRaise},
		{"random_get", []ValueType{i, i}, randomGet},
		{"sched_yield", nil, plain(schedYield)},
		{"sock_accept", []ValueType{i, i, i}, plain(sock)},
		{"sock_recv", []ValueType{i, i, i, i, i, i}, plain(sock)},
		{"sock_send", []ValueType{i, i, i, i, i}, plain(sock)},
		{"sock_shutdown", []ValueType{i, i}, plain(sock)},
	}
	out := make([]Function, len(rows))
	for n, r := range rows {
		f := Function{Module: ModuleName, Name: r.name, Params: slices.Clone(r.params), Results: []ValueType{I32}}
		if r.name == "proc_exit" {
			f.Results = nil
		}
		f.Call = func(p *Process, mem []byte, args []uint64) (uint32, error) {
			return p.call(r.name, r.call, r.params, mem, args)
		}
		out[n] = f
	}
	return out
}

// call runs one function: not after the end of the run, and one at a time.
func (p *Process) call(name string, f call, params []ValueType, mem []byte, args []uint64) (uint32, error) {
	if len(args) != len(params) {
		return 0, fmt.Errorf("%s: %d arguments, the signature has %d", name, len(args), len(params))
	}
	var a [9]uint64
	for n, v := range args {
		if params[n] == I32 {
			v = uint64(uint32(v)) // whatever an engine leaves in the upper half
		}
		a[n] = v
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !running(p.ctx) {
		return 0, context.Cause(p.ctx)
	}
	e, err := f(p, mem, a[:len(args)])
	if err != nil {
		return 0, err
	}
	if e > rootfs.ENOTCAPABLE {
		e = rootfs.EIO
	}
	return uint32(e), nil
}
