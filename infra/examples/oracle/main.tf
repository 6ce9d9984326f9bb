# A Kubernetes of Oracle (OKE) with two groups of machines, and a shared file system (File Storage), in a network that exists.

terraform {
  required_providers {
    oci = {
      source  = "oracle/oci"
      version = ">= 6.0.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}

variable "region" {
  description = "Region, for example eu-frankfurt-1."
  type        = string
}

variable "compartment_id" {
  description = "The compartment."
  type        = string
}

variable "availability_domain" {
  description = "The availability domain of all machines and of the file system."
  type        = string
}

variable "vcn_id" {
  description = "The network."
  type        = string
}

variable "api_subnet_id" {
  description = "The subnet of Kubernetes' API."
  type        = string
}

variable "load_balancer_subnet_id" {
  description = "The subnet of load balancers."
  type        = string
}

variable "node_subnet_id" {
  description = "The subnet of the machines and of the file system; its rules admit NFS."
  type        = string
}

variable "kubernetes_version" {
  description = "Version of Kubernetes, for example v1.34.1."
  type        = string
}

variable "system_image_id" {
  description = "Image of machines without GPUs."
  type        = string
}

variable "gpu_image_id" {
  description = "Image of machines with GPUs."
  type        = string
}

variable "gpu_nodes" {
  description = "Number of machines with GPUs, and of Slurm nodes."
  type        = number
  default     = 2
}

variable "gpu_shape" {
  description = "Shape of the machines with GPUs."
  type        = string
  default     = "BM.GPU.H100.8"
}

provider "oci" {
  region = var.region
}

resource "oci_containerengine_cluster" "slurm" {
  name               = "slurm"
  compartment_id     = var.compartment_id
  vcn_id             = var.vcn_id
  kubernetes_version = var.kubernetes_version
  type               = "ENHANCED_CLUSTER"

  endpoint_config {
    is_public_ip_enabled = true
    subnet_id            = var.api_subnet_id
  }

  options {
    service_lb_subnet_ids = [var.load_balancer_subnet_id]
  }
}

resource "oci_containerengine_node_pool" "system" {
  name               = "system"
  cluster_id         = oci_containerengine_cluster.slurm.id
  compartment_id     = var.compartment_id
  kubernetes_version = var.kubernetes_version
  node_shape         = "VM.Standard.E5.Flex"

  node_shape_config {
    ocpus         = 8
    memory_in_gbs = 64
  }

  node_source_details {
    source_type = "IMAGE"
    image_id    = var.system_image_id
  }

  node_config_details {
    size = 2

    placement_configs {
      availability_domain = var.availability_domain
      subnet_id           = var.node_subnet_id
    }
  }
}

resource "oci_containerengine_node_pool" "gpu" {
  name               = "gpu"
  cluster_id         = oci_containerengine_cluster.slurm.id
  compartment_id     = var.compartment_id
  kubernetes_version = var.kubernetes_version
  node_shape         = var.gpu_shape

  initial_node_labels {
    key   = "slurm-nodes"
    value = "gpu"
  }

  node_source_details {
    source_type             = "IMAGE"
    image_id                = var.gpu_image_id
    boot_volume_size_in_gbs = 500
  }

  node_config_details {
    size = var.gpu_nodes

    placement_configs {
      availability_domain = var.availability_domain
      subnet_id           = var.node_subnet_id
    }
  }
}

resource "oci_file_storage_file_system" "jail" {
  compartment_id      = var.compartment_id
  availability_domain = var.availability_domain
  display_name        = "slurm-jail"
}

resource "oci_file_storage_mount_target" "jail" {
  compartment_id      = var.compartment_id
  availability_domain = var.availability_domain
  subnet_id           = var.node_subnet_id
}

resource "oci_file_storage_export" "jail" {
  export_set_id  = oci_file_storage_mount_target.jail.export_set_id
  file_system_id = oci_file_storage_file_system.jail.id
  path           = "/jail"

  export_options {
    source          = "0.0.0.0/0" # the rules of the subnet say who reaches it
    access          = "READ_WRITE"
    identity_squash = "NONE" # root of the jail creates the users' files
  }
}

data "oci_containerengine_cluster_kube_config" "slurm" {
  cluster_id = oci_containerengine_cluster.slurm.id
}

provider "helm" {
  kubernetes = {
    host                   = "https://${oci_containerengine_cluster.slurm.endpoints[0].public_endpoint}"
    cluster_ca_certificate = base64decode(yamldecode(data.oci_containerengine_cluster_kube_config.slurm.content)["clusters"][0]["cluster"]["certificate-authority-data"])

    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "oci"
      args        = ["ce", "cluster", "generate-token", "--cluster-id", oci_containerengine_cluster.slurm.id, "--region", var.region]
    }
  }
}
