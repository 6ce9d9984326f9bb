# A Kubernetes of Nebius with two groups of machines, InfiniBand, and a shared file system that each machine mounts, in a subnet that exists.

terraform {
  required_providers {
    nebius = {
      source  = "nebius/nebius" # its own registry, not that of hashicorp's: Nebius' documentation has the address to put before it
      version = ">= 0.5.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}

variable "project_id" {
  description = "The project (parent_id)."
  type        = string
}

variable "subnet_id" {
  description = "The subnet of all machines."
  type        = string
}

variable "fabric" {
  description = "The InfiniBand fabric, for example fabric-6."
  type        = string
}

variable "gpu_nodes" {
  description = "Number of machines with GPUs, and of Slurm nodes."
  type        = number
  default     = 2
}

variable "gpu_platform" {
  description = "Platform of the machines with GPUs."
  type        = string
  default     = "gpu-h100-sxm"
}

variable "gpu_preset" {
  description = "Preset of the machines with GPUs."
  type        = string
  default     = "8gpu-128vcpu-1600gb"
}

variable "drivers_preset" {
  description = "The GPU driver that the machines come with."
  type        = string
  default     = "cuda12.8"
}

provider "nebius" {}

locals {
  folder = "/mnt/shared"
  files = [{
    attach_mode         = "READ_WRITE"
    mount_tag           = "shared"
    existing_filesystem = { id = nebius_compute_v1_filesystem.shared.id }
  }]
  mount = "#cloud-config\n${yamlencode({ runcmd = ["mkdir -p ${local.folder}", "mount -t virtiofs shared ${local.folder}", "echo 'shared ${local.folder} virtiofs rw,nofail 0 2' >> /etc/fstab"] })}"
}

resource "nebius_compute_v1_filesystem" "shared" {
  parent_id      = var.project_id
  name           = "slurm-shared"
  type           = "NETWORK_SSD"
  size_gibibytes = 2048
}

resource "nebius_compute_v1_gpu_cluster" "fabric" {
  parent_id         = var.project_id
  name              = "slurm"
  infiniband_fabric = var.fabric
}

resource "nebius_mk8s_v1_cluster" "slurm" {
  parent_id = var.project_id
  name      = "slurm"

  control_plane = {
    subnet_id = var.subnet_id
    endpoints = { public_endpoint = {} }
  }
}

resource "nebius_mk8s_v1_node_group" "system" {
  parent_id        = nebius_mk8s_v1_cluster.slurm.id
  name             = "system"
  fixed_node_count = 2

  template = {
    resources            = { platform = "cpu-d3", preset = "8vcpu-32gb" }
    boot_disk            = { type = "NETWORK_SSD", size_gibibytes = 128 }
    network_interfaces   = [{ subnet_id = var.subnet_id }]
    filesystems          = local.files
    cloud_init_user_data = local.mount
  }
}

resource "nebius_mk8s_v1_node_group" "gpu" {
  parent_id        = nebius_mk8s_v1_cluster.slurm.id
  name             = "gpu"
  fixed_node_count = var.gpu_nodes

  template = {
    metadata             = { labels = { "slurm-nodes" = "gpu" } }
    resources            = { platform = var.gpu_platform, preset = var.gpu_preset }
    boot_disk            = { type = "NETWORK_SSD", size_gibibytes = 512 }
    network_interfaces   = [{ subnet_id = var.subnet_id }]
    gpu_cluster          = { id = nebius_compute_v1_gpu_cluster.fabric.id }
    gpu_settings         = { drivers_preset = var.drivers_preset }
    filesystems          = local.files
    cloud_init_user_data = local.mount
  }
}

provider "helm" {
  kubernetes = {
    host                   = nebius_mk8s_v1_cluster.slurm.status.control_plane.endpoints.public_endpoint
    cluster_ca_certificate = nebius_mk8s_v1_cluster.slurm.status.control_plane.auth.cluster_ca_certificate

    exec = {
      api_version = "client.authentication.k8s.io/v1"
      command     = "nebius"
      args        = ["mk8s", "v1", "cluster", "get-token", "--format", "json"]
    }
  }
}
