# A Kubernetes of AWS (EKS) with two groups of machines, and a shared file system (EFS), in subnets that exist.

terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0.0"
    }
  }
}

variable "region" {
  description = "Region, for example eu-central-1."
  type        = string
}

variable "vpc_id" {
  description = "The network."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the network for the control plane, in two zones at least."
  type        = list(string)
}

variable "gpu_subnet_id" {
  description = "The subnet of all machines: one zone, so that they reach each other and the state's volume."
  type        = string
}

variable "gpu_nodes" {
  description = "Number of machines with GPUs, and of Slurm nodes."
  type        = number
  default     = 2
}

variable "gpu_machine" {
  description = "Type of the machines with GPUs."
  type        = string
  default     = "p5.48xlarge"
}

provider "aws" {
  region = var.region
}

data "aws_iam_policy_document" "trust" {
  for_each = toset(["eks", "ec2"])

  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["${each.key}.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "cluster" {
  name               = "slurm-cluster"
  assume_role_policy = data.aws_iam_policy_document.trust["eks"].json
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
}

resource "aws_iam_role" "nodes" {
  name               = "slurm-nodes"
  assume_role_policy = data.aws_iam_policy_document.trust["ec2"].json
}

resource "aws_iam_role_policy_attachment" "nodes" {
  for_each = toset([
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryReadOnly",
    "service-role/AmazonEBSCSIDriverPolicy",
  ])

  role       = aws_iam_role.nodes.name
  policy_arn = "arn:aws:iam::aws:policy/${each.key}"
}

resource "aws_eks_cluster" "slurm" {
  name     = "slurm"
  role_arn = aws_iam_role.cluster.arn

  vpc_config {
    subnet_ids = var.subnet_ids
  }

  depends_on = [aws_iam_role_policy_attachment.cluster]
}

resource "aws_eks_node_group" "system" {
  cluster_name    = aws_eks_cluster.slurm.name
  node_group_name = "system"
  node_role_arn   = aws_iam_role.nodes.arn
  subnet_ids      = [var.gpu_subnet_id]
  instance_types  = ["m7i.2xlarge"]

  scaling_config {
    min_size     = 2
    desired_size = 2
    max_size     = 2
  }

  depends_on = [aws_iam_role_policy_attachment.nodes]
}

resource "aws_eks_node_group" "gpu" {
  cluster_name    = aws_eks_cluster.slurm.name
  node_group_name = "gpu"
  node_role_arn   = aws_iam_role.nodes.arn
  subnet_ids      = [var.gpu_subnet_id]
  instance_types  = [var.gpu_machine]
  ami_type        = "AL2023_x86_64_NVIDIA"
  labels          = { "slurm-nodes" = "gpu" }

  scaling_config {
    min_size     = var.gpu_nodes
    desired_size = var.gpu_nodes
    max_size     = var.gpu_nodes
  }

  taint {
    key    = "nvidia.com/gpu"
    effect = "NO_SCHEDULE"
  }

  depends_on = [aws_iam_role_policy_attachment.nodes]
}

resource "aws_eks_addon" "volumes" {
  cluster_name = aws_eks_cluster.slurm.name
  addon_name   = "aws-ebs-csi-driver"

  configuration_values = jsonencode({ defaultStorageClass = { enabled = true } })
  depends_on           = [aws_eks_node_group.system]
}

resource "aws_efs_file_system" "jail" {
  encrypted       = true
  throughput_mode = "elastic"
}

resource "aws_security_group" "files" {
  name   = "slurm-files"
  vpc_id = var.vpc_id

  ingress {
    description     = "NFS from the machines"
    protocol        = "tcp"
    from_port       = 2049
    to_port         = 2049
    security_groups = [aws_eks_cluster.slurm.vpc_config[0].cluster_security_group_id]
  }
}

resource "aws_efs_mount_target" "jail" {
  file_system_id  = aws_efs_file_system.jail.id
  subnet_id       = var.gpu_subnet_id
  security_groups = [aws_security_group.files.id]
}

data "aws_eks_cluster_auth" "slurm" {
  name = aws_eks_cluster.slurm.name
}

provider "helm" {
  kubernetes = {
    host                   = aws_eks_cluster.slurm.endpoint
    cluster_ca_certificate = base64decode(aws_eks_cluster.slurm.certificate_authority[0].data)
    token                  = data.aws_eks_cluster_auth.slurm.token
  }
}
