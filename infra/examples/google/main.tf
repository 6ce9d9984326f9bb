# A Kubernetes of Google (GKE) with two groups of machines, and a shared file system (Filestore), in a network that exists.

terraform {
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}

variable "project" {
  description = "The project."
  type        = string
}

variable "zone" {
  description = "The zone of everything, for example europe-west4-b."
  type        = string
}

variable "network" {
  description = "Name of the network."
  type        = string
  default     = "default"
}

variable "gpu_nodes" {
  description = "Number of machines with GPUs, and of Slurm nodes."
  type        = number
  default     = 2
}

variable "gpu_machine" {
  description = "Type of the machines with GPUs."
  type        = string
  default     = "a3-highgpu-8g"
}

variable "gpu_type" {
  description = "Type of their GPUs."
  type        = string
  default     = "nvidia-h100-80gb"
}

provider "google" {
  project = var.project
  zone    = var.zone
}

resource "google_container_cluster" "slurm" {
  name                     = "slurm"
  location                 = var.zone
  network                  = var.network
  remove_default_node_pool = true
  initial_node_count       = 1
  deletion_protection      = false
}

resource "google_container_node_pool" "system" {
  name       = "system"
  cluster    = google_container_cluster.slurm.id
  node_count = 2

  node_config {
    machine_type = "n2-standard-8"
  }
}

resource "google_container_node_pool" "gpu" {
  name       = "gpu"
  cluster    = google_container_cluster.slurm.id
  node_count = var.gpu_nodes

  node_config {
    machine_type = var.gpu_machine
    labels       = { "slurm-nodes" = "gpu" }

    guest_accelerator {
      type  = var.gpu_type
      count = 8

      gpu_driver_installation_config {
        gpu_driver_version = "LATEST"
      }
    }
  }
}

resource "google_filestore_instance" "jail" {
  name     = "slurm-jail"
  location = var.zone
  tier     = "ZONAL"

  file_shares {
    name        = "jail"
    capacity_gb = 1024

    nfs_export_options {
      access_mode = "READ_WRITE"
      squash_mode = "NO_ROOT_SQUASH" # root of the jail creates the users' files
    }
  }

  networks {
    network = var.network
    modes   = ["MODE_IPV4"]
  }
}

data "google_client_config" "here" {}

provider "helm" {
  kubernetes = {
    host                   = "https://${google_container_cluster.slurm.endpoint}"
    cluster_ca_certificate = base64decode(google_container_cluster.slurm.master_auth[0].cluster_ca_certificate)
    token                  = data.google_client_config.here.access_token
  }
}
