// Command runtime is a container runtime that runs nothing and says what it was asked for: enough CRI for a kubelet.
//
// It listens on the socket that is its only argument. On standard output it says, a line each:
//
//	listening
//	sandbox NAMESPACE/POD
//	create NAMESPACE/POD CONTAINER CDI-ID,CDI-ID
//	start NAMESPACE/POD CONTAINER
//	stop NAMESPACE/POD CONTAINER
//
// A container that starts has one line in its log. What is executed in it, and who attaches or forwards a port, is
// answered as streams.go says.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

const version = "0.1.0"

// terminated is the exit code of a container that ended because it was asked to.
const terminated = 143

type container struct {
	status  *cri.ContainerStatus
	sandbox string
}

type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer

	mutex      sync.Mutex
	sandboxes  map[string]*cri.PodSandboxStatus
	containers map[string]*container
	images     map[string]bool
	count      int
	streams    streaming.Server
}

func say(format string, arguments ...any) {
	fmt.Printf(format+"\n", arguments...)
}

func title(pod *cri.PodSandboxMetadata) string {
	return pod.Namespace + "/" + pod.Name
}

// next names something new; the lock is held.
func (r *runtime) next(kind string) string {
	r.count++
	return fmt.Sprintf("%s-%d", kind, r.count)
}

func (r *runtime) container(id string) (*container, error) {
	if found, ok := r.containers[id]; ok {
		return found, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %s: there is none", id)
}

func (r *runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "recording", RuntimeVersion: version, RuntimeApiVersion: "v1"}, nil
}

func (r *runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	conditions := []*cri.RuntimeCondition{{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true}}
	return &cri.StatusResponse{
		Status:          &cri.RuntimeStatus{Conditions: conditions},
		RuntimeHandlers: []*cri.RuntimeHandler{{Features: &cri.RuntimeHandlerFeatures{}}},
	}, nil
}

func (r *runtime) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}}, nil
}

func (r *runtime) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

// Sandboxes

func (r *runtime) RunPodSandbox(_ context.Context, request *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	config := request.Config
	id := r.next("sandbox")
	r.sandboxes[id] = &cri.PodSandboxStatus{
		Id:          id,
		Metadata:    config.Metadata,
		State:       cri.PodSandboxState_SANDBOX_READY,
		CreatedAt:   time.Now().UnixNano(),
		Network:     &cri.PodSandboxNetworkStatus{Ip: "127.0.0.1"},
		Linux:       &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
		Labels:      config.Labels,
		Annotations: config.Annotations,
	}
	say("sandbox %s", title(config.Metadata))
	return &cri.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (r *runtime) StopPodSandbox(_ context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if sandbox, ok := r.sandboxes[request.PodSandboxId]; ok {
		sandbox.State = cri.PodSandboxState_SANDBOX_NOTREADY
		for _, each := range r.containers {
			if each.sandbox == request.PodSandboxId {
				r.end(each)
			}
		}
	}
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *runtime) RemovePodSandbox(_ context.Context, request *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.sandboxes, request.PodSandboxId)
	for id, each := range r.containers {
		if each.sandbox == request.PodSandboxId {
			delete(r.containers, id)
		}
	}
	return &cri.RemovePodSandboxResponse{}, nil
}

func (r *runtime) PodSandboxStatus(_ context.Context, request *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	sandbox, ok := r.sandboxes[request.PodSandboxId]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "sandbox %s: there is none", request.PodSandboxId)
	}
	return &cri.PodSandboxStatusResponse{Status: sandbox}, nil
}

func (r *runtime) ListPodSandbox(_ context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	filter := request.GetFilter()
	answer := &cri.ListPodSandboxResponse{}
	for id, each := range r.sandboxes {
		if filter.GetId() != "" && filter.Id != id || filter.GetState() != nil && filter.State.State != each.State || !selects(filter.GetLabelSelector(), each.Labels) {
			continue
		}
		answer.Items = append(answer.Items, &cri.PodSandbox{
			Id: id, Metadata: each.Metadata, State: each.State, CreatedAt: each.CreatedAt, Labels: each.Labels, Annotations: each.Annotations,
		})
	}
	return answer, nil
}

// Containers

func (r *runtime) CreateContainer(_ context.Context, request *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	config := request.Config
	var devices []string
	for _, each := range config.CDIDevices {
		devices = append(devices, each.Name)
	}
	id := r.next("container")
	r.containers[id] = &container{sandbox: request.PodSandboxId, status: &cri.ContainerStatus{
		Id:          id,
		Metadata:    config.Metadata,
		State:       cri.ContainerState_CONTAINER_CREATED,
		CreatedAt:   time.Now().UnixNano(),
		Image:       config.Image,
		ImageRef:    config.Image.GetImage(),
		Labels:      config.Labels,
		Annotations: config.Annotations,
		LogPath:     filepath.Join(request.SandboxConfig.LogDirectory, config.LogPath),
	}}
	say("create %s %s %s", title(request.SandboxConfig.Metadata), config.Metadata.Name, strings.Join(devices, ","))
	return &cri.CreateContainerResponse{ContainerId: id}, nil
}

func (r *runtime) StartContainer(_ context.Context, request *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	started, err := r.container(request.ContainerId)
	if err != nil {
		return nil, err
	}
	started.status.State = cri.ContainerState_CONTAINER_RUNNING
	started.status.StartedAt = time.Now().UnixNano()
	line := fmt.Sprintf("%s stdout F container %s begins\n", time.Now().UTC().Format(time.RFC3339Nano), started.status.Metadata.Name)
	if err := os.WriteFile(started.status.LogPath, []byte(line), 0o600); err != nil {
		return nil, err
	}
	r.tell("start", started)
	return &cri.StartContainerResponse{}, nil
}

func (r *runtime) StopContainer(_ context.Context, request *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if stopped, ok := r.containers[request.ContainerId]; ok {
		r.end(stopped)
	}
	return &cri.StopContainerResponse{}, nil
}

// end has a container be over; the lock is held.
func (r *runtime) end(of *container) {
	if of.status.State == cri.ContainerState_CONTAINER_EXITED {
		return
	}
	of.status.State = cri.ContainerState_CONTAINER_EXITED
	of.status.FinishedAt = time.Now().UnixNano()
	of.status.ExitCode = terminated
	r.tell("stop", of)
}

func (r *runtime) tell(what string, of *container) {
	if sandbox, ok := r.sandboxes[of.sandbox]; ok {
		say("%s %s %s", what, title(sandbox.Metadata), of.status.Metadata.Name)
	}
}

func (r *runtime) RemoveContainer(_ context.Context, request *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.containers, request.ContainerId)
	return &cri.RemoveContainerResponse{}, nil
}

func (r *runtime) ContainerStatus(_ context.Context, request *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found, err := r.container(request.ContainerId)
	if err != nil {
		return nil, err
	}
	return &cri.ContainerStatusResponse{Status: found.status}, nil
}

func (r *runtime) ListContainers(_ context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	filter := request.GetFilter()
	answer := &cri.ListContainersResponse{}
	for id, each := range r.containers {
		if filter.GetId() != "" && filter.Id != id ||
			filter.GetPodSandboxId() != "" && filter.PodSandboxId != each.sandbox ||
			filter.GetState() != nil && filter.State.State != each.status.State ||
			!selects(filter.GetLabelSelector(), each.status.Labels) {
			continue
		}
		answer.Containers = append(answer.Containers, &cri.Container{
			Id: id, PodSandboxId: each.sandbox, Metadata: each.status.Metadata, Image: each.status.Image, ImageRef: each.status.ImageRef,
			State: each.status.State, CreatedAt: each.status.CreatedAt, Labels: each.status.Labels, Annotations: each.status.Annotations,
		})
	}
	return answer, nil
}

func (r *runtime) UpdateContainerResources(context.Context, *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}

func (r *runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	return &cri.ListContainerStatsResponse{}, nil
}

func (r *runtime) ListPodSandboxStats(context.Context, *cri.ListPodSandboxStatsRequest) (*cri.ListPodSandboxStatsResponse, error) {
	return &cri.ListPodSandboxStatsResponse{}, nil
}

func selects(labels, of map[string]string) bool {
	for key, value := range labels {
		if of[key] != value {
			return false
		}
	}
	return true
}

// Images: all exist as soon as somebody pulls them.

func (r *runtime) PullImage(_ context.Context, request *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.images[request.Image.Image] = true
	return &cri.PullImageResponse{ImageRef: request.Image.Image}, nil
}

func (r *runtime) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.images[request.Image.Image] {
		return &cri.ImageStatusResponse{}, nil
	}
	return &cri.ImageStatusResponse{Image: image(request.Image.Image)}, nil
}

func (r *runtime) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	answer := &cri.ListImagesResponse{}
	for name := range r.images {
		answer.Images = append(answer.Images, image(name))
	}
	return answer, nil
}

func image(name string) *cri.Image {
	return &cri.Image{Id: name, RepoTags: []string{name}, Size: 1, Spec: &cri.ImageSpec{Image: name}}
}

func (r *runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	usage := []*cri.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &cri.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes:  &cri.UInt64Value{Value: 1},
		InodesUsed: &cri.UInt64Value{Value: 1},
	}}
	return &cri.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: runtime SOCKET")
	}
	if err := os.Remove(os.Args[1]); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	recording := &runtime{sandboxes: map[string]*cri.PodSandboxStatus{}, containers: map[string]*container{}, images: map[string]bool{}}
	if recording.streams, err = serveStreams(); err != nil {
		log.Fatal(err)
	}
	cri.RegisterRuntimeServiceServer(server, recording)
	cri.RegisterImageServiceServer(server, recording)
	say("listening")
	log.Fatal(server.Serve(listener))
}
