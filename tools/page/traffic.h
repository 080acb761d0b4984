//===- traffic.h - Communication by axis and phase --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_TRAFFIC_H
#define MTPLAN_TOOLS_PAGE_TRAFFIC_H

#include <string>
#include <vector>

#include "tools/page/page.h"

namespace mtplan::tools {

/// Two sets of bars, bytes and time, divided by kind of collective; a table.
std::string trafficSection(const std::vector<PageTraffic> &traffic);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_TRAFFIC_H
