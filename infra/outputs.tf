output "name" {
  description = "Name of the SlurmCluster."
  value       = var.name
}

output "namespace" {
  description = "Namespace of the SlurmCluster."
  value       = var.namespace
}

output "wait_command" {
  description = "A command that returns when users can log in and jobs can run."
  value       = "kubectl -n ${var.namespace} wait slurmcluster/${var.name} --for=condition=Ready --timeout=30m"
}

output "login_command" {
  description = "A shell command that logs in as root of the jail, with the key of login.root_authorized_keys; root creates the other users (docs/howto/users.md)."
  value       = "$(kubectl -n ${var.namespace} get slurmcluster ${var.name} -o jsonpath='{.status.address}')"
}

output "why_command" {
  description = "A command that says what the cluster waits for."
  value       = "kubectl -n ${var.operator_namespace} exec deploy/soperator -- soperator why ${var.name} -n ${var.namespace}"
}

output "node_sets" {
  description = "Names of the NodeSets, which are also the beginnings of Slurm's node names."
  value       = keys(var.node_sets)
}

output "values" {
  description = "The values of the chart slurm-cluster, the later over the earlier: for `helm template` and `soperator lint` before an apply."
  value       = local.cluster_values
}
