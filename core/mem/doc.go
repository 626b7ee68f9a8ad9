// Package mem owns memory outside the Go heap: buffers pooled by size class and counted by reference,
// and read-only file mappings. It knows bytes only: no element types, no shapes, no tensors.
//
// Memory comes from the operating system through osAlloc and goes back through osFree; the collector
// neither scans it nor counts it, which keeps both cheap for gigabytes of weights.
package mem
