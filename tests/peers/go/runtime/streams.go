package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
)

// echo answers streams: a command is repeated in words, whoever attaches is greeted, and all input comes back, also that
// of ports. The command "exit N" ends with that code.
type echo struct{}

func (echo) Exec(_ context.Context, _ string, words []string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if len(words) == 2 && words[0] == "exit" {
		code, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		return exec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return answer(strings.Join(words, " "), in, out)
}

func (echo) Attach(_ context.Context, _ string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	return answer("attached", in, out)
}

func (echo) PortForward(_ context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	if _, err := fmt.Fprintf(stream, "port %d\n", port); err != nil {
		return err
	}
	_, err := io.Copy(stream, stream)
	return err
}

func answer(greeting string, in io.Reader, out io.WriteCloser) error {
	if _, err := fmt.Fprintln(out, greeting); err != nil || in == nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

// serveStreams begins to answer streams on a port that is free.
func serveStreams() (streaming.Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr}
	server, err := streaming.NewServer(config, echo{})
	if err != nil {
		return nil, err
	}
	go func() { log.Fatal(http.Serve(listener, server)) }()
	return server, nil
}

func (r *runtime) Exec(_ context.Context, request *cri.ExecRequest) (*cri.ExecResponse, error) {
	return r.streams.GetExec(request)
}

func (r *runtime) Attach(_ context.Context, request *cri.AttachRequest) (*cri.AttachResponse, error) {
	return r.streams.GetAttach(request)
}

func (r *runtime) PortForward(_ context.Context, request *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	return r.streams.GetPortForward(request)
}
