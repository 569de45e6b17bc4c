//go:build wasip1

// The socket functions of preview 1 on every descriptor that there is: no policy grants a socket.
//
// expect: denied ENOTCAPABLE ENOTSUP EBADF ENOTSOCK ENOSYS
package exfil

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("sockets", func() {
		for fd := int32(0); fd < 8; fd++ {
			b := make([]byte, 16)
			Errnof(SockAccept(fd, 0, Cell()), "accept on %d", fd)
			Errnof(SockRecv(fd, Vector(b), 1, 0, Cell(), Cell()+4), "receive on %d", fd)
			Errnof(SockSend(fd, Vector(b), 1, 0, Cell()), "send on %d", fd)
			Errnof(SockShutdown(fd, 3), "shut down %d", fd)
		}
	})
}
