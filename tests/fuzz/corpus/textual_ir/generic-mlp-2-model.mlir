"builtin.module"() ({
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, sym_name = "mlp"}> ({
    %8 = "mtp.input"() <{dims = ["batch", "sequence", "other"], label = "x"}> : () -> tensor<1x32x64xbf16>
    %9 = "mtp.parameter"() <{init = "normal", label = "fc1.weight"}> : () -> tensor<64x256xbf16>
    %10 = "mtp.parameter"() <{init = "zeros", label = "fc1.bias"}> : () -> tensor<256xbf16>
    %11 = "mtp.einsum"(%8, %9, %10) <{column = "o", equation = "bsi,io->bso", label = "fc1", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<1x32x256xbf16>
    %12 = "mtp.activation"(%11) <{kind = 1 : i32, label = "act"}> : (tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16>
    "mtp.yield"(%12) : (tensor<1x32x256xbf16>) -> ()
  }) : () -> ()
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, sym_name = "head"}> ({
  ^bb0(%arg0: tensor<1x32x256xbf16>):
    %0 = "mtp.parameter"() <{init = "normal", label = "fc2.weight"}> : () -> tensor<256x512xbf16>
    %1 = "mtp.einsum"(%arg0, %0) <{column = "o", equation = "bsi,iv->bsv", label = "fc2", row = "i"}> : (tensor<1x32x256xbf16>, tensor<256x512xbf16>) -> tensor<1x32x512xbf16>
    %2 = "mtp.vocab_max"(%1) <{classes = 500 : i64, label = "loss.max"}> : (tensor<1x32x512xbf16>) -> tensor<1x32xf32>
    %3 = "mtp.vocab_sum_exp"(%1, %2) <{classes = 500 : i64, label = "loss.sum_exp"}> : (tensor<1x32x512xbf16>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %4 = "mtp.input"() <{dims = ["batch", "sequence"], label = "targets", limit = 500 : i64}> : () -> tensor<1x32xi32>
    %5 = "mtp.vocab_pick"(%1, %4) <{label = "loss.pick"}> : (tensor<1x32x512xbf16>, tensor<1x32xi32>) -> tensor<1x32xf32>
    %6 = "mtp.input"() <{dims = [], label = "count"}> : () -> tensor<f32>
    %7 = "mtp.token_loss"(%2, %3, %5, %4, %6) <{label = "loss"}> : (tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xi32>, tensor<f32>) -> tensor<f32>
    "mtp.accumulate"(%7) <{label = "loss"}> : (tensor<f32>) -> ()
    "mtp.yield"() : () -> ()
  }) : () -> ()
}) {mtp.layers = 1 : i64} : () -> ()

