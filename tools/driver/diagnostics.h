//===- diagnostics.h - Diagnostics of passes, as lines ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_DIAGNOSTICS_H
#define MTPLAN_TOOLS_DRIVER_DIAGNOSTICS_H

#include <string>
#include <vector>

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

namespace mtplan::tools {

/// Turns the context's errors into lines of `errors` during its lifetime.
class CapturedDiagnostics {
public:
  CapturedDiagnostics(mlir::MLIRContext &context,
                      std::vector<std::string> &errors)
      : handler(&context, [&errors](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
            return mlir::success();
          std::string line;
          llvm::raw_string_ostream stream(line);
          auto place =
              llvm::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation());
          if (place)
            stream << place.getFilename().getValue() << ':' << place.getLine()
                   << ':' << place.getColumn() << ": ";
          stream << diagnostic.str();
          errors.push_back(stream.str());
          return mlir::success();
        }) {}

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_DIAGNOSTICS_H
