// Command cdi answers questions about CDI files with the interface's own Go library: a JSON object on each line of
// standard input, and one on each line of standard output.
//
//	{"kind": "validate", "text": FILE}                                valid, error, devices, minimumVersion
//	{"kind": "name", "value": NAME}                                   valid, error, parts, parseDevice
//	{"kind": "inject", "files": [{dir, name, text}], "devices", "oci"}  oci or error, listDevices, fileErrors
//
// Files of directory 1 have a higher priority than those of directory 0. A file that its library cannot decode has no
// minimumVersion.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

type file struct {
	Dir  int    `json:"dir"`
	Name string `json:"name"`
	Text string `json:"text"`
}

type question struct {
	Kind    string          `json:"kind"`
	Text    string          `json:"text"`
	Value   string          `json:"value"`
	Files   []file          `json:"files"`
	Devices []string        `json:"devices"`
	OCI     json.RawMessage `json:"oci"`
}

type answer map[string]any

func validate(q question, folder string) answer {
	path := filepath.Join(folder, "spec.yaml")
	if err := os.WriteFile(path, []byte(q.Text), 0o600); err != nil {
		panic(err)
	}
	raw, err := cdi.ParseSpec([]byte(q.Text))
	if err != nil || raw == nil {
		return answer{"valid": false, "error": fmt.Sprint(err)}
	}
	result := answer{"valid": true}
	if minimum, err := specs.MinimumRequiredVersion(raw); err == nil {
		result["minimumVersion"] = minimum
	}
	spec, err := cdi.ReadSpec(path, 0)
	if err != nil {
		result["valid"], result["error"] = false, err.Error()
		return result
	}
	devices := []string{}
	for _, device := range spec.Devices {
		devices = append(devices, spec.GetDevice(device.Name).GetQualifiedName())
	}
	result["devices"] = devices
	return result
}

func name(q question) answer {
	vendor, class, device := parser.ParseDevice(q.Value)
	result := answer{"valid": true, "parseDevice": []string{vendor, class, device}}
	result["isQualified"] = parser.IsQualifiedName(q.Value)
	vendor, class, device, err := parser.ParseQualifiedName(q.Value)
	if err != nil {
		result["valid"], result["error"] = false, err.Error()
		return result
	}
	result["parts"] = []string{vendor, class, device}
	return result
}

func inject(q question, folder string) answer {
	directories := []string{filepath.Join(folder, "0"), filepath.Join(folder, "1")}
	for _, each := range directories {
		if err := os.Mkdir(each, 0o700); err != nil {
			panic(err)
		}
	}
	for _, each := range q.Files {
		path := filepath.Join(directories[each.Dir], each.Name)
		if err := os.WriteFile(path, []byte(each.Text), 0o600); err != nil {
			panic(err)
		}
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(directories...), cdi.WithAutoRefresh(false))
	if err != nil {
		panic(err)
	}
	wrong := []string{}
	for path, problems := range cache.GetErrors() {
		if len(problems) > 0 {
			relative, _ := filepath.Rel(folder, path)
			wrong = append(wrong, relative)
		}
	}
	sort.Strings(wrong)
	result := answer{"listDevices": cache.ListDevices(), "fileErrors": wrong}
	container := &oci.Spec{}
	if len(q.OCI) > 0 {
		if err := json.Unmarshal(q.OCI, container); err != nil {
			return answer{"unreadable": err.Error()}
		}
	}
	unresolved, err := cache.InjectDevices(container, q.Devices...)
	if err != nil {
		result["error"] = err.Error()
		result["unresolved"] = unresolved
		return result
	}
	result["oci"] = container
	return result
}

func reply(q question) (result answer) {
	folder, err := os.MkdirTemp("", "cdi")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	defer func() {
		if problem := recover(); problem != nil {
			result = answer{"panic": fmt.Sprint(problem)}
		}
	}()
	switch q.Kind {
	case "validate":
		return validate(q, folder)
	case "name":
		return name(q)
	default:
		return inject(q, folder)
	}
}

func main() {
	input := bufio.NewReader(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	decoder := json.NewDecoder(input)
	for decoder.More() {
		var q question
		if err := decoder.Decode(&q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := output.Encode(reply(q)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
