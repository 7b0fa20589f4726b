// Command publish runs upstream's ResourceSlice controller on scenarios: a JSON object on each line of standard input,
// and an array with the result of each step on each line of standard output.
//
//	{"driver", "owner", "reconcilePoolWithName", "existing": [SLICE], "nodes": [NODE], "steps": [STEP]}
//
// A step has "do": publish {pools}, fault {verb, error, times}, drop {features that the server drops}, deleteSlice
// {name}, putSlice {slice}. Its result has the writes since the last step, the slices and the errors, after the
// controller was quiet for a while. Changes by others are repaired after 60 ms.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
)

const (
	syncDelay  = 60 * time.Millisecond
	quiet      = 400 * time.Millisecond
	concurrent = 24
)

var (
	group     = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}
	timeAdded = metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

type fault struct {
	Verb  string `json:"verb"`
	Error string `json:"error"`
	Times int    `json:"times"`
}

type step struct {
	Do    string                        `json:"do"`
	Pools map[string]resourceslice.Pool `json:"pools"`
	Fault fault                         `json:"fault"`
	Drop  []string                      `json:"drop"`
	Name  string                        `json:"name"`
	Slice resourceapi.ResourceSlice     `json:"slice"`
}

type scenario struct {
	Driver    string                      `json:"driver"`
	Owner     *resourceslice.Owner        `json:"owner"`
	Reconcile string                      `json:"reconcilePoolWithName"`
	Existing  []resourceapi.ResourceSlice `json:"existing"`
	Nodes     []v1.Node                   `json:"nodes"`
	Steps     []step                      `json:"steps"`
}

type document = map[string]any

type watcher struct {
	*watch.RaceFreeFakeWatcher
	selector fields.Selector
}

type server struct {
	mutex    sync.Mutex
	slices   map[string]*resourceapi.ResourceSlice
	writes   []document
	problems []string
	faults   []*fault
	drops    map[string]bool
	watchers []watcher
	revision int
	suffix   int
	changed  time.Time
}

func matches(slice *resourceapi.ResourceSlice, selector fields.Selector) bool {
	node := ""
	if slice.Spec.NodeName != nil {
		node = *slice.Spec.NodeName
	}
	return selector == nil || selector.Matches(fields.Set{
		resourceapi.ResourceSliceSelectorDriver:   slice.Spec.Driver,
		resourceapi.ResourceSliceSelectorNodeName: node,
		resourceapi.ResourceSliceSelectorPoolName: slice.Spec.Pool.Name,
	})
}

func (s *server) dropFields(slice *resourceapi.ResourceSlice) {
	spec := &slice.Spec
	if s.drops["DRAPartitionableDevices"] {
		spec.SharedCounters, spec.PerDeviceNodeSelection = nil, nil
	}
	if s.drops["DRAPartitionableDevicesType"] {
		spec.PartitionTypeAttribute = nil
	}
	if s.drops["DRAOptionalNodeOperations"] {
		spec.SkipNodeOperations = nil
	}
	for i := range spec.Devices {
		device := &spec.Devices[i]
		if s.drops["DRADeviceTaints"] {
			device.Taints = nil
		}
		if s.drops["DRAPartitionableDevices"] {
			device.ConsumesCounters = nil
		}
		if s.drops["DRADeviceBindingConditions"] {
			device.BindingConditions, device.BindingFailureConditions, device.BindsToNode = nil, nil, nil
		}
		if s.drops["DRAConsumableCapacity"] {
			device.AllowMultipleAllocations = nil
		}
		for j := range device.Taints {
			if device.Taints[j].TimeAdded == nil {
				device.Taints[j].TimeAdded = timeAdded.DeepCopy()
			}
		}
	}
}

func (s *server) keep(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	s.revision++
	s.changed = time.Now()
	stored := slice.DeepCopy()
	stored.ResourceVersion = fmt.Sprint(s.revision)
	s.dropFields(stored)
	_, known := s.slices[stored.Name]
	s.slices[stored.Name] = stored
	for _, each := range s.watchers {
		if !matches(stored, each.selector) {
			continue
		}
		if known {
			each.Modify(stored.DeepCopy())
		} else {
			each.Add(stored.DeepCopy())
		}
	}
	return stored.DeepCopy()
}

func (s *server) remove(name string) {
	s.revision++
	s.changed = time.Now()
	gone := s.slices[name].DeepCopy()
	delete(s.slices, name)
	gone.ResourceVersion = fmt.Sprint(s.revision)
	for _, each := range s.watchers {
		if matches(gone, each.selector) {
			each.Delete(gone)
		}
	}
}

func failure(name string) error {
	switch name {
	case "conflict":
		return apierrors.NewConflict(group, "x", errors.New("the object has been modified"))
	case "notfound":
		return apierrors.NewNotFound(group, "x")
	case "invalid":
		kind := schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceSlice"}
		return apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(field.NewPath("spec", "devices").Index(0).Child("name"), "")})
	case "forbidden":
		return apierrors.NewForbidden(group, "x", errors.New("no"))
	case "timeout":
		return apierrors.NewTimeoutError("try later", 0)
	default:
		return apierrors.NewServiceUnavailable("try later")
	}
}

func (s *server) mayFail(verb string, write document) error {
	for _, each := range s.faults {
		if each.Verb == verb && each.Times > 0 {
			each.Times--
			err := failure(each.Error)
			write["verb"], write["failed"] = verb, err.Error()
			s.writes = append(s.writes, write)
			s.changed = time.Now()
			return err
		}
	}
	return nil
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetResource().Version != "v1" {
		// The client tries older versions for an object that it does not find.
		return true, nil, failure("notfound")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		slice := action.GetObject().(*resourceapi.ResourceSlice).DeepCopy()
		if err := s.mayFail("create", document{"generateName": slice.GenerateName}); err != nil {
			return true, nil, err
		}
		s.suffix++
		slice.Name = fmt.Sprintf("%s%03d", slice.GenerateName, s.suffix)
		slice.UID = types.UID("uid-" + slice.Name)
		write := document{"verb": "create", "generateName": slice.GenerateName, "name": slice.Name, "spec": slice.Spec.DeepCopy()}
		if len(slice.OwnerReferences) > 0 {
			write["ownerReferences"] = slice.OwnerReferences
		}
		s.writes = append(s.writes, write)
		return true, s.keep(slice), nil
	case clienttesting.UpdateActionImpl:
		slice := action.GetObject().(*resourceapi.ResourceSlice).DeepCopy()
		if err := s.mayFail("update", document{"name": slice.Name}); err != nil {
			return true, nil, err
		}
		stored, known := s.slices[slice.Name]
		if !known {
			return true, nil, failure("notfound")
		}
		if stored.ResourceVersion != slice.ResourceVersion {
			return true, nil, failure("conflict")
		}
		s.writes = append(s.writes, document{"verb": "update", "name": slice.Name, "spec": slice.Spec.DeepCopy()})
		return true, s.keep(slice), nil
	case clienttesting.DeleteActionImpl:
		conditions := action.GetDeleteOptions().Preconditions
		given := document{"uid": conditions != nil && conditions.UID != nil, "resourceVersion": conditions != nil && conditions.ResourceVersion != nil}
		if err := s.mayFail("delete", document{"name": action.GetName(), "preconditions": given}); err != nil {
			return true, nil, err
		}
		stored, known := s.slices[action.GetName()]
		if !known {
			return true, nil, failure("notfound")
		}
		if conditions != nil && (conditions.UID != nil && *conditions.UID != stored.UID || conditions.ResourceVersion != nil && *conditions.ResourceVersion != stored.ResourceVersion) {
			return true, nil, failure("conflict")
		}
		s.writes = append(s.writes, document{"verb": "delete", "name": action.GetName(), "preconditions": given})
		s.remove(action.GetName())
		return true, nil, nil
	case clienttesting.ListActionImpl:
		list := &resourceapi.ResourceSliceList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.revision)}}
		for _, each := range s.slices {
			if matches(each, action.GetListRestrictions().Fields) {
				list.Items = append(list.Items, *each.DeepCopy())
			}
		}
		return true, list, nil
	}
	return false, nil, nil
}

func (s *server) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	restrictions := action.(clienttesting.WatchActionImpl).GetWatchRestrictions()
	added := watcher{watch.NewRaceFreeFake(), restrictions.Fields}
	s.watchers = append(s.watchers, added)
	return true, added, nil
}

func (s *server) resolve(name string) string {
	if _, known := s.slices[name]; known {
		return name
	}
	prefix := name[:strings.LastIndex(name, "-")+1]
	for _, each := range s.names() {
		if strings.HasPrefix(each, prefix) {
			return each
		}
	}
	return name
}

func (s *server) names() []string {
	names := []string{}
	for name := range s.slices {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (s *server) waitUntilQuiet() {
	for {
		time.Sleep(syncDelay)
		s.mutex.Lock()
		isQuiet := time.Since(s.changed) > quiet
		s.mutex.Unlock()
		if isQuiet {
			return
		}
	}
}

func (s *server) result() document {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	slices := []document{}
	for _, name := range s.names() {
		spec := s.slices[name].Spec
		slices = append(slices, document{
			"name": name, "devices": len(spec.Devices), "pool": spec.Pool.Name,
			"generation": spec.Pool.Generation, "resourceSliceCount": spec.Pool.ResourceSliceCount,
		})
	}
	result := document{"slices": slices, "writes": s.writes, "errors": s.problems}
	s.writes, s.problems = []document{}, []string{}
	return result
}

func (s *server) report(_ context.Context, err error, message string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind := ""
	var dropped *resourceslice.DroppedFieldsError
	if errors.As(err, &dropped) {
		kind = " [DroppedFieldsError]"
	} else if apierrors.IsInvalid(err) {
		kind = " [Invalid]"
	}
	s.problems = append(s.problems, fmt.Sprintf("%s: %v%s", message, err, kind))
	s.changed = time.Now()
}

func run(todo scenario) []document {
	s := &server{slices: map[string]*resourceapi.ResourceSlice{}, drops: map[string]bool{}, revision: 100, writes: []document{}, problems: []string{}, changed: time.Now()}
	objects := []runtime.Object{}
	for i := range todo.Nodes {
		objects = append(objects, &todo.Nodes[i])
	}
	client := fake.NewSimpleClientset(objects...)
	client.PrependReactor("*", "resourceslices", s.react)
	client.PrependWatchReactor("resourceslices", s.watch)
	for i := range todo.Existing {
		s.keep(&todo.Existing[i])
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var controller *resourceslice.Controller
	results := []document{}
	for _, each := range todo.Steps {
		s.mutex.Lock()
		s.changed = time.Now()
		switch each.Do {
		case "fault":
			s.faults = append(s.faults, &fault{each.Fault.Verb, each.Fault.Error, each.Fault.Times})
		case "drop":
			s.drops = map[string]bool{}
			for _, feature := range each.Drop {
				s.drops[feature] = true
			}
		case "deleteSlice":
			if name := s.resolve(each.Name); s.slices[name] != nil {
				s.remove(name)
			}
		case "putSlice":
			slice := each.Slice.DeepCopy()
			slice.Name = s.resolve(slice.Name)
			s.keep(slice)
		}
		s.mutex.Unlock()
		if each.Do == "publish" {
			resources := &resourceslice.DriverResources{Pools: each.Pools}
			if controller == nil {
				delay := syncDelay
				var err error
				controller, err = resourceslice.StartController(ctx, resourceslice.Options{
					DriverName: todo.Driver, KubeClient: client, Owner: todo.Owner, Resources: resources, SyncDelay: &delay,
					ErrorHandler: s.report, ReconcilePoolWithName: todo.Reconcile,
				})
				if err != nil {
					return append(results, document{"startError": err.Error()})
				}
				defer controller.Stop()
			} else {
				controller.Update(resources)
			}
		}
		if each.Do == "fault" || each.Do == "drop" {
			results = append(results, nil)
			continue
		}
		s.waitUntilQuiet()
		results = append(results, s.result())
	}
	return results
}

func main() {
	klog.SetLogger(klog.New(nil))
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	todo := []scenario{}
	for input.Scan() {
		var next scenario
		if err := json.Unmarshal(input.Bytes(), &next); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		todo = append(todo, next)
	}
	results := make([][]document, len(todo))
	var wait sync.WaitGroup
	places := make(chan struct{}, concurrent)
	for i := range todo {
		wait.Add(1)
		places <- struct{}{}
		go func() {
			defer wait.Done()
			defer func() { <-places }()
			results[i] = run(todo[i])
		}()
	}
	wait.Wait()
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for _, each := range results {
		if err := output.Encode(each); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
