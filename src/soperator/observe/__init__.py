"""What is to be seen of a cluster and of the operator, as data: metrics, and the alerts over them."""
