// A client-go program as drivers and controllers are: typed clients, which speak protobuf, and shared informers.
//
// It creates, changes and deletes objects, and prints what its informers see of them, one line each, in order.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyresource "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

const namespace = "default"

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type watcher struct{ seen chan string }

func (w watcher) handler(kind string) cache.ResourceEventHandlerFuncs {
	tell := func(change string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		w.seen <- fmt.Sprintf("%s %s %s", kind, change, object.(metav1.Object).GetName())
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("updated", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	}
}

func (w watcher) expect(line string) {
	select {
	case found := <-w.seen:
		fmt.Println(found)
		if found != line {
			must(fmt.Errorf("expected %q, saw %q", line, found))
		}
	case <-time.After(30 * time.Second):
		must(fmt.Errorf("expected %q, saw nothing", line))
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	clients, err := kubernetes.NewForConfig(config)
	must(err)
	w := watcher{seen: make(chan string, 100)}
	byLabel := informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "by=client-go" })
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, byLabel)
	_, err = factory.Resource().V1().ResourceClaims().Informer().AddEventHandler(w.handler("claim"))
	must(err)
	_, err = factory.Resource().V1().ResourceSlices().Informer().AddEventHandler(w.handler("slice"))
	must(err)
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(w.handler("pod"))
	must(err)
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			must(fmt.Errorf("%v: no sync", kind))
		}
	}

	labels := map[string]string{"by": "client-go"}
	slices := clients.ResourceV1().ResourceSlices()
	_, err = slices.Create(ctx, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "go-slice", Labels: labels},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:   "go.example.com",
			NodeName: ptr.To("n1"),
			Pool:     resourcev1.ResourcePool{Name: "n1", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name:       "gpu-0",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: ptr.To("A")}},
			}},
		},
	}, metav1.CreateOptions{})
	must(err)
	w.expect("slice added go-slice")

	claims := clients.ResourceV1().ResourceClaims(namespace)
	claim, err := claims.Create(ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "go-claim", Labels: labels},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com"},
		}}}},
	}, metav1.CreateOptions{})
	must(err)
	if claim.Spec.Devices.Requests[0].Exactly.Count != 1 {
		must(fmt.Errorf("no defaults: %v", claim.Spec))
	}
	w.expect("claim added go-claim")
	stale := claim.DeepCopy()
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "go.example.com", Pool: "n1", Device: "gpu-0"},
		},
	}}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	must(err)
	w.expect("claim updated go-claim")
	if _, err = claims.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		must(fmt.Errorf("expected a conflict, got %v", err))
	}
	_, err = claims.Apply(ctx, applyresource.ResourceClaim("go-claim", namespace).WithLabels(map[string]string{"x": "y"}),
		metav1.ApplyOptions{FieldManager: "go"})
	must(err)
	w.expect("claim updated go-claim")

	pods := clients.CoreV1().Pods(namespace)
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "go-pod", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/pause:3.10"}}},
	}, metav1.CreateOptions{})
	must(err)
	w.expect("pod added go-pod")
	must(pods.Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "go-pod", Namespace: namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}, metav1.CreateOptions{}))
	w.expect("pod updated go-pod")
	_, err = pods.Patch(ctx, "go-pod", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"z":"1"}}}`),
		metav1.PatchOptions{})
	must(err)
	w.expect("pod updated go-pod")
	must(pods.EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: "go-pod", Namespace: namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
	}))
	w.expect("pod updated go-pod")
	w.expect("pod deleted go-pod")

	uid := claim.UID
	must(claims.Delete(ctx, "go-claim", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
	w.expect("claim deleted go-claim")
	must(slices.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "by=client-go"}))
	w.expect("slice deleted go-slice")
}
