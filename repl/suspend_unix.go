//go:build unix

package repl

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// resumed is how long stopSelf waits to be continued. It passes only where nothing was stopped: a program without a
// shell that could continue it, such as the first of its session, ignores the signal.
const resumed = 250 * time.Millisecond

// stopSelf stops the process group, as a terminal's Ctrl-Z does, and returns when it has been continued. It is the
// group and not the process because a shell waits for all of a job: for go run as much as for what it runs.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(resumed):
	}
}
