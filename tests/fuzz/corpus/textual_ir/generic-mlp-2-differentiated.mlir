"builtin.module"() ({
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, sym_name = "mlp"}> ({
    %15 = "mtp.input"() <{dims = ["batch", "sequence", "other"], label = "x"}> : () -> tensor<1x32x64xbf16>
    %16 = "mtp.parameter"() <{init = "normal", label = "fc1.weight"}> : () -> tensor<64x256xbf16>
    %17 = "mtp.parameter"() <{init = "zeros", label = "fc1.bias"}> : () -> tensor<256xbf16>
    %18 = "mtp.einsum"(%15, %16, %17) <{column = "o", equation = "bsi,io->bso", label = "fc1", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<1x32x256xbf16>
    %19 = "mtp.activation"(%18) <{kind = 1 : i32, label = "act"}> : (tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16>
    "mtp.backward"() ({
    ^bb0(%arg1: tensor<1x32x256xbf16>):
      %20 = "mtp.activation_grad"(%18, %arg1) <{kind = 1 : i32, label = "act.grad"}> : (tensor<1x32x256xbf16>, tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16>
      %21 = "mtp.einsum"(%15, %20) <{column = "o", equation = "bsi,bso->io", label = "fc1.dw", row = "i"}> : (tensor<1x32x64xbf16>, tensor<1x32x256xbf16>) -> tensor<64x256xbf16>
      %22 = "mtp.sum"(%20) <{label = "fc1.db"}> : (tensor<1x32x256xbf16>) -> tensor<256xbf16>
      "mtp.accumulate"(%21) <{label = "fc1.weight"}> : (tensor<64x256xbf16>) -> ()
      "mtp.accumulate"(%22) <{label = "fc1.bias"}> : (tensor<256xbf16>) -> ()
      "mtp.yield"() : () -> ()
    }) : () -> ()
    "mtp.yield"(%19) : (tensor<1x32x256xbf16>) -> ()
  }) : () -> ()
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, sym_name = "head"}> ({
  ^bb0(%arg0: tensor<1x32x256xbf16>):
    %4 = "mtp.parameter"() <{init = "normal", label = "fc2.weight"}> : () -> tensor<256x512xbf16>
    %5 = "mtp.einsum"(%arg0, %4) <{column = "o", equation = "bsi,iv->bsv", label = "fc2", row = "i"}> : (tensor<1x32x256xbf16>, tensor<256x512xbf16>) -> tensor<1x32x512xbf16>
    %6 = "mtp.vocab_max"(%5) <{classes = 500 : i64, label = "loss.max"}> : (tensor<1x32x512xbf16>) -> tensor<1x32xf32>
    %7 = "mtp.vocab_sum_exp"(%5, %6) <{classes = 500 : i64, label = "loss.sum_exp"}> : (tensor<1x32x512xbf16>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %8 = "mtp.input"() <{dims = ["batch", "sequence"], label = "targets", limit = 500 : i64}> : () -> tensor<1x32xi32>
    %9 = "mtp.vocab_pick"(%5, %8) <{label = "loss.pick"}> : (tensor<1x32x512xbf16>, tensor<1x32xi32>) -> tensor<1x32xf32>
    %10 = "mtp.input"() <{dims = [], label = "count"}> : () -> tensor<f32>
    %11 = "mtp.token_loss"(%6, %7, %9, %8, %10) <{label = "loss"}> : (tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xi32>, tensor<f32>) -> tensor<f32>
    "mtp.accumulate"(%11) <{label = "loss"}> : (tensor<f32>) -> ()
    "mtp.backward"() ({
      %12 = "mtp.cross_entropy_grad"(%5, %6, %7, %8, %10) <{classes = 500 : i64, label = "loss.grad"}> : (tensor<1x32x512xbf16>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xi32>, tensor<f32>) -> tensor<1x32x512xbf16>
      %13 = "mtp.einsum"(%12, %4) <{column = "o", equation = "bsv,iv->bsi", label = "fc2.dx", row = "i"}> : (tensor<1x32x512xbf16>, tensor<256x512xbf16>) -> tensor<1x32x256xbf16>
      %14 = "mtp.einsum"(%arg0, %12) <{column = "o", equation = "bsi,bsv->iv", label = "fc2.dw", row = "i"}> : (tensor<1x32x256xbf16>, tensor<1x32x512xbf16>) -> tensor<256x512xbf16>
      "mtp.accumulate"(%14) <{label = "fc2.weight"}> : (tensor<256x512xbf16>) -> ()
      "mtp.yield"(%13) : (tensor<1x32x256xbf16>) -> ()
    }) : () -> ()
    "mtp.yield"() : () -> ()
  }) : () -> ()
  "mtp.update"() ({
    %0 = "mtp.accumulated"() <{label = "fc1.weight"}> : () -> tensor<64x256xbf16>
    "mtp.adamw"(%0) <{decay, label = "fc1.weight"}> : (tensor<64x256xbf16>) -> ()
    %1 = "mtp.accumulated"() <{label = "fc1.bias"}> : () -> tensor<256xbf16>
    "mtp.adamw"(%1) <{label = "fc1.bias"}> : (tensor<256xbf16>) -> ()
    %2 = "mtp.accumulated"() <{label = "fc2.weight"}> : () -> tensor<256x512xbf16>
    "mtp.adamw"(%2) <{decay, label = "fc2.weight"}> : (tensor<256x512xbf16>) -> ()
    %3 = "mtp.accumulated"() <{label = "loss"}> : () -> tensor<f32>
    "mtp.result"(%3) <{label = "loss"}> : (tensor<f32>) -> ()
  }) : () -> ()
}) {mtp.layers = 1 : i64} : () -> ()

