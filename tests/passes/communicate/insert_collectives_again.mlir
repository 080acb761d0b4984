// RUN: mtplan-opt %s --mtp-insert-collectives > %t
// RUN: mtplan-opt %t --mtp-insert-collectives | diff %t -

// A module that is partitioned already is not changed.
module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @s () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<4x8xf32>
  %z = mtp.reshard %x from <[["tp"], []]> to <[[], ["tp"]]> cause "x" : tensor<4x8xf32>
  mtp.yield {layouts = []}
}
}
