package memstats

import (
	"encoding/binary"
	"errors"
	"syscall"
)

// process reads the proc file system without allocating: both files stay open, statm is read at offset 0, descriptors
// are counted by the directory's size (Linux 6.2 and later) or by its entries.
type process struct {
	statm    int // file descriptors, -1 when they could not be opened
	dir      int
	pageSize uint64
	sized    bool // the directory's size is the number of descriptors
	buf      [4096]byte
	stat     syscall.Stat_t
}

func (p *process) open(procDir string, missing []string) []string {
	p.pageSize = uint64(syscall.Getpagesize())
	var err error
	p.statm, err = syscall.Open(procDir+"/statm", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		p.statm = -1
		missing = append(missing, "resident set: "+procDir+"/statm: "+err.Error())
	}
	p.dir, err = syscall.Open(procDir+"/fd", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err == nil {
		err = syscall.Fstat(p.dir, &p.stat)
	}
	if err != nil {
		missing = append(missing, "open files: "+procDir+"/fd: "+err.Error())
	}
	p.sized = err == nil && p.stat.Size > 0
	return missing
}

func (p *process) close() error {
	var errs []error
	for _, fd := range []*int{&p.statm, &p.dir} {
		if *fd >= 0 {
			errs = append(errs, syscall.Close(*fd))
		}
		*fd = -1
	}
	return errors.Join(errs...)
}

func (p *process) read() (resident, fds uint64) {
	return p.resident(), p.fds()
}

// resident reads the second field of statm, in pages.
func (p *process) resident() uint64 {
	if p.statm < 0 {
		return 0
	}
	n, err := syscall.Pread(p.statm, p.buf[:], 0)
	if err != nil || n <= 0 {
		return 0
	}
	i := 0
	for i < n && p.buf[i] != ' ' {
		i++
	}
	var pages uint64
	for i++; i < n && p.buf[i] >= '0' && p.buf[i] <= '9'; i++ {
		pages = pages*10 + uint64(p.buf[i]-'0')
	}
	return pages * p.pageSize
}

func (p *process) fds() uint64 {
	if p.dir < 0 {
		return 0
	}
	if p.sized {
		if err := syscall.Fstat(p.dir, &p.stat); err != nil {
			return 0
		}
		return uint64(p.stat.Size)
	}
	if _, err := syscall.Seek(p.dir, 0, 0); err != nil {
		return 0
	}
	return saturatingSub(p.countEntries(), 2) // "." and ".."
}

// countEntries counts the directory's entries, zero on an error.
func (p *process) countEntries() (entries uint64) {
	const reclenOffset, headerSize = 16, 19 // struct linux_dirent64
	for {
		n, err := syscall.ReadDirent(p.dir, p.buf[:])
		if err != nil {
			return 0
		}
		if n <= 0 {
			return entries
		}
		for off := 0; off+headerSize <= n; entries++ {
			reclen := int(binary.NativeEndian.Uint16(p.buf[off+reclenOffset:]))
			if reclen < headerSize {
				return 0
			}
			off += reclen
		}
	}
}
