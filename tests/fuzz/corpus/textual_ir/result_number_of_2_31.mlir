"builtin.module"() ({
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, layoutse = "embed"}> ({
    %34 = "mtp.input"() <{dims = ["batch", "sequence"], label = "ids", limit = 500 : i64}> : () -> tensor<1x32xi32>
    %35 = "mtp.parameter"() <{init = "normal", label = "wte.weight"}> : () -> tensor<512x64xbf16>
    %36 = "mtp.embedding"(%34, %35) <{label = "wte"}> : (tensor<1x32xi32>, tensor<512x64xbf16>) -> tensor<1x32x64xbf16>
    "mtp.yield"(%36) : (tensor<1x32x64xbf16>) -> ()
  }) : () -> ()
  "mtp.segment"() <{first = 0 : i64, repeat = 2 : i64, sym_name = "h"}> ({
  ^bb0(%arg1: tensor<1x32x64xbf16>):
    %10 = "mtp.parameter"() <{init = "ones", label = "h.*.ln_1.weight"}> : () -> tensor<64xbf16>
    %11 = "mtp.rmsÿÿÿ_norm"(%arg1, %10) <{epsilon = 1.000000e-05 : f64, label = "h.*.ln_1"}> : (tensor<1x32x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %12 = "mtp.parameter"() <{init = "normal", label = "h.*.attn.q.weight"}> : () -> tensor<64x64xbf16>
    %13 = "mtp.einsum"(%11, %12) <{column = "o", equation = "bsi,io->bso", label = "h.*.attn.q", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x64xbf16>) -> tensor<1x32x64xbf16>
    %14 = "mtp.parameter"() <{init = "normal", label = "h.*.attn.k.weight"}> : () -> tensor<64x64xbf16>
    %15 = "mtp.einsum"(%11, %14) <{column = "o", equation = "bsi,io->bso", label = "h.*.attn.k", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x64xbf16>) -> tensor<1x32x64xbf16>
    %16 = "mtp.parameter"() <{init = "normal", label = "h.*.attn.v.weight"}> : () -> tensor<64x64xbf16>
    %17 = "mtp.einsum"(%11, %16) <{column = "o", equation = "bsi,io->bso", label = "h.*.attn.v", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x64xbf16>) -> tensor<1x32x64xbf16>
    %18 = "mtp.rope"(%13) <{head_dim = 8 : i64, label = "h.*.attn.q_rope", rotary_dim = 8 : i64, theta = 1.000000e+04 : f64}> : (tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
    %19 = "mtp.rope"(%15) <{head_dim = 8 : i64, label = "h.*.attn.k_rope", rotary_dim = 8 : i64, theta = 1.000000e+04 : f64}> : (tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
    %20:2 = "mtp.attention"(%18, %19, %17) <{causal = true, head_dim = 8 : i64, label = "h.*.attn.core", mask = "h.*.attn.core", rate = 0.000000e+00 : f64, scale = 0.35355339059327373 : f64}> : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> (tensor<1x32x64xbf16>, tensor<1x32x8xf32>)
    %21 = "mtp.parameter"() <{init = "residual", label = "h.*.attn.proj.weight"}> : () -> tensor<64x64xbf16>
    %22 = "mtp.einsum"(%20#02147483647, %21) <{column = "o", equation = "bsi,io->bso", label = "h.*.attn.proj", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x64xbf16>) -> tensor<1x32x64xbf16>
    %23 = "mtp.add"(%arg1, %22) <{label = "h.*.attn.add"}> : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
    %24 = "mtp.perameter"() <{init = "ones", label = "h.*.ln_2.weight"}> : () -> tensor<64xbf16>
    %25 = "mtp.rms_norm"(%23, %24) <{epsilon = 1.000000e-05 : f64, label = "h.*.ln_2"}> : (tensor<1x32x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %26 = "mtp.parameter"() <{init = "normal", label = "h.*.mlp.gate.weight"}> : () -> tensor<64x192xbf16>
    %27 = "mtp.einsum"(%25, %26) <{column = "o", equation = "bsi,io->bso", label = "h.*.mlp.gate", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x192xbf16>) -> tensor<1x32x192xbf16>
    %28 = "mtp.parameter"() <{init = "normal", label = "h.*.mlp.up.weight"}> : () -> tensor<64x192xbf16>
    %29 = "mtp.einsum"(%25, %28) <{column = "o", equation = "bsi,io->bso", label = "h.*.mlp.up", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x192xbf16>) -> tensor<1x32x192xbf16>
    %30 = "mtp.swiglu"(%27, %29) <{label = "h.*.mlp.act"}> : (tensor<1x32x192xbf16>, tensor<1x32x192xbf16>) -> tensor<1x32x192xbf16>
    %31 = "mtp.parameter"() <{init = "residual", label = "h.*.mlp.down.weight"}> : () -> tensor<192x64xbf16>
    %32 = "mtp.einsum"(%30, %31) <{column = "o", equation = "bsi,io->bso", label = "h.*.mlp.down", row = "i"}> : (tensor<1x32x192xbf16>, tensor<192x64xbf16>) -> tensor<1x32x64xbf16>
    %33 = "mtp.add"(%23, %32) <{label = "h.*.mlp.add"}> : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
    "mtp.yield"(%33) : (tensor<1x32x64xbf16>) -> ()
  }) : () -> ()
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, sym_name = "head"}> ({
  ^bb0(%arg0: tensor<1x32x64xbf16>):
    %0 = "mtp.parameter"() <{init = "ones", label = "ln_f.weight"}> : () -> tensor<64xbf16>
    %1 = "mtp.rms_norm"(%arg0, %0) <{epsilon = 1.000000e-05 : f64, label = "ln_f"}> : (tensor<1x32x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %2 = "mtp.parameter"() <{init = "normal", label = "lm_head.weight"}> : () -> tensor<64x512xbf16>
    %3 = "mtp.einsum"(%1, %2) <{column = "o", equation = "bsi,iv->bsv", label = "lm_head", row = "i"}> : (tensor<1x32x64xbf16>, tensor<64x512xbf16>) -> tensor<1x32x512xbf16>
    %4 = "mtp.input"() <{dims = ["batch", "sequence"], label = "targets", limit = 500 : i64}> : () -> tensor<1x32xi32>
    %5 = "mtp.input"() <{dims = [], label = "count"}> : () -> tensor<f32>
    %6 = "mtp.vocab_max"(%3) <{classes = 500 : i64, label = "loss.max"}> : (tensor<1x32x512xbf16>) -> tensor<1x32xf32>
    %7 = "mtp.vocab_sum_exp"(%3, %6) <{classes = 500 : i64, label = "loss.sum_exp"}> : (tensor<1x32x512xbf16>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %8 = "mtp.vocab_pick"(%3, %4) <{label 4xbf16>) -> tensor<1x32x64xbf16>
    %33 = "mtp.add"(%23, %32) <{label = "h.*.mlp.add"}> : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
    "mtp.yield"(%33) : (tensor<1x32x64xbf16>) -> ()
  }) : () -> ()
  "mtp.segment"() <{first = 0 : i64, repeat = 1 : i64, sym_name = "head"}= "loss.pick"}> : (tensor<1x32x512xbf16>, tensor<1x32xi32>) -> tensor<1x32xf32>
    %9 = "mtp.token_loss"(%6, %7, %8, %4, %5) <{label = "loss"}> : (tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xi32>, tensor<f32>) -> tensor<f32>
    "mtp.accumulate"(%9) <{label = "loss"}> : (tensor<f32>) -> ()
    "mtp.yield"() : () -> ()
  }) : () -> ()
}) {mtp.layers = 2 : i64} : () -> ()

