// Command driver is a DRA driver on upstream's kubeletplugin helper, for a kubelet or an agent that behaves like one.
//
// It publishes devices dev-0, dev-1, ... of its node and writes one CDI file for every claim. What it is asked for it
// says on standard output, a line each:
//
//	registered
//	prepare NAMESPACE/CLAIM DEVICE,DEVICE
//	unprepare NAMESPACE/CLAIM
//	problem TEXT
//
// How it behaves is told on standard input, a line each: "fail TEXT" has claims fail, "hang" has it prepare and never
// answer, "ok" ends both, "health DEVICE STATE" reports Healthy, Unhealthy or Unknown. It stops at the end of input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const healthInterval = 200 * time.Millisecond

type driver struct {
	name, node, cdi string
	count           int

	mutex   sync.Mutex
	failure error
	hangs   bool
	health  map[string]kubeletplugin.HealthStatus
}

func say(format string, arguments ...any) {
	fmt.Printf(format+"\n", arguments...)
}

func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	d.mutex.Lock()
	hangs := d.hangs
	d.mutex.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	var prepared []kubeletplugin.Device
	var names []string
	var entries []map[string]any
	for number, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		if !d.publishes(result.Pool, result.Device) {
			return nil, fmt.Errorf("device unavailable: %s/%s is not published", result.Pool, result.Device)
		}
		entry := fmt.Sprintf("%s-%d", claim.UID, number)
		names = append(names, result.Device)
		entries = append(entries, map[string]any{
			"name":           entry,
			"containerEdits": map[string]any{"env": []string{fmt.Sprintf("DEVICE_%d=%s", number, result.Device)}},
		})
		prepared = append(prepared, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			ShareID:      result.ShareID,
			CDIDeviceIDs: []string{fmt.Sprintf("%s/device=%s", d.name, entry)},
		})
	}
	say("prepare %s/%s %s", claim.Namespace, claim.Name, strings.Join(names, ","))
	d.mutex.Lock()
	failure := d.failure
	d.mutex.Unlock()
	if failure != nil {
		return nil, failure
	}
	content, err := json.Marshal(map[string]any{"cdiVersion": "0.5.0", "kind": d.name + "/device", "devices": entries})
	if err != nil {
		return nil, err
	}
	return prepared, os.WriteFile(d.file(claim.UID), content, 0o644)
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		say("unprepare %s/%s", claim.Namespace, claim.Name)
		err := os.Remove(d.file(claim.UID))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		results[claim.UID] = err
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	say("problem %s: %v", message, err)
}

func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		var report kubeletplugin.DeviceHealthReport
		d.mutex.Lock()
		for device, state := range d.health {
			report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{PoolName: d.node, DeviceName: device, Health: state})
		}
		d.mutex.Unlock()
		select {
		case reports <- report:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-time.After(healthInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *driver) file(claim types.UID) string {
	return filepath.Join(d.cdi, fmt.Sprintf("%s-%s.json", d.name, claim))
}

// obey does what one line of standard input tells.
func (d *driver) obey(line string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "fail":
		d.failure = errors.New(rest)
	case "hang":
		d.hangs = true
	case "ok":
		d.failure, d.hangs = nil, false
	case "health":
		device, state, _ := strings.Cut(rest, " ")
		d.health[device] = kubeletplugin.HealthStatus(state)
	}
}

// publishes tells whether a device is one of the inventory: a claim may have been allocated from an old slice.
func (d *driver) publishes(pool, device string) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(device, "dev-"))
	return pool == d.node && err == nil && 0 <= number && number < d.count && device == fmt.Sprintf("dev-%d", number)
}

func (d *driver) inventory(count int) resourceslice.DriverResources {
	// What is in which slice is the driver's affair: the helper does not divide them.
	slices := make([]resourceslice.Slice, 1+max(0, count-1)/resourceapi.ResourceSliceMaxDevices)
	for number := range count {
		slice := &slices[number/resourceapi.ResourceSliceMaxDevices]
		slice.Devices = append(slice.Devices, resourceapi.Device{Name: fmt.Sprintf("dev-%d", number)})
	}
	pool := resourceslice.Pool{Slices: slices}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: pool}}
}

func main() {
	name := flag.String("driver", "gpu.example.com", "the driver's name")
	node := flag.String("node", "", "the node's name")
	root := flag.String("root", "/var/lib/kubelet", "the directory of the kubelet")
	cdi := flag.String("cdi", "/var/run/cdi", "the directory of CDI files")
	count := flag.Int("devices", 4, "how many devices there are")
	podUID := flag.String("pod-uid", "", "the uid of the driver's pod: allows for a rolling update")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	// Without a limit of its own: it fetches every claim, and whoever measures wants to measure others.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	data := filepath.Join(*root, "plugins", *name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	d := &driver{name: *name, node: *node, cdi: *cdi, count: *count, health: map[string]kubeletplugin.HealthStatus{}}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(*name),
		kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	}
	if *podUID != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(*podUID)))
	}
	helper, err := kubeletplugin.Start(ctx, d, options...)
	if err != nil {
		log.Fatal(err)
	}
	if err := helper.PublishResources(ctx, d.inventory(*count)); err != nil {
		log.Fatal(err)
	}
	go func() {
		for !helper.RegistrationStatus().GetPluginRegistered() {
			time.Sleep(10 * time.Millisecond)
		}
		say("registered")
	}()
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		d.obey(input.Text())
	}
	helper.Stop()
}
