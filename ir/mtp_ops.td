//===- mtp_ops.td - All operators of the dialect --------------------------===//

include "structure_ops.td"
include "linear_ops.td"
include "pointwise_ops.td"
include "norm_ops.td"
include "attention_ops.td"
include "loss_ops.td"
include "moe_ops.td"
include "position_ops.td"
include "collective_ops.td"
