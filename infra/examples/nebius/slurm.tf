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
    host_path  = local.folder
    jail_size  = "2Ti"
    state_size = "16Gi"
  }

  user_namespace = false # whether virtiofs can be idmapped depends on the Node's kernel: docs/howto/storage.md

  login = {
    root_authorized_keys = var.root_authorized_keys
  }

  node_sets = {
    gpu = {
      replicas      = var.gpu_nodes
      gpu           = { vendor = "nvidia", count = 8, type = "h100" }
      requests      = { cpu = "120", memory = "1500Gi" }
      limits        = { cpu = "120", memory = "1500Gi" }
      node_selector = { "slurm-nodes" = "gpu" }
      tolerations   = [{ key = "nvidia.com/gpu" }]
      shm_size      = "64Gi"
      rdma          = { infiniband = true }
    }
  }

  depends_on = [nebius_mk8s_v1_node_group.system]
}

output "login_command" {
  value = module.slurm.login_command
}
