# The Slurm cluster on the Kubernetes of main.tf. This file needs no provider but helm.

variable "charts" {
  description = "Where the charts are: oci://REGISTRY/charts, as `make release` published them."
  type        = string
}

variable "chart_version" {
  description = "Version of the charts, for example 0.1.0."
  type        = string
}

variable "image_prefix" {
  description = "Where the images are: REGISTRY/soperator, for example."
  type        = string
}

variable "root_authorized_keys" {
  description = "Public SSH keys of the administrator."
  type        = list(string)
}

variable "kubeconfig" {
  description = "A kubeconfig of the Kubernetes cluster on this machine, with which kubectl waits for jobs on destroy; empty: as kubectl finds it."
  type        = string
  default     = ""
}

module "slurm" {
  source = "../.."

  name          = "demo"
  charts        = var.charts
  chart_version = var.chart_version
  images        = { prefix = var.image_prefix }
  destroy_wait  = { kubeconfig = var.kubeconfig }

  storage = {
    nfs       = { server = google_filestore_instance.jail.networks[0].ip_addresses[0], path = "/jail", mount_options = ["hard"] }
    jail_size = "1Ti"
  }
  state = { storage_class = "premium-rwo" }

  user_namespace = false # NFS cannot be idmapped in common kernels: docs/howto/storage.md

  login = {
    root_authorized_keys = var.root_authorized_keys
  }

  node_sets = {
    gpu = {
      replicas      = var.gpu_nodes
      gpu           = { vendor = "nvidia", count = 8, type = "h100" }
      requests      = { cpu = "200", memory = "1700Gi" }
      limits        = { cpu = "200", memory = "1700Gi" }
      node_selector = { "slurm-nodes" = "gpu" }
      tolerations   = [{ key = "nvidia.com/gpu" }]
      shm_size      = "64Gi"
    }
  }

  depends_on = [google_container_node_pool.system]
}

output "login_command" {
  value = module.slurm.login_command
}
