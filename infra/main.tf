# Releases of the four charts, in the order in which they need each other. `destroy` goes backwards, and waits for the jobs in between.

locals {
  registry = startswith(var.charts, "oci://")
  # A folder of charts is no repository for Helm: there the chart is a path.
  chart      = { for name in ["soperator-crds", "soperator", "slurm-cluster", "slurm-cluster-storage"] : name => local.registry ? name : "${var.charts}/${name}" }
  repository = local.registry ? var.charts : null

  operator_values = {
    images = merge(
      { prefix = var.images.prefix, digests = var.images.digests, pullSecrets = var.images.pull_secrets },
      var.images.tag == null ? {} : { tag = var.images.tag },
    )
    replicas        = var.operator.replicas
    namespace       = var.operator.watch_namespace
    replaceMachines = var.operator.replace_machines
    tenants         = { restrict = var.operator.restrict_tenants }
    monitoring      = { dashboards = var.operator.dashboards }
  }

  storage_values = var.storage == null ? null : merge(
    {
      cluster  = var.name
      jail     = { size = var.storage.jail_size }
      state    = { size = var.storage.state_size == null ? "" : var.storage.state_size, accessMode = var.storage.state_access_mode }
      database = { size = var.storage.database_size == null ? "" : var.storage.database_size }
    },
    var.storage.host_path == null ? {} : { hostPath = { path = var.storage.host_path } },
    var.storage.nfs == null ? {} : { nfs = { server = var.storage.nfs.server, path = var.storage.nfs.path, mountOptions = var.storage.nfs.mount_options } },
  )

  jail_claim  = { name = var.storage == null ? var.jail.claim_name : "${var.name}-jail", size = var.jail.size, storageClassName = var.jail.storage_class }
  state_claim = { name = try(var.storage.state_size, null) == null ? var.state.claim_name : "${var.name}-state", size = var.state.size, storageClassName = var.state.storage_class }

  cluster_spec = merge(
    {
      jail = merge(
        { claim = { for field, value in local.jail_claim : field => value if value != null } },
        var.jail.image == null ? {} : { image = var.jail.image },
        length(var.jail.submounts) == 0 ? {} : { submounts = [for submount in var.jail.submounts : merge(
          { path = submount.path, claimName = submount.claim_name, readOnly = submount.read_only },
          submount.sub_path == null ? {} : { subPath = submount.sub_path },
        )] },
      )
      controller = { state = { for field, value in local.state_claim : field => value if value != null } }
      security   = { userNamespace = var.user_namespace }
      login = merge(
        {
          replicas           = var.login.replicas
          rootAuthorizedKeys = var.login.root_authorized_keys
          service = {
            type                     = var.login.service_type
            port                     = var.login.port
            annotations              = var.login.annotations
            loadBalancerSourceRanges = var.login.source_ranges
          }
        },
        length(var.login.node_selector) == 0 ? {} : { scheduling = { nodeSelector = var.login.node_selector } },
      )
    },
    length(var.images.pull_secrets) == 0 ? {} : { images = { pullSecrets = var.images.pull_secrets } },
    length(var.partitions) == 0 ? {} : { partitions = [for partition in var.partitions : {
      name = partition.name, default = partition.default, nodeSets = partition.node_sets, options = partition.options
    }] },
  )

  node_set_specs = { for name, set in var.node_sets : name => merge(
    set.power_saving == null ? { replicas = coalesce(set.replicas, 1) } : {},
    set.power_saving == null ? {} : { powerSaving = {
      minNodes = set.power_saving.min_nodes, maxNodes = set.power_saving.max_nodes, suspendTime = set.power_saving.suspend_time
    } },
    { resources = { for kind, amounts in { requests = set.requests, limits = set.limits } : kind => amounts if length(amounts) > 0 } },
    set.gpu == null ? {} : { gpu = { for field, value in set.gpu : field => value if value != null } },
    set.rdma == null ? {} : { rdma = set.rdma },
    length(set.features) == 0 ? {} : { features = set.features },
    set.weight == null ? {} : { weight = set.weight },
    set.shm_size == null ? {} : { shmSize = set.shm_size },
    length(set.node_selector) + length(set.tolerations) == 0 ? {} : { scheduling = {
      nodeSelector = set.node_selector
      tolerations  = [for toleration in set.tolerations : { for field, value in toleration : field => value if value != null }]
    } },
    set.drain == null ? {} : { drain = merge({ onTimeout = set.drain.on_timeout }, set.drain.timeout == null ? {} : { timeout = set.drain.timeout }) },
  ) }

  cluster_values = [
    yamlencode({ name = var.name, cluster = local.cluster_spec, nodeSets = local.node_set_specs }),
    yamlencode({ cluster = var.cluster_spec, nodeSets = var.node_set_specs }),
  ]
}

resource "helm_release" "crds" {
  count = var.install_operator ? 1 : 0

  name             = "soperator-crds"
  namespace        = var.operator_namespace
  create_namespace = true
  repository       = local.repository
  chart            = local.chart["soperator-crds"]
  version          = var.chart_version
  timeout          = var.timeout
}

resource "helm_release" "operator" {
  count = var.install_operator ? 1 : 0

  name             = "soperator"
  namespace        = var.operator_namespace
  create_namespace = true
  repository       = local.repository
  chart            = local.chart["soperator"]
  version          = var.chart_version
  timeout          = var.timeout
  wait             = var.operator.wait
  values           = [yamlencode(local.operator_values), yamlencode(var.operator_values)]

  depends_on = [helm_release.crds]
}

resource "helm_release" "storage" {
  count = var.storage == null ? 0 : 1

  name             = "${var.name}-storage"
  namespace        = var.namespace
  create_namespace = true
  repository       = local.repository
  chart            = local.chart["slurm-cluster-storage"]
  version          = var.chart_version
  timeout          = var.timeout
  wait             = false # the claims are bound when a controller has looked at them; the cluster's pods wait for that anyway
  values           = [yamlencode(local.storage_values)]
}

# Deleting the cluster's release returns at once, and the operator removes the cluster when its jobs have ended. Until then it must
# exist, and so must the CRDs and the volumes: this resource is destroyed between the two, and its end waits.
resource "terraform_data" "jobs" {
  input = merge(var.destroy_wait, {
    namespace = var.namespace
    objects   = join(" ", concat(["slurmclusters.slurm.soperator.io/${var.name}"], [for name in keys(var.node_sets) : "nodesets.slurm.soperator.io/${name}"]))
  })

  provisioner "local-exec" {
    when = destroy
    environment = {
      SLURM_KUBECTL    = self.output.kubectl
      SLURM_KUBECONFIG = self.output.kubeconfig
      SLURM_CONTEXT    = self.output.context
      SLURM_NAMESPACE  = self.output.namespace
      SLURM_OBJECTS    = self.output.objects
      SLURM_TIMEOUT    = self.output.timeout
    }
    command = <<-EOT
      set -f
      "$SLURM_KUBECTL" $${SLURM_KUBECONFIG:+--kubeconfig="$SLURM_KUBECONFIG"} $${SLURM_CONTEXT:+--context="$SLURM_CONTEXT"} \
        --namespace="$SLURM_NAMESPACE" wait --for=delete --timeout="$SLURM_TIMEOUT" $SLURM_OBJECTS || {
        echo "Jobs still run, or Kubernetes did not answer: \`soperator why $${SLURM_OBJECTS%% *}\` has the cause; the operator stays, and the next destroy waits again." >&2
        exit 1
      }
    EOT
  }

  depends_on = [helm_release.operator, helm_release.storage]
}

resource "helm_release" "cluster" {
  name             = var.name
  namespace        = var.namespace
  create_namespace = true
  repository       = local.repository
  chart            = local.chart["slurm-cluster"]
  version          = var.chart_version
  timeout          = var.timeout
  wait             = false # terraform_data.jobs waits; the provider's own wait would forget the release after its timeout, while jobs run
  values           = local.cluster_values

  depends_on = [terraform_data.jobs]
}

check "somebody_can_log_in" {
  assert {
    condition     = var.login.replicas == 0 || length(var.login.root_authorized_keys) > 0 || can(var.cluster_spec.sssd)
    error_message = "Nobody can log in to ${var.name}: set login.root_authorized_keys to a public key, or cluster_spec.sssd to a directory of users."
  }
}
