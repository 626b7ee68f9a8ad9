// Command service is a web service whose answers are computed by a script, one interpreter per request: a request can
// neither outlive its deadline nor see another's data, and a bad script ends in an error page.
//
//	go run ./examples/service            # serves http://127.0.0.1:8080/?x=3
//	go run ./examples/service -once      # answers two requests of its own and ends
package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/fucina-go/fucina"
)

//go:embed *.star
var scripts embed.FS

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	once := flag.Bool("once", false, "answer two requests of its own and end")
	flag.Parse()
	if err := run(*address, *once); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string, once bool) error {
	if once {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 5 * time.Second}
	if !once {
		fmt.Printf("serving http://%s/?x=3\n", listener.Addr())
		return server.Serve(listener)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	for _, query := range []string{"x=3", "x=many"} {
		if err := get("http://" + listener.Addr().String() + "/?" + query); err != nil {
			return err
		}
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// answer runs the script for one request.
func answer(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	var printed bytes.Buffer
	p := fucina.New(fucina.Stdout(&printed), fucina.MaxSteps(1_000_000), fucina.MemoryLimit(16<<20), fucina.Threads(1))
	defer p.Close()
	x, err := strconv.ParseFloat(r.FormValue("x"), 64)
	if err == nil {
		err = p.Run(ctx, scripts, "answer.star", map[string]any{"x": x})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := printed.WriteTo(w); err != nil {
		return // the client has gone
	}
}

func get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%d: %s", resp.StatusCode, body)
	return err
}
