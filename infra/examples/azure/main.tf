# A Kubernetes of Azure (AKS) with two groups of machines, and a shared file system (Azure Files over NFS), in a network of its own.

terraform {
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.0.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}

variable "subscription_id" {
  description = "The subscription."
  type        = string
}

variable "location" {
  description = "The region, for example westeurope."
  type        = string
}

variable "storage_account" {
  description = "Name of the storage account: 3 to 24 lower-case letters and digits, and nobody else's."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]{3,24}$", var.storage_account))
    error_message = "storage_account: 3 to 24 lower-case letters and digits."
  }
}

variable "gpu_nodes" {
  description = "Number of machines with GPUs, and of Slurm nodes."
  type        = number
  default     = 2
}

variable "gpu_machine" {
  description = "Size of the machines with GPUs."
  type        = string
  default     = "Standard_ND96isr_H100_v5"
}

provider "azurerm" {
  subscription_id = var.subscription_id
  features {}
}

resource "azurerm_resource_group" "slurm" {
  name     = "slurm"
  location = var.location
}

resource "azurerm_virtual_network" "slurm" {
  name                = "slurm"
  resource_group_name = azurerm_resource_group.slurm.name
  location            = azurerm_resource_group.slurm.location
  address_space       = ["10.224.0.0/12"]
}

resource "azurerm_subnet" "nodes" {
  name                 = "nodes"
  resource_group_name  = azurerm_resource_group.slurm.name
  virtual_network_name = azurerm_virtual_network.slurm.name
  address_prefixes     = ["10.224.0.0/16"]
  service_endpoints    = ["Microsoft.Storage"]
}

resource "azurerm_kubernetes_cluster" "slurm" {
  name                = "slurm"
  resource_group_name = azurerm_resource_group.slurm.name
  location            = azurerm_resource_group.slurm.location
  dns_prefix          = "slurm"

  default_node_pool {
    name           = "system"
    vm_size        = "Standard_D8s_v5"
    node_count     = 2
    vnet_subnet_id = azurerm_subnet.nodes.id
  }

  identity {
    type = "SystemAssigned"
  }

  network_profile {
    network_plugin = "azure"
    service_cidr   = "10.0.0.0/16"
    dns_service_ip = "10.0.0.10"
  }
}

resource "azurerm_kubernetes_cluster_node_pool" "gpu" {
  name                  = "gpu"
  kubernetes_cluster_id = azurerm_kubernetes_cluster.slurm.id
  vm_size               = var.gpu_machine
  node_count            = var.gpu_nodes
  vnet_subnet_id        = azurerm_subnet.nodes.id
  node_labels           = { "slurm-nodes" = "gpu" }
  node_taints           = ["nvidia.com/gpu=present:NoSchedule"]
}

resource "azurerm_storage_account" "jail" {
  name                       = var.storage_account
  resource_group_name        = azurerm_resource_group.slurm.name
  location                   = azurerm_resource_group.slurm.location
  account_kind               = "FileStorage"
  account_tier               = "Premium"
  account_replication_type   = "LRS"
  https_traffic_only_enabled = false # NFS is not HTTPS

  network_rules {
    default_action             = "Deny"
    virtual_network_subnet_ids = [azurerm_subnet.nodes.id]
  }
}

resource "azurerm_storage_share" "jail" {
  name               = "jail"
  storage_account_id = azurerm_storage_account.jail.id
  enabled_protocol   = "NFS"
  quota              = 1024
}

provider "helm" {
  kubernetes = {
    host                   = azurerm_kubernetes_cluster.slurm.kube_config[0].host
    cluster_ca_certificate = base64decode(azurerm_kubernetes_cluster.slurm.kube_config[0].cluster_ca_certificate)
    client_certificate     = base64decode(azurerm_kubernetes_cluster.slurm.kube_config[0].client_certificate)
    client_key             = base64decode(azurerm_kubernetes_cluster.slurm.kube_config[0].client_key)
  }
}
