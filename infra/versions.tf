terraform {
  required_version = ">= 1.9.0" # conditions of variables that name other variables

  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}
