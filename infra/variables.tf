# Where the charts and images are.

variable "charts" {
  description = "Where the four charts are: the URL of a registry's folder (oci://REGISTRY/charts), or a folder of this machine (/srv/soperator/charts, ./charts)."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^(oci://[^/]+/.+[^/]|[./].*[^/])$", var.charts))
    error_message = "charts: begin with oci:// for a registry, or with / or . for a folder, and end without a slash: oci://registry.example/soperator/charts."
  }
}

variable "chart_version" {
  description = "Version of all four charts. Required for a registry; a folder has one version."
  type        = string
  default     = null

  validation {
    condition     = var.chart_version != null || !startswith(var.charts, "oci://")
    error_message = "chart_version: name the version of the charts in the registry, for example \"0.1.0\"; otherwise a later apply would install whatever is newest."
  }
  validation {
    condition     = var.chart_version == null || can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+([-+][0-9A-Za-z.+-]+)?$", var.chart_version))
    error_message = "chart_version: write three numbers, for example \"0.1.0\", without a v and without a range."
  }
}

variable "images" {
  description = "Images of the operator and of Slurm: PREFIX/ROLE:TAG, where `make release` published them. tag: not set is the version of the charts. digests: sha256:… by role. pull_secrets: names of Secrets with the registry's password, in both namespaces."
  type = object({
    prefix       = string
    tag          = optional(string)
    digests      = optional(map(string), {})
    pull_secrets = optional(list(string), [])
  })
  nullable = false

  validation {
    condition     = can(regex("^[^:/][^/]*(/[^/]+)+$", var.images.prefix)) && !can(regex("://", var.images.prefix))
    error_message = "images.prefix: write registry and folder, without a scheme and without a slash at the end: registry.example/soperator."
  }
  validation {
    condition     = alltrue([for digest in values(var.images.digests) : can(regex("^sha256:[0-9a-f]{64}$", digest))])
    error_message = "images.digests: each is sha256: and 64 hexadecimal digits, as the file of digests of a release has them."
  }
}

# The operator.

variable "install_operator" {
  description = "Whether this module installs the CRDs and the operator. Set false for a second cluster of the same Kubernetes, whose module call depends on the first."
  type        = bool
  default     = true
  nullable    = false
}

variable "operator_namespace" {
  description = "Namespace of the CRDs' release and of the operator. It is created if it is missing, and it stays after a destroy."
  type        = string
  default     = "soperator-system"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.operator_namespace))
    error_message = "operator_namespace: a namespace has 1 to 63 of a-z, 0-9 and '-', and begins and ends with a letter or digit."
  }
}

variable "operator" {
  description = "The operator. replicas: more than 1 stand by. watch_namespace: the only namespace that it watches; empty: all. replace_machines: let health checks cordon Nodes. restrict_tenants: install the policy on who may ask for what. dashboards: ConfigMaps for Grafana. wait: let apply wait until it runs; false where Nodes come later."
  type = object({
    replicas         = optional(number, 1)
    watch_namespace  = optional(string, "")
    replace_machines = optional(bool, false)
    restrict_tenants = optional(bool, false)
    dashboards       = optional(bool, false)
    wait             = optional(bool, true)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.operator.replicas >= 1 && floor(var.operator.replicas) == var.operator.replicas
    error_message = "operator.replicas: write a whole number of at least 1; without an operator a destroy would wait for ever."
  }
  validation {
    condition     = contains(["", var.namespace], var.operator.watch_namespace)
    error_message = "operator.watch_namespace: leave it empty, or write the value of namespace; otherwise nothing would run the cluster."
  }
}

variable "operator_values" {
  description = "Further values of the chart soperator, as its README lists them. They are merged over those of this module."
  type        = any
  default     = {}
}

# The cluster.

variable "name" {
  description = "Name of the SlurmCluster and of its release."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$", var.name))
    error_message = "name: at most 30 of a-z, 0-9 and '-', beginning with a letter and not ending with '-', because names of pods and Services begin with it."
  }
}

variable "namespace" {
  description = "Namespace of the cluster. It is created if it is missing, and it stays after a destroy, because deleting a namespace ends jobs at once."
  type        = string
  default     = "slurm"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "namespace: a namespace has 1 to 63 of a-z, 0-9 and '-', and begins and ends with a letter or digit."
  }
}

variable "storage" {
  description = "Static volumes and claims, where no storage driver makes them: in host_path, a folder that is the same on every Node, or on an NFS server, in FOLDER/NAME-jail and so on, which must exist on the server. state_size and database_size: not set, no such volume. Null: nothing is made."
  type = object({
    host_path = optional(string)
    nfs = optional(object({
      server        = string
      path          = string
      mount_options = optional(list(string), [])
    }))
    jail_size         = optional(string, "100Gi")
    state_size        = optional(string)
    state_access_mode = optional(string, "ReadWriteOnce")
    database_size     = optional(string)
  })
  default = null

  validation {
    condition     = var.storage == null || try((var.storage.host_path == null) != (var.storage.nfs == null), false)
    error_message = "storage: set one of host_path and nfs, to say where the files are, and leave the other out."
  }
  validation {
    condition     = try(startswith(var.storage.host_path, "/"), true)
    error_message = "storage.host_path: write an absolute path of the Nodes, for example /mnt/shared."
  }
  validation {
    condition     = try(contains(["ReadWriteOnce", "ReadWriteMany"], var.storage.state_access_mode), true)
    error_message = "storage.state_access_mode: write ReadWriteOnce, or ReadWriteMany for a cluster with several controllers."
  }
}

variable "jail" {
  description = "The shared root file system. claim_name: a claim that exists. Otherwise the operator makes one of this size and class, which must support ReadWriteMany; with storage.jail_size leave all three out. image: another image to fill it from. submounts: other claims at paths of the jail."
  type = object({
    claim_name    = optional(string)
    size          = optional(string)
    storage_class = optional(string)
    image         = optional(string)
    submounts = optional(list(object({
      path       = string
      claim_name = string
      sub_path   = optional(string)
      read_only  = optional(bool, false)
    })), [])
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.storage == null || (var.jail.claim_name == null && var.jail.size == null && var.jail.storage_class == null)
    error_message = "jail: storage makes the claim of the jail already; leave out jail.claim_name, jail.size and jail.storage_class, or storage."
  }
  validation {
    condition     = var.jail.claim_name == null || (var.jail.size == null && var.jail.storage_class == null)
    error_message = "jail: a claim that exists (claim_name) has its size and class already; leave out size and storage_class."
  }
  validation {
    condition     = alltrue([for submount in var.jail.submounts : can(regex("^/[^/]+(/[^/]+)*$", submount.path))])
    error_message = "jail.submounts: each path is absolute and has no slash at its end, for example /home."
  }
}

variable "state" {
  description = "The claim with slurmctld's state, chosen like that of the jail."
  type = object({
    claim_name    = optional(string)
    size          = optional(string)
    storage_class = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = try(var.storage.state_size, null) == null || (var.state.claim_name == null && var.state.size == null && var.state.storage_class == null)
    error_message = "state: storage.state_size makes this claim already; leave out state, or storage.state_size."
  }
  validation {
    condition     = var.state.claim_name == null || (var.state.size == null && var.state.storage_class == null)
    error_message = "state: a claim that exists (claim_name) has its size and class already; leave out size and storage_class."
  }
}

variable "user_namespace" {
  description = "Whether pods run in a user namespace. False for a jail on NFS, which cannot be idmapped in common kernels; root in the jail then has the Node's own user ids."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !var.user_namespace || try(var.storage.nfs, null) == null
    error_message = "user_namespace: NFS cannot be idmapped in common kernels, so no pod would start; set user_namespace = false, and read docs/howto/storage.md on what that costs."
  }
}

variable "login" {
  description = "The login nodes. service_type, port, annotations, source_ranges: the Service for SSH. root_authorized_keys: public keys of the administrator who creates the other users."
  type = object({
    replicas             = optional(number, 1)
    service_type         = optional(string, "LoadBalancer")
    port                 = optional(number, 22)
    annotations          = optional(map(string), {})
    source_ranges        = optional(list(string), [])
    root_authorized_keys = optional(list(string), [])
    node_selector        = optional(map(string), {})
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["ClusterIP", "NodePort", "LoadBalancer"], var.login.service_type)
    error_message = "login.service_type: write ClusterIP, NodePort or LoadBalancer."
  }
  validation {
    condition     = var.login.replicas >= 0 && var.login.replicas <= 100 && floor(var.login.replicas) == var.login.replicas
    error_message = "login.replicas: write a whole number from 0 to 100."
  }
  validation {
    condition     = alltrue([for key in var.login.root_authorized_keys : can(regex("^(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?$", key))])
    error_message = "login.root_authorized_keys: each is one line of a public key file (id_ed25519.pub), beginning with its type, such as ssh-ed25519; a private key never belongs here."
  }
  validation {
    condition     = alltrue([for range in var.login.source_ranges : can(cidrhost(range, 0))])
    error_message = "login.source_ranges: each is a network, for example 192.0.2.0/24."
  }
}

variable "partitions" {
  description = "Partitions. Empty: one, named main, with all nodes. node_sets: names of node_sets; empty: all of them. options: by their names in slurm.conf, for example MaxTime."
  type = list(object({
    name      = string
    default   = optional(bool, false)
    node_sets = optional(list(string), [])
    options   = optional(map(string), {})
  }))
  default  = []
  nullable = false

  validation {
    condition     = length([for partition in var.partitions : partition if partition.default]) <= 1
    error_message = "partitions: at most one may have default = true."
  }
  validation {
    condition     = alltrue(flatten([for partition in var.partitions : [for name in partition.node_sets : contains(keys(var.node_sets), name)]]))
    error_message = "partitions: node_sets of a partition must be keys of the variable node_sets; correct the name, or add the NodeSet."
  }
}

variable "node_sets" {
  description = "NodeSets by name: groups of equal workers. replicas: how many; or power_saving, where Slurm's queue decides. requests, limits: cpu, memory and so on of each; the limit is the size of the Slurm node. gpu: vendor, count and type. rdma: device resources, and whether jobs get /dev/infiniband. drain: how long jobs may delay a change or a destroy."
  type = map(object({
    replicas = optional(number)
    power_saving = optional(object({
      min_nodes    = optional(number, 0)
      max_nodes    = number
      suspend_time = optional(string, "10m")
    }))
    requests = optional(map(string), {})
    limits   = optional(map(string), {})
    gpu = optional(object({
      vendor = string
      count  = number
      type   = optional(string)
    }))
    rdma = optional(object({
      resources  = optional(map(string), {})
      infiniband = optional(bool, true)
    }))
    features      = optional(list(string), [])
    weight        = optional(number)
    shm_size      = optional(string)
    node_selector = optional(map(string), {})
    tolerations = optional(list(object({
      key      = optional(string)
      operator = optional(string, "Exists")
      value    = optional(string)
      effect   = optional(string)
    })), [])
    drain = optional(object({
      timeout    = optional(string)
      on_timeout = optional(string, "Wait")
    }))
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.node_sets) : can(regex("^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$", name))])
    error_message = "node_sets: each name has at most 40 of a-z, 0-9 and '-', because names of Slurm nodes begin with it."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : set.replicas == null || set.power_saving == null])
    error_message = "node_sets: replicas has no effect with power_saving, because the queue decides; leave one of them out."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : try(set.replicas >= 0 && set.replicas <= 10000 && floor(set.replicas) == set.replicas, true)])
    error_message = "node_sets: replicas is a whole number from 0 to 10000."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : try(set.power_saving.min_nodes <= set.power_saving.max_nodes && set.power_saving.max_nodes >= 1, true)])
    error_message = "node_sets: power_saving.max_nodes is at least 1, and not smaller than min_nodes."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : set.power_saving == null || length(setsubtract(["cpu", "memory"], keys(merge(set.requests, set.limits)))) == 0])
    error_message = "node_sets: with power_saving Slurm must know the size of nodes that have no pod; set cpu and memory in limits or requests."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : try(contains(["nvidia", "amd"], set.gpu.vendor) && set.gpu.count >= 1 && set.gpu.count <= 64, true)])
    error_message = "node_sets: gpu.vendor is nvidia or amd, and gpu.count is 1 to 64; leave gpu out for nodes without GPUs."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : try(contains(["Wait", "Requeue", "Cancel"], set.drain.on_timeout), true)])
    error_message = "node_sets: drain.on_timeout is Wait, Requeue or Cancel."
  }
  validation {
    condition     = alltrue([for set in values(var.node_sets) : try(set.drain.on_timeout == "Wait" || set.drain.timeout != null, true)])
    error_message = "node_sets: drain.on_timeout takes effect after drain.timeout; set timeout, for example \"12h\", or leave on_timeout at Wait."
  }
}

variable "cluster_spec" {
  description = "Further fields of the SlurmCluster's spec by their names in docs/reference/slurmcluster.md, for example { accounting = { … } }. They are merged over those of this module."
  type        = any
  default     = {}
}

variable "node_set_specs" {
  description = "Further fields of NodeSets' specs by their names in docs/reference/nodeset.md, by NodeSet. They are merged over those of this module."
  type        = any
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.node_set_specs) : contains(keys(var.node_sets), name)])
    error_message = "node_set_specs: each key must be a key of node_sets; a NodeSet that is only here would not be waited for on destroy."
  }
}

# How long things may last.

variable "timeout" {
  description = "Seconds that each release may take to be installed or upgraded."
  type        = number
  default     = 600
  nullable    = false

  validation {
    condition     = var.timeout >= 30
    error_message = "timeout: write at least 30 (seconds)."
  }
}

variable "destroy_wait" {
  description = "How `destroy` waits until the jobs have ended, by kubectl on this machine. kubeconfig and context: of the Kubernetes cluster; not set: as kubectl finds it. timeout: after it, destroy ends with an error, and the next one waits again. kubectl: the program."
  type = object({
    kubeconfig = optional(string, "")
    context    = optional(string, "")
    timeout    = optional(string, "24h")
    kubectl    = optional(string, "kubectl")
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex("^([1-9][0-9]*(h|m|s))+$", var.destroy_wait.timeout))
    error_message = "destroy_wait.timeout: write a duration such as 24h, 90m or 30s."
  }
}
