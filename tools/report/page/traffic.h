//===- traffic.h - Communication by axis and phase --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_TRAFFIC_H
#define MTPLAN_TOOLS_REPORT_PAGE_TRAFFIC_H

#include <string>
#include <vector>

#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Returns two sets of bars, bytes and time by kind of collective, and a table.
std::string trafficSection(const std::vector<PageTraffic> &traffic);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_TRAFFIC_H
