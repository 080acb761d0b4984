"builtin.module"() ({
  "mtp.segment"() <{first = 0 : i64, layouts = [], repeat = 1 : i64, sym_name = "mlp"}> ({
    %23 = "mtp.input"() <{dims = ["batch", "sequence", "other"], label = "x", layout = #mtp.layout<[["dp"], [], []]>}> : () -> tensor<16x32x64xbf16>
    %24 = "mtp.parameter"() <{init = "normal", label = "fc1.weight", layout = #mtp.layout<[[], ["tp"]]>}> : () -> tensor<64x256xbf16>
    %25 = "mtp.parameter"() <{init = "zeros", label = "fc1.bias", layout = #mtp.layout<[["tp"]]>}> : () -> tensor<256xbf16>
    %26 = "mtp.einsum"(%23, %24, %25) <{column = "o", equation = "bsi,io->bso", label = "fc1", row = "i"}> {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "o">} : (tensor<16x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<16x32x256xbf16>
    %27 = "mtp.activation"(%26) <{kind = 1 : i32, label = "act"}> {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d2">} : (tensor<16x32x256xbf16>) -> tensor<16x32x256xbf16>
    %28 = "mtp.reshard"(%27) <{cause = "act", source = #mtp.layout<[["dp"], [], ["tp"]]>, target = #mtp.layout<[["dp"], [], []]>}> : (tensor<16x32x256xbf16>) -> tensor<16x32x256xbf16>
    "mtp.backward"() <{layouts = [#mtp.layout<[["dp", "tp"], [], []]>]}> ({
    ^bb0(%arg1: tensor<16x32x256xbf16>):
      %29 = "mtp.input"() <{dims = ["batch", "sequence", "other"], label = "x", layout = #mtp.layout<[["dp"], [], []]>}> : () -> tensor<16x32x64xbf16>
      %30 = "mtp.reshard"(%arg1) <{cause = "carried.grad", source = #mtp.layout<[["dp", "tp"], [], []]>, target = #mtp.layout<[["dp"], [], ["tp"]]>}> : (tensor<16x32x256xbf16>) -> tensor<16x32x256xbf16>
      %31 = "mtp.activation_grad"(%26, %30) <{kind = 1 : i32, label = "act.grad"}> {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d2">} : (tensor<16x32x256xbf16>, tensor<16x32x256xbf16>) -> tensor<16x32x256xbf16>
      %32 = "mtp.einsum"(%29, %31) <{column = "o", equation = "bsi,bso->io", label = "fc1.dw", row = "i"}> {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "o">} : (tensor<16x32x64xbf16>, tensor<16x32x256xbf16>) -> tensor<64x256xbf16>
      %33 = "mtp.sum"(%31) <{label = "fc1.db"}> {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d2">} : (tensor<16x32x256xbf16>) -> tensor<256xbf16>
      "mtp.accumulate"(%32) <{label = "fc1.weight", layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>}> : (tensor<64x256xbf16>) -> ()
      "mtp.accumulate"(%33) <{label = "fc1.bias", layout = #mtp.layout<[["tp"]], partial = ["dp"]>}> : (tensor<256xbf16>) -> ()
      "mtp.yield"() <{layouts = []}> : () -> ()
    }) : () -> ()
    "mtp.yield"(%28) <{layouts = [#mtp.layout<[["dp"], [], []]>]}> : (tensor<16x32x256xbf16>) -> ()
  }) : () -> ()
  "mtp.segment"() <{first = 0 : i64, layouts = [#mtp.layout<[["dp"], [], []]>], repeat = 1 : i64, sym_name = "head"}> ({
  ^bb0(%arg0: tensor<16x32x256xbf16>):
    %8 = "mtp.input"() <{dims = [], label = "count", layout = #mtp.layout<[]>}> : () -> tensor<f32>
    %9 = "mtp.input"() <{dims = ["batch", "sequence"], label = "targets", layout = #mtp.layout<[["dp"], []]>, limit = 500 : i64}> : () -> tensor<16x32xi32>
    %10 = "mtp.parameter"() <{init = "normal", label = "fc2.weight", layout = #mtp.layout<[[], ["tp"]]>}> : () -> tensor<256x512xbf16>
    %11 = "mtp.einsum"(%arg0, %10) <{column = "o", equation = "bsi,iv->bsv", label = "fc2", row = "i"}> {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "v">} : (tensor<16x32x256xbf16>, tensor<256x512xbf16>) -> tensor<16x32x512xbf16>
    %12 = "mtp.reshard"(%11) <{cause = "fc2", source = #mtp.layout<[["dp"], [], ["tp"]]>, target = #mtp.layout<[["dp"], [], []]>}> : (tensor<16x32x512xbf16>) -> tensor<16x32x512xbf16>
    %13 = "mtp.vocab_max"(%12) <{classes = 500 : i64, label = "loss.max"}> {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32x512xbf16>) -> tensor<16x32xf32>
    %14 = "mtp.vocab_sum_exp"(%12, %13) <{classes = 500 : i64, label = "loss.sum_exp"}> {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32x512xbf16>, tensor<16x32xf32>) -> tensor<16x32xf32>
    %15 = "mtp.vocab_pick"(%12, %9) <{label = "loss.pick"}> {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32x512xbf16>, tensor<16x32xi32>) -> tensor<16x32xf32>
    %16 = "mtp.token_loss"(%13, %14, %15, %9, %8) <{label = "loss"}> {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xi32>, tensor<f32>) -> tensor<f32>
    "mtp.accumulate"(%16) <{label = "loss", layout = #mtp.layout<[], partial = ["dp"]>}> : (tensor<f32>) -> ()
    "mtp.backward"() <{layouts = []}> ({
      %17 = "mtp.input"() <{dims = [], label = "count", layout = #mtp.layout<[]>}> : () -> tensor<f32>
      %18 = "mtp.input"() <{dims = ["batch", "sequence"], label = "targets", layout = #mtp.layout<[["dp"], []]>, limit = 500 : i64}> : () -> tensor<16x32xi32>
      %19 = "mtp.cross_entropy_grad"(%11, %13, %14, %18, %17) <{classes = 500 : i64, label = "loss.grad"}> {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "v">} : (tensor<16x32x512xbf16>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xi32>, tensor<f32>) -> tensor<16x32x512xbf16>
      %20 = "mtp.einsum"(%19, %10) <{column = "o", equation = "bsv,iv->bsi", label = "fc2.dx", row = "i"}> {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "v">} : (tensor<16x32x512xbf16>, tensor<256x512xbf16>) -> tensor<16x32x256xbf16>
      %21 = "mtp.reshard"(%20) <{cause = "fc2.dx", source = #mtp.layout<[["dp"], [], []], partial = ["tp"]>, target = #mtp.layout<[["dp", "tp"], [], []]>}> : (tensor<16x32x256xbf16>) -> tensor<16x32x256xbf16>
      %22 = "mtp.einsum"(%arg0, %19) <{column = "o", equation = "bsi,bsv->iv", label = "fc2.dw", row = "i"}> {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "v">} : (tensor<16x32x256xbf16>, tensor<16x32x512xbf16>) -> tensor<256x512xbf16>
      "mtp.accumulate"(%22) <{label = "fc2.weight", layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>}> : (tensor<256x512xbf16>) -> ()
      "mtp.yield"(%21) <{layouts = [#mtp.layout<[["dp", "tp"], [], []]>]}> : (tensor<16x32x256xbf16>) -> ()
    }) : () -> ()
    "mtp.yield"() <{layouts = []}> : () -> ()
  }) : () -> ()
  "mtp.update"() ({
    %0 = "mtp.accumulated"() <{label = "fc1.weight", layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>}> : () -> tensor<64x256xbf16>
    %1 = "mtp.reshard"(%0) <{cause = "fc1.weight", source = #mtp.layout<[[], ["tp"]], partial = ["dp"]>, target = #mtp.layout<[[], ["tp"]]>}> : (tensor<64x256xbf16>) -> tensor<64x256xbf16>
    "mtp.adamw"(%1) <{decay, label = "fc1.weight"}> : (tensor<64x256xbf16>) -> ()
    %2 = "mtp.accumulated"() <{label = "fc1.bias", layout = #mtp.layout<[["tp"]], partial = ["dp"]>}> : () -> tensor<256xbf16>
    %3 = "mtp.reshard"(%2) <{cause = "fc1.bias", source = #mtp.layout<[["tp"]], partial = ["dp"]>, target = #mtp.layout<[["tp"]]>}> : (tensor<256xbf16>) -> tensor<256xbf16>
    "mtp.adamw"(%3) <{label = "fc1.bias"}> : (tensor<256xbf16>) -> ()
    %4 = "mtp.accumulated"() <{label = "fc2.weight", layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>}> : () -> tensor<256x512xbf16>
    %5 = "mtp.reshard"(%4) <{cause = "fc2.weight", source = #mtp.layout<[[], ["tp"]], partial = ["dp"]>, target = #mtp.layout<[[], ["tp"]]>}> : (tensor<256x512xbf16>) -> tensor<256x512xbf16>
    "mtp.adamw"(%5) <{decay, label = "fc2.weight"}> : (tensor<256x512xbf16>) -> ()
    %6 = "mtp.accumulated"() <{label = "loss", layout = #mtp.layout<[], partial = ["dp"]>}> : () -> tensor<f32>
    %7 = "mtp.reshard"(%6) <{cause = "loss", source = #mtp.layout<[], partial = ["dp"]>, target = #mtp.layout<[]>}> : (tensor<f32>) -> tensor<f32>
    "mtp.result"(%7) <{label = "loss"}> : (tensor<f32>) -> ()
  }) : () -> ()
}) {mtp.layers = 1 : i64, mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2>} : () -> ()

