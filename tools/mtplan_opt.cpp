//===- mtplan_opt.cpp - Runs any pass over MLIR text ----------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "ir/mtp.h"
#include "passes/passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mtplan::ir::MtpDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mtplan::passes::registerMtpPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "mtplan pass driver\n", registry));
}
