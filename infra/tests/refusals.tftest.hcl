# Each condition of variables.tf refuses a value: one run for each, in the same order.

mock_provider "helm" {}

variables {
  name          = "demo"
  charts        = "oci://registry.example/soperator/charts"
  chart_version = "0.1.0"
  images        = { prefix = "registry.example/soperator" }
  login         = { root_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHB1dCB5b3VyIG93biBwdWJsaWMga2V5IGhlcmUsIG9r ann@laptop"] }
  node_sets     = { cpu = {} }
}

run "charts_without_a_place" {
  command = plan

  variables {
    charts = "registry.example/charts"
  }

  expect_failures = [var.charts]
}

run "registry_without_a_version" {
  command = plan

  variables {
    chart_version = null
  }

  expect_failures = [var.chart_version]
}

run "range_of_versions" {
  command = plan

  variables {
    chart_version = "~> 0.1"
  }

  expect_failures = [var.chart_version]
}

run "images_with_a_scheme" {
  command = plan

  variables {
    images = { prefix = "oci://registry.example/soperator" }
  }

  expect_failures = [var.images]
}

run "digest_that_is_none" {
  command = plan

  variables {
    images = { prefix = "registry.example/soperator", digests = { login = "latest" } }
  }

  expect_failures = [var.images]
}

run "namespace_of_the_operator" {
  command = plan

  variables {
    operator_namespace = "Operators"
  }

  expect_failures = [var.operator_namespace]
}

run "no_operator" {
  command = plan

  variables {
    operator = { replicas = 0 }
  }

  expect_failures = [var.operator]
}

run "operator_that_looks_elsewhere" {
  command = plan

  variables {
    operator = { watch_namespace = "other" }
  }

  expect_failures = [var.operator]
}

run "long_name" {
  command = plan

  variables {
    name = "a-name-of-more-than-thirty-letters"
  }

  expect_failures = [var.name]
}

run "namespace_with_dots" {
  command = plan

  variables {
    namespace = "slurm.site"
  }

  expect_failures = [var.namespace]
}

run "storage_in_two_places" {
  command = plan

  variables {
    storage        = { host_path = "/mnt", nfs = { server = "192.0.2.1", path = "/export" } }
    user_namespace = false
  }

  expect_failures = [var.storage]
}

run "storage_in_a_relative_folder" {
  command = plan

  variables {
    storage = { host_path = "mnt" }
  }

  expect_failures = [var.storage]
}

run "storage_with_an_unknown_access" {
  command = plan

  variables {
    storage = { host_path = "/mnt", state_access_mode = "ReadOnlyMany" }
  }

  expect_failures = [var.storage]
}

run "two_claims_of_the_jail" {
  command = plan

  variables {
    storage = { host_path = "/mnt" }
    jail    = { size = "1Ti" }
  }

  expect_failures = [var.jail]
}

run "class_of_a_claim_that_exists" {
  command = plan

  variables {
    jail = { claim_name = "files", storage_class = "shared" }
  }

  expect_failures = [var.jail]
}

run "submount_at_a_relative_path" {
  command = plan

  variables {
    jail = { submounts = [{ path = "home", claim_name = "homes" }] }
  }

  expect_failures = [var.jail]
}

run "two_claims_of_the_state" {
  command = plan

  variables {
    storage = { host_path = "/mnt", state_size = "4Gi" }
    state   = { storage_class = "fast" }
  }

  expect_failures = [var.state]
}

run "size_of_a_state_that_exists" {
  command = plan

  variables {
    state = { claim_name = "queue", size = "4Gi" }
  }

  expect_failures = [var.state]
}

run "user_namespace_on_nfs" {
  command = plan

  variables {
    storage = { nfs = { server = "192.0.2.1", path = "/export" } }
  }

  expect_failures = [var.user_namespace]
}

run "unknown_service" {
  command = plan

  variables {
    login = { service_type = "Ingress" }
  }

  expect_failures = [var.login]
}

run "half_a_login_node" {
  command = plan

  variables {
    login = { replicas = 0.5 }
  }

  expect_failures = [var.login]
}

run "private_key" {
  command = plan

  variables {
    login = { root_authorized_keys = ["-----BEGIN OPENSSH PRIVATE KEY-----"] }
  }

  expect_failures = [var.login]
}

run "range_without_a_mask" {
  command = plan

  variables {
    login = { source_ranges = ["192.0.2.0"] }
  }

  expect_failures = [var.login]
}

run "two_default_partitions" {
  command = plan

  variables {
    partitions = [{ name = "a", default = true }, { name = "b", default = true }]
  }

  expect_failures = [var.partitions]
}

run "partition_of_an_unknown_node_set" {
  command = plan

  variables {
    partitions = [{ name = "a", node_sets = ["gpu"] }]
  }

  expect_failures = [var.partitions]
}

run "node_set_with_capitals" {
  command = plan

  variables {
    node_sets = { GPU = {} }
  }

  expect_failures = [var.node_sets]
}

run "replicas_and_power_saving" {
  command = plan

  variables {
    node_sets = { cpu = { replicas = 1, power_saving = { max_nodes = 4 }, limits = { cpu = "8", memory = "32Gi" } } }
  }

  expect_failures = [var.node_sets]
}

run "half_a_node" {
  command = plan

  variables {
    node_sets = { cpu = { replicas = 1.5 } }
  }

  expect_failures = [var.node_sets]
}

run "more_awake_than_there_are" {
  command = plan

  variables {
    node_sets = { cpu = { power_saving = { min_nodes = 5, max_nodes = 4 }, limits = { cpu = "8", memory = "32Gi" } } }
  }

  expect_failures = [var.node_sets]
}

run "nodes_that_sleep_and_have_no_size" {
  command = plan

  variables {
    node_sets = { cpu = { power_saving = { max_nodes = 4 }, limits = { cpu = "8" } } }
  }

  expect_failures = [var.node_sets]
}

run "unknown_vendor" {
  command = plan

  variables {
    node_sets = { cpu = { gpu = { vendor = "Nvidia", count = 8 } } }
  }

  expect_failures = [var.node_sets]
}

run "unknown_consequence" {
  command = plan

  variables {
    node_sets = { cpu = { drain = { timeout = "1h", on_timeout = "Kill" } } }
  }

  expect_failures = [var.node_sets]
}

run "consequence_without_a_timeout" {
  command = plan

  variables {
    node_sets = { cpu = { drain = { on_timeout = "Cancel" } } }
  }

  expect_failures = [var.node_sets]
}

run "fields_of_no_node_set" {
  command = plan

  variables {
    node_set_specs = { gpu = { tmpSize = "1Gi" } }
  }

  expect_failures = [var.node_set_specs]
}

run "short_timeout" {
  command = plan

  variables {
    timeout = 1
  }

  expect_failures = [var.timeout]
}

run "wait_without_a_unit" {
  command = plan

  variables {
    destroy_wait = { timeout = "24" }
  }

  expect_failures = [var.destroy_wait]
}
