package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/worker"
)

// idleTime is how long a bound worker is kept for the next run of its extension.
const idleTime = 30 * time.Second

// pool bounds the workers that are alive, keeps bound ones between runs and spares for the next.
//
// A slot is held by each worker that runs, compiles or is idle; spares have none.
type pool struct {
	opts   worker.Options
	spares int
	refill bool // a spare that was taken is replaced
	slots  chan struct{}
	wg     sync.WaitGroup // background work: starting spares, ending workers

	mu      sync.Mutex
	idle    []*bound // the one that waited longest first; each holds a slot
	spare   []*spare // the oldest first
	waiting int      // acquirers that found no slot
	closed  bool
	ctx     context.Context // ends when the pool is closed
	cancel  context.CancelFunc
}

// bound is a worker that was bound to one extension, policy and set of roots. One run at a time uses it.
type bound struct {
	w       *worker.Worker
	key     string // of the binding
	ext     *Extension
	scratch *scratch.Dir
	walls   []string
	missing []string
	cpu     time.Duration // its limit for life
	used    time.Duration // processor time of earlier runs
	since   time.Time     // idle since
}

// spare is a worker that was started, or is being started, and not bound.
type spare struct {
	done chan struct{} // closed when w or err is set
	w    *worker.Worker
	err  error
}

func newPool(o worker.Options, workers, spares int, refill bool) *pool {
	p := &pool{opts: o, spares: spares, refill: refill, slots: make(chan struct{}, workers)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.mu.Lock()
	p.fill()
	p.mu.Unlock()
	return p
}

// fill starts spares in the background until there are enough.
//
// Preconditions: p.mu is held.
func (p *pool) fill() {
	for !p.closed && len(p.spare) < p.spares {
		s := &spare{done: make(chan struct{})}
		p.spare = append(p.spare, s)
		p.wg.Go(func() {
			defer close(s.done)
			s.w, s.err = worker.Start(p.ctx, p.opts)
		})
	}
}

// end kills a spare that nobody wants.
func (s *spare) end() {
	<-s.done
	if s.err == nil {
		s.w.Kill()
	}
}

// acquire takes a slot, if need be that of a worker that is idle.
func (p *pool) acquire(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	select {
	case p.slots <- struct{}{}:
		p.mu.Unlock()
		return nil
	default:
	}
	if len(p.idle) > 0 {
		b := p.idle[0]
		p.idle = p.idle[1:]
		p.mu.Unlock()
		b.end()
		return nil
	}
	p.waiting++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return ErrClosed
	}
}

func (p *pool) release() { <-p.slots }

// start returns a worker that is not bound yet: a spare, for which it waits if it is being started, or a new one.
func (p *pool) start(ctx context.Context) (*worker.Worker, error) {
	for {
		s := p.takeSpare()
		if s == nil {
			break
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			p.wg.Go(s.end)
			return nil, ctx.Err()
		}
		if s.err != nil {
			break // the start below says what is wrong
		}
		select {
		case <-s.w.Done(): // it died while it waited
		default:
			return s.w, nil
		}
	}
	w, err := worker.Start(ctx, p.opts)
	if errors.Is(err, worker.ErrNoWorkerMain) {
		err = errors.Join(ErrNoWorkerMain, err)
	}
	if errors.Is(err, worker.ErrUnsupported) {
		err = errors.Join(ErrUnsupported, err)
	}
	return w, err
}

func (p *pool) takeSpare() *spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spare) == 0 {
		return nil
	}
	s := p.spare[0]
	p.spare = p.spare[1:]
	if p.refill {
		p.fill()
	}
	return s
}

// take returns an idle worker of this binding, with its slot, or nil.
func (p *pool) take(e *Extension, key string) *bound {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		b := p.idle[i]
		if b.ext != e || b.key != key {
			continue
		}
		p.idle = append(p.idle[:i:i], p.idle[i+1:]...)
		select {
		case <-b.w.Done():
			p.later(b)
			continue
		default:
			return b
		}
	}
	return nil
}

// put keeps b for the next run, or ends it if its slot is wanted.
func (p *pool) put(b *bound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.waiting > 0 {
		p.later(b)
		return
	}
	b.since = time.Now()
	p.idle = append(p.idle, b)
	time.AfterFunc(idleTime+time.Second, p.expire)
}

// later ends b in the background and releases its slot.
//
// Preconditions: p.mu is held.
func (p *pool) later(b *bound) {
	p.wg.Go(func() {
		b.end()
		p.release()
	})
}

// expire ends what was idle for too long.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 && time.Since(p.idle[0].since) > idleTime {
		p.later(p.idle[0])
		p.idle = p.idle[1:]
	}
}

// drop ends the idle workers of e.
func (p *pool) drop(e *Extension) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keep []*bound
	for _, b := range p.idle {
		if b.ext == e {
			p.later(b)
		} else {
			keep = append(keep, b)
		}
	}
	p.idle = keep
}

// close ends all workers that do not run and waits for all that is in the background.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	for _, b := range p.idle {
		p.later(b)
	}
	p.idle = nil
	for _, s := range p.spare {
		p.wg.Go(s.end)
	}
	p.spare = nil
	p.mu.Unlock()
	p.wg.Wait()
}

// end kills the worker and removes what it wrote. It does not release the slot.
func (b *bound) end() {
	b.w.Kill()
	// What cannot be removed now is swept by the next host of this user.
	_ = b.scratch.Remove()
}
