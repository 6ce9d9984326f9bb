// CoreDNS with only the plugins that the cluster's Corefile names; the full one compiles for four minutes.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

// A request passes the plugins in this order, which is the order of upstream's plugin.cfg.
func init() {
	dnsserver.Directives = []string{
		"reload", "health", "ready", "errors", "cache", "loadbalance", "kubernetes", "loop", "forward",
	}
}

func main() {
	coremain.Run()
}
