# What the module asks of Helm, planned against a provider that does nothing: `tofu test` needs no Kubernetes.

mock_provider "helm" {}

variables {
  name          = "demo"
  charts        = "oci://registry.example/soperator/charts"
  chart_version = "0.1.0"
  images        = { prefix = "registry.example/soperator" }
  login         = { root_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHB1dCB5b3VyIG93biBwdWJsaWMga2V5IGhlcmUsIG9r ann@laptop"] }
  node_sets     = { cpu = { replicas = 4, limits = { cpu = "8", memory = "32Gi" } } }
}

run "charts_of_a_registry" {
  command = plan

  assert {
    condition     = helm_release.cluster.repository == var.charts && helm_release.cluster.chart == "slurm-cluster" && helm_release.cluster.version == "0.1.0"
    error_message = "a chart of a registry is named by its repository, name and version"
  }
  assert {
    condition     = yamldecode(helm_release.cluster.values[0]).nodeSets.cpu.replicas == 4
    error_message = "the NodeSet has the number of nodes"
  }
  assert {
    condition     = !helm_release.cluster.wait
    error_message = "the provider's own wait would forget the release after its timeout, while jobs run"
  }
  assert {
    condition     = length(helm_release.storage) == 0
    error_message = "nobody asked for volumes"
  }
  assert {
    condition     = terraform_data.jobs.input.objects == "slurmclusters.slurm.soperator.io/demo nodesets.slurm.soperator.io/cpu"
    error_message = "destroy waits for the cluster and each NodeSet"
  }
}

run "charts_of_a_folder" {
  command = plan

  variables {
    charts        = "/srv/charts"
    chart_version = null
  }

  assert {
    condition     = helm_release.cluster.repository == null && helm_release.cluster.chart == "/srv/charts/slurm-cluster"
    error_message = "for Helm a folder is a path and no repository"
  }
}

run "volumes_on_a_server" {
  command = plan

  variables {
    storage        = { nfs = { server = "192.0.2.1", path = "/export" }, jail_size = "1Ti", state_size = "8Gi" }
    user_namespace = false
  }

  assert {
    condition     = yamldecode(helm_release.storage[0].values[0]).nfs.server == "192.0.2.1"
    error_message = "the volumes are on the server"
  }
  assert {
    condition     = yamldecode(helm_release.cluster.values[0]).cluster.jail.claim == { name = "demo-jail" } && yamldecode(helm_release.cluster.values[0]).cluster.controller.state == { name = "demo-state" }
    error_message = "the cluster uses the claims of the volumes"
  }
}

run "claims_of_a_class" {
  command = plan

  variables {
    jail = { size = "500Gi", storage_class = "shared" }
  }

  assert {
    condition     = yamldecode(helm_release.cluster.values[0]).cluster.jail.claim == { size = "500Gi", storageClassName = "shared" }
    error_message = "the operator makes the claim"
  }
}

run "a_second_cluster" {
  command = plan

  variables {
    install_operator = false
  }

  assert {
    condition     = length(helm_release.crds) == 0 && length(helm_release.operator) == 0
    error_message = "the operator is the first cluster's"
  }
}

run "further_fields" {
  command = plan

  variables {
    cluster_spec   = { accounting = { enabled = true } }
    node_set_specs = { cpu = { tmpSize = "50Gi" } }
  }

  assert {
    condition     = yamldecode(helm_release.cluster.values[1]) == { cluster = { accounting = { enabled = true } }, nodeSets = { cpu = { tmpSize = "50Gi" } } }
    error_message = "further fields are values that Helm merges over the others"
  }
}

run "nobody_can_log_in" {
  command = plan

  variables {
    login = {}
  }

  expect_failures = [check.somebody_can_log_in]
}
